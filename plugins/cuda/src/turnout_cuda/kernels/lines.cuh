// The elements of a line that a thread reads, some at once, and their sums.

// A block has columns that lie next to each other, so that neighbours read neighbours, and at most so many threads for each.
#define COLUMN_THREADS 8
#define AHEAD 4  // packs that a thread reads at once, and half of the elements of a column
#define SUM_STEPS 64  // sums of these that are added one after the other: the error grows with them, and with such parts

// The elements of a line that a thread has. `take` gets each of them; `turn` is called behind those that are read at once.
//
// Of a row, every `step`-th pack of 16 bytes from the first one on. A row may begin and end with elements that make no pack.
struct Row {
    const scalar* x;
    whole length, first, step;

    template <typename Take, typename Turn>
    __device__ void walk(Take take, Turn turn) const {
        whole head = (WIDTH - (whole)x / (whole)sizeof(scalar) % WIDTH) % WIDTH;
        if (head > length) head = length;
        if (first < head) take(load(x[first]));
        const Pack<scalar>* packs = (const Pack<scalar>*)(x + head);
        whole count = (length - head) / WIDTH, rest = head + count * WIDTH + first;
        if (rest < length) take(load(x[rest]));
        for (whole i = first; i < count; i += AHEAD * step) {
            Pack<scalar> read[AHEAD];
#pragma unroll
            for (int k = 0; k < AHEAD; ++k)
                if (i + k * step < count) read[k] = packs[i + k * step];
#pragma unroll
            for (int k = 0; k < AHEAD; ++k)
                if (i + k * step < count)
#pragma unroll
                    for (int j = 0; j < WIDTH; ++j) take(load(read[k].of[j]));
            turn();
        }
        turn();
    }
};

// Of a column, every `step`-th element; see Row.
struct Column {
    const scalar* x;
    whole length, inner, first, step;

    template <typename Take, typename Turn>
    __device__ void walk(Take take, Turn turn) const {
        for (whole i = first; i < length; i += 2 * AHEAD * step) {
            scalar read[2 * AHEAD];
#pragma unroll
            for (int k = 0; k < 2 * AHEAD; ++k)
                if (i + k * step < length) read[k] = x[(i + k * step) * inner];
#pragma unroll
            for (int k = 0; k < 2 * AHEAD; ++k)
                if (i + k * step < length) take(load(read[k]));
            turn();
        }
    }
};

// The column of a thread, and where it begins. Threads behind the last column read it, too, and write nothing.
__device__ inline whole column_of_thread() { return (whole)blockIdx.x * blockDim.x + threadIdx.x; }

__device__ inline whole column_start(whole columns, whole length, whole inner) {
    whole column = column_of_thread() < columns ? column_of_thread() : columns - 1;
    return column / inner * length * inner + column % inner;
}

// What a thread has of a row that a warp or a block has.
__device__ inline Row row_at(const scalar* x, whole row, whole length) {
    return {x + row * length, length, threadIdx.x, blockDim.x};
}

// The sum of the elements that a thread has, after a function.
template <typename Line, typename Function>
__device__ inline accum sum_of(const Line& line, Function of) {
    accum total = 0, part = 0, read = 0;
    int turns = 0;
    line.walk([&](accum value) { read += of(value); }, [&] {
        part += read;
        read = 0;
        if (++turns < SUM_STEPS) return;
        total += part;
        part = 0;
        turns = 0;
    });
    return total + part;
}

// The mean of a line, and the sum of squares of distances from it; `sum` is that over the threads of the line.
template <typename Line, typename Sum>
__device__ inline accum mean_of(const Line& line, Sum sum) {
    return sum(sum_of(line, [](accum value) { return value; })) / accum(line.length);
}

template <typename Line, typename Sum>
__device__ inline accum squares_of(const Line& line, accum mean, Sum sum) {
    return sum(sum_of(line, [=](accum value) { return (value - mean) * (value - mean); }));
}
