// Running sums, products, extremes and logarithms of sums. Arrays are [outer, length, inner], row-major. For extremes and
// logarithms, a block has one of the outer * inner lines, and goes along it in pieces of blockDim.x elements.

#define MOST 256

// Whether the later of two elements is the extreme: among equal ones it is, and nan follows only upon nan.
__device__ inline bool later_wins(accum first, accum later, whole sign) {
    if (later != later) return true;
    return first == first && (sign > 0 ? later >= first : later <= first);
}

extern "C" __global__ void running_extreme(
    const scalar* x, scalar* values, whole* places, whole length, whole inner, whole sign
) {
    __shared__ accum best[MOST];
    __shared__ whole from[MOST];
    whole start = (whole)blockIdx.x / inner * length * inner + (whole)blockIdx.x % inner;
    int at = threadIdx.x;
    accum carried = 0;
    whole carried_from = -1;
    for (whole first = 0; first < length; first += blockDim.x) {
        whole i = first + at;
        accum mine = load(x[start + (i < length ? i : length - 1) * inner]);
        whole mine_from = i < length ? i : length - 1;
        best[at] = mine;
        from[at] = mine_from;
        __syncthreads();
        for (int reach = 1; reach < blockDim.x; reach *= 2) {
            if (at >= reach && !later_wins(best[at - reach], mine, sign)) {
                mine = best[at - reach];
                mine_from = from[at - reach];
            }
            __syncthreads();  // all have read
            best[at] = mine;
            from[at] = mine_from;
            __syncthreads();
        }
        if (carried_from >= 0 && !later_wins(carried, mine, sign)) {
            mine = carried;
            mine_from = carried_from;
        }
        if (i < length) {
            put(values + start + i * inner, mine);
            places[start + i * inner] = mine_from;
        }
        accum last = best[blockDim.x - 1];
        if (carried_from < 0 || later_wins(carried, last, sign)) {
            carried = last;
            carried_from = from[blockDim.x - 1];
        }
        __syncthreads();  // the next piece writes
    }
}

__device__ inline double log_of_sum(double a, double b) {
    if (a == b) return a + 0.6931471805599453;  // infinite ones too
    double larger = a > b ? a : b, smaller = a > b ? b : a;
    return larger + log1p(exp(smaller - larger));  // nan for nan
}

// In double precision, because the error of a running sum grows with its length.
extern "C" __global__ void running_log_of_sum(const scalar* x, scalar* y, whole length, whole inner) {
    __shared__ double sums[MOST];
    whole start = (whole)blockIdx.x / inner * length * inner + (whole)blockIdx.x % inner;
    int at = threadIdx.x;
    double carried = -infinity();
    for (whole first = 0; first < length; first += blockDim.x) {
        whole i = first + at;
        double mine = i < length ? (double)load(x[start + i * inner]) : -(double)infinity();
        sums[at] = mine;
        __syncthreads();
        for (int reach = 1; reach < blockDim.x; reach *= 2) {
            if (at >= reach) mine = log_of_sum(sums[at - reach], mine);
            __syncthreads();
            sums[at] = mine;
            __syncthreads();
        }
        if (i < length) put(y + start + i * inner, (accum)log_of_sum(carried, mine));
        carried = log_of_sum(carried, sums[blockDim.x - 1]);
        __syncthreads();
    }
}

// Running sums and products. Those of floats are kept in double precision, for the same reason; int64 wraps around.
#define EACH 4  // neighbouring elements of a thread

template <typename T>
struct alignas(sizeof(T) < 4 ? 8 : 16) Neighbours {
    T of[EACH];
};

__device__ inline double widened(scalar value) { return load(value); }
__device__ inline unsigned long long widened(whole value) { return (unsigned long long)value; }
__device__ inline void put_wide(scalar* at, double value) { put(at, (accum)value); }
__device__ inline void put_wide(whole* at, unsigned long long value) { *at = (whole)value; }

template <typename Wide>
__device__ inline Wide run_on(Wide a, Wide b, whole product) { return product ? a * b : a + b; }

// A row for a warp or a block. With `aligned`, all of a thread's elements are in the row, and are read at once.
template <typename Wide, typename T>
__device__ inline void run_along_rows(const T* x, T* y, whole rows, whole length, whole product, whole aligned) {
    __shared__ Wide totals[32];
    whole row = row_of_thread();
    if (row >= rows) return;  // a whole warp, or a whole block
    x += row * length;
    y += row * length;
    const Wide none = product ? 1 : 0;
    Wide carried = none;
    int warp = threadIdx.x >> 5;
    for (whole first = 0; first < length; first += EACH * blockDim.x) {
        whole i = first + EACH * threadIdx.x;
        Wide mine[EACH];
        if (aligned && i < length) {
            Neighbours<T> given = *(const Neighbours<T>*)(x + i);
            for (int k = 0; k < EACH; ++k) mine[k] = widened(given.of[k]);
        } else {
            for (int k = 0; k < EACH; ++k) mine[k] = i + k < length ? widened(x[i + k]) : none;
        }
        for (int k = 1; k < EACH; ++k) mine[k] = run_on(mine[k - 1], mine[k], product);
        // Groups of threads double: `total` is that of a thread's group, `before` that of the threads before it in the group.
        Wide total = mine[EACH - 1], before = none;
        for (int distance = 1; distance < 32; distance *= 2) {
            Wide other = __shfl_xor_sync(0xffffffffu, total, distance);
            if (threadIdx.x & distance) before = run_on(other, before, product);
            total = run_on(total, other, product);
        }
        Wide lead = carried;
        if (blockDim.x > 32) {
            if ((threadIdx.x & 31) == 0) totals[warp] = total;
            __syncthreads();
            total = none;
            for (int each = 0; each < blockDim.x >> 5; ++each) {
                if (each == warp) lead = run_on(carried, total, product);
                total = run_on(total, totals[each], product);
            }
            __syncthreads();  // the next piece writes
        }
        carried = run_on(carried, total, product);
        lead = run_on(lead, before, product);
        for (int k = 0; k < EACH; ++k) {
            if (i + k < length) put_wide(y + i + k, run_on(lead, mine[k], product));
        }
    }
}

// A thread has a line, so that neighbours read what lies next to each other; some elements are read before the first is written.
template <typename Wide, typename T>
__device__ inline void run_along_columns(const T* x, T* y, whole columns, whole length, whole inner, whole product) {
    for (whole column = first_place(); column < columns; column += all_threads()) {
        whole start = column / inner * length * inner + column % inner;
        Wide total = product ? 1 : 0;
        for (whole first = 0; first < length; first += EACH) {
            Wide next[EACH];
            for (int k = 0; k < EACH; ++k) {
                if (first + k < length) next[k] = widened(x[start + (first + k) * inner]);
            }
            for (int k = 0; k < EACH; ++k) {
                if (first + k >= length) break;
                total = run_on(total, next[k], product);
                put_wide(y + start + (first + k) * inner, total);
            }
        }
    }
}

extern "C" __global__ void running_total_rows(
    const scalar* x, scalar* y, whole rows, whole length, whole product, whole aligned
) {
    run_along_rows<double>(x, y, rows, length, product, aligned);
}

extern "C" __global__ void running_total_columns(
    const scalar* x, scalar* y, whole columns, whole length, whole inner, whole product
) {
    run_along_columns<double>(x, y, columns, length, inner, product);
}

extern "C" __global__ void running_whole_rows(const whole* x, whole* y, whole rows, whole length, whole product, whole aligned) {
    run_along_rows<unsigned long long>(x, y, rows, length, product, aligned);
}

extern "C" __global__ void running_whole_columns(
    const whole* x, whole* y, whole columns, whole length, whole inner, whole product
) {
    run_along_columns<unsigned long long>(x, y, columns, length, inner, product);
}
