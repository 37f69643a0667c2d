// The elements at which a mask is true. A block has CHUNK of them, and a thread SHARE that lie together: all blocks count theirs,
// one adds the counts up, and all write theirs from there on.

#define CHUNK 4096
#define SHARE (CHUNK / 256)

struct alignas(SHARE) Share {
    bool of[SHARE];
};

// Bits of which each stands for one of the elements of this thread.
__device__ inline unsigned share_of(const bool* mask, whole size) {
    whole start = (whole)blockIdx.x * CHUNK + threadIdx.x * SHARE;
    unsigned bits = 0;
    if (start + SHARE <= size && (whole)mask % SHARE == 0) {
        Share share = *(const Share*)(mask + start);
#pragma unroll
        for (int j = 0; j < SHARE; ++j) bits |= (unsigned)share.of[j] << j;
    } else {
        for (int j = 0; j < SHARE && start + j < size; ++j) bits |= (unsigned)mask[start + j] << j;
    }
    return bits;
}

__device__ inline int count_of(unsigned bits) {
    int count = 0;
#pragma unroll
    for (int j = 0; j < SHARE; ++j) count += bits >> j & 1;
    return count;
}

extern "C" __global__ void count_true(const bool* mask, whole* counts, whole size) {
    accum count = row_sum((accum)count_of(share_of(mask, size)));
    if (threadIdx.x == 0) counts[blockIdx.x] = (whole)count;
}

// The sum of all values of threads before this one; `parts` has room for one of each.
template <typename T>
__device__ inline T sum_before(T* parts, T value) {
    parts[threadIdx.x] = value;
    __syncthreads();
    for (unsigned distance = 1; distance < blockDim.x; distance *= 2) {
        T more = threadIdx.x >= distance ? parts[threadIdx.x - distance] : 0;
        __syncthreads();
        parts[threadIdx.x] += more;
        __syncthreads();
    }
    return parts[threadIdx.x] - value;
}

// Counts of blocks become the numbers of what is before each, and of all behind the last. One block does that.
extern "C" __global__ void starts_of_blocks(whole* counts, whole blocks) {
    __shared__ whole parts[1024];
    whole each = (blocks + blockDim.x - 1) / blockDim.x, first = threadIdx.x * each;
    whole end = first + each < blocks ? first + each : blocks, total = 0;
    for (whole i = first; i < end; ++i) total += counts[i];
    whole before = sum_before(parts, total);
    if (threadIdx.x == blockDim.x - 1) counts[blocks] = before + total;
    for (whole i = first; i < end; ++i) {
        whole count = counts[i];
        counts[i] = before;
        before += count;
    }
}

// f(number, place) for each true element of this block.
template <typename F>
__device__ inline void each_true(const bool* mask, const whole* starts, whole size, F f) {
    __shared__ int parts[256];
    __shared__ unsigned short found[CHUNK];
    unsigned bits = share_of(mask, size);
    int at = sum_before(parts, count_of(bits)), total = parts[blockDim.x - 1];
    for (int j = 0; j < SHARE; ++j) {
        if (bits >> j & 1) found[at++] = (unsigned short)(threadIdx.x * SHARE + j);
    }
    __syncthreads();
    whole first = starts[blockIdx.x];
    for (int k = threadIdx.x; k < total; k += blockDim.x) f(first + k, (whole)blockIdx.x * CHUNK + found[k]);
}

// Indices of up to four dims: all of the first one, then all of the next. The lengths are those of dims behind the first.
template <typename Index>
__device__ inline void places(
    const bool* mask, const whole* starts, whole* y, whole size, whole total, int ndim, Index second, Index third, Index fourth
) {
    each_true(mask, starts, size, [=](whole number, whole place) {
        Index left = (Index)place;
        for (int dim = ndim - 1; dim > 0; --dim) {
            Index length = dim == 1 ? second : dim == 2 ? third : fourth, line = left / length;
            y[dim * total + number] = (whole)(left - line * length);
            left = line;
        }
        y[number] = (whole)left;
    });
}

extern "C" __global__ void true_places(
    const bool* mask, const whole* starts, whole* y, whole size, whole narrow, whole total, whole ndim, whole second, whole third,
    whole fourth
) {
    OF_INDEX(narrow, places<Index>(mask, starts, y, size, total, (int)ndim, (Index)second, (Index)third, (Index)fourth))
}

extern "C" __global__ void select_true(const scalar* x, const bool* mask, const whole* starts, scalar* y, whole size) {
    each_true(mask, starts, size, [=](whole number, whole place) { y[number] = x[place]; });
}
