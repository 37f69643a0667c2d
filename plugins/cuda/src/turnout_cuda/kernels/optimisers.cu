// Steps of optimisers and element-wise functions for many tensors at once.
//
// `table` has a row for each tensor: the addresses of the parameter, of its gradient, of three states and of its count of steps, and
// the number of elements. `blocks` has, for each block, the row and the first element; a block handles CHUNK of them. Learning rate,
// scale of gradients and `found_inf` may lie on the device, so that nothing waits for them: where found_inf[0] is 1, nothing is
// written.

#define CHUNK 4096
#define COLUMNS 7

struct Piece {
    scalar *parameter, *gradient, *first, *second, *third;
    float step;
    whole size, start, end;
};

__device__ inline Piece piece_of(const whole* table, const whole* blocks) {
    const whole* row = table + blocks[2 * blockIdx.x] * COLUMNS;
    Piece found;
    found.parameter = (scalar*)row[0];
    found.gradient = (scalar*)row[1];
    found.first = (scalar*)row[2];
    found.second = (scalar*)row[3];
    found.third = (scalar*)row[4];
    found.step = row[5] ? *(const float*)row[5] : 0;
    found.start = blocks[2 * blockIdx.x + 1];
    found.end = found.start + CHUNK < row[6] ? found.start + CHUNK : row[6];
    return found;
}

// The gradient to go along; what was multiplied by a scale is divided by it, in place.
__device__ inline accum gradient_at(const Piece& piece, whole i, const float* scale, whole has_scale, whole maximize) {
    accum gradient = load(piece.gradient[i]);
    if (has_scale) {
        gradient /= scale[0];
        put(piece.gradient + i, gradient);
    }
    return maximize ? -gradient : gradient;
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
    accum by = shared[0], root = shared[1], shrink = shared[2];
    for (whole i = piece.start + threadIdx.x; i < piece.end; i += blockDim.x) {
        accum gradient = gradient_at(piece, i, scale, has_scale, maximize), value = load(piece.parameter[i]);
        if (decoupled) {
            value -= value * shrink;
        } else {
            gradient += value * accum(decay);
        }
        accum mean = load(piece.first[i]), square = load(piece.second[i]);
        mean += (gradient - mean) * accum(1 - beta1);
        square = square * accum(beta2) + gradient * gradient * accum(1 - beta2);
        put(piece.first + i, mean);
        put(piece.second + i, square);
        if (amsgrad) {
            accum largest = load(piece.third[i]);
            square = largest != largest || largest > square ? largest : square;
            put(piece.third + i, square);
        }
        put(piece.parameter + i, value - mean * by / (sqrt(square) / root + accum(eps)));
    }
}

extern "C" __global__ void sgd_step(
    const whole* table, const whole* blocks, const double* rate_at, const float* scale, const float* found_inf, whole has_rate,
    whole has_scale, whole has_found, whole nesterov, whole maximize, whole is_first, double rate, double momentum,
    double dampening, double decay
) {
    if (has_found && found_inf[0] == 1) return;
    Piece piece = piece_of(table, blocks);
    accum by = accum(has_rate ? rate_at[0] : rate);
    for (whole i = piece.start + threadIdx.x; i < piece.end; i += blockDim.x) {
        accum value = load(piece.parameter[i]);
        accum gradient = gradient_at(piece, i, scale, has_scale, maximize) + value * accum(decay);
        if (momentum != 0) {
            accum held = is_first ? gradient : load(piece.first[i]) * accum(momentum) + gradient * accum(1 - dampening);
            put(piece.first + i, held);
            gradient = nesterov ? gradient + held * accum(momentum) : held;
        }
        put(piece.parameter + i, value - gradient * by);
    }
}

extern "C" __global__ void adagrad_step(
    const whole* table, const whole* blocks, const double* rate_at, const float* scale, const float* found_inf, whole has_rate,
    whole has_scale, whole has_found, whole maximize, double rate, double rate_decay, double decay, double eps
) {
    if (has_found && found_inf[0] == 1) return;
    Piece piece = piece_of(table, blocks);
    accum by = accum((has_rate ? rate_at[0] : rate) / ((piece.step - 1.0) * rate_decay + 1.0));
    for (whole i = piece.start + threadIdx.x; i < piece.end; i += blockDim.x) {
        accum value = load(piece.parameter[i]);
        accum gradient = gradient_at(piece, i, scale, has_scale, maximize) + value * accum(decay);
        accum total = load(piece.first[i]) + gradient * gradient;
        put(piece.first + i, total);
        put(piece.parameter + i, value - gradient * by / (sqrt(total) + accum(eps)));
    }
}

enum { ADD, SUB, MUL, DIV, ADDCMUL, ADDCDIV, SQRT, NEG, ABS, RECIPROCAL };

// One function of elements. The rows of the table are results, operands, and as many more operands as `lists` says; each tensor has
// its own number where `has_numbers`.
extern "C" __global__ void each_element(
    const whole* table, const whole* blocks, const double* numbers, whole has_numbers, whole op, whole lists, double number
) {
    Piece piece = piece_of(table, blocks);
    accum by = accum(has_numbers ? numbers[blocks[2 * blockIdx.x]] : number);
    for (whole i = piece.start + threadIdx.x; i < piece.end; i += blockDim.x) {
        accum x = load(piece.gradient[i]), y = lists > 0 ? load(piece.first[i]) : accum(1);
        accum z = lists > 1 ? load(piece.second[i]) : accum(1), made = x;
        switch (op) {
            case ADD: made = x + by * y; break;
            case SUB: made = x - by * y; break;
            case MUL: made = x * (by * y); break;  // one of both is 1, here and in the next
            case DIV: made = x / (by * y); break;
            case ADDCMUL: made = x + by * y * z; break;
            case ADDCDIV: made = x + by * (y / z); break;
            case SQRT: made = sqrt(x); break;
            case NEG: made = -x; break;
            case ABS: made = fabs(x); break;
            case RECIPROCAL: made = 1 / x; break;
        }
        put(piece.parameter + i, made);
    }
}
