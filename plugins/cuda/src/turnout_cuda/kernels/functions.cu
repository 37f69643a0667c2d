// Elementary functions.

extern "C" __global__ void of_exp(const scalar* x, scalar* y, whole size) { each(x, y, size, OF(exp(a))); }
extern "C" __global__ void of_expm1(const scalar* x, scalar* y, whole size) { each(x, y, size, OF(expm1(a))); }
extern "C" __global__ void of_log(const scalar* x, scalar* y, whole size) { each(x, y, size, OF(log(a))); }
extern "C" __global__ void of_log1p(const scalar* x, scalar* y, whole size) { each(x, y, size, OF(log1p(a))); }
extern "C" __global__ void of_log2(const scalar* x, scalar* y, whole size) { each(x, y, size, OF(log2(a))); }
extern "C" __global__ void of_log10(const scalar* x, scalar* y, whole size) { each(x, y, size, OF(log10(a))); }
extern "C" __global__ void of_sin(const scalar* x, scalar* y, whole size) { each(x, y, size, OF(sin(a))); }
extern "C" __global__ void of_cos(const scalar* x, scalar* y, whole size) { each(x, y, size, OF(cos(a))); }
extern "C" __global__ void of_tan(const scalar* x, scalar* y, whole size) { each(x, y, size, OF(tan(a))); }
extern "C" __global__ void of_sinh(const scalar* x, scalar* y, whole size) { each(x, y, size, OF(sinh(a))); }
extern "C" __global__ void of_cosh(const scalar* x, scalar* y, whole size) { each(x, y, size, OF(cosh(a))); }
extern "C" __global__ void of_tanh(const scalar* x, scalar* y, whole size) { each(x, y, size, OF(tanh(a))); }
extern "C" __global__ void of_arctan(const scalar* x, scalar* y, whole size) { each(x, y, size, OF(atan(a))); }
extern "C" __global__ void of_erf(const scalar* x, scalar* y, whole size) { each(x, y, size, OF(erf(a))); }

// Small powers are products, as on cpu.
__device__ inline accum raised(accum a, double exponent) {
    if (exponent == 3) return a * a * a;
    if (exponent == -1) return 1 / a;
    if (exponent == -2) return 1 / (a * a);
    return pow(a, (accum)exponent);
}

extern "C" __global__ void of_power(const scalar* x, scalar* y, whole size, double exponent) {
    each(x, y, size, OF(raised(a, exponent)));
}
