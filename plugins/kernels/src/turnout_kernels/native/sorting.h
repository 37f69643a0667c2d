/* The largest or smallest elements of rows. i[0] is the type. */

#if IS_FLOAT
#define WORD int32_t
#define BITS as_bits
#define MOST INT32_MAX
#define BITS_OF_NAN 0x7fc00000
#else
#define WORD int64_t
#define BITS as_bits64
#define MOST INT64_MAX
#define BITS_OF_NAN 0x7ff8000000000000
#endif

/* The bits of a number as an integer in the order of the numbers, and back. */
static inline WORD V(in_order)(WORD bits) { return bits ^ (bits >> (8 * sizeof(T) - 1) & MOST); }

/* An integer in the order of the numbers, turned round by `turned` -1: both zeros are one, nan is greater than any number. */
static inline WORD V(rank)(T x, WORD turned)
{
    return V(in_order)(x == x ? (WORD)BITS(x + 0) : BITS_OF_NAN) ^ turned;
}

/* Puts an element among the `k` best, behind those that are not less. */
static inline void V(insert)(WORD *best, int64_t *places, int64_t k, WORD rank, int64_t place)
{
    int64_t at = k - 1;
    for (; at > 0 && best[at - 1] < rank; at--)
        best[at] = best[at - 1], places[at] = places[at - 1];
    best[at] = rank, places[at] = place;
}

/* i: type, length, how many (up to MOST_OF_TOPK, and no more than the length), whether they are the largest. a: values and int64
   indices [rows, how many], input [rows, length]. In order; the first of equal elements comes first. Most elements are no better
   than the last one of the best so far, which is found for 32 at a time. */
#define MOST_OF_TOPK 64
static void V(topk)(const job *j, int64_t part)
{
    int64_t n = j->i[1], k = j->i[2], first, last, places[MOST_OF_TOPK];
    WORD turned = j->i[3] ? 0 : -1, best[MOST_OF_TOPK], ranks[32];
    share(j->a[2].size / n, 1, j, part, &first, &last);
    for (int64_t r = first; r < last; r++) {
        const T *x = (const T *)j->a[2].p + r * n;
        int64_t at = 0;
        for (; at < k; at++)
            V(insert)(best, places, at + 1, V(rank)(x[at], turned), at);
        for (; at + 32 <= n; at += 32) {
            WORD least = best[k - 1];
            int better = 0;
            for (int m = 0; m < 32; m++) {
                ranks[m] = V(rank)(x[at + m], turned);
                better |= ranks[m] > least;
            }
            for (int m = 0; m < 32 && better; m++)
                if (ranks[m] > best[k - 1])
                    V(insert)(best, places, k, ranks[m], at + m);
        }
        for (; at < n; at++)
            if (V(rank)(x[at], turned) > best[k - 1])
                V(insert)(best, places, k, V(rank)(x[at], turned), at);
        for (int64_t m = 0; m < k; m++) {
            ((T *)j->a[0].p)[r * k + m] = x[places[m]];
            ((int64_t *)j->a[1].p)[r * k + m] = places[m];
        }
    }
}
#undef MOST_OF_TOPK
#undef WORD
#undef BITS
#undef MOST
#undef BITS_OF_NAN
