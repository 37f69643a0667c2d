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
#elif DTYPE > 100  // elements of so many bytes more than 100, which are only moved
#if DTYPE == 101
typedef unsigned char scalar;
#elif DTYPE == 102
typedef unsigned short scalar;
#elif DTYPE == 104
typedef unsigned int scalar;
#elif DTYPE == 108
typedef unsigned long long scalar;
#else
struct alignas(16) scalar {
    unsigned long long low, high;
};
#endif
typedef float accum;
#else
typedef double scalar;
typedef double accum;
__device__ inline accum load(scalar value) { return value; }
__device__ inline void put(scalar* at, accum value) { *at = value; }
#endif

typedef long long whole;
typedef unsigned long long word64;

// How a kernel gets an array: not at all, in the type that is computed in, in that of the elements, or as bools.
enum { MISSING, WIDE, OWN, BOOLS };

// A statement with Index as the type of places: of 32 bits where `narrow` says that they are enough, because a GPU divides numbers
// of 64 bits in software.
#define OF_INDEX(narrow, ...)             \
    if (narrow) {                         \
        typedef unsigned int Index;       \
        __VA_ARGS__;                      \
    } else {                              \
        typedef unsigned long long Index; \
        __VA_ARGS__;                      \
    }

// NVRTC has no INFINITY.
__device__ inline accum infinity() { return __int_as_float(0x7f800000); }

// The place of a thread among all, and their number: a loop from one by the other goes over any number of elements.
__device__ inline whole first_place() { return (whole)blockIdx.x * blockDim.x + threadIdx.x; }
__device__ inline whole all_threads() { return (whole)gridDim.x * blockDim.x; }

#if DTYPE < 100

// Elements in 16 bytes, and what holds as many of another type.
#define WIDTH (16 / (int)sizeof(scalar))

template <typename T>
struct alignas(sizeof(T) * WIDTH > 16 ? 16 : sizeof(T) * WIDTH) Pack {
    T of[WIDTH];
};

template <typename T>
__device__ inline bool together(const T* at) { return (whole)at % (whole)alignof(Pack<T>) == 0; }

__device__ inline scalar made(accum value) {
    scalar result;
    put(&result, value);
    return result;
}

// A row that a thread keeps its elements of, up to HELD, so that it is read once. It must begin at 16 bytes, and be whole packs.
#define HELD 32
__device__ inline bool is_held(const scalar* x, whole length) {
    return length <= (whole)HELD * blockDim.x && length % WIDTH == 0 && together(x);
}

// Where pack k of this thread begins in its row.
__device__ inline whole pack_at(int k) { return ((whole)k * blockDim.x + threadIdx.x) * WIDTH; }

// Whether rows of that length from a and b to y may be kept: all of them begin at 16 bytes.
__device__ inline bool are_held(const scalar* a, const scalar* b, const scalar* y, whole length) {
    return is_held(a, length) && together(b) && together(y);
}

// Fills `held` with the elements, and with `otherwise` past the end of the row.
__device__ inline void hold(accum* held, const scalar* x, whole length, accum otherwise) {
#pragma unroll
    for (int k = 0; k < HELD / WIDTH; ++k) {
        whole i = pack_at(k);
        Pack<scalar> pack;
        if (i < length) pack = *(const Pack<scalar>*)(x + i);
#pragma unroll
        for (int j = 0; j < WIDTH; ++j) held[k * WIDTH + j] = i < length ? load(pack.of[j]) : otherwise;
    }
}

// Writes a pack of f(place in `held`) for each one of the row.
template <typename F>
__device__ inline void release(scalar* y, whole length, F f) {
#pragma unroll
    for (int k = 0; k < HELD / WIDTH; ++k) {
        Pack<scalar> pack;
#pragma unroll
        for (int j = 0; j < WIDTH; ++j) put(&pack.of[j], f(k * WIDTH + j));
        if (pack_at(k) < length) *(Pack<scalar>*)(y + pack_at(k)) = pack;
    }
}

#endif

// An element of a channel of arrays [images, channels, area]: its image and its place. Numbers of 64 bits take ten times as long to
// divide.
__device__ inline whole image_of(whole i, whole area) { return i >> 32 ? i / area : (whole)((unsigned)i / (unsigned)area); }
__device__ inline whole place_of(whole i, whole channel, whole channels, whole area) {
    whole image = image_of(i, area);
    return (image * channels + channel) * area + (i - image * area);
}

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
