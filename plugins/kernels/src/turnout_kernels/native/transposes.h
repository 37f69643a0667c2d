/* Small transposes in registers */
#ifdef __clang__
#define SHUFFLE(type, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(type, a, b, ...) __builtin_shuffle(a, b, (type){__VA_ARGS__})
#endif
typedef int32_t K(words4) __attribute__((vector_size(16)));
typedef int64_t K(words2) __attribute__((vector_size(16)));
typedef K(words4) K(words4_anywhere) __attribute__((aligned(1), may_alias));
typedef K(words2) K(words2_anywhere) __attribute__((aligned(1), may_alias));

/* 4 x 4 elements of four bytes, and 2 x 2 of eight: rows `from`, `step` bytes apart, become columns of rows `to`, `to_step` apart. */
static inline void K(transpose4)(char *to, int64_t to_step, const char *from, int64_t step)
{
    K(words4) a = *(const K(words4_anywhere) *)from, b = *(const K(words4_anywhere) *)(from + step);
    K(words4) c = *(const K(words4_anywhere) *)(from + 2 * step), d = *(const K(words4_anywhere) *)(from + 3 * step);
    K(words4) e = SHUFFLE(K(words4), a, b, 0, 4, 1, 5), f = SHUFFLE(K(words4), c, d, 0, 4, 1, 5);
    K(words4) g = SHUFFLE(K(words4), a, b, 2, 6, 3, 7), h = SHUFFLE(K(words4), c, d, 2, 6, 3, 7);
    *(K(words4_anywhere) *)to = SHUFFLE(K(words4), e, f, 0, 1, 4, 5);
    *(K(words4_anywhere) *)(to + to_step) = SHUFFLE(K(words4), e, f, 2, 3, 6, 7);
    *(K(words4_anywhere) *)(to + 2 * to_step) = SHUFFLE(K(words4), g, h, 0, 1, 4, 5);
    *(K(words4_anywhere) *)(to + 3 * to_step) = SHUFFLE(K(words4), g, h, 2, 3, 6, 7);
}

static inline void K(transpose8)(char *to, int64_t to_step, const char *from, int64_t step)
{
    K(words2) a = *(const K(words2_anywhere) *)from, b = *(const K(words2_anywhere) *)(from + step);
    *(K(words2_anywhere) *)to = SHUFFLE(K(words2), a, b, 0, 2);
    *(K(words2_anywhere) *)(to + to_step) = SHUFFLE(K(words2), a, b, 1, 3);
}
#undef SHUFFLE
