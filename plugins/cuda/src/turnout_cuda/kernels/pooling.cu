// Pooling: the largest element or the mean of each window, and the gradient of the means. Arrays are row-major.
//
// Positions are unsigned ints where both arrays have fewer than 2^31 elements: a GPU divides numbers of 64 bits in software.
// Few windows of many elements have a warp or a block each; other windows have a thread each.

// From `first` up to `end`, by `step`; nothing if `first` is not below `end`.
struct PoolSpan {
    int first, end, step;
    __device__ int elements() const { return first < end ? (end - first + step - 1) / step : 0; }
};

template <typename Index>
struct PoolPlace {
    Index plane;
    int depth, height, width;
};

// The place of element i of an array of these dims.
template <typename Index>
__device__ inline PoolPlace<Index> pool_place(Index i, int depth, int height, int width) {
    Index line = i / width, slice = line / height;
    PoolPlace<Index> found = {slice, 0, int(line - slice * height), int(i - line * width)};
    if (depth > 1) {
        found.plane = slice / depth;
        found.depth = int(slice - found.plane * depth);
    }
    return found;
}

__device__ inline int pool_smaller(int a, int b) { return a < b ? a : b; }

// The elements of a window that are inside the image. They are never past its end in a window that starts inside. A kernel of 0
// means windows that cover the dim evenly, and may overlap.
template <typename Index>
__device__ inline PoolSpan pool_span(const WindowDim& dim, int window) {
    if (!dim.kernel) {
        Index reach = (Index)window * dim.length;
        return {int(reach / dim.count), int((reach + dim.length + dim.count - 1) / dim.count), 1};
    }
    int first = window * dim.stride - dim.padding, end = first + (dim.kernel - 1) * dim.dilation + 1;
    if (first < 0) first += (dim.dilation - 1 - first) / dim.dilation * dim.dilation;
    return {first, pool_smaller(end, dim.length), dim.dilation};
}

template <typename Index>
struct PoolWindow {
    PoolPlace<Index> at;
    PoolSpan depth, height, width;
    Index start;  // of the image

    __device__ PoolWindow(const WindowDims& dims, Index i) {
        at = pool_place(i, dims.depth.count, dims.height.count, dims.width.count);
        depth = pool_span<Index>(dims.depth, at.depth);
        height = pool_span<Index>(dims.height, at.height);
        width = pool_span<Index>(dims.width, at.width);
        start = at.plane * dims.depth.length * dims.height.length * dims.width.length;
    }

    __device__ Index place(const WindowDims& dims, int z, int y, int x) const {
        return ((Index)z * dims.height.length + y) * dims.width.length + x;
    }

    __device__ Index first(const WindowDims& dims) const { return place(dims, depth.first, height.first, width.first); }

    // The place of the k-th element of the window.
    __device__ Index place_of(const WindowDims& dims, Index k) const {
        Index columns = width.elements(), line = k / columns, rows = height.elements(), slice = line / rows;
        int z = depth.first + int(slice) * depth.step, y = height.first + int(line - slice * rows) * height.step;
        return place(dims, z, y, width.first + int(k - line * columns) * width.step);
    }

    __device__ Index elements() const { return (Index)depth.elements() * height.elements() * width.elements(); }
};

// ---- the largest element

// Whether a later element replaces the largest one so far. Of nans the last one counts, or the first one.
__device__ inline bool pool_takes(accum value, accum best, bool first_nan) {
    return value > best || (value != value && !(first_nan && best != best));
}

template <typename Index>
__device__ inline void pool_largest(const scalar* image, scalar* values, whole* places, Index size, const WindowDims& dims) {
    bool first_nan = !dims.width.kernel;
    for (Index i = (Index)first_place(); i < size; i += (Index)all_threads()) {
        PoolWindow<Index> window(dims, i);
        const scalar* x = image + window.start;
        accum best = -infinity();
        Index found = window.first(dims);  // of a window without elements above the least one
        for (int d = window.depth.first; d < window.depth.end; d += window.depth.step) {
            for (int h = window.height.first; h < window.height.end; h += window.height.step) {
                Index line = window.place(dims, d, h, 0);
                for (int w = window.width.first; w < window.width.end; w += window.width.step) {
                    accum value = load(x[line + w]);
                    if (pool_takes(value, best, first_nan)) {
                        best = value;
                        found = line + w;
                    }
                }
            }
        }
        put(values + i, best);
        places[i] = (whole)found;
    }
}

extern "C" __global__ void largest_of_windows(
    const scalar* x, scalar* values, whole* places, whole size, whole narrow, WINDOW_ARGUMENTS
) {
    WindowDims dims = WINDOW_DIMS;
    OF_INDEX(narrow, pool_largest<Index>(x, values, places, (Index)size, dims))
}

// Whether the largest element of another thread replaces that of this one. Places grow in the order of the window.
__device__ inline bool pool_yields(accum best, whole found, accum other, whole other_found, bool first_nan) {
    if (other != other) return best == best || (first_nan ? other_found < found : other_found > found);
    return best == best && (other > best || (other == best && other_found < found));
}

template <typename Index>
__device__ inline void pool_largest_of_many(
    const scalar* image, scalar* values, whole* places, whole row, const WindowDims& dims
) {
    bool first_nan = !dims.width.kernel;
    PoolWindow<Index> window(dims, (Index)row);
    const scalar* x = image + window.start;
    accum best = -infinity();
    whole found = (whole)window.first(dims);
    Index count = window.elements();
    for (Index k = threadIdx.x; k < count; k += 32) {
        Index at = window.place_of(dims, k);
        accum value = load(x[at]);
        if (pool_takes(value, best, first_nan)) {
            best = value;
            found = (whole)at;
        }
    }
    for (int distance = 16; distance; distance >>= 1) {
        accum other = __shfl_xor_sync(0xffffffffu, best, distance);
        whole other_found = __shfl_xor_sync(0xffffffffu, found, distance);
        if (pool_yields(best, found, other, other_found, first_nan)) {
            best = other;
            found = other_found;
        }
    }
    if (threadIdx.x == 0) {
        put(values + row, best);
        places[row] = found;
    }
}

// A warp has a window.
extern "C" __global__ void largest_of_large_windows(
    const scalar* x, scalar* values, whole* places, whole size, whole narrow, WINDOW_ARGUMENTS
) {
    whole row = row_of_thread();
    if (row >= size) return;
    WindowDims dims = WINDOW_DIMS;
    OF_INDEX(narrow, pool_largest_of_many<Index>(x, values, places, row, dims))
}

// ---- the mean

// How many elements a window counts along a dim; those of the padding count too where `padded`.
__device__ inline accum pool_counted(const WindowDim& dim, const PoolSpan& span, int window, bool padded) {
    if (!dim.kernel || !padded) return accum(span.end - span.first);
    int start = window * dim.stride - dim.padding;
    return accum(pool_smaller(start + dim.kernel, dim.length + dim.padding) - start);
}

// The divisor that replaces the count, if it is not 0; else the count.
template <typename Index>
__device__ inline accum pool_divisor(const WindowDims& dims, const PoolWindow<Index>& window, bool padded, accum divisor) {
    if (divisor != 0) return divisor;
    accum depth = pool_counted(dims.depth, window.depth, window.at.depth, padded);
    accum height = pool_counted(dims.height, window.height, window.at.height, padded);
    return depth * height * pool_counted(dims.width, window.width, window.at.width, padded);
}

template <typename Index>
__device__ inline void pool_mean(const scalar* image, scalar* y, Index size, const WindowDims& dims, bool padded, accum divisor) {
    for (Index i = (Index)first_place(); i < size; i += (Index)all_threads()) {
        PoolWindow<Index> window(dims, i);
        const scalar* x = image + window.start;
        accum total = 0;
        for (int d = window.depth.first; d < window.depth.end; ++d) {
            for (int h = window.height.first; h < window.height.end; ++h) {
                Index line = window.place(dims, d, h, 0);
                for (int w = window.width.first; w < window.width.end; ++w) total += load(x[line + w]);
            }
        }
        put(y + i, total / pool_divisor(dims, window, padded, divisor));
    }
}

extern "C" __global__ void mean_of_windows(
    const scalar* x, scalar* y, whole size, whole narrow, whole padded, double divisor, WINDOW_ARGUMENTS
) {
    WindowDims dims = WINDOW_DIMS;
    OF_INDEX(narrow, pool_mean<Index>(x, y, (Index)size, dims, padded != 0, accum(divisor)))
}

template <typename Index>
__device__ inline void pool_mean_of_many(
    const scalar* image, scalar* y, whole row, const WindowDims& dims, bool padded, accum divisor
) {
    PoolWindow<Index> window(dims, (Index)row);
    const scalar* x = image + window.start;
    Index count = window.elements();
    accum total = 0;
    for (Index k = threadIdx.x; k < count; k += blockDim.x) total += load(x[window.place_of(dims, k)]);
    total = row_sum(total);
    if (threadIdx.x == 0) put(y + row, total / pool_divisor(dims, window, padded, divisor));
}

// A warp or a block has a window.
extern "C" __global__ void mean_of_large_windows(
    const scalar* x, scalar* y, whole size, whole narrow, whole padded, double divisor, WINDOW_ARGUMENTS
) {
    whole row = row_of_thread();
    if (row >= size) return;
    WindowDims dims = WINDOW_DIMS;
    OF_INDEX(narrow, pool_mean_of_many<Index>(x, y, row, dims, padded != 0, accum(divisor)))
}

// ---- the gradient of the mean

// The windows that hold an element.
template <typename Index>
__device__ inline PoolSpan pool_holders(const WindowDim& dim, int at) {
    if (!dim.kernel) {
        Index reach = (Index)at * dim.count;
        return {int(reach / dim.length), int((reach + dim.count + dim.length - 1) / dim.length), 1};
    }
    int last = at + dim.padding, first = last - dim.kernel + 1;
    return {first > 0 ? (first + dim.stride - 1) / dim.stride : 0, pool_smaller(last / dim.stride + 1, dim.count), 1};
}

// A thread has an element of the image, and adds up what it gets from each window that holds it: no atomics.
template <typename Index>
__device__ inline void pool_mean_backward(
    const scalar* grads, scalar* made, Index size, const WindowDims& dims, bool padded, accum divisor
) {
    for (Index i = (Index)first_place(); i < size; i += (Index)all_threads()) {
        PoolPlace<Index> at = pool_place(i, dims.depth.length, dims.height.length, dims.width.length);
        PoolSpan depth = pool_holders<Index>(dims.depth, at.depth);
        PoolSpan height = pool_holders<Index>(dims.height, at.height);
        PoolSpan width = pool_holders<Index>(dims.width, at.width);
        accum total = 0;
        for (int d = depth.first; d < depth.end; ++d) {
            accum by_depth = pool_counted(dims.depth, pool_span<Index>(dims.depth, d), d, padded);
            for (int h = height.first; h < height.end; ++h) {
                accum by_line = by_depth * pool_counted(dims.height, pool_span<Index>(dims.height, h), h, padded);
                Index line = ((at.plane * dims.depth.count + d) * dims.height.count + h) * dims.width.count;
                for (int w = width.first; w < width.end; ++w) {
                    accum by = by_line * pool_counted(dims.width, pool_span<Index>(dims.width, w), w, padded);
                    total += load(grads[line + w]) / (divisor != 0 ? divisor : by);
                }
            }
        }
        put(made + i, total);
    }
}

extern "C" __global__ void mean_of_windows_backward(
    const scalar* grads, scalar* made, whole size, whole narrow, whole padded, double divisor, WINDOW_ARGUMENTS
) {
    WindowDims dims = WINDOW_DIMS;
    OF_INDEX(narrow, pool_mean_backward<Index>(grads, made, (Index)size, dims, padded != 0, accum(divisor)))
}
