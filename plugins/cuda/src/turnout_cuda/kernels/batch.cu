// Batch normalisation of arrays [images, channels, area]. Statistics and parameters are in the type that is computed in.

// The channel of an element of all.
__device__ inline whole channel_of(whole i, whole channels, whole area) {
    return i >> 32 ? i / area % channels : (whole)((unsigned)i / (unsigned)area % (unsigned)channels);
}

// Where statistics of channels go: the mean, the reciprocal deviation, and the new running ones.
struct Statistic {
    accum *mean, *rstd;
    const accum *running_mean, *running_var;
    accum *moved_mean, *moved_var;
    whole has_running;
    double momentum, eps;

    // Of a single element the unbiased variance is nan.
    __device__ void put_at(whole channel, whole count, accum middle, accum squares) const {
        mean[channel] = middle;
        rstd[channel] = accum(1) / sqrt(squares / accum(count) + accum(eps));
        if (!has_running) return;
        accum weight = accum(momentum), left = accum(1 - momentum);
        moved_mean[channel] = running_mean[channel] * left + middle * weight;
        moved_var[channel] = running_var[channel] * left + squares / accum(count - 1) * weight;
    }
};

// A block has a part of a channel, which its threads keep: its mean and its squares of distances from that go to `parts`
// [channels, count_of_parts, 2]. Those of the only part are the statistics.
extern "C" __global__ void channel_statistics(
    const scalar* x, accum* parts, accum* mean, accum* rstd, const accum* running_mean, const accum* running_var,
    accum* moved_mean, accum* moved_var, whole has_running, double momentum, double eps, whole images, whole channels,
    whole area, whole count_of_parts
) {
    whole channel = blockIdx.x / (unsigned)count_of_parts, each = HELD * (whole)blockDim.x;
    whole count = images * area, first = blockIdx.x % (unsigned)count_of_parts * each;
    whole size = count - first < each ? count - first : each;
    bool packs = area % WIDTH == 0 && together(x);
    accum held[HELD], middle = 0, squares = 0;
#pragma unroll
    for (int k = 0; k < HELD / WIDTH; ++k) {
        whole i = pack_at(k);
        Pack<scalar> pack;
        if (packs && i < size) pack = *(const Pack<scalar>*)(x + place_of(first + i, channel, channels, area));
#pragma unroll
        for (int j = 0; j < WIDTH; ++j) {
            if (!packs && i + j < size) pack.of[j] = x[place_of(first + i + j, channel, channels, area)];
            held[k * WIDTH + j] = i + j < size ? load(pack.of[j]) : accum(0);
            middle += held[k * WIDTH + j];
        }
    }
    middle = row_sum(middle) / accum(size);
#pragma unroll
    for (int k = 0; k < HELD / WIDTH; ++k)
#pragma unroll
        for (int j = 0; j < WIDTH; ++j) {
            accum centred = held[k * WIDTH + j] - middle;
            if (pack_at(k) + j < size) squares += centred * centred;
        }
    squares = row_sum(squares);
    if (threadIdx.x) return;
    if (count_of_parts > 1) {
        parts[2 * (whole)blockIdx.x] = middle;
        parts[2 * (whole)blockIdx.x + 1] = squares;
        return;
    }
    Statistic statistic = {mean, rstd, running_mean, running_var, moved_mean, moved_var, has_running, momentum, eps};
    statistic.put_at(channel, count, middle, squares);
}

// The statistics of parts of `size` elements, of which the last one may have fewer: T. Chan, G. Golub, R. LeVeque, "Updating
// formulae and a pairwise algorithm for computing sample variances", 1979. A block has a channel.
extern "C" __global__ void channel_total(
    const accum* parts, accum* mean, accum* rstd, const accum* running_mean, const accum* running_var, accum* moved_mean,
    accum* moved_var, whole has_running, double momentum, double eps, whole count, whole size, whole count_of_parts
) {
    parts += 2 * (whole)blockIdx.x * count_of_parts;
    accum middle = 0, squares = 0;
    for (whole i = threadIdx.x; i < count_of_parts; i += blockDim.x) {
        middle += parts[2 * i] * accum(count - i * size < size ? count - i * size : size);
    }
    middle = row_sum(middle) / accum(count);
    for (whole i = threadIdx.x; i < count_of_parts; i += blockDim.x) {
        accum away = parts[2 * i] - middle;
        squares += parts[2 * i + 1] + away * away * accum(count - i * size < size ? count - i * size : size);
    }
    squares = row_sum(squares);
    if (threadIdx.x) return;
    Statistic statistic = {mean, rstd, running_mean, running_var, moved_mean, moved_var, has_running, momentum, eps};
    statistic.put_at(blockIdx.x, count, middle, squares);
}

// What is done to the elements of a channel.
struct Change {
    accum middle, slope, level;

    __device__ accum of(accum value) const { return (value - middle) * slope + level; }
};

// `spread` has reciprocal deviations, or variances, to which `eps` is added.
extern "C" __global__ void batch_normalise(
    const scalar* x, const accum* mean, const accum* spread, const accum* weight, const accum* bias, scalar* y, whole size,
    whole channels, whole area, whole has_weight, whole has_bias, whole of_variance, double eps
) {
    auto change = [=](whole channel) {
        accum factor = of_variance ? accum(1) / sqrt(spread[channel] + accum(eps)) : spread[channel];
        return Change{mean[channel], has_weight ? factor * weight[channel] : factor, has_bias ? bias[channel] : accum(-0.0)};
    };
    whole packs = area % WIDTH == 0 && together(x) && together(y) ? size / WIDTH : 0;  // each of a single channel
    for (whole i = first_place(); i < packs; i += all_threads()) {
        Pack<scalar> pack = ((const Pack<scalar>*)x)[i];
        Change of_channel = change(channel_of(i, channels, area / WIDTH));
#pragma unroll
        for (int j = 0; j < WIDTH; ++j) pack.of[j] = made(of_channel.of(load(pack.of[j])));
        ((Pack<scalar>*)y)[i] = pack;
    }
    for (whole i = packs * WIDTH + first_place(); i < size; i += all_threads()) {
        put(y + i, change(channel_of(i, channels, area)).of(load(x[i])));
    }
}

// of_scale and of_shift are the gradients of the parameters; they matter in training only, where the statistics are the batch's.
extern "C" __global__ void batch_normalise_backward(
    const scalar* grad, const scalar* x, const accum* mean, const accum* rstd, const accum* weight, const accum* of_scale,
    const accum* of_shift, scalar* made, whole size, whole channels, whole area, whole has_weight, whole training
) {
    accum count = accum(size / channels);
    for (whole i = first_place(); i < size; i += all_threads()) {
        whole channel = channel_of(i, channels, area);
        accum factor = rstd[channel], value = load(grad[i]);
        if (training) value -= (of_shift[channel] + (load(x[i]) - mean[channel]) * factor * of_scale[channel]) / count;
        put(made + i, has_weight ? value * factor * weight[channel] : value * factor);
    }
}
