// Steps of optimisers and element-wise functions for many tensors at once.
//
// `table` has a row for each tensor: the addresses of the parameter, of its gradient, of three states and of its count of steps, and
// the number of elements. `blocks` has, for each block, the row and the first element; a block handles CHUNK of them. Learning rate,
// scale of gradients and `found_inf` may lie on the device, so that nothing waits for them: where found_inf[0] is 1, nothing is
// written.

#define CHUNK 4096
#define COLUMNS 7

// The arrays of a row, in the order of the table.
enum Array { PARAMETER, GRADIENT, FIRST, SECOND, THIRD, ARRAYS };
#define BIT(array) (1 << (array))

struct Piece {
    scalar* of[ARRAYS];
    float step;
    whole start, end;
};

__device__ inline Piece piece_of(const whole* table, const whole* blocks) {
    const whole* row = table + blocks[2 * blockIdx.x] * COLUMNS;
    Piece found;
    for (int array = 0; array < ARRAYS; ++array) found.of[array] = (scalar*)row[array];
    found.step = row[5] ? *(const float*)row[5] : 0;
    found.start = blocks[2 * blockIdx.x + 1];
    found.end = found.start + CHUNK < row[6] ? found.start + CHUNK : row[6];
    return found;
}

// f(values) for each element of a piece, where `values` has a number for each array: what the arrays in `reads` hold, and 1 for the
// others. Then the arrays in `writes` get theirs. A thread has 16 bytes of each array at once.
template <typename F>
__device__ inline void each_of(const Piece& piece, int reads, int writes, F f) {
    bool packed = true;
    for (int array = 0; array < ARRAYS; ++array) packed &= !((reads | writes) & BIT(array)) || together(piece.of[array]);
    whole packs = packed ? (piece.end - piece.start) / WIDTH : 0;
    for (whole k = threadIdx.x; k < packs; k += blockDim.x) {
        Pack<scalar> held[ARRAYS];
#pragma unroll
        for (int array = 0; array < ARRAYS; ++array) {
            if (reads & BIT(array)) held[array] = ((const Pack<scalar>*)(piece.of[array] + piece.start))[k];
        }
#pragma unroll
        for (int j = 0; j < WIDTH; ++j) {
            accum values[ARRAYS];
#pragma unroll
            for (int array = 0; array < ARRAYS; ++array) {
                values[array] = reads & BIT(array) ? load(held[array].of[j]) : accum(1);
            }
            f(values);
#pragma unroll
            for (int array = 0; array < ARRAYS; ++array) put(&held[array].of[j], values[array]);
        }
#pragma unroll
        for (int array = 0; array < ARRAYS; ++array) {
            if (writes & BIT(array)) ((Pack<scalar>*)(piece.of[array] + piece.start))[k] = held[array];
        }
    }
    for (whole i = piece.start + packs * WIDTH + threadIdx.x; i < piece.end; i += blockDim.x) {
        accum values[ARRAYS];
        for (int array = 0; array < ARRAYS; ++array) {
            values[array] = reads & BIT(array) ? load(piece.of[array][i]) : accum(1);
        }
        f(values);
        for (int array = 0; array < ARRAYS; ++array) {
            if (writes & BIT(array)) put(piece.of[array] + i, values[array]);
        }
    }
}

// The gradient to go along; what was multiplied by a scale is divided by it, in place.
__device__ inline accum gradient_of(accum* values, accum scale, bool maximize) {
    values[GRADIENT] /= scale;
    return maximize ? -values[GRADIENT] : values[GRADIENT];
}

// 1 - beta**step. The difference of both would have four digits in float32.
__device__ inline double left(double beta, double step) { return beta ? -expm1(step * log(beta)) : 1; }

extern "C" __global__ void adam_step(
    const whole* table, const whole* blocks, const double* rate_at, const float* scale, const float* found_inf, whole has_rate,
    whole has_scale, whole has_found, whole amsgrad, whole maximize, whole decoupled, double rate, double beta1, double beta2,
    double decay, double eps
) {
    if (has_found && found_inf[0] == 1) return;
    __shared__ accum shared[3];  // double precision once for a block, which is slow on many GPUs
    Piece piece = piece_of(table, blocks);
    if (threadIdx.x == 0) {
        double by = has_rate ? rate_at[0] : rate;
        shared[0] = accum(by / left(beta1, piece.step));
        shared[1] = accum(sqrt(left(beta2, piece.step)));
        shared[2] = accum(by * decay);
    }
    __syncthreads();
    accum by = shared[0], root = shared[1], shrink = shared[2], unscaled = has_scale ? scale[0] : accum(1);
    int states = BIT(FIRST) | BIT(SECOND) | (amsgrad ? BIT(THIRD) : 0);
    int reads = BIT(PARAMETER) | BIT(GRADIENT) | states, writes = BIT(PARAMETER) | (has_scale ? BIT(GRADIENT) : 0) | states;
    each_of(piece, reads, writes, [=](accum* values) {
        accum gradient = gradient_of(values, unscaled, maximize), value = values[PARAMETER];
        if (decoupled) {
            value -= value * shrink;
        } else {
            gradient += value * accum(decay);
        }
        accum mean = values[FIRST], square = values[SECOND];
        mean += (gradient - mean) * accum(1 - beta1);
        square = square * accum(beta2) + gradient * gradient * accum(1 - beta2);
        values[FIRST] = mean;
        values[SECOND] = square;
        if (amsgrad) {
            accum largest = values[THIRD];
            square = largest != largest || largest > square ? largest : square;
            values[THIRD] = square;
        }
        values[PARAMETER] = value - mean * by / (sqrt(square) / root + accum(eps));
    });
}

extern "C" __global__ void sgd_step(
    const whole* table, const whole* blocks, const double* rate_at, const float* scale, const float* found_inf, whole has_rate,
    whole has_scale, whole has_found, whole nesterov, whole maximize, whole is_first, double rate, double momentum,
    double dampening, double decay
) {
    if (has_found && found_inf[0] == 1) return;
    Piece piece = piece_of(table, blocks);
    accum by = accum(has_rate ? rate_at[0] : rate), unscaled = has_scale ? scale[0] : accum(1);
    int state = momentum != 0 ? BIT(FIRST) : 0;
    int reads = BIT(PARAMETER) | BIT(GRADIENT) | (is_first ? 0 : state);
    each_of(piece, reads, BIT(PARAMETER) | (has_scale ? BIT(GRADIENT) : 0) | state, [=](accum* values) {
        accum value = values[PARAMETER], gradient = gradient_of(values, unscaled, maximize) + value * accum(decay);
        if (momentum != 0) {
            accum held = is_first ? gradient : values[FIRST] * accum(momentum) + gradient * accum(1 - dampening);
            values[FIRST] = held;
            gradient = nesterov ? gradient + held * accum(momentum) : held;
        }
        values[PARAMETER] = value - gradient * by;
    });
}

extern "C" __global__ void adagrad_step(
    const whole* table, const whole* blocks, const double* rate_at, const float* scale, const float* found_inf, whole has_rate,
    whole has_scale, whole has_found, whole maximize, double rate, double rate_decay, double decay, double eps
) {
    if (has_found && found_inf[0] == 1) return;
    Piece piece = piece_of(table, blocks);
    accum by = accum((has_rate ? rate_at[0] : rate) / ((piece.step - 1.0) * rate_decay + 1.0));
    accum unscaled = has_scale ? scale[0] : accum(1);
    int reads = BIT(PARAMETER) | BIT(GRADIENT) | BIT(FIRST);
    each_of(piece, reads, BIT(PARAMETER) | BIT(FIRST) | (has_scale ? BIT(GRADIENT) : 0), [=](accum* values) {
        accum value = values[PARAMETER], gradient = gradient_of(values, unscaled, maximize) + value * accum(decay);
        accum total = values[FIRST] + gradient * gradient;
        values[FIRST] = total;
        values[PARAMETER] = value - gradient * by / (sqrt(total) + accum(eps));
    });
}

enum { ADD, SUB, MUL, DIV, ADDCMUL, ADDCDIV, LERP, SQRT, NEG, ABS, RECIPROCAL };

// Two forms, so that weight 0 gives x and weight 1 gives y exactly.
__device__ inline accum between(accum x, accum y, accum weight) {
    return fabs(weight) < accum(0.5) ? x + weight * (y - x) : y - (y - x) * (1 - weight);
}

// Results, from operands and as many more operands as `lists` says, which are 1 where they are missing.
template <typename F>
__device__ inline void results_of(const Piece& piece, whole lists, F f) {
    int reads = BIT(1) | (lists > 0 ? BIT(2) : 0) | (lists > 1 ? BIT(3) : 0);
    each_of(piece, reads, BIT(0), [=](accum* values) { values[0] = f(values[1], values[2], values[3]); });
}

#define RESULT(expression) results_of(piece, lists, [=](accum x, accum y, accum z) { return accum(expression); })

// One function of elements. The rows of the table are results and operands; each tensor has its own number where `has_numbers`.
extern "C" __global__ void each_element(
    const whole* table, const whole* blocks, const double* numbers, whole has_numbers, whole op, whole lists, double number
) {
    Piece piece = piece_of(table, blocks);
    accum by = accum(has_numbers ? numbers[blocks[2 * blockIdx.x]] : number);
    switch (op) {
        case ADD: RESULT(x + by * y); break;
        case SUB: RESULT(x - by * y); break;
        case MUL: RESULT(x * (by * y)); break;  // one of both is 1, here and in the next
        case DIV: RESULT(x / (by * y)); break;
        case ADDCMUL: RESULT(x + by * y * z); break;
        case ADDCDIV: RESULT(x + by * (y / z)); break;
        case LERP: RESULT(between(x, y, by * z)); break;
        case SQRT: RESULT(sqrt(x)); break;
        case NEG: RESULT(-x); break;
        case ABS: RESULT(fabs(x)); break;
        case RECIPROCAL: RESULT(1 / x); break;
    }
}
