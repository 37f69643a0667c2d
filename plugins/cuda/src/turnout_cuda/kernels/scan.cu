// Running extremes and running logarithms of sums, which CuPy does not accumulate. Arrays are [outer, length, inner], row-major; a
// block has one of the outer * inner lines, and goes along it in pieces of blockDim.x elements.

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
