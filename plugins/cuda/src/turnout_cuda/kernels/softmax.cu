// Softmax and its logarithm along a dim, and their gradients. Arrays are [outer, length, inner], row-major.
//
// The maximum and the sum come from one pass (M. Milakov, N. Gimelshein, "Online normalizer calculation for softmax", 2018): a sum
// that was taken below a smaller maximum is multiplied by exp(old - new).

struct Running {
    accum largest, total;
};

__device__ inline accum shrunk(accum total, accum from, accum to) {
    return total * (from == to ? accum(1) : exp(from - to));
}

__device__ inline void take(Running& found, accum value) {
    if (value == -infinity()) return;  // adds 0, where exp(value - largest) may be nan
    if (value > found.largest) {
        found.total = shrunk(found.total, found.largest, value);
        found.largest = value;
    }
    found.total += exp(value - found.largest);  // nan for nan, and for infinity
}

__device__ inline accum answer(accum value, const Running& found, whole logarithm) {
    return logarithm ? value - found.largest - log(found.total) : exp(value - found.largest) / found.total;
}

extern "C" __global__ void softmax_rows(const scalar* x, scalar* y, whole rows, whole length, whole logarithm) {
    whole row = row_of_thread();
    if (row >= rows) return;  // a whole warp, or a whole block
    x += row * length;
    y += row * length;
    if (is_held(x, length) && together(y)) {
        accum held[HELD], largest = -infinity(), total = 0;
        hold(held, x, length, -infinity());
#pragma unroll
        for (int i = 0; i < HELD; ++i) largest = held[i] > largest ? held[i] : largest;
        largest = row_max(largest);
        // Of -infinity only, and with a nan or infinity, all are nan.
        if (logarithm) {
#pragma unroll
            for (int i = 0; i < HELD; ++i) total += exp(held[i] -= largest);
            total = log(row_sum(total));
            release(y, length, [&](int i) { return held[i] - total; });
        } else {
#pragma unroll
            for (int i = 0; i < HELD; ++i) total += held[i] = exp(held[i] - largest);
            total = accum(1) / row_sum(total);
            release(y, length, [&](int i) { return held[i] * total; });
        }
        return;
    }
    Running mine = {-infinity(), 0}, found;
    for (whole i = threadIdx.x; i < length; i += blockDim.x) take(mine, load(x[i]));
    found.largest = row_max(mine.largest);
    // The sum of a thread whose elements were -infinity or nan, if any, is 0 or nan.
    found.total = row_sum(mine.largest == -infinity() ? mine.total : shrunk(mine.total, mine.largest, found.largest));
    for (whole i = threadIdx.x; i < length; i += blockDim.x) put(y + i, answer(load(x[i]), found, logarithm));
}

// What rows of scores see. With `causal`, row i of each `queries` rows sees the first i + 1 elements. A mask of numbers is
// added, one of bools allows; it has steps of 0 where it repeats.
struct Sight {
    const accum* wide;
    const scalar* own;
    const bool* allowed;
    whole kind, heads, of_outer, of_head, of_query, of_key, queries, causal;

    __device__ whole seen(whole row, whole length) const {
        whole last = row % queries + 1;
        return causal && last < length ? last : length;
    }
    __device__ whole start(whole row) const {
        whole head = row / queries;
        return kind != MISSING ? head / heads * of_outer + head % heads * of_head + row % queries * of_query : 0;
    }
    __device__ accum score(accum value, whole at) const {
        if (kind == BOOLS) return allowed[at] ? value : -infinity();
        return kind != MISSING ? value + (kind == OWN ? load(own[at]) : wide[at]) : value;
    }
    // What sees nothing has weights of 0; in rows that are neither masked nor causal they are nan.
    __device__ bool is_blind(const Running& found) const {
        return (kind != MISSING || causal) && found.largest == -infinity() && found.total == 0;
    }
};

// The weights of attention. It may write where it reads.
extern "C" __global__ void softmax_of_scores(
    const accum* x, scalar* y, const accum* mask, const scalar* own_mask, const bool* allowed, whole kind, whole heads,
    whole of_outer, whole of_head, whole of_query, whole of_key, whole rows, whole length, whole queries, whole causal
) {
    whole row = row_of_thread();
    if (row >= rows) return;
    Sight sight = {mask, own_mask, allowed, kind, heads, of_outer, of_head, of_query, of_key, queries, causal};
    x += row * length;
    y += row * length;
    whole seen = sight.seen(row, length), start = sight.start(row);
    Running mine = {-infinity(), 0}, found;
    for (whole i = threadIdx.x; i < seen; i += blockDim.x) take(mine, sight.score(x[i], start + i * of_key));
    found.largest = row_max(mine.largest);
    found.total = row_sum(mine.largest == -infinity() ? mine.total : shrunk(mine.total, mine.largest, found.largest));
    bool blind = sight.is_blind(found);
    for (whole i = threadIdx.x; i < length; i += blockDim.x) {
        bool sees = i < seen && !blind;
        put(y + i, sees ? answer(sight.score(x[i], start + i * of_key), found, 0) : accum(0));
    }
}

// The gradient of the scores, times the factor that made them, where `slopes` is that of the weights; and the weights again. The sum
// that is subtracted grows with that of the exponentials, below the same maximum.
extern "C" __global__ void softmax_of_scores_backward(
    const accum* x, const accum* slopes, scalar* y, scalar* made, const accum* mask, const scalar* own_mask, const bool* allowed,
    whole kind, whole heads, whole of_outer, whole of_head, whole of_query, whole of_key, whole rows, whole length, whole queries,
    whole causal, double factor
) {
    whole row = row_of_thread();
    if (row >= rows) return;
    Sight sight = {mask, own_mask, allowed, kind, heads, of_outer, of_head, of_query, of_key, queries, causal};
    x += row * length;
    slopes += row * length;
    y += row * length;
    made += row * length;
    whole seen = sight.seen(row, length), start = sight.start(row);
    Running mine = {-infinity(), 0}, found;
    accum along = 0;
    for (whole i = threadIdx.x; i < seen; i += blockDim.x) {
        accum value = sight.score(x[i], start + i * of_key), before = mine.largest;
        if (value == -infinity()) continue;
        take(mine, value);
        along = shrunk(along, before, mine.largest) + exp(value - mine.largest) * slopes[i];
    }
    found.largest = row_max(mine.largest);
    bool nothing = mine.largest == -infinity();
    found.total = row_sum(nothing ? mine.total : shrunk(mine.total, mine.largest, found.largest));
    along = row_sum(nothing ? along : shrunk(along, mine.largest, found.largest)) / found.total;
    bool blind = sight.is_blind(found);
    for (whole i = threadIdx.x; i < length; i += blockDim.x) {
        bool sees = i < seen && !blind;
        accum weight = sees ? answer(sight.score(x[i], start + i * of_key), found, 0) : accum(0), slope = slopes[i];
        put(y + i, weight);
        put(made + i, sees ? weight * (slope - along) * accum(factor) : accum(0));
    }
}

__device__ inline Running joined(Running first, Running second) {
    accum largest = second.largest > first.largest ? second.largest : first.largest;
    return {largest, shrunk(first.total, first.largest, largest) + shrunk(second.total, second.largest, largest)};
}

// Over the threads of a column, which all of them get.
__device__ inline Running column_joined(Running mine) {
    if (blockDim.y == 1) return mine;
    __shared__ accum largest[COLUMN_THREADS][32], totals[COLUMN_THREADS][32];
    largest[threadIdx.y][threadIdx.x] = mine.largest;
    totals[threadIdx.y][threadIdx.x] = mine.total;
    __syncthreads();
    Running found = {-infinity(), 0};
    for (int k = 0; k < blockDim.y; ++k) found = joined(found, {largest[k][threadIdx.x], totals[k][threadIdx.x]});
    return found;
}

// What a thread has of a column, of which the blocks along y have parts.
__device__ inline Column part_of_column(const scalar* x, whole columns, whole length, whole inner) {
    whole first = (whole)blockIdx.y * blockDim.y + threadIdx.y, step = (whole)gridDim.y * blockDim.y;
    return {x + column_start(columns, length, inner), length, inner, first, step};
}

__device__ inline Running running_of(const Column& line) {
    Running found = {-infinity(), 0};
    line.walk([&](accum value) { take(found, value); }, [] {});
    return found;
}

// Of few long columns first the maxima and the sums of parts, [columns, parts, 2].
extern "C" __global__ void softmax_parts_of_columns(const scalar* x, accum* parts, whole columns, whole length, whole inner) {
    Running found = column_joined(running_of(part_of_column(x, columns, length, inner)));
    whole column = column_of_thread();
    if (threadIdx.y || column >= columns) return;
    parts += 2 * (column * gridDim.y + blockIdx.y);
    parts[0] = found.largest;
    parts[1] = found.total;
}

extern "C" __global__ void softmax_columns(
    const scalar* x, scalar* y, const accum* parts, whole count_of_parts, whole columns, whole length, whole inner,
    whole logarithm
) {
    Column line = part_of_column(x, columns, length, inner);
    whole column = column_of_thread();
    Running mine = {-infinity(), 0};
    if (count_of_parts == 1) {
        mine = running_of(line);
    } else if (column < columns) {
        for (whole i = threadIdx.y; i < count_of_parts; i += blockDim.y) {
            const accum* part = parts + 2 * (column * count_of_parts + i);
            mine = joined(mine, {part[0], part[1]});
        }
    }
    Running found = column_joined(mine);
    if (column >= columns) return;
    accum level = logarithm ? log(found.total) : accum(1) / found.total;
    y += line.x - x;
    for (whole i = line.first; i < length; i += 2 * AHEAD * line.step) {
        scalar read[2 * AHEAD];
#pragma unroll
        for (int k = 0; k < 2 * AHEAD; ++k)
            if (i + k * line.step < length) read[k] = line.x[(i + k * line.step) * inner];
#pragma unroll
        for (int k = 0; k < 2 * AHEAD; ++k) {
            if (i + k * line.step >= length) continue;
            accum below = load(read[k]) - found.largest;
            put(y + (i + k * line.step) * inner, logarithm ? below - level : exp(below) * level);
        }
    }
}

// What the sum for the gradient adds up, and the gradient. y is what softmax gave, or its logarithm.
__device__ inline accum part(accum grad, accum y, whole logarithm) { return logarithm ? grad : grad * y; }

__device__ inline accum slope(accum grad, accum y, accum total, whole logarithm) {
    return logarithm ? grad - exp(y) * total : y * (grad - total);
}

extern "C" __global__ void softmax_rows_backward(
    const scalar* grad, const scalar* y, scalar* made, whole rows, whole length, whole logarithm
) {
    whole row = row_of_thread();
    if (row >= rows) return;
    grad += row * length;
    y += row * length;
    made += row * length;
    accum total = 0;
    if (are_held(grad, y, made, length)) {
        accum slopes[HELD], held[HELD];
        hold(slopes, grad, length, 0);
        hold(held, y, length, 0);
#pragma unroll
        for (int i = 0; i < HELD; ++i) total += part(slopes[i], held[i], logarithm);
        total = row_sum(total);
        release(made, length, [&](int i) { return slope(slopes[i], held[i], total, logarithm); });
        return;
    }
    for (whole i = threadIdx.x; i < length; i += blockDim.x) total += part(load(grad[i]), load(y[i]), logarithm);
    total = row_sum(total);
    for (whole i = threadIdx.x; i < length; i += blockDim.x) put(made + i, slope(load(grad[i]), load(y[i]), total, logarithm));
}

// A thread has a column, so that neighbours read what lies next to each other.
extern "C" __global__ void softmax_columns_backward(
    const scalar* grad, const scalar* y, scalar* made, whole columns, whole length, whole inner, whole logarithm
) {
    for (whole column = first_place(); column < columns; column += all_threads()) {
        whole start = column / inner * length * inner + column % inner;
        accum total = 0;
        for (whole i = 0; i < length; ++i) {
            whole at = start + i * inner;
            total += part(load(grad[at]), load(y[at]), logarithm);
        }
        for (whole i = 0; i < length; ++i) {
            whole at = start + i * inner;
            put(made + at, slope(load(grad[at]), load(y[at]), total, logarithm));
        }
    }
}
