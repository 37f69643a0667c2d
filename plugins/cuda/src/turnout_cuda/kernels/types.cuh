// What all kernels share; `turnout_cuda.programs` puts it before each of them. DTYPE chooses the elements: 16 float16, 17 bfloat16,
// 32 float32, 64 float64. Two-byte floats are computed in float32 and rounded once.

#if DTYPE == 16
#include <cuda_fp16.h>
typedef __half scalar;
typedef float accum;
__device__ inline accum load(scalar value) { return __half2float(value); }
__device__ inline void put(scalar* at, accum value) { *at = __float2half(value); }
#elif DTYPE == 17
#include <cuda_bf16.h>
typedef __nv_bfloat16 scalar;
typedef float accum;
__device__ inline accum load(scalar value) { return __bfloat162float(value); }
__device__ inline void put(scalar* at, accum value) { *at = __float2bfloat16(value); }
#elif DTYPE == 32
typedef float scalar;
typedef float accum;
__device__ inline accum load(scalar value) { return value; }
__device__ inline void put(scalar* at, accum value) { *at = value; }
#else
typedef double scalar;
typedef double accum;
__device__ inline accum load(scalar value) { return value; }
__device__ inline void put(scalar* at, accum value) { *at = value; }
#endif

typedef long long whole;

// NVRTC has no INFINITY.
__device__ inline accum infinity() { return __int_as_float(0x7f800000); }

// The place of a thread among all, and their number: a loop from one by the other goes over any number of elements.
__device__ inline whole first_place() { return (whole)blockIdx.x * blockDim.x + threadIdx.x; }
__device__ inline whole all_threads() { return (whole)gridDim.x * blockDim.x; }

// Rows: threadIdx.x goes along a row. Either a warp has a row, and a block has several (blockDim is (32, rows)), or a block has one.
__device__ inline whole row_of_thread() { return (whole)blockIdx.x * blockDim.y + threadIdx.y; }

// The sum over the threads of a row, which all of them get.
__device__ inline accum row_sum(accum value) {
    for (int distance = 16; distance; distance >>= 1) value += __shfl_xor_sync(0xffffffffu, value, distance);
    if (blockDim.x == 32) return value;
    __shared__ accum parts[32];
    __syncthreads();  // an earlier sum may still be read
    if ((threadIdx.x & 31) == 0) parts[threadIdx.x >> 5] = value;
    __syncthreads();
    accum total = 0;
    for (int warp = 0; warp < blockDim.x >> 5; ++warp) total += parts[warp];
    return total;
}

// The largest over the threads of a row, which all of them get. A nan is left out.
__device__ inline accum row_max(accum value) {
    for (int distance = 16; distance; distance >>= 1) {
        accum other = __shfl_xor_sync(0xffffffffu, value, distance);
        value = other > value ? other : value;
    }
    if (blockDim.x == 32) return value;
    __shared__ accum parts[32];
    __syncthreads();
    if ((threadIdx.x & 31) == 0) parts[threadIdx.x >> 5] = value;
    __syncthreads();
    accum largest = parts[0];
    for (int warp = 1; warp < blockDim.x >> 5; ++warp) largest = parts[warp] > largest ? parts[warp] : largest;
    return largest;
}
