// Negative log-likelihood of rows of log-probabilities [rows, classes], each with the class that is right. A row whose class is
// `ignored` counts nothing. A class that is none is reported; its loss is 0, and its gradient nan.

// What a loss makes of those of its rows, as in shapes/losses.py of turnout-aten.
enum { OF_EACH = 0, BY_MEAN = 1, BY_SUM = 2 };

struct Classes {
    const whole* target;
    const scalar* weight;
    whole classes, ignored, has_weight;
};

// The weight of a row, and its class; 0 where it does not count.
__device__ inline accum weight_of(const Classes& given, whole row, whole& at, whole record, whole call) {
    at = given.target[row];
    if (at == given.ignored) return 0;
    if (at < 0 || at >= given.classes) {
        report(record, call, at, given.classes);
        return 0;
    }
    return given.has_weight ? load(given.weight[at]) : accum(1);
}

// Whether this is the last block that comes here, for all of its threads; `count` is of those that came.
__device__ inline bool is_last(int* count) {
    __shared__ int before;
    __threadfence();  // what other blocks wrote is there before they are counted
    __syncthreads();
    if (threadIdx.x == 0) before = atomicAdd(count, 1);
    __syncthreads();
    __threadfence();
    return before == (int)gridDim.x - 1;
}

// One launch: each block adds up some of the rows, and the last one adds up those sums [2, gridDim.x] in their order.
extern "C" __global__ void likelihood(
    const scalar* x, const whole* target, const scalar* weight, scalar* y, scalar* weights, accum* sums, int* count, whole rows,
    whole record, whole call, whole classes, whole ignored, whole has_weight, whole reduction
) {
    Classes given = {target, weight, classes, ignored, has_weight};
    accum loss = 0, total = 0;
    for (whole row = first_place(); row < rows; row += all_threads()) {
        whole at;
        accum own = weight_of(given, row, at, record, call), each = 0;
        bool counts = at != ignored && at >= 0 && at < classes;
        if (counts) each = -load(x[row * classes + at]) * own;
        if (reduction == OF_EACH) put(y + row, each);
        loss += each;
        total += own;
    }
    if (reduction == OF_EACH) {
        if (first_place() == 0) put(weights, accum(0));
        return;
    }
    loss = row_sum(loss);
    total = row_sum(total);
    if (gridDim.x > 1) {
        volatile accum* parts = sums;
        if (threadIdx.x == 0) {
            parts[blockIdx.x] = loss;
            parts[gridDim.x + blockIdx.x] = total;
        }
        if (!is_last(count)) return;
        loss = total = 0;
        for (whole i = threadIdx.x; i < gridDim.x; i += blockDim.x) {
            loss += parts[i];
            total += parts[gridDim.x + i];
        }
        loss = row_sum(loss);
        total = row_sum(total);
    }
    if (threadIdx.x) return;
    put(y, reduction == BY_MEAN ? loss / total : loss);
    put(weights, total);
}

// The gradient with respect to all of x: 0 but for the class of each row. `step` is 0 where one gradient is that of all rows.
extern "C" __global__ void likelihood_backward(
    const scalar* grad, const whole* target, const scalar* weight, const scalar* total, scalar* made, whole size, whole record,
    whole call, whole step, whole classes, whole ignored, whole has_weight, whole is_mean
) {
    Classes given = {target, weight, classes, ignored, has_weight};
    whole width = classes % WIDTH == 0 && together(made) ? WIDTH : 1;  // elements of one row that are written at once
    for (whole i = first_place() * width; i < size; i += all_threads() * width) {
        whole row = i >> 32 ? i / classes : (whole)((unsigned)i / (unsigned)classes), at;
        accum own = weight_of(given, row, at, record, call), value = 0, others = 0;
        whole place = at - (i - row * classes);
        if (at != ignored && (at < 0 || at >= classes)) value = others = __int_as_float(0x7fc00000);
        else if (at != ignored && place >= 0 && place < width) {
            value = load(grad[row * step]);
            if (is_mean) value /= load(*total);
            value *= -own;
        }
        if (width == 1) {
            put(made + i, place == 0 ? value : others);
            continue;
        }
        Pack<scalar> pack;
#pragma unroll
        for (int j = 0; j < WIDTH; ++j) put(&pack.of[j], place == j ? value : others);
        *(Pack<scalar>*)(made + i) = pack;
    }
}
