// Slices and elements at indices, triangles, and what is joined. Elements are moved as they are, so programs differ in their size only.
//
// A block has blockDim.y rows at a time; threads along x, of all blocks along y, have the elements of a row. What is divided, is
// divided once for each row, and in 32 bits where `narrow` says that no array has more elements. An index that is out of range
// is reported, and its elements are left out.

// `x` is [outer, length, width], `y` [outer, count, width], with a row for each index. `wraps`: negative ones count from the end.
template <typename number>
__device__ inline void copy_rows(
    const scalar* __restrict__ x, const whole* __restrict__ index, scalar* __restrict__ y, whole record, whole call, number rows,
    number width, whole length, number count, whole wraps
) {
    number first = number(blockIdx.y) * blockDim.x + threadIdx.x, step = number(gridDim.y) * blockDim.x;
    for (number row = number(blockIdx.x) * blockDim.y + threadIdx.y; row < rows; row += number(gridDim.x) * blockDim.y) {
        number outer = row / count;
        whole given = index[row - outer * count], at = wraps && given < 0 ? given + length : given;
        if (at < 0 || at >= length) {
            report(record, call, given, length);
            continue;
        }
        const scalar* from = x + ((whole)outer * length + at) * (whole)width;
        scalar* to = y + (whole)row * (whole)width;
#pragma unroll 4
        for (number i = first; i < width; i += step) to[i] = from[i];
    }
}

extern "C" __global__ void pick_rows(
    const scalar* x, const whole* index, scalar* y, whole record, whole call, whole rows, whole width, whole length, whole count,
    whole wraps, whole narrow
) {
    OF_INDEX(narrow, copy_rows<Index>(x, index, y, record, call, Index(rows), Index(width), length, Index(count), wraps))
}

// `x` is [outer, length, inner], and the index [outer, count, inner]. Its rows are those along inner, `shared` = count of which
// read the same part of `x`; or where inner is 1 those along count, each of which has a part of its own.
template <typename number>
__device__ inline void copy_elements(
    const scalar* __restrict__ x, const whole* __restrict__ index, scalar* __restrict__ y, whole record, whole call, number rows,
    number width, whole length, number shared, whole inner
) {
    number first = number(blockIdx.y) * blockDim.x + threadIdx.x, step = number(gridDim.y) * blockDim.x;
    for (number row = number(blockIdx.x) * blockDim.y + threadIdx.y; row < rows; row += number(gridDim.x) * blockDim.y) {
        const scalar* from = x + (whole)(row / shared) * length * inner;
        whole start = (whole)row * (whole)width;
#pragma unroll 4
        for (number i = first; i < width; i += step) {
            whole at = index[start + i];
            if (at < 0 || at >= length) {
                report(record, call, at, length);
                continue;
            }
            y[start + i] = from[inner == 1 ? at : at * inner + (whole)i];
        }
    }
}

extern "C" __global__ void pick_elements(
    const scalar* x, const whole* index, scalar* y, whole record, whole call, whole rows, whole width, whole length, whole shared,
    whole inner, whole narrow
) {
    OF_INDEX(narrow, copy_elements<Index>(x, index, y, record, call, Index(rows), Index(width), length, Index(shared), inner))
}

// Matrices of `height` rows: what lies on the diagonal and on one side of it, zeros on the other. `y` may be `x`.
template <typename number>
__device__ inline void copy_triangle(
    const scalar* x, scalar* y, number rows, number width, number height, whole diagonal, whole upper
) {
    number first = number(blockIdx.y) * blockDim.x + threadIdx.x, step = number(gridDim.y) * blockDim.x;
    for (number row = number(blockIdx.x) * blockDim.y + threadIdx.y; row < rows; row += number(gridDim.x) * blockDim.y) {
        whole edge = (whole)(row % height) + diagonal, start = (whole)row * (whole)width;
        for (number i = first; i < width; i += step) {
            bool kept = upper ? (whole)i >= edge : (whole)i <= edge;
            y[start + i] = kept ? x[start + i] : scalar{};
        }
    }
}

extern "C" __global__ void triangle(
    const scalar* x, scalar* y, whole rows, whole width, whole height, whole diagonal, whole upper, whole narrow
) {
    OF_INDEX(narrow, copy_triangle<Index>(x, y, Index(rows), Index(width), Index(height), diagonal, upper))
}

// Copies `x` [rows, width] to the columns of `y` [rows, pitch] from `first` on.
extern "C" __global__ void place_rows(const scalar* x, scalar* y, whole rows, whole width, whole pitch, whole first) {
    whole step = (whole)gridDim.y * blockDim.x;
    for (whole row = (whole)blockIdx.x * blockDim.y + threadIdx.y; row < rows; row += (whole)gridDim.x * blockDim.y) {
        const scalar* from = x + row * width;
        scalar* to = y + row * pitch + first;
#pragma unroll 4
        for (whole i = (whole)blockIdx.y * blockDim.x + threadIdx.x; i < width; i += step) to[i] = from[i];
    }
}
