// Activation functions and their gradients.

__device__ inline accum gate(accum a) { return a < -3 ? 0 : a > 3 ? 6 : a + 3; }

extern "C" __global__ void of_sigmoid(const scalar* x, scalar* y, whole size) { each(x, y, size, OF(1 / (1 + exp(-a)))); }
extern "C" __global__ void of_silu(const scalar* x, scalar* y, whole size) { each(x, y, size, OF(a / (1 + exp(-a)))); }
extern "C" __global__ void of_gelu(const scalar* x, scalar* y, whole size) { each(x, y, size, OF((erf(a * (accum)0.7071067811865476) + 1) * (accum)0.5 * a)); }
extern "C" __global__ void of_gelu_tanh(const scalar* x, scalar* y, whole size) { each(x, y, size, OF((tanh(a * ((accum)0.7978845608028654 + (accum)0.035677408136300125 * a * a)) + 1) * (accum)0.5 * a)); }
extern "C" __global__ void of_hardswish(const scalar* x, scalar* y, whole size) { each(x, y, size, OF(a * gate(a) / 6)); }
extern "C" __global__ void of_mish(const scalar* x, scalar* y, whole size) { each(x, y, size, OF(a * tanh((a > 0 ? a : 0) + log1p(exp(-fabs(a)))))); }
extern "C" __global__ void of_leaky_relu(const scalar* x, scalar* y, whole size, double slope) {
    each(x, y, size, OF(a > 0 ? a : a * (accum)slope));
}

extern "C" __global__ void of_softplus(const scalar* x, scalar* y, whole size, double beta, double threshold) {
    each(x, y, size, OF(a * (accum)beta > (accum)threshold ? a : log1p(exp(a * (accum)beta)) / (accum)beta));
}

extern "C" __global__ void of_elu(const scalar* x, scalar* y, whole size, double alpha, double scale, double input_scale) {
    each(x, y, size, OF(a > 0 ? a * (accum)scale : expm1(a * (accum)input_scale) * (accum)(alpha * scale)));
}

// ---- gradients: a is that of the result, b the input or the result

__device__ inline accum silu_slope(accum b) {
    accum gate = 1 / (1 + exp(-b));
    return gate * (1 + b * (1 - gate));
}

__device__ inline accum gelu_slope(accum b) {
    accum density = exp(b * b * (accum)-0.5) * (accum)0.3989422804014327;
    return (erf(b * (accum)0.7071067811865476) + 1) * (accum)0.5 + density * b;
}

// ((1 + t) + b (1 - t) (1 + t) d) / 2, with d the derivative of the argument of t; b comes last, because it may be large.
__device__ inline accum gelu_tanh_slope(accum b) {
    accum square = b * b, t = tanh(b * ((accum)0.7978845608028654 + (accum)0.035677408136300125 * square));
    accum d = (accum)0.10703222440890037 * square + (accum)0.7978845608028654;
    return ((1 + t) + b * (d * (1 - t) * (1 + t))) * (accum)0.5;
}

extern "C" __global__ void of_sigmoid_backward(const scalar* grad, const scalar* x, scalar* y, whole size) {
    each_two(grad, x, y, size, OF_TWO((1 - b) * b * a));
}
extern "C" __global__ void of_tanh_backward(const scalar* grad, const scalar* x, scalar* y, whole size) {
    each_two(grad, x, y, size, OF_TWO((1 - b * b) * a));
}
extern "C" __global__ void of_silu_backward(const scalar* grad, const scalar* x, scalar* y, whole size) {
    each_two(grad, x, y, size, OF_TWO(silu_slope(b) * a));
}
extern "C" __global__ void of_gelu_backward(const scalar* grad, const scalar* x, scalar* y, whole size) {
    each_two(grad, x, y, size, OF_TWO(gelu_slope(b) * a));
}
extern "C" __global__ void of_gelu_tanh_backward(const scalar* grad, const scalar* x, scalar* y, whole size) {
    each_two(grad, x, y, size, OF_TWO(gelu_tanh_slope(b) * a));
}
extern "C" __global__ void of_threshold_backward(const scalar* grad, const scalar* x, scalar* y, whole size, double limit) {
    each_two(grad, x, y, size, OF_TWO(b <= (accum)limit ? 0 : a));
}
