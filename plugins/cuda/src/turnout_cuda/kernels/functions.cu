// Powers. Elementary functions are rows of the table of element-wise functions.

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
