// Images in another size, and the gradients. Arrays are row-major, [planes, depth, height, width]. The last `ranks` dims are
// resized; the others have length 1.
//
// Along each dim a result is a weighted sum of a few neighbours, the taps. A thread computes those of its place: the source of
// place i is (i + shift) * step - shift, in the type that the shared kernels compute it in, so that both take the same taps.
// Positions have 32 bits where both arrays have fewer than 2^31 elements.

// How many taps a mode has.
enum ResizeMode { RESIZE_NEAREST = 1, RESIZE_LINEAR = 2, RESIZE_CUBIC = 4 };

struct ResizeDim {
    int length, count;  // of the image, and of the results
    accum step, shift;
};

struct ResizeDims {
    ResizeDim depth, height, width;
};

// The dims as arguments of a kernel, and made of those.
#define RESIZE_ARGUMENTS                                                        \
    double shift, whole length_d, whole count_d, double step_d,                 \
    whole length_h, whole count_h, double step_h,                               \
    whole length_w, whole count_w, double step_w
#define RESIZE_DIMS                                                             \
    {{int(length_d), int(count_d), accum(step_d), accum(shift)},                \
     {int(length_h), int(count_h), accum(step_h), accum(shift)},                \
     {int(length_w), int(count_w), accum(step_w), accum(shift)}}

template <typename Index>
struct ResizePlace {
    Index plane;
    int depth, height, width;
};

// The place of element i of an array of these dims. Fewer ranks need fewer divisions.
template <typename Index, int ranks>
__device__ inline ResizePlace<Index> resize_place(Index i, int depth, int height, int width) {
    Index line = i / width;
    ResizePlace<Index> found = {line, 0, 0, int(i - line * width)};
    if (ranks > 1) {
        found.plane = line / height;
        found.height = int(line - found.plane * height);
    }
    if (ranks > 2) {
        Index slice = found.plane;
        found.plane = slice / depth;
        found.depth = int(slice - found.plane * depth);
    }
    return found;
}

__device__ inline int resize_smaller(int a, int b) { return a < b ? a : b; }

// A float that is not negative, but for a little, as an int: sources far past the image do not overflow.
__device__ inline int resize_floor(accum value) { return int(floor(value < accum(1 << 30) ? value : accum(1 << 30))); }

// Where the source of a result lies. For cubic taps it may be outside.
template <int taps>
__device__ inline accum resize_source(const ResizeDim& dim, int at) {
    accum source = (accum(at) + dim.shift) * dim.step;
    if (taps == RESIZE_NEAREST) return source;
    source -= dim.shift;
    return taps == RESIZE_LINEAR && source < 0 ? accum(0) : source;
}

// The element at or before a source: the nearest one, the first of two taps, or the second of four.
template <int taps>
__device__ inline int resize_anchor(const ResizeDim& dim, accum source) {
    int found = resize_floor(source);
    return taps == RESIZE_CUBIC ? found : resize_smaller(found, dim.length - 1);
}

// The part of the way from the anchor to the next element.
__device__ inline accum resize_part(accum source, int anchor) {
    accum part = source - accum(anchor);
    return part < 0 ? accum(0) : part > 1 ? accum(1) : part;
}

// R. Keys, "Cubic convolution interpolation for digital image processing", 1981, with a = -0.75.
__device__ inline accum resize_cubic_weight(accum distance) {
    const accum a = accum(-0.75);
    if (distance < 0) distance = -distance;
    if (distance <= 1) return ((a + 2) * distance - (a + 3)) * distance * distance + 1;
    return distance < 2 ? ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a : accum(0);
}

template <int taps>
struct ResizeTaps {
    int at[taps];
    accum weight[taps];

    __device__ ResizeTaps(const ResizeDim& dim, int place) {
        accum source = resize_source<taps>(dim, place);
        int anchor = resize_anchor<taps>(dim, source), last = dim.length - 1;
        accum part = taps == RESIZE_NEAREST ? accum(0) : resize_part(source, anchor);
        for (int tap = 0; tap < taps; ++tap) {
            int near = taps == RESIZE_CUBIC ? anchor - 1 + tap : anchor + tap;
            at[tap] = near < 0 ? 0 : resize_smaller(near, last);
            if (taps == RESIZE_CUBIC) {
                weight[tap] = resize_cubic_weight(part - accum(tap - 1));
            } else {
                weight[tap] = tap ? part : 1 - part;
            }
        }
    }
};

// The sums along one dim after the other, the last one first.
template <int taps>
__device__ inline accum resize_line(const scalar* line, const ResizeTaps<taps>& columns) {
    if (taps == RESIZE_NEAREST) return load(line[columns.at[0]]);
    accum total = 0;
    for (int tap = 0; tap < taps; ++tap) total += load(line[columns.at[tap]]) * columns.weight[tap];
    return total;
}

template <typename Index, int ranks, int taps>
__device__ inline accum resize_slice(
    const scalar* x, Index slice, const ResizeDims& dims, int row, const ResizeTaps<taps>& columns
) {
    Index height = dims.height.length, width = dims.width.length;
    if constexpr (ranks == 1) return resize_line(x + slice * width, columns);
    ResizeTaps<taps> rows(dims.height, row);
    accum total = 0;
    for (int tap = 0; tap < taps; ++tap) {
        accum of_line = resize_line(x + (slice * height + rows.at[tap]) * width, columns);
        if constexpr (taps == RESIZE_NEAREST) return of_line;
        total += of_line * rows.weight[tap];
    }
    return total;
}

template <typename Index, int ranks, int taps>
__device__ inline void resized(const scalar* x, scalar* y, Index size, const ResizeDims& dims) {
    for (Index i = (Index)first_place(); i < size; i += (Index)all_threads()) {
        ResizePlace<Index> at = resize_place<Index, ranks>(i, dims.depth.count, dims.height.count, dims.width.count);
        ResizeTaps<taps> columns(dims.width, at.width);
        accum total = 0;
        if constexpr (ranks < 3) {
            total = resize_slice<Index, ranks>(x, at.plane, dims, at.height, columns);
        } else {
            ResizeTaps<taps> slices(dims.depth, at.depth);
            for (int tap = 0; tap < taps; ++tap) {
                Index slice = at.plane * dims.depth.length + slices.at[tap];
                total += resize_slice<Index, ranks>(x, slice, dims, at.height, columns) * slices.weight[tap];
            }
        }
        put(y + i, total);
    }
}

// ---- gradients

// The first result whose anchor is `least` or later, `count` if there is none. Anchors grow with places: steps correct a guess.
template <int taps>
__device__ inline int resize_first_from(const ResizeDim& dim, int least) {
    accum source = accum(least) + (taps == RESIZE_NEAREST ? accum(0) : dim.shift);
    accum guess = dim.step > 0 ? source / dim.step - dim.shift : accum(0);
    int found = guess < accum(dim.count) ? (guess > 0 ? int(guess) : 0) : dim.count;
    while (found > 0 && resize_anchor<taps>(dim, resize_source<taps>(dim, found - 1)) >= least) --found;
    while (found < dim.count && resize_anchor<taps>(dim, resize_source<taps>(dim, found)) < least) ++found;
    return found;
}

// The results that have an element among their taps: from `first` up to `end`. Taps outside the image are those at its edges.
template <int taps>
struct ResizeReach {
    int first, end;

    __device__ ResizeReach(const ResizeDim& dim, int at) {
        const int before = taps == RESIZE_NEAREST ? 0 : taps / 2, after = taps == RESIZE_CUBIC ? 1 : 0;
        first = at > 0 ? resize_first_from<taps>(dim, at - before) : 0;
        end = at < dim.length - 1 ? resize_first_from<taps>(dim, at + after + 1) : dim.count;
    }
};

// What an element weighs in a result that it reaches.
template <int taps>
__device__ inline accum resize_weight(const ResizeDim& dim, int place, int element) {
    if constexpr (taps == RESIZE_CUBIC) {
        if (element > 0 && element < dim.length - 1) {  // it is one tap only
            accum source = resize_source<taps>(dim, place);
            int anchor = resize_anchor<taps>(dim, source);
            return resize_cubic_weight(resize_part(source, anchor) - accum(element - anchor));
        }
    }
    ResizeTaps<taps> each(dim, place);
    accum total = 0;
    for (int tap = 0; tap < taps; ++tap) total += each.at[tap] == element ? each.weight[tap] : accum(0);
    return total;
}

template <int taps>
__device__ inline accum resize_line_backward(
    const scalar* line, const ResizeDim& dim, const ResizeReach<taps>& columns, int element
) {
    accum total = 0;
    for (int w = columns.first; w < columns.end; ++w) total += load(line[w]) * resize_weight<taps>(dim, w, element);
    return total;
}

template <typename Index, int ranks, int taps>
__device__ inline accum resize_slice_backward(
    const scalar* grads, Index slice, const ResizeDims& dims, const ResizePlace<Index>& at, const ResizeReach<taps>& columns
) {
    Index height = dims.height.count, width = dims.width.count;
    if constexpr (ranks == 1) return resize_line_backward(grads + slice * width, dims.width, columns, at.width);
    ResizeReach<taps> rows(dims.height, at.height);
    accum total = 0;
    for (int h = rows.first; h < rows.end; ++h) {
        accum of_line = resize_line_backward(grads + (slice * height + h) * width, dims.width, columns, at.width);
        total += of_line * resize_weight<taps>(dims.height, h, at.height);
    }
    return total;
}

// A thread has an element of the image, and adds up what it gets from each result: no atomics.
template <typename Index, int ranks, int taps>
__device__ inline void resized_backward(const scalar* grads, scalar* made, Index size, const ResizeDims& dims) {
    for (Index i = (Index)first_place(); i < size; i += (Index)all_threads()) {
        ResizePlace<Index> at = resize_place<Index, ranks>(i, dims.depth.length, dims.height.length, dims.width.length);
        ResizeReach<taps> columns(dims.width, at.width);
        accum total = 0;
        if constexpr (ranks < 3) {
            total = resize_slice_backward<Index, ranks>(grads, at.plane, dims, at, columns);
        } else {
            ResizeReach<taps> slices(dims.depth, at.depth);
            for (int d = slices.first; d < slices.end; ++d) {
                accum of_slice = resize_slice_backward<Index, ranks>(grads, at.plane * dims.depth.count + d, dims, at, columns);
                total += of_slice * resize_weight<taps>(dims.depth, d, at.depth);
            }
        }
        put(made + i, total);
    }
}

// ---- kernels

#define OF_RANKS(function, taps, ...)                             \
    if (ranks == 1) {                                             \
        function<Index, 1, taps>(__VA_ARGS__);                    \
    } else if (ranks == 2) {                                      \
        function<Index, 2, taps>(__VA_ARGS__);                    \
    } else {                                                      \
        function<Index, 3, taps>(__VA_ARGS__);                    \
    }

extern "C" __global__ void resize_nearest(
    const scalar* x, scalar* y, whole size, whole narrow, whole ranks, RESIZE_ARGUMENTS
) {
    ResizeDims dims = RESIZE_DIMS;
    OF_INDEX(narrow, OF_RANKS(resized, RESIZE_NEAREST, x, y, (Index)size, dims))
}

extern "C" __global__ void resize_nearest_backward(
    const scalar* grads, scalar* made, whole size, whole narrow, whole ranks, RESIZE_ARGUMENTS
) {
    ResizeDims dims = RESIZE_DIMS;
    OF_INDEX(narrow, OF_RANKS(resized_backward, RESIZE_NEAREST, grads, made, (Index)size, dims))
}

extern "C" __global__ void resize_linear(
    const scalar* x, scalar* y, whole size, whole narrow, whole ranks, RESIZE_ARGUMENTS
) {
    ResizeDims dims = RESIZE_DIMS;
    OF_INDEX(narrow, OF_RANKS(resized, RESIZE_LINEAR, x, y, (Index)size, dims))
}

extern "C" __global__ void resize_linear_backward(
    const scalar* grads, scalar* made, whole size, whole narrow, whole ranks, RESIZE_ARGUMENTS
) {
    ResizeDims dims = RESIZE_DIMS;
    OF_INDEX(narrow, OF_RANKS(resized_backward, RESIZE_LINEAR, grads, made, (Index)size, dims))
}

// Images of two dims only.
extern "C" __global__ void resize_cubic(const scalar* x, scalar* y, whole size, whole narrow, whole ranks, RESIZE_ARGUMENTS) {
    ResizeDims dims = RESIZE_DIMS;
    OF_INDEX(narrow, resized<Index, 2, RESIZE_CUBIC>(x, y, (Index)size, dims))
}

extern "C" __global__ void resize_cubic_backward(
    const scalar* grads, scalar* made, whole size, whole narrow, whole ranks, RESIZE_ARGUMENTS
) {
    ResizeDims dims = RESIZE_DIMS;
    OF_INDEX(narrow, resized_backward<Index, 2, RESIZE_CUBIC>(grads, made, (Index)size, dims))
}
