// Convolutions of few products, and their gradients, by one launch each. Images are row-major, [images, channels, *dims].
// Positions are ints: arrays have fewer than 2^31 elements.

struct ConvDims : WindowDims {
    __device__ int plane() const { return depth.length * height.length * width.length; }
    __device__ int positions() const { return depth.count * height.count * width.count; }
    __device__ int elements() const { return depth.kernel * height.kernel * width.kernel; }
};

// The element under a kernel's element at a position of a dim; below 0 for none. `back` is the transposed convolution's.
__device__ inline int conv_element(const WindowDim& dim, int position, int element, bool back) {
    int at = back ? position + dim.padding - element * dim.dilation : position * dim.stride - dim.padding + element * dim.dilation;
    if (back && dim.stride > 1) {
        if (at < 0 || at % dim.stride) return -1;
        at /= dim.stride;
    }
    return at < dim.length ? at : -1;
}

struct ConvPlace {
    int z, y, x;
};

__device__ inline ConvPlace conv_place(int i, int height, int width) {
    int line = i / width, slice = line / height;
    return {slice, line - slice * height, i - line * width};
}

// Where the element lies in its plane that is under element `k` of the kernel at a position; below 0 for the padding.
__device__ inline int conv_under(const ConvDims& dims, const ConvPlace& at, const ConvPlace& k, bool back) {
    int z = conv_element(dims.depth, at.z, k.z, back), y = conv_element(dims.height, at.y, k.y, back);
    int x = conv_element(dims.width, at.x, k.x, back);
    return z < 0 || y < 0 || x < 0 ? -1 : (z * dims.height.length + y) * dims.width.length + x;
}

#define CONV_DEPTH 128  // products of a sum, whose weights a block keeps at a time
#define CONV_TILE 8  // of a thread
#define CONV_WEIGHTS 8, 4  // rows and columns of a warp

// `x` has `inputs` channels in each group, `y` has `outputs`. A thread has a position of an image in TILE channels of `y`: what it
// reads of `x` it uses for all of them. Products are added in the order of the kernel's elements, and of channels for each.
// Weights are [groups, outputs, inputs, *kernel]; with `back`, for the transposed convolution, [groups, inputs, outputs, *kernel].
template <int TILE>
__device__ inline void conv_tile(
    const scalar* __restrict__ x, const scalar* __restrict__ weight, const scalar* bias, scalar* y, const ConvDims& dims,
    int images, int groups, int inputs, int outputs, bool back, bool has_bias
) {
    __shared__ accum weights[CONV_DEPTH * TILE];
    int positions = dims.positions(), plane = dims.plane(), elements = dims.elements(), depth = elements * inputs;
    int tiles = (outputs + TILE - 1) / TILE;
    int group = int(blockIdx.y) / tiles, first_output = (int(blockIdx.y) - group * tiles) * TILE;
    whole row = first_place();
    bool is_mine = row < (whole)images * positions;
    int image = is_mine ? int(row) / positions : 0, position = is_mine ? int(row) - image * positions : 0;
    ConvPlace at = conv_place(position, dims.height.count, dims.width.count), k = {0, 0, 0};
    const scalar* from = x + (whole)(image * groups + group) * inputs * plane;
    accum sums[TILE];
    for (int j = 0; j < TILE; ++j) sums[j] = 0;
    int channel = 0, under = conv_under(dims, at, k, back);
    for (int first = 0; first < depth; first += CONV_DEPTH) {
        int count = depth - first < CONV_DEPTH ? depth - first : CONV_DEPTH;
        __syncthreads();  // the weights before these may still be read
        for (int i = threadIdx.x; i < count * TILE; i += blockDim.x) {
            int d = i / TILE, j = first_output + i - d * TILE, element = (first + d) / inputs;
            int input = first + d - element * inputs;
            int place = back ? (group * inputs + input) * outputs + j : (group * outputs + j) * inputs + input;
            weights[i] = j < outputs ? load(weight[place * elements + element]) : accum(0);
        }
        __syncthreads();
        for (int d = 0; d < count; ++d) {
            if (channel == inputs) {
                channel = 0;
                if (++k.x == dims.width.kernel) {
                    k.x = 0;
                    if (++k.y == dims.height.kernel) {
                        k.y = 0;
                        ++k.z;
                    }
                }
                under = conv_under(dims, at, k, back);
            }
            if (under >= 0) {
                accum value = load(from[channel * plane + under]);
#pragma unroll
                for (int j = 0; j < TILE; ++j) sums[j] += value * weights[d * TILE + j];
            }
            ++channel;
        }
    }
    for (int j = 0; is_mine && j < TILE && first_output + j < outputs; ++j) {
        int output = group * outputs + first_output + j;
        accum total = has_bias ? sums[j] + load(bias[output]) : sums[j];
        put(y + (whole)(image * groups * outputs + output) * positions + position, total);
    }
}

extern "C" __global__ void convolve(
    const scalar* x, const scalar* weight, const scalar* bias, scalar* y, whole images, whole groups, whole inputs,
    whole outputs, whole back, whole has_bias, whole tiled, WINDOW_ARGUMENTS
) {
    ConvDims dims = {WINDOW_DIMS};
    int sizes[] = {int(images), int(groups), int(inputs), int(outputs)};
    if (tiled) conv_tile<CONV_TILE>(x, weight, bias, y, dims, sizes[0], sizes[1], sizes[2], sizes[3], back != 0, has_bias != 0);
    else conv_tile<1>(x, weight, bias, y, dims, sizes[0], sizes[1], sizes[2], sizes[3], back != 0, has_bias != 0);
}

#define ALONE_LINES 4  // lines of a thread
#define ALONE_ELEMENTS 9  // of the kernel, whose sums a thread has

// The same where each group has one channel. A thread has an element of some lines, which it weighs alike.
extern "C" __global__ void convolve_alone(
    const scalar* __restrict__ x, const scalar* __restrict__ weight, const scalar* bias, scalar* y, whole planes, whole groups,
    whole back, whole has_bias, WINDOW_ARGUMENTS
) {
    ConvDims dims = {WINDOW_DIMS};
    int height = dims.height.count, width = dims.width.count, strips = (height + ALONE_LINES - 1) / ALONE_LINES;
    int place = int(first_place()), line = place / width, slice = line / strips;
    int column = place - line * width, first = (line - slice * strips) * ALONE_LINES;
    if (slice >= dims.depth.count) return;
    for (int plane = blockIdx.y; plane < int(planes); plane += gridDim.y) {
        int channel = plane % int(groups);
        const scalar* from = x + (whole)plane * dims.plane();
        const scalar* weights = weight + (whole)channel * dims.elements();
        accum sums[ALONE_LINES] = {};
        for (int kz = 0; kz < dims.depth.kernel; ++kz) {
            int z = conv_element(dims.depth, slice, kz, back != 0);
            for (int ky = 0; ky < dims.height.kernel; ++ky) {
                int starts[ALONE_LINES];
#pragma unroll
                for (int i = 0; i < ALONE_LINES; ++i) {
                    int at = conv_element(dims.height, first + i, ky, back != 0);
                    starts[i] = z < 0 || at < 0 ? -1 : (z * dims.height.length + at) * dims.width.length;
                }
                for (int kx = 0; kx < dims.width.kernel; ++kx) {
                    accum factor = load(*weights++);
                    int at = conv_element(dims.width, column, kx, back != 0);
                    if (at < 0) continue;
#pragma unroll
                    for (int i = 0; i < ALONE_LINES; ++i) {
                        if (starts[i] >= 0) sums[i] += load(from[starts[i] + at]) * factor;
                    }
                }
            }
        }
        accum start = has_bias ? load(bias[channel]) : accum(0);
        scalar* to = y + (whole)plane * dims.positions() + (slice * height + first) * width + column;
#pragma unroll
        for (int i = 0; i < ALONE_LINES; ++i) {
            if (first + i < height) put(to + i * width, sums[i] + start);
        }
    }
}

// The gradient of those weights: a block adds some elements of a group's kernel over every so many images.
extern "C" __global__ void convolve_alone_backward(
    const scalar* __restrict__ small, const scalar* __restrict__ large, accum* parts, whole images, whole groups, WINDOW_ARGUMENTS
) {
    ConvDims dims = {WINDOW_DIMS};
    int positions = dims.positions(), elements = dims.elements(), group = blockIdx.x, first = int(blockIdx.z) * ALONE_ELEMENTS;
    ConvPlace start = conv_place(first, dims.height.kernel, dims.width.kernel);
    accum sums[ALONE_ELEMENTS] = {};
    for (int image = blockIdx.y; image < int(images); image += gridDim.y) {
        const scalar* left = small + (whole)(image * int(groups) + group) * positions;
        const scalar* right = large + (whole)(image * int(groups) + group) * dims.plane();
        accum added[ALONE_ELEMENTS] = {};
        for (int position = threadIdx.x; position < positions; position += blockDim.x) {
            ConvPlace at = conv_place(position, dims.height.count, dims.width.count), k = start;
            accum value = load(left[position]);
#pragma unroll
            for (int i = 0; i < ALONE_ELEMENTS; ++i) {
                int under = first + i < elements ? conv_under(dims, at, k, false) : -1;
                if (under >= 0) added[i] += value * load(right[under]);
                if (++k.x == dims.width.kernel) {
                    k.x = 0;
                    if (++k.y == dims.height.kernel) {
                        k.y = 0;
                        ++k.z;
                    }
                }
            }
        }
#pragma unroll
        for (int i = 0; i < ALONE_ELEMENTS; ++i) sums[i] += added[i];
    }
#pragma unroll
    for (int i = 0; i < ALONE_ELEMENTS; ++i) {
        accum total = row_sum(sums[i]);
        if (threadIdx.x == 0 && first + i < elements) {
            parts[((whole)blockIdx.y * groups + group) * elements + first + i] = total;
        }
    }
}

// Adds up parts of as many numbers.
extern "C" __global__ void convolve_alone_total(const accum* parts, scalar* made, whole count, whole size) {
    whole i = first_place();
    if (i >= size) return;
    accum total = 0;
    for (whole part = 0; part < count; ++part) total += parts[part * size + i];
    put(made + i, total);
}

// The gradient of weights [groups, rows, columns, *kernel]: for each of them the sum, over images and positions, of what its row's
// channel of `small` has there, times what lies under the kernel's element in its column's channel of `large`. A warp or a block
// has ROWS x COLUMNS of them, for one element of the kernel; its threads add in a fixed order.
template <int ROWS, int COLUMNS>
__device__ inline void conv_weights(
    const scalar* __restrict__ small, const scalar* __restrict__ large, scalar* made, const ConvDims& dims, int images, int groups,
    int rows, int columns
) {
    int positions = dims.positions(), plane = dims.plane(), elements = dims.elements();
    int row_tiles = (rows + ROWS - 1) / ROWS, column_tiles = (columns + COLUMNS - 1) / COLUMNS;
    whole tile = row_of_thread();
    if (tile >= (whole)groups * row_tiles * column_tiles * elements) return;
    int rest = int(tile) / elements, element = int(tile) - rest * elements;
    int over = rest / column_tiles, column = (rest - over * column_tiles) * COLUMNS;
    int group = over / row_tiles, row = (over - group * row_tiles) * ROWS;
    ConvPlace k = conv_place(element, dims.height.kernel, dims.width.kernel);
    accum sums[ROWS][COLUMNS];
    for (int i = 0; i < ROWS; ++i) {
        for (int j = 0; j < COLUMNS; ++j) sums[i][j] = 0;
    }
    for (whole n = threadIdx.x; n < (whole)images * positions; n += blockDim.x) {
        int image = int(n) / positions, position = int(n) - image * positions;
        int under = conv_under(dims, conv_place(position, dims.height.count, dims.width.count), k, false);
        if (under < 0) continue;
        const scalar* left = small + (whole)((image * groups + group) * rows + row) * positions + position;
        const scalar* right = large + (whole)((image * groups + group) * columns + column) * plane + under;
        accum values[COLUMNS];
#pragma unroll
        for (int j = 0; j < COLUMNS; ++j) values[j] = column + j < columns ? load(right[j * plane]) : accum(0);
#pragma unroll
        for (int i = 0; i < ROWS; ++i) {
            accum value = row + i < rows ? load(left[i * positions]) : accum(0);
#pragma unroll
            for (int j = 0; j < COLUMNS; ++j) sums[i][j] += value * values[j];
        }
    }
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
#pragma unroll
        for (int j = 0; j < COLUMNS; ++j) {
            accum total = row_sum(sums[i][j]);
            if (threadIdx.x == 0 && row + i < rows && column + j < columns) {
                put(made + (whole)((group * rows + row + i) * columns + column + j) * elements + element, total);
            }
        }
    }
}

extern "C" __global__ void convolve_backward(
    const scalar* small, const scalar* large, scalar* made, whole images, whole groups, whole rows, whole columns,
    whole tiled, WINDOW_ARGUMENTS
) {
    ConvDims dims = {WINDOW_DIMS};
    int sizes[] = {int(images), int(groups), int(rows), int(columns)};
    if (tiled) conv_weights<CONV_WEIGHTS>(small, large, made, dims, sizes[0], sizes[1], sizes[2], sizes[3]);
    else conv_weights<1, 1>(small, large, made, dims, sizes[0], sizes[1], sizes[2], sizes[3]);
}
