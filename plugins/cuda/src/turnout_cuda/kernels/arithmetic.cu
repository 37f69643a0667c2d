// Choices and conversions. The rest of this program are rows of the table of element-wise functions.

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
