// Extremes with their indices, variances and norms along a dim. Arrays are [outer, length, inner], row-major.
//
// Where inner is 1, a warp or a block has a row. Else a block of 32 x COLUMN_THREADS threads has 32 columns, so that neighbours
// read what lies next to each other.

#define COLUMN_THREADS 8
#define SUM_STEPS 64  // numbers that are added one after the other: the error grows with them, and with the number of such parts

struct Extreme {
    accum value;
    whole place;
};

// Whether the second is the larger one: nan is above all numbers, and among equal elements the first one wins.
__device__ inline bool is_above(Extreme first, Extreme second) {
    bool nan = first.value != first.value;
    if (nan != (second.value != second.value)) return !nan;
    return second.value > first.value || (second.place < first.place && (nan || second.value == first.value));
}

// The largest of every `step`-th element from `first` on, after a function. A thread without any takes the first of all.
template <typename Function>
__device__ inline Extreme largest_of(const scalar* x, whole length, whole inner, whole first, whole step, Function of) {
    whole start = first < length ? first : 0;
    Extreme best = {of(load(x[start * inner])), start};
#pragma unroll 4
    for (whole i = first + step; i < length; i += step) {
        accum value = of(load(x[i * inner]));
        if (best.value == best.value && !(value <= best.value)) best = {value, i};
    }
    return best;
}

// The sum of every `step`-th element from `first` on, after a function.
template <typename Function>
__device__ inline accum sum_of(const scalar* x, whole length, whole inner, whole first, whole step, Function of) {
    accum total = 0;
    for (whole i = first; i < length;) {
        whole end = i + SUM_STEPS * step < length ? i + SUM_STEPS * step : length;
        accum part = 0;
#pragma unroll 4
        for (; i < end; i += step) part += of(load(x[i * inner]));
        total += part;
    }
    return total;
}

// The largest over the threads of a row, which all of them get.
__device__ inline Extreme row_largest(Extreme mine) {
    for (int distance = 16; distance; distance >>= 1) {
        Extreme other;
        other.value = __shfl_xor_sync(0xffffffffu, mine.value, distance);
        other.place = __shfl_xor_sync(0xffffffffu, mine.place, distance);
        if (is_above(mine, other)) mine = other;
    }
    if (blockDim.x == 32) return mine;
    __shared__ accum values[32];
    __shared__ whole places[32];
    __syncthreads();  // an earlier one may still be read
    if ((threadIdx.x & 31) == 0) {
        values[threadIdx.x >> 5] = mine.value;
        places[threadIdx.x >> 5] = mine.place;
    }
    __syncthreads();
    for (int warp = 0; warp < blockDim.x >> 5; ++warp) {
        Extreme other = {values[warp], places[warp]};
        if (is_above(mine, other)) mine = other;
    }
    return mine;
}

// The same over the threads of a column.
__device__ inline Extreme column_largest(Extreme mine) {
    __shared__ accum values[COLUMN_THREADS][32];
    __shared__ whole places[COLUMN_THREADS][32];
    values[threadIdx.y][threadIdx.x] = mine.value;
    places[threadIdx.y][threadIdx.x] = mine.place;
    __syncthreads();
    for (int k = 0; k < COLUMN_THREADS; ++k) {
        Extreme other = {values[k][threadIdx.x], places[k][threadIdx.x]};
        if (is_above(mine, other)) mine = other;
    }
    return mine;
}

__device__ inline accum column_sum(accum value) {
    __shared__ accum parts[COLUMN_THREADS][32];
    __syncthreads();  // an earlier sum may still be read
    parts[threadIdx.y][threadIdx.x] = value;
    __syncthreads();
    accum total = 0;
    for (int k = 0; k < COLUMN_THREADS; ++k) total += parts[k][threadIdx.x];
    return total;
}

// The column of a thread, and where it begins. Threads behind the last column read it, too, and write nothing.
__device__ inline whole column_of_thread() { return (whole)blockIdx.x * 32 + threadIdx.x; }

__device__ inline whole column_start(whole columns, whole length, whole inner) {
    whole column = column_of_thread() < columns ? column_of_thread() : columns - 1;
    return column / inner * length * inner + column % inner;
}

// ---- extremes: the largest of all elements times `sign`

extern "C" __global__ void extreme_rows(
    const scalar* x, scalar* values, whole* places, whole rows, whole length, whole sign, whole has_values
) {
    whole row = row_of_thread();
    if (row >= rows) return;  // a whole warp, or a whole block
    accum by = accum(sign);
    auto of = [=](accum value) { return by * value; };
    Extreme found = row_largest(largest_of(x + row * length, length, 1, threadIdx.x, blockDim.x, of));
    if (threadIdx.x) return;
    if (has_values) put(values + row, by * found.value);
    places[row] = found.place;
}

extern "C" __global__ void extreme_columns(
    const scalar* x, scalar* values, whole* places, whole columns, whole length, whole inner, whole sign, whole has_values
) {
    accum by = accum(sign);
    auto of = [=](accum value) { return by * value; };
    const scalar* from = x + column_start(columns, length, inner);
    Extreme found = column_largest(largest_of(from, length, inner, threadIdx.y, COLUMN_THREADS, of));
    whole column = column_of_thread();
    if (threadIdx.y || column >= columns) return;
    if (has_values) put(values + column, by * found.value);
    places[column] = found.place;
}

// ---- variances, in two passes: the second one adds up squares of distances from the mean

__device__ inline void put_spread(scalar* at, accum squares, double freedom, whole root) {
    accum variance = squares / accum(freedom);
    put(at, root ? sqrt(variance) : variance);
}

extern "C" __global__ void spread_rows(const scalar* x, scalar* y, whole rows, whole length, whole root, double freedom) {
    whole row = row_of_thread();
    if (row >= rows) return;
    x += row * length;
    auto own = [](accum value) { return value; };
    accum mean = row_sum(sum_of(x, length, 1, threadIdx.x, blockDim.x, own)) / accum(length);
    auto square = [=](accum value) { return (value - mean) * (value - mean); };
    accum squares = row_sum(sum_of(x, length, 1, threadIdx.x, blockDim.x, square));
    if (threadIdx.x == 0) put_spread(y + row, squares, freedom, root);
}

extern "C" __global__ void spread_columns(
    const scalar* x, scalar* y, whole columns, whole length, whole inner, whole root, double freedom
) {
    x += column_start(columns, length, inner);
    auto own = [](accum value) { return value; };
    accum mean = column_sum(sum_of(x, length, inner, threadIdx.y, COLUMN_THREADS, own)) / accum(length);
    auto square = [=](accum value) { return (value - mean) * (value - mean); };
    accum squares = column_sum(sum_of(x, length, inner, threadIdx.y, COLUMN_THREADS, square));
    whole column = column_of_thread();
    if (threadIdx.y == 0 && column < columns) put_spread(y + column, squares, freedom, root);
}

// ---- norms: the largest size, the sum of sizes, or the root of the sum of squares
enum { LARGEST, SUM, ROOT };

__device__ inline accum norm_of_thread(const scalar* x, whole length, whole inner, whole first, whole step, whole order) {
    auto size = [](accum value) { return accum(fabs(value)); };
    if (order == LARGEST) return largest_of(x, length, inner, first, step, size).value;
    if (order == SUM) return sum_of(x, length, inner, first, step, size);
    return sum_of(x, length, inner, first, step, [](accum value) { return value * value; });
}

__device__ inline accum norm_of_row(accum mine, whole order) {
    return order != LARGEST ? row_sum(mine) : row_largest({mine, 0}).value;
}

__device__ inline accum norm_of_column(accum mine, whole order) {
    return order != LARGEST ? column_sum(mine) : column_largest({mine, 0}).value;
}

__device__ inline accum rooted(accum total, whole order) { return order == ROOT ? sqrt(total) : total; }

extern "C" __global__ void norm_rows(const scalar* x, scalar* y, whole rows, whole length, whole order) {
    whole row = row_of_thread();
    if (row >= rows) return;
    accum found = norm_of_row(norm_of_thread(x + row * length, length, 1, threadIdx.x, blockDim.x, order), order);
    if (threadIdx.x == 0) put(y + row, rooted(found, order));
}

extern "C" __global__ void norm_columns(const scalar* x, scalar* y, whole columns, whole length, whole inner, whole order) {
    const scalar* from = x + column_start(columns, length, inner);
    accum found = norm_of_column(norm_of_thread(from, length, inner, threadIdx.y, COLUMN_THREADS, order), order);
    whole column = column_of_thread();
    if (threadIdx.y == 0 && column < columns) put(y + column, rooted(found, order));
}

// Few long rows: the blocks along x have parts of the row blockIdx.y, and another launch joins their results.
extern "C" __global__ void norm_parts(const scalar* x, accum* parts, whole length, whole order) {
    accum mine = norm_of_thread(x + (whole)blockIdx.y * length, length, 1, first_place(), all_threads(), order);
    mine = norm_of_row(mine, order);
    if (threadIdx.x == 0) parts[(whole)blockIdx.y * gridDim.x + blockIdx.x] = mine;
}

// One row of parts for each block.
extern "C" __global__ void norm_total(const accum* parts, scalar* y, whole count, whole order) {
    parts += (whole)blockIdx.x * count;
    accum mine = 0;  // no part is less
    for (whole i = threadIdx.x; i < count; i += blockDim.x) {
        if (order != LARGEST) mine += parts[i];
        else if (mine == mine && !(parts[i] <= mine)) mine = parts[i];
    }
    mine = norm_of_row(mine, order);
    if (threadIdx.x == 0) put(y + blockIdx.x, rooted(mine, order));
}
