// Layer, group and RMS normalisation: rows to mean 0 and variance 1, then scale and shift.
//
// An element i of a row has the parameter (row % groups) * per_row + i / area: for layer normalisation groups and area are 1, and
// per_row is the length; for group normalisation per_row is the number of channels of a group, and area what a channel has.
// A parameter is in the type that is computed in, in that of the elements, or missing, and statistics are in one of the two: so
// nothing is converted first. With `rms`, the mean is 0.

struct Places {
    whole area, per_row, groups;
};

__device__ inline whole parameter_of(whole row, whole i, const Places& places) {
    return row % places.groups * places.per_row + image_of(i, places.area);
}

struct Parameter {
    const accum* wide;
    const scalar* own;
    whole kind;

    __device__ accum at(whole i, accum otherwise) const {
        return kind == OWN ? load(own[i]) : kind == WIDE ? wide[i] : otherwise;
    }
    // Those of a pack of columns.
    __device__ void read(accum* to, whole i, accum otherwise) const {
        if (kind == OWN && together(own + i)) {
            Pack<scalar> pack = *(const Pack<scalar>*)(own + i);
#pragma unroll
            for (int j = 0; j < WIDTH; ++j) to[j] = load(pack.of[j]);
        } else if (kind == WIDE && together(wide + i)) {
            Pack<accum> pack = *(const Pack<accum>*)(wide + i);
#pragma unroll
            for (int j = 0; j < WIDTH; ++j) to[j] = pack.of[j];
        } else {
#pragma unroll
            for (int j = 0; j < WIDTH; ++j) to[j] = at(i + j, otherwise);
        }
    }
    // Each of the elements of a row that are held times that of its column.
    __device__ void times(accum* held, whole length) const {
        if (kind == MISSING) return;
#pragma unroll
        for (int k = 0; k < HELD / WIDTH; ++k) {
            if (pack_at(k) >= length) continue;
            accum columns[WIDTH];
            read(columns, pack_at(k), 1);
#pragma unroll
            for (int j = 0; j < WIDTH; ++j) held[k * WIDTH + j] *= columns[j];
        }
    }
};

struct Statistics {
    accum *mean, *rstd;
    scalar *own_mean, *own_rstd;
    whole kind;
    __device__ void put_at(whole row, accum middle, accum factor) const {
        if (kind == OWN) {
            put(own_mean + row, middle);
            put(own_rstd + row, factor);
        } else if (kind == WIDE) {
            mean[row] = middle;
            rstd[row] = factor;
        }
    }
};

// The statistics that a gradient reads.
struct Moments {
    const accum *mean, *rstd;
    const scalar *own_mean, *own_rstd;
    whole kind;
    __device__ accum middle(whole row) const { return kind == OWN ? load(own_mean[row]) : kind == WIDE ? mean[row] : accum(0); }
    __device__ accum factor(whole row) const { return kind == OWN ? load(own_rstd[row]) : rstd[row]; }
};

extern "C" __global__ void normalise(
    const scalar* x, const accum* weight, const scalar* own_weight, whole weight_kind, const accum* bias, const scalar* own_bias,
    whole bias_kind, scalar* y, accum* mean, accum* rstd, scalar* own_mean, scalar* own_rstd, whole statistics_kind, whole rows,
    whole length, whole area, whole per_row, whole groups, whole rms, double eps
) {
    whole row = row_of_thread();
    if (row >= rows) return;
    Parameter scale = {weight, own_weight, weight_kind}, shift = {bias, own_bias, bias_kind};
    Statistics statistics = {mean, rstd, own_mean, own_rstd, statistics_kind};
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
            accum slopes[WIDTH], levels[WIDTH];
            scale.read(slopes, at, 1);
            shift.read(levels, at, accum(-0.0));
#pragma unroll
            for (int j = 0; j < WIDTH; ++j) {
                pack.of[j] = made((held[k * WIDTH + j] - middle) * factor * slopes[j] + levels[j]);
            }
            *(Pack<scalar>*)(y + at) = pack;
        }
        if (threadIdx.x == 0) statistics.put_at(row, middle, factor);
        return;
    }
    Row line = {x, length, threadIdx.x, blockDim.x};
    if (!rms) middle = mean_of(line, row_sum);
    // A second pass: the difference of a mean of squares and a squared mean has few digits.
    accum factor = accum(1) / sqrt(squares_of(line, middle, row_sum) / length + accum(eps));
    whole parameters = row % groups * per_row;
    whole packs = area % WIDTH == 0 && together(x) && together(y) ? length / WIDTH : 0;  // each of a single channel
    for (whole i = threadIdx.x; i < packs; i += AHEAD * blockDim.x) {
        Pack<scalar> read[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; ++k)
            if (i + k * blockDim.x < packs) read[k] = ((const Pack<scalar>*)x)[i + k * blockDim.x];
#pragma unroll
        for (int k = 0; k < AHEAD; ++k) {
            whole at = i + k * blockDim.x;
            if (at >= packs) continue;
            whole channel = parameters + image_of(at, area / WIDTH);
            accum slope = factor * scale.at(channel, 1), level = shift.at(channel, accum(-0.0));
#pragma unroll
            for (int j = 0; j < WIDTH; ++j) read[k].of[j] = made((load(read[k].of[j]) - middle) * slope + level);
            ((Pack<scalar>*)y)[at] = read[k];
        }
    }
    for (whole i = packs * WIDTH + threadIdx.x; i < length; i += blockDim.x) {
        whole at = parameters + image_of(i, area);
        accum value = (load(x[i]) - middle) * factor;
        put(y + i, value * scale.at(at, 1) + shift.at(at, accum(-0.0)));
    }
    if (threadIdx.x == 0) statistics.put_at(row, middle, factor);
}

extern "C" __global__ void normalise_backward(
    const scalar* grad, const scalar* x, const accum* weight, const scalar* own_weight, whole weight_kind, const accum* mean,
    const accum* rstd, const scalar* own_mean, const scalar* own_rstd, whole statistics_kind, scalar* made, whole rows,
    whole length, whole area, whole per_row, whole groups
) {
    whole row = row_of_thread();
    if (row >= rows) return;
    Places places = {area, per_row, groups};
    Parameter scale = {weight, own_weight, weight_kind};
    grad += row * length;
    x += row * length;
    made += row * length;
    Moments moments = {mean, rstd, own_mean, own_rstd, statistics_kind};
    accum middle = moments.middle(row), factor = moments.factor(row), level = 0, along = 0;
    if (area == 1 && groups == 1 && are_held(grad, x, made, length)) {
        accum slopes[HELD], normal[HELD];
        hold(slopes, grad, length, 0);
        hold(normal, x, length, middle);
        scale.times(slopes, length);
#pragma unroll
        for (int i = 0; i < HELD; ++i) {
            normal[i] = (normal[i] - middle) * factor;
            level += slopes[i];
            along += slopes[i] * normal[i];
        }
        level = row_sum(level) / length;
        along = row_sum(along) / length;
        release(made, length, [&](int i) { return (slopes[i] - level - normal[i] * along) * factor; });
        return;
    }
    for (whole i = threadIdx.x; i < length; i += blockDim.x) {
        accum each = load(grad[i]) * scale.at(parameter_of(row, i, places), 1);
        level += each;
        along += each * (load(x[i]) - middle) * factor;
    }
    level = row_sum(level) / length;
    along = row_sum(along) / length;
    for (whole i = threadIdx.x; i < length; i += blockDim.x) {
        accum each = load(grad[i]) * scale.at(parameter_of(row, i, places), 1);
        put(made + i, (each - level - (load(x[i]) - middle) * factor * along) * factor);
    }
}

// Of `normalise` with `rms`: both sums come from one pass, so the deviations are computed anew, for the gradients of scales, too.
extern "C" __global__ void rms_backward(
    const scalar* grad, const scalar* x, const accum* weight, const scalar* own_weight, whole weight_kind, accum* rstd,
    scalar* made, whole rows, whole length, whole wanted, double eps
) {
    whole row = row_of_thread();
    if (row >= rows) return;
    Parameter scale = {weight, own_weight, weight_kind};
    grad += row * length;
    x += row * length;
    accum square = 0, along = 0;
    if (wanted && are_held(grad, x, made + row * length, length)) {
        made += row * length;
        accum slopes[HELD], held[HELD];
        hold(slopes, grad, length, 0);
        hold(held, x, length, 0);
        scale.times(slopes, length);
#pragma unroll
        for (int i = 0; i < HELD; ++i) {
            square += held[i] * held[i];
            along += slopes[i] * held[i];
        }
        accum factor = accum(1) / sqrt(row_sum(square) / length + accum(eps));
        if (threadIdx.x == 0) rstd[row] = factor;
        along = row_sum(along) * factor * factor / length;
        release(made, length, [&](int i) { return (slopes[i] - held[i] * along) * factor; });
        return;
    }
    for (whole i = threadIdx.x; i < length; i += blockDim.x) {
        accum value = load(x[i]);
        square += value * value;
        if (wanted) along += load(grad[i]) * scale.at(i, 1) * value;
    }
    accum factor = accum(1) / sqrt(row_sum(square) / length + accum(eps));
    if (threadIdx.x == 0) rstd[row] = factor;
    if (!wanted) return;
    made += row * length;
    along = row_sum(along) * factor * factor / length;
    for (whole i = threadIdx.x; i < length; i += blockDim.x) {
        put(made + i, (load(grad[i]) * scale.at(i, 1) - load(x[i]) * along) * factor);
    }
}

#define ROWS_OF_BLOCK 8

// The gradients of scale and shift where each column has its own: sums over some of the rows, [gridDim.y, length]. A block has 32
// columns, so that a warp reads 32 elements that lie next to each other, and ROWS_OF_BLOCK rows at a time. Without means there
// is no shift.
extern "C" __global__ void parameters_of_columns(
    const scalar* grad, const scalar* x, const accum* mean, const accum* rstd, const scalar* own_mean, const scalar* own_rstd,
    whole statistics_kind, accum* of_scale, accum* of_shift, whole rows, whole length
) {
    Moments moments = {mean, rstd, own_mean, own_rstd, statistics_kind};
    __shared__ accum scales[ROWS_OF_BLOCK][33], shifts[ROWS_OF_BLOCK][33];
    whole column = (whole)blockIdx.x * 32 + threadIdx.x;
    accum along = 0, total = 0;
    if (column < length) {
        for (whole row = (whole)blockIdx.y * blockDim.y + threadIdx.y; row < rows; row += (whole)gridDim.y * blockDim.y) {
            accum each = load(grad[row * length + column]);
            total += each;
            along += each * (load(x[row * length + column]) - moments.middle(row)) * moments.factor(row);
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
        if (statistics_kind != MISSING) of_shift[blockIdx.y * length + column] = total;
    }
}

// The sums of the parts [parts, length] in their order, rounded once. `wanted` has 1 for scales, 2 for shifts.
extern "C" __global__ void parameters_total(
    const accum* scales, const accum* shifts, scalar* of_scale, scalar* of_shift, whole length, whole parts, whole wanted
) {
    for (whole i = first_place(); i < length; i += all_threads()) {
        accum along = 0, total = 0;
        for (whole at = i; at < parts * length; at += length) {
            if (wanted & 1) along += scales[at];
            if (wanted & 2) total += shifts[at];
        }
        if (wanted & 1) put(of_scale + i, along);
        if (wanted & 2) put(of_shift + i, total);
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
