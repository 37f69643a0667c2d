// What CUDA C has and C++ does not, so that a kernel compiles with a C++ compiler and runs on the CPU, with the same text.
//
// A thread is a context of its own on one OS thread, and is left only where it waits. So what one thread does between two waits
// happens at once. The first thread that need not wait goes on, so warps run far ahead of others, and every other block counts
// threads from the last one: a missing wait shows in the values.
// A wait that some threads of a block or warp never reach is an error of the launch, not a standstill.

#pragma once
#include <ucontext.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

using std::atan;
using std::ceil;
using std::cos;
using std::cosh;
using std::erf;
using std::exp;
using std::expm1;
using std::fabs;
using std::floor;
using std::log;
using std::log10;
using std::log1p;
using std::log2;
using std::pow;
using std::rint;
using std::sin;
using std::sinh;
using std::sqrt;
using std::tan;
using std::tanh;
using std::trunc;

#define __global__
#define __device__
#define __shared__ static  // blocks run one after the other

struct dim3 {
    unsigned x, y, z;
};

static dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace emulation {

constexpr std::size_t STACK = 64 * 1024;
constexpr unsigned WARP = 32;

struct Barrier {
    unsigned arrived = 0, generation = 0;
};

struct Warp {
    Barrier barrier;
    std::uint64_t slots[2][WARP];
};

struct Thread {
    ucontext_t context;
    dim3 index;
    unsigned number, shuffles = 0, generation = 0;
    const Barrier* waits = nullptr;  // for another generation of it
    bool done;
};

static std::vector<Thread> threads;
static std::vector<std::unique_ptr<char[]>> stacks;  // not set to zeros: what no thread touches takes no memory
static std::vector<Warp> warps;
static Barrier block;
static Thread* current;
static ucontext_t scheduler;
static void (*body)(void**);
static void** arguments;

static void enter() {
    body(arguments);
    current->done = true;
}

static void wait(Barrier& barrier, unsigned parties) {
    if (++barrier.arrived == parties) {
        barrier.arrived = 0;
        ++barrier.generation;
        return;
    }
    current->waits = &barrier;
    current->generation = barrier.generation;
    swapcontext(&current->context, &scheduler);
    current->waits = nullptr;
}

template <typename T>
T exchanged(T value, unsigned lane_mask) {
    Thread* mine = current;
    Warp& warp = warps[mine->number / WARP];
    std::uint64_t* slots = warp.slots[mine->shuffles++ & 1];
    std::memcpy(&slots[mine->number % WARP], &value, sizeof value);
    wait(warp.barrier, WARP);
    std::memcpy(&value, &slots[(mine->number % WARP) ^ lane_mask], sizeof value);
    return value;
}

// 0; 1 for threads that wait for others that do not come; 2 for a block that is not whole warps.
static int launch(void (*kernel)(void**), void** given, const unsigned* grid, const unsigned* shape) {
    body = kernel;
    arguments = given;
    gridDim = {grid[0], grid[1], grid[2]};
    blockDim = {shape[0], shape[1], shape[2]};
    unsigned count = shape[0] * shape[1] * shape[2];
    if (!count || count % WARP || count > 1024) return 2;
    while (stacks.size() < count) stacks.emplace_back(new char[STACK]);
    threads.resize(count);
    unsigned long long blocks = 1ull * grid[0] * grid[1] * grid[2];
    for (unsigned long long b = 0; b < blocks; ++b) {
        blockIdx = {unsigned(b % grid[0]), unsigned(b / grid[0] % grid[1]), unsigned(b / grid[0] / grid[1])};
        block = Barrier();
        warps.assign(count / WARP, Warp());
        for (unsigned i = 0; i < count; ++i) {
            Thread& thread = threads[i];
            thread.number = i;
            thread.index = {i % shape[0], i / shape[0] % shape[1], i / shape[0] / shape[1]};
            thread.shuffles = 0;
            thread.waits = nullptr;
            thread.done = false;
            getcontext(&thread.context);
            thread.context.uc_stack.ss_sp = stacks[i].get();
            thread.context.uc_stack.ss_size = STACK;
            thread.context.uc_link = &scheduler;
            makecontext(&thread.context, enter, 0);
        }
        for (unsigned left = count; left;) {
            current = nullptr;
            for (unsigned i = 0; i < count && !current; ++i) {
                Thread& thread = threads[b % 2 ? count - 1 - i : i];
                bool ready = !thread.waits || thread.waits->generation != thread.generation;
                if (!thread.done && ready) current = &thread;
            }
            if (!current) return 1;
            threadIdx = current->index;
            swapcontext(&scheduler, &current->context);
            left -= current->done;
        }
    }
    return 0;
}

}  // namespace emulation

inline void __syncthreads() { emulation::wait(emulation::block, blockDim.x * blockDim.y * blockDim.z); }

template <typename T>
T __shfl_xor_sync(unsigned, T value, int lane_mask) {
    return emulation::exchanged(value, unsigned(lane_mask));
}

inline void __threadfence() {}

template <typename T>
T atomicAdd(T* at, T value) {
    T before = *at;
    *at += value;
    return before;
}

template <typename T>
T atomicCAS(T* at, T expected, T value) {
    T before = *at;
    if (before == expected) *at = value;
    return before;
}

template <typename To, typename From>
To bits_as(From from) {
    static_assert(sizeof(To) == sizeof(From), "of the same size");
    To to;
    std::memcpy(&to, &from, sizeof to);
    return to;
}

inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) { return (unsigned __int128)a * b >> 64; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline double __dmul_rn(double a, double b) { return a * b; }

inline float __int_as_float(int bits) { return bits_as<float>(bits); }
inline int __float_as_int(float value) { return bits_as<int>(value); }
inline double __longlong_as_double(long long bits) { return bits_as<double>(bits); }
inline long long __double_as_longlong(double value) { return bits_as<long long>(value); }
