// Layer, group and RMS normalisation: rows to mean 0 and variance 1, then scale and shift.
//
// An element i of a row has the parameter (row % groups) * per_row + i / area: for layer normalisation groups and area are 1, and
// per_row is the length; for group normalisation per_row is the number of channels of a group, and area what a channel has.
// Parameters and statistics are in the type that is computed in. With `rms`, the mean is 0.

struct Places {
    whole area, per_row, groups;
};

__device__ inline whole parameter_of(whole row, whole i, const Places& places) {
    return row % places.groups * places.per_row + i / places.area;
}

extern "C" __global__ void normalise(
    const scalar* x, const accum* weight, const accum* bias, scalar* y, accum* mean, accum* rstd, whole rows, whole length,
    whole area, whole per_row, whole groups, whole has_weight, whole has_bias, whole rms, double eps
) {
    whole row = row_of_thread();
    if (row >= rows) return;
    Places places = {area, per_row, groups};
    x += row * length;
    y += row * length;
    accum middle = 0;
    if (is_held(x, length) && together(y) && area == 1 && groups == 1) {
        accum held[HELD], square = 0;
        hold(held, x, length, 0);
        if (!rms) {
#pragma unroll
            for (int i = 0; i < HELD; ++i) middle += held[i];
            middle = row_sum(middle) / length;
        }
#pragma unroll
        for (int k = 0; k < HELD / WIDTH; ++k)
#pragma unroll
            for (int j = 0; j < WIDTH; ++j) {
                accum centred = held[k * WIDTH + j] - middle;
                if (pack_at(k) < length) square += centred * centred;
            }
        accum factor = accum(1) / sqrt(row_sum(square) / length + accum(eps));
#pragma unroll
        for (int k = 0; k < HELD / WIDTH; ++k) {
            whole at = pack_at(k);
            if (at >= length) continue;
            Pack<scalar> pack;
#pragma unroll
            for (int j = 0; j < WIDTH; ++j) {
                accum value = (held[k * WIDTH + j] - middle) * factor;
                if (has_weight) value *= weight[at + j];
                if (has_bias) value += bias[at + j];
                pack.of[j] = made(value);
            }
            *(Pack<scalar>*)(y + at) = pack;
        }
        if (threadIdx.x == 0) {
            mean[row] = middle;
            rstd[row] = factor;
        }
        return;
    }
    if (!rms) {
        for (whole i = threadIdx.x; i < length; i += blockDim.x) middle += load(x[i]);
        middle = row_sum(middle) / length;
    }
    // A second pass: the difference of a mean of squares and a squared mean has few digits.
    accum square = 0;
    for (whole i = threadIdx.x; i < length; i += blockDim.x) {
        accum centred = load(x[i]) - middle;
        square += centred * centred;
    }
    accum factor = accum(1) / sqrt(row_sum(square) / length + accum(eps));
    for (whole i = threadIdx.x; i < length; i += blockDim.x) {
        whole at = parameter_of(row, i, places);
        accum value = (load(x[i]) - middle) * factor;
        if (has_weight) value *= weight[at];
        if (has_bias) value += bias[at];
        put(y + i, value);
    }
    if (threadIdx.x == 0) {
        mean[row] = middle;
        rstd[row] = factor;
    }
}

extern "C" __global__ void normalise_backward(
    const scalar* grad, const scalar* x, const accum* weight, const accum* mean, const accum* rstd, scalar* made, whole rows,
    whole length, whole area, whole per_row, whole groups, whole has_weight
) {
    whole row = row_of_thread();
    if (row >= rows) return;
    Places places = {area, per_row, groups};
    grad += row * length;
    x += row * length;
    made += row * length;
    accum middle = mean[row], factor = rstd[row], level = 0, along = 0;
    for (whole i = threadIdx.x; i < length; i += blockDim.x) {
        accum each = load(grad[i]);
        if (has_weight) each *= weight[parameter_of(row, i, places)];
        level += each;
        along += each * (load(x[i]) - middle) * factor;
    }
    level = row_sum(level) / length;
    along = row_sum(along) / length;
    for (whole i = threadIdx.x; i < length; i += blockDim.x) {
        accum each = load(grad[i]);
        if (has_weight) each *= weight[parameter_of(row, i, places)];
        put(made + i, (each - level - (load(x[i]) - middle) * factor * along) * factor);
    }
}

// The gradients of scale and shift where each column has its own: sums over some of the rows, [gridDim.y, length]. A block has 32
// columns, so that a warp reads 32 elements that lie next to each other, and blockDim.y rows at a time.
extern "C" __global__ void parameters_of_columns(
    const scalar* grad, const scalar* x, const accum* mean, const accum* rstd, accum* of_scale, accum* of_shift, whole rows,
    whole length
) {
    __shared__ accum scales[16][33], shifts[16][33];
    whole column = (whole)blockIdx.x * 32 + threadIdx.x;
    accum along = 0, total = 0;
    if (column < length) {
        for (whole row = (whole)blockIdx.y * blockDim.y + threadIdx.y; row < rows; row += (whole)gridDim.y * blockDim.y) {
            accum each = load(grad[row * length + column]);
            total += each;
            along += each * (load(x[row * length + column]) - mean[row]) * rstd[row];
        }
    }
    scales[threadIdx.y][threadIdx.x] = along;
    shifts[threadIdx.y][threadIdx.x] = total;
    __syncthreads();
    if (threadIdx.y == 0 && column < length) {
        for (int i = 1; i < blockDim.y; ++i) {
            along += scales[i][threadIdx.x];
            total += shifts[i][threadIdx.x];
        }
        of_scale[blockIdx.y * length + column] = along;
        of_shift[blockIdx.y * length + column] = total;
    }
}

// The same where a channel has one, for arrays [images, channels, area]; a block has a channel. The statistics of a channel are at
// image * per_image + channel / together: for batch normalisation these are 0 and 1.
extern "C" __global__ void parameters_of_channels(
    const scalar* grad, const scalar* x, const accum* mean, const accum* rstd, accum* of_scale, accum* of_shift, whole images,
    whole channels, whole area, whole per_image, whole together
) {
    whole channel = blockIdx.x;
    accum along = 0, total = 0;
    for (whole i = threadIdx.x; i < images * area; i += blockDim.x) {
        whole at = place_of(i, channel, channels, area);
        whole statistic = (per_image ? image_of(i, area) * per_image : 0) + channel / together;
        accum each = load(grad[at]);
        total += each;
        along += each * (load(x[at]) - mean[statistic]) * rstd[statistic];
    }
    along = row_sum(along);
    total = row_sum(total);
    if (threadIdx.x == 0) {
        of_scale[channel] = along;
        of_shift[channel] = total;
    }
}
