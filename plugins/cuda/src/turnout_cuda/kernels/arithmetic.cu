// Arithmetic, comparisons, choices and conversions.

// ---- one argument

extern "C" __global__ void of_absolute(const scalar* x, scalar* y, whole size) { each(x, y, size, OF(fabs(a))); }
extern "C" __global__ void of_negative(const scalar* x, scalar* y, whole size) { each(x, y, size, OF(-a)); }
extern "C" __global__ void of_square(const scalar* x, scalar* y, whole size) { each(x, y, size, OF(a * a)); }
extern "C" __global__ void of_floor(const scalar* x, scalar* y, whole size) { each(x, y, size, OF(floor(a))); }
extern "C" __global__ void of_ceil(const scalar* x, scalar* y, whole size) { each(x, y, size, OF(ceil(a))); }
extern "C" __global__ void of_trunc(const scalar* x, scalar* y, whole size) { each(x, y, size, OF(trunc(a))); }
extern "C" __global__ void of_rint(const scalar* x, scalar* y, whole size) { each(x, y, size, OF(rint(a))); }
extern "C" __global__ void of_sqrt(const scalar* x, scalar* y, whole size) { each(x, y, size, OF(sqrt(a))); }
extern "C" __global__ void of_rsqrt(const scalar* x, scalar* y, whole size) { each(x, y, size, OF(1 / sqrt(a))); }
extern "C" __global__ void of_reciprocal(const scalar* x, scalar* y, whole size) { each(x, y, size, OF(1 / a)); }
extern "C" __global__ void of_relu(const scalar* x, scalar* y, whole size) { each(x, y, size, OF(a > 0 || a != a ? a : 0)); }

__device__ inline accum within(accum a, accum low, accum high) {
    a = a < low ? low : a;
    return a > high ? high : a;
}

extern "C" __global__ void of_clamp(const scalar* x, scalar* y, whole size, double low, double high) {
    each(x, y, size, OF(within(a, (accum)low, (accum)high)));
}

// ---- two arguments

extern "C" __global__ void of_add(
    const scalar* x, const scalar* other, scalar* y, whole size, whole inner, whole count, double number
) { between(x, other, y, size, inner, count, number, OF_TWO(a + b)); }

extern "C" __global__ void of_subtract(
    const scalar* x, const scalar* other, scalar* y, whole size, whole inner, whole count, double number
) { between(x, other, y, size, inner, count, number, OF_TWO(a - b)); }

extern "C" __global__ void of_multiply(
    const scalar* x, const scalar* other, scalar* y, whole size, whole inner, whole count, double number
) { between(x, other, y, size, inner, count, number, OF_TWO(a * b)); }

extern "C" __global__ void of_true_divide(
    const scalar* x, const scalar* other, scalar* y, whole size, whole inner, whole count, double number
) { between(x, other, y, size, inner, count, number, OF_TWO(a / b)); }

extern "C" __global__ void of_maximum(
    const scalar* x, const scalar* other, scalar* y, whole size, whole inner, whole count, double number
) { between(x, other, y, size, inner, count, number, OF_TWO(a != a || b != b ? a + b : a > b ? a : b)); }

extern "C" __global__ void of_minimum(
    const scalar* x, const scalar* other, scalar* y, whole size, whole inner, whole count, double number
) { between(x, other, y, size, inner, count, number, OF_TWO(a != a || b != b ? a + b : a < b ? a : b)); }

extern "C" __global__ void of_greater(
    const scalar* x, const scalar* other, bool* y, whole size, whole inner, whole count, double number
) { between(x, other, y, size, inner, count, number, WHETHER(a > b)); }

extern "C" __global__ void of_greater_equal(
    const scalar* x, const scalar* other, bool* y, whole size, whole inner, whole count, double number
) { between(x, other, y, size, inner, count, number, WHETHER(a >= b)); }

extern "C" __global__ void of_less(
    const scalar* x, const scalar* other, bool* y, whole size, whole inner, whole count, double number
) { between(x, other, y, size, inner, count, number, WHETHER(a < b)); }

extern "C" __global__ void of_less_equal(
    const scalar* x, const scalar* other, bool* y, whole size, whole inner, whole count, double number
) { between(x, other, y, size, inner, count, number, WHETHER(a <= b)); }

extern "C" __global__ void of_equal(
    const scalar* x, const scalar* other, bool* y, whole size, whole inner, whole count, double number
) { between(x, other, y, size, inner, count, number, WHETHER(a == b)); }

extern "C" __global__ void of_not_equal(
    const scalar* x, const scalar* other, bool* y, whole size, whole inner, whole count, double number
) { between(x, other, y, size, inner, count, number, WHETHER(a != b)); }

// ---- choices and conversions

// Where `numbers` has bit 1, `first` is a number; where it has bit 2, `second` is.
extern "C" __global__ void of_where(
    const bool* chosen, const scalar* first, const scalar* second, scalar* y, whole size, whole numbers, double p, double q
) {
    scalar one = made((accum)p), two = made((accum)q);
    if (numbers == 3) each(chosen, y, size, [=](bool c) { return c ? one : two; });
    else if (numbers == 1) each_two(chosen, second, y, size, [=](bool c, scalar b) { return c ? one : b; });
    else if (numbers == 2) each_two(chosen, first, y, size, [=](bool c, scalar a) { return c ? a : two; });
    else {
        whole packs = together(chosen) && together(first) && together(second) && together(y) ? size / WIDTH : 0;
        for (whole i = first_place(); i < packs; i += all_threads()) {
            Pack<bool> c = ((const Pack<bool>*)chosen)[i];
            Pack<scalar> a = ((const Pack<scalar>*)first)[i], b = ((const Pack<scalar>*)second)[i], r;
            for (int j = 0; j < WIDTH; ++j) r.of[j] = c.of[j] ? a.of[j] : b.of[j];
            ((Pack<scalar>*)y)[i] = r;
        }
        for (whole i = packs * WIDTH + first_place(); i < size; i += all_threads()) y[i] = chosen[i] ? first[i] : second[i];
    }
}

extern "C" __global__ void from_float32(const float* x, scalar* y, whole size) {
    each(x, y, size, [=](float a) { return made((accum)a); });
}

extern "C" __global__ void to_float32(const scalar* x, float* y, whole size) {
    each(x, y, size, [=](scalar a) { return (float)load(a); });
}
