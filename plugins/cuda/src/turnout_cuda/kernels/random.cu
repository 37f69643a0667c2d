// Random words, and numbers made of them: those of `turnout_arrays.random`, whose text comes before this one, with PRECISION and
// OF_FLOAT32, the bits of a number of the dtype and of float32.

// y[i] = f(i), where a thread makes as many at once as elements have 16 bytes: words of neighbours are hashed from sums.
template <typename T, typename F>
__device__ inline void each_number(T* y, whole size, F f) {
    whole packs = together(y) ? size / WIDTH : 0;
    for (whole i = first_place(); i < packs; i += all_threads()) {
        Pack<T> made;
#pragma unroll
        for (int j = 0; j < WIDTH; ++j) made.of[j] = f(i * WIDTH + j);
        ((Pack<T>*)y)[i] = made;
    }
    for (whole i = packs * WIDTH + first_place(); i < size; i += all_threads()) y[i] = f(i);
}

// In [0, 1). GPUs take several times as long to convert a number of 64 bits.
template <typename T, int BITS>
__device__ inline T fraction_of(word64 bits) {
    bits &= (1ull << BITS) - 1;
    return (BITS <= 32 ? (T)(unsigned)bits : (T)bits) * ((T)1 / (T)(1ull << BITS));
}

// What two-byte floats are computed from.
__device__ inline accum wide_fraction(word64 bits) { return fraction_of<accum, DTYPE == 64 ? PRECISION : OF_FLOAT32>(bits); }

// value * scale + shift, rounded after each step, as the operators do: they also round what is added. With 1 and -0.0 it is the
// value.
__device__ inline float product(float a, float b) { return __fmul_rn(a, b); }
__device__ inline double product(double a, double b) { return __dmul_rn(a, b); }
__device__ inline scalar placed(accum value, double scale, double shift) {
    return made(load(made(product(load(made(value)), (accum)scale))) + load(made((accum)shift)));
}

// Each kernel twice: with where its words begin and the key, and with a row of a table that says so: the first and the second
// place, and the key.

__device__ inline void words(word64* y, whole size, whole start, whole key) {
    each_number(y, size, [=](whole i) { return word_at(i, start, key); });
}

extern "C" __global__ void random_words(word64* y, whole size, whole start, whole key) { words(y, size, start, key); }

extern "C" __global__ void random_words_of_row(word64* y, whole size, const word64* row) { words(y, size, row[0], row[2]); }

// Remainders of 63 bits by `span`, from `low` on. The `inverse` is 2**64 / span, rounded down, so the product is short by one span at
// most.
__device__ inline void integers(whole* y, whole size, whole start, whole key, word64 inverse, word64 span, whole low) {
    each_number(y, size, [=](whole i) {
        word64 bits = word_at(i, start, key) & ~0ull >> 1, rest = bits - __umul64hi(bits, inverse) * span;
        return low + (whole)(rest < span ? rest : rest - span);
    });
}

extern "C" __global__ void random_integers(whole* y, whole size, whole start, whole key, whole inverse, whole span, whole low) {
    integers(y, size, start, key, inverse, span, low);
}

extern "C" __global__ void random_integers_of_row(whole* y, whole size, const word64* row, whole inverse, whole span, whole low) {
    integers(y, size, row[0], row[2], inverse, span, low);
}

__device__ inline void uniform(scalar* y, whole size, whole start, whole key, double scale, double shift) {
    each_number(y, size, [=](whole i) {
        return placed(fraction_of<accum, PRECISION>(word_at(i, start, key)), scale, shift);
    });
}

extern "C" __global__ void random_uniform(scalar* y, whole size, whole start, whole key, double scale, double shift) {
    uniform(y, size, start, key, scale, shift);
}

extern "C" __global__ void random_uniform_of_row(scalar* y, whole size, const word64* row, double scale, double shift) {
    uniform(y, size, row[0], row[2], scale, shift);
}

// Box and Muller: sqrt(-2 ln(1 - u)) cos(2 pi v), where v is drawn after all u.
__device__ inline void normal(scalar* y, whole size, whole start, whole second, whole key, double scale, double shift) {
    each_number(y, size, [=](whole i) {
        accum u = wide_fraction(word_at(i, start, key)), v = wide_fraction(word_at(i, second, key));
        return placed(sqrt((accum)-2 * log((accum)1 - u)) * cos((accum)6.283185307179586 * v), scale, shift);
    });
}

extern "C" __global__ void random_normal(
    scalar* y, whole size, whole start, whole second, whole key, double scale, double shift
) {
    normal(y, size, start, second, key, scale, shift);
}

extern "C" __global__ void random_normal_of_row(scalar* y, whole size, const word64* row, double scale, double shift) {
    normal(y, size, row[0], row[1], row[2], scale, shift);
}

// Whether number i is 1, which it is with a probability.
__device__ inline bool is_drawn(whole i, whole start, whole key, accum probability) {
    return wide_fraction(word_at(i, start, key)) < probability;
}

__device__ inline void bernoulli(scalar* y, whole size, whole start, whole key, double probability) {
    each_number(y, size, [=](whole i) { return made((accum)is_drawn(i, start, key, (accum)probability)); });
}

extern "C" __global__ void random_bernoulli(scalar* y, whole size, whole start, whole key, double probability) {
    bernoulli(y, size, start, key, probability);
}

extern "C" __global__ void random_bernoulli_of_row(scalar* y, whole size, const word64* row, double probability) {
    bernoulli(y, size, row[0], row[2], probability);
}

// Elements are kept with a probability, and multiplied by `scale`; the others become 0.
__device__ inline void dropout(
    const scalar* x, scalar* y, bool* kept, whole size, whole start, whole key, double probability, double scale
) {
    whole packs = together(x) && together(y) && together(kept) ? size / WIDTH : 0;
    for (whole i = first_place(); i < packs; i += all_threads()) {
        Pack<scalar> values = ((const Pack<scalar>*)x)[i];
        Pack<bool> keeps;
#pragma unroll
        for (int j = 0; j < WIDTH; ++j) {
            keeps.of[j] = is_drawn(i * WIDTH + j, start, key, (accum)probability);
            put(&values.of[j], load(values.of[j]) * (accum)keeps.of[j] * (accum)scale);
        }
        ((Pack<scalar>*)y)[i] = values;
        ((Pack<bool>*)kept)[i] = keeps;
    }
    for (whole i = packs * WIDTH + first_place(); i < size; i += all_threads()) {
        kept[i] = is_drawn(i, start, key, (accum)probability);
        put(y + i, load(x[i]) * (accum)kept[i] * (accum)scale);
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
