// Extremes, sums, variances, norms and logarithms of sums along a dim. Arrays are [outer, length, inner], row-major.
//
// Where inner is 1, a warp or a block has a row. Else a block of 32 x COLUMN_THREADS threads has 32 columns.


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

// The differences of two rows, whose packs are read if both begin at 16 bytes.
struct Pair {
    const scalar *x, *other;
    whole length, first, step;

    template <typename Take, typename Turn>
    __device__ void walk(Take take, Turn turn) const {
        whole count = together(x) && together(other) ? length / WIDTH : 0;
        for (whole i = first; i < count; i += AHEAD * step) {
            Pack<scalar> a[AHEAD], b[AHEAD];
#pragma unroll
            for (int k = 0; k < AHEAD; ++k)
                if (i + k * step < count) {
                    a[k] = ((const Pack<scalar>*)x)[i + k * step];
                    b[k] = ((const Pack<scalar>*)other)[i + k * step];
                }
#pragma unroll
            for (int k = 0; k < AHEAD; ++k)
                if (i + k * step < count)
#pragma unroll
                    for (int j = 0; j < WIDTH; ++j) take(load(a[k].of[j]) - load(b[k].of[j]));
            turn();
        }
        for (whole i = count * WIDTH + first; i < length; i += step) {
            take(load(x[i]) - load(other[i]));
            turn();
        }
    }
};

// nan is above all numbers.
__device__ inline accum larger_of(accum first, accum second) { return first != first || first >= second ? first : second; }

template <typename Line, typename Function>
__device__ inline accum largest_value_of(const Line& line, Function of) {
    accum largest = -infinity();
    line.walk([&](accum value) { largest = larger_of(largest, of(value)); }, [] {});
    return largest;
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

// The elements that a thread has of a column of its block.
__device__ inline Column column_at(const scalar* x, whole columns, whole length, whole inner) {
    return {x + column_start(columns, length, inner), length, inner, threadIdx.y, COLUMN_THREADS};
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
    accum mean = mean_of(row_at(x, row, length), row_sum), squares = squares_of(row_at(x, row, length), mean, row_sum);
    if (threadIdx.x == 0) put_spread(y + row, squares, freedom, root);
}

extern "C" __global__ void spread_columns(
    const scalar* x, scalar* y, whole columns, whole length, whole inner, whole root, double freedom
) {
    Column line = column_at(x, columns, length, inner);
    accum mean = mean_of(line, column_sum), squares = squares_of(line, mean, column_sum);
    whole column = column_of_thread();
    if (threadIdx.y == 0 && column < columns) put_spread(y + column, squares, freedom, root);
}

// ---- logarithms of sums of exponentials, below the largest element, so that none overflows

template <typename Line, typename Largest, typename Sum>
__device__ inline accum log_of_sum(const Line& line, Largest over, Sum sum) {
    accum largest = over({largest_value_of(line, [](accum value) { return value; }), 0}).value;
    accum base = fabs(largest) == infinity() ? accum(0) : largest;  // less an infinite one, it would be nan
    return log(sum(sum_of(line, [=](accum value) { return exp(value - base); }))) + base;
}

extern "C" __global__ void log_of_sum_rows(const scalar* x, scalar* y, whole rows, whole length) {
    whole row = row_of_thread();
    if (row >= rows) return;
    accum found = log_of_sum(row_at(x, row, length), row_largest, row_sum);
    if (threadIdx.x == 0) put(y + row, found);
}

extern "C" __global__ void log_of_sum_columns(const scalar* x, scalar* y, whole columns, whole length, whole inner) {
    accum found = log_of_sum(column_at(x, columns, length, inner), column_largest, column_sum);
    whole column = column_of_thread();
    if (threadIdx.y == 0 && column < columns) put(y + column, found);
}

// ---- folds: the largest or smallest element, the largest size, the sum of elements, of sizes, or of squares, and its root
enum { LARGEST, SMALLEST, LARGEST_SIZE, SUM, SUM_OF_SIZES, SUM_OF_SQUARES, ROOT };

__device__ inline bool adds(whole order) { return order >= SUM; }

template <typename Line>
__device__ inline accum fold_of_thread(const Line& line, whole order) {
    auto own = [](accum value) { return value; };
    auto size = [](accum value) { return accum(fabs(value)); };
    if (order == LARGEST) return largest_value_of(line, own);
    if (order == SMALLEST) return largest_value_of(line, [](accum value) { return -value; });
    if (order == LARGEST_SIZE) return largest_value_of(line, size);
    if (order == SUM) return sum_of(line, own);
    if (order == SUM_OF_SIZES) return sum_of(line, size);
    return sum_of(line, [](accum value) { return value * value; });
}

__device__ inline accum fold_of_row(accum mine, whole order) {
    return adds(order) ? row_sum(mine) : row_largest({mine, 0}).value;
}

__device__ inline accum fold_of_column(accum mine, whole order) {
    return adds(order) ? column_sum(mine) : column_largest({mine, 0}).value;
}

// A mean is a sum that is divided by the length, others are divided by 1.
__device__ inline void put_fold(scalar* at, accum found, whole order, double divisor) {
    put(at, order == ROOT ? sqrt(found) : order == SMALLEST ? -found : found / accum(divisor));
}

extern "C" __global__ void fold_rows(const scalar* x, scalar* y, whole rows, whole length, whole order, double divisor) {
    whole row = row_of_thread();
    if (row >= rows) return;
    accum found = fold_of_row(fold_of_thread(row_at(x, row, length), order), order);
    if (threadIdx.x == 0) put_fold(y + row, found, order, divisor);
}

extern "C" __global__ void fold_columns(
    const scalar* x, scalar* y, whole columns, whole length, whole inner, whole order, double divisor
) {
    accum found = fold_of_column(fold_of_thread(column_at(x, columns, length, inner), order), order);
    whole column = column_of_thread();
    if (threadIdx.y == 0 && column < columns) put_fold(y + column, found, order, divisor);
}

// Few long lines: each is cut into parts [lines, parts], and another launch joins their results. The blocks along x have parts of
// the row blockIdx.y.
extern "C" __global__ void fold_parts_of_rows(const scalar* x, accum* parts, whole length, whole order) {
    Row row = {x + (whole)blockIdx.y * length, length, first_place(), all_threads()};
    accum mine = fold_of_row(fold_of_thread(row, order), order);
    if (threadIdx.x == 0) parts[(whole)blockIdx.y * gridDim.x + blockIdx.x] = mine;
}

// The blocks along y have parts of the columns.
extern "C" __global__ void fold_parts_of_columns(
    const scalar* x, accum* parts, whole columns, whole length, whole inner, whole order
) {
    whole first = (whole)blockIdx.y * COLUMN_THREADS + threadIdx.y, step = (whole)gridDim.y * COLUMN_THREADS;
    Column line = {x + column_start(columns, length, inner), length, inner, first, step};
    accum mine = fold_of_column(fold_of_thread(line, order), order);
    whole column = column_of_thread();
    if (threadIdx.y == 0 && column < columns) parts[column * gridDim.y + blockIdx.y] = mine;
}

// One line of parts for each block.
extern "C" __global__ void fold_total(const accum* parts, scalar* y, whole count, whole order, double divisor) {
    parts += (whole)blockIdx.x * count;
    accum mine = adds(order) ? accum(0) : -infinity();
#pragma unroll 4
    for (whole i = threadIdx.x; i < count; i += blockDim.x) mine = adds(order) ? mine + parts[i] : larger_of(mine, parts[i]);
    mine = fold_of_row(mine, order);
    if (threadIdx.x == 0) put_fold(y + blockIdx.x, mine, order, divisor);
}

// The sum of squares of differences, by a single block at once, by several in parts.
extern "C" __global__ void squared_distance(
    const scalar* x, const scalar* other, scalar* y, accum* parts, whole length, double divisor
) {
    accum mine = row_sum(sum_of(Pair{x, other, length, first_place(), all_threads()}, [](accum value) { return value * value; }));
    if (threadIdx.x) return;
    if (gridDim.x > 1) parts[blockIdx.x] = mine;
    else put_fold(y, mine, SUM_OF_SQUARES, divisor);
}
