/* The words of `turnout_arrays.random`, for all languages in the manner of C: whoever includes this has `word64`, a type of 64 unsigned
 * bits, and may define WORDS as what its functions are declared with. Word i of a seed and an offset is
 * word_at(i, start_of(key_of(seed), offset), key_of(seed)). */
#ifndef WORDS
#define WORDS
#endif
#define GAMMA ((word64)0x9E3779B97F4A7C15)

WORDS word64 finalised(word64 word) {
    word = (word ^ word >> 30) * (word64)0xBF58476D1CE4E5B9;
    word = (word ^ word >> 27) * (word64)0x94D049BB133111EB;
    return word ^ word >> 31;
}

WORDS word64 key_of(word64 seed) { return finalised(seed + GAMMA); }

WORDS word64 start_of(word64 key, word64 offset) { return key + (offset + 1) * GAMMA; }

WORDS word64 word_at(word64 i, word64 start, word64 key) { return finalised(finalised(i * GAMMA + start) ^ key); }

#undef GAMMA
