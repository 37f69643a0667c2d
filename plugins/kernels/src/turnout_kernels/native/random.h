/* Random numbers from the words of `words.h`, of which word k depends on a seed and offset + k only, so any part can be made on its
   own. i: dtype, key (the hashed seed), offset of the first word, of the second. */

/* In [0, 1): multiples of 2^-24 or 2^-53. f: width, lowest. a: output. */
static void K(uniform)(const job *j, int64_t part)
{
    uint64_t key = (uint64_t)j->i[1], start = start_of(key, (uint64_t)j->i[2]);
    int64_t first, last;
    share(j->a[0].size, 64, j, part, &first, &last);
    if (j->i[0] == F64) {
        double *o = (double *)j->a[0].p, width = j->f[0], low = j->f[1];
        for (int64_t k = first; k < last; k++)
            o[k] = (double)(int64_t)(word_at((uint64_t)k, start, key) & 0x1fffffffffffff) * 0x1p-53 * width + low;
    } else {
        float *o = (float *)j->a[0].p, width = (float)j->f[0], low = (float)j->f[1];
        for (int64_t k = first; k < last; k++)
            o[k] = (float)(int32_t)(word_at((uint64_t)k, start, key) & 0xffffff) * 0x1p-24f * width + low;
    }
}

/* int64: the remainder of 63 bits, above the lowest. i[2]: as above; i[3], i[4]: how many there are, the lowest. a: output. */
static void K(integers)(const job *j, int64_t part)
{
    uint64_t key = (uint64_t)j->i[1], start = start_of(key, (uint64_t)j->i[2]), span = (uint64_t)j->i[3], low = (uint64_t)j->i[4];
    int64_t first, last, *o = (int64_t *)j->a[0].p;
    share(j->a[0].size, 64, j, part, &first, &last);
    for (int64_t k = first; k < last; k++)
        o[k] = (int64_t)((word_at((uint64_t)k, start, key) & 0x7fffffffffffffff) % span + low);
}

/* Box and Muller (1958), in float32. f: deviation, mean. a: output. */
static void K(normal)(const job *j, int64_t part)
{
    uint64_t key = (uint64_t)j->i[1], one = start_of(key, (uint64_t)j->i[2]), two = start_of(key, (uint64_t)j->i[3]);
    float *o = (float *)j->a[0].p, deviation = (float)j->f[0], mean = (float)j->f[1];
    int64_t first, last;
    share(j->a[0].size, 64, j, part, &first, &last);
    for (int64_t k = first; k < last; k++) {
        float u = 1.f - (float)(int32_t)(word_at((uint64_t)k, one, key) & 0xffffff) * 0x1p-24f;
        float v = (float)(int32_t)(word_at((uint64_t)k, two, key) & 0xffffff) * 0x1p-24f;
        float radius = sqrtf(-2.f * JOIN(JOIN(loga, f), ISA)(u));
        o[k] = radius * JOIN(JOIN(cosine_of_turn, f), ISA)(v) * deviation + mean;
    }
}

/* Keeps an element with a probability and scales it; else it is 0 times the element. f: the probability, the scale.
   a: output, bytes that are 1 where an element was kept; input. */
static void K(dropout)(const job *j, int64_t part)
{
    uint64_t key = (uint64_t)j->i[1], start = start_of(key, (uint64_t)j->i[2]);
    float *o = (float *)j->a[0].p, p = (float)j->f[0], scale = (float)j->f[1];
    uint8_t *kept = (uint8_t *)j->a[1].p;
    const float *x = (const float *)j->a[2].p;
    int64_t first, last;
    share(j->a[0].size, 64, j, part, &first, &last);
    for (int64_t k = first; k < last; k++) {
        float u = (float)(int32_t)(word_at((uint64_t)k, start, key) & 0xffffff) * 0x1p-24f;
        kept[k] = u < p;
        o[k] = x[k] * (u < p ? 1.f : 0.f) * scale;
    }
}
