// Random words, and numbers made of them: those of `turnout_arrays.random`, whose text comes before this one, with PRECISION and
// OF_FLOAT32, the bits of a number of the dtype and of float32.

// In [0, 1)
template <typename T, int BITS>
__device__ inline T fraction_of(word64 bits) {
    return (T)(bits & ((1ull << BITS) - 1)) * ((T)1 / (T)(1ull << BITS));
}
__device__ inline accum fraction(word64 bits) { return fraction_of<accum, PRECISION>(bits); }

// Each kernel twice: with where its words begin and the key, and with a row of a table that says so: the first and the second
// place, and the key.

__device__ inline void words(word64* y, whole size, whole start, whole key) {
    for (whole i = first_place(); i < size; i += all_threads()) y[i] = word_at(i, start, key);
}

extern "C" __global__ void random_words(word64* y, whole size, whole start, whole key) { words(y, size, start, key); }

extern "C" __global__ void random_words_of_row(word64* y, whole size, const word64* row) { words(y, size, row[0], row[2]); }

__device__ inline void uniform(scalar* y, whole size, whole start, whole key) {
    for (whole i = first_place(); i < size; i += all_threads()) put(y + i, fraction(word_at(i, start, key)));
}

extern "C" __global__ void random_uniform(scalar* y, whole size, whole start, whole key) { uniform(y, size, start, key); }

extern "C" __global__ void random_uniform_of_row(scalar* y, whole size, const word64* row) { uniform(y, size, row[0], row[2]); }

// Box and Muller: sqrt(-2 ln(1 - u)) cos(2 pi v), where v is drawn after all u.
__device__ inline void normal(scalar* y, whole size, whole start, whole second, whole key) {
    for (whole i = first_place(); i < size; i += all_threads()) {
        accum u = fraction(word_at(i, start, key)), v = fraction(word_at(i, second, key));
        put(y + i, sqrt((accum)-2 * log((accum)1 - u)) * cos((accum)6.283185307179586 * v));
    }
}

extern "C" __global__ void random_normal(scalar* y, whole size, whole start, whole second, whole key) {
    normal(y, size, start, second, key);
}

extern "C" __global__ void random_normal_of_row(scalar* y, whole size, const word64* row) {
    normal(y, size, row[0], row[1], row[2]);
}

// Elements are kept with a probability, and multiplied by `scale`; the others become 0.
__device__ inline void dropout(
    const scalar* x, scalar* y, bool* kept, whole size, whole start, whole key, double probability, double scale
) {
    for (whole i = first_place(); i < size; i += all_threads()) {
#if DTYPE == 64
        bool keeps = fraction(word_at(i, start, key)) < probability;
#else
        bool keeps = fraction_of<float, OF_FLOAT32>(word_at(i, start, key)) < (float)probability;
#endif
        kept[i] = keeps;
        put(y + i, load(x[i]) * (accum)keeps * (accum)scale);
    }
}

extern "C" __global__ void random_dropout(
    const scalar* x, scalar* y, bool* kept, whole size, whole start, whole key, double probability, double scale
) {
    dropout(x, y, kept, size, start, key, probability, scale);
}

extern "C" __global__ void random_dropout_of_row(
    const scalar* x, scalar* y, bool* kept, whole size, const word64* row, double probability, double scale
) {
    dropout(x, y, kept, size, row[0], row[2], probability, scale);
}
