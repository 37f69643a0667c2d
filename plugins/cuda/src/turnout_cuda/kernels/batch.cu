// Batch normalisation of arrays [images, channels, area]. Statistics and parameters are in the type that is computed in.

// The channel of an element of all.
__device__ inline whole channel_of(whole i, whole channels, whole area) {
    return i >> 32 ? i / area % channels : (whole)((unsigned)i / (unsigned)area % (unsigned)channels);
}

// The mean and the variance of each channel, divided by the number of elements, and the new running statistics. A block has a
// channel. Of a single element the unbiased variance is nan.
extern "C" __global__ void channel_statistics(
    const scalar* x, accum* mean, accum* variance, const accum* running_mean, const accum* running_var, accum* moved_mean,
    accum* moved_var, whole images, whole channels, whole area, whole has_running, double momentum
) {
    whole channel = blockIdx.x, count = images * area;
    accum middle = 0, square = 0;
    for (whole i = threadIdx.x; i < count; i += blockDim.x) middle += load(x[place_of(i, channel, channels, area)]);
    middle = row_sum(middle) / count;
    for (whole i = threadIdx.x; i < count; i += blockDim.x) {
        accum centred = load(x[place_of(i, channel, channels, area)]) - middle;
        square += centred * centred;
    }
    square = row_sum(square);
    if (threadIdx.x) return;
    mean[channel] = middle;
    variance[channel] = square / count;
    if (has_running) {
        accum weight = accum(momentum), left = accum(1 - momentum);
        moved_mean[channel] = running_mean[channel] * left + middle * weight;
        moved_var[channel] = running_var[channel] * left + square / (count - 1) * weight;
    }
}

extern "C" __global__ void batch_normalise(
    const scalar* x, const accum* mean, const accum* rstd, const accum* weight, const accum* bias, scalar* y, whole size,
    whole channels, whole area, whole has_weight, whole has_bias
) {
    whole packs = area % WIDTH == 0 && together(x) && together(y) ? size / WIDTH : 0;
    for (whole i = first_place(); i < packs; i += all_threads()) {
        whole channel = channel_of(i, channels, area / WIDTH);
        accum middle = mean[channel], factor = rstd[channel], shift = has_bias ? bias[channel] : accum(0);
        accum scale = has_weight ? weight[channel] : accum(1);
        Pack<scalar> pack = ((const Pack<scalar>*)x)[i];
        for (int j = 0; j < WIDTH; ++j) pack.of[j] = made((load(pack.of[j]) - middle) * factor * scale + shift);
        ((Pack<scalar>*)y)[i] = pack;
    }
    for (whole i = packs * WIDTH + first_place(); i < size; i += all_threads()) {
        whole channel = channel_of(i, channels, area);
        accum value = (load(x[i]) - mean[channel]) * rstd[channel];
        if (has_weight) value *= weight[channel];
        if (has_bias) value += bias[channel];
        put(y + i, value);
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
