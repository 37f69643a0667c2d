// Sums, products and extremes at indices, which may repeat: atomic, in any order. Sums of two-byte floats are made in float32 by
// the caller's array `out`.
//
// `out` is [outer, length, inner] and `source` [outer, count, inner]. The index of an element is index[k], where k is its place
// along count, or with `each` an index of its own. An index that is out of range is reported, and its element is left out.

__device__ inline whole index_of(const whole* index, whole i, whole count, whole inner, whole each) {
    return index[each ? i : i / inner % count];
}

__device__ inline whole place_of(whole i, whole at, whole length, whole count, whole inner) {
    return (i / inner / count * length + at) * inner + i % inner;
}

extern "C" __global__ void add_at(
    accum* out, const whole* index, const scalar* source, const accum* divisors, whole record, whole call, whole size,
    whole length, whole count, whole inner, whole each, whole wraps, whole left_out, whole has_divisors, double factor
) {
    for (whole i = first_place(); i < size; i += all_threads()) {
        whole given = index_of(index, i, count, inner, each), at = wraps && given < 0 ? given + length : given;
        if (at < 0 || at >= length) {
            report(record, call, given, length);
            continue;
        }
        if (at == left_out) continue;
        accum value = load(source[i]) * accum(factor);
        if (has_divisors) value /= divisors[at];
        atomicAdd(out + place_of(i, at, length, count, inner), value);
    }
}

// The same for integers, without what floats have beside it.
extern "C" __global__ void add_whole_at(
    word64* out, const whole* index, const word64* source, whole record, whole call, whole size, whole length, whole count,
    whole inner, whole factor
) {
    for (whole i = first_place(); i < size; i += all_threads()) {
        whole at = index_of(index, i, count, inner, 0);
        if (at < 0 || at >= length) report(record, call, at, length);
        else atomicAdd(out + place_of(i, at, length, count, inner), source[i] * (word64)factor);
    }
}

// Reports an index that is not in low..high-1.
extern "C" __global__ void look_at(const whole* index, whole size, whole low, whole high, whole record, whole call) {
    for (whole i = first_place(); i < size; i += all_threads()) {
        if (index[i] < low || index[i] >= high) report(record, call, index[i], high);
    }
}

// Writes the places in several dims, taken as one, from the index in one more of them: the first one, or `then`. An index that is
// out of range is reported, and its place is below 0.
extern "C" __global__ void join_at(
    const whole* index, whole* places, whole size, whole length, whole then, whole record, whole call
) {
    for (whole i = first_place(); i < size; i += all_threads()) {
        whole given = index[i], at = given < 0 ? given + length : given, before = then ? places[i] : 0;
        bool is_wrong = at < 0 || at >= length;
        if (is_wrong) report(record, call, given, length);
        places[i] = is_wrong || before < 0 ? -1 : before * length + at;
    }
}

// How often each index is there.
extern "C" __global__ void count_at(accum* out, const whole* index, whole size, whole length) {
    for (whole i = first_place(); i < size; i += all_threads()) {
        if (index[i] >= 0 && index[i] < length) atomicAdd(out + index[i], accum(1));
    }
}

// The same value at all indices.
extern "C" __global__ void set_at(
    accum* out, const whole* index, whole record, whole call, whole size, whole length, whole count, whole inner, whole each,
    double value
) {
    for (whole i = first_place(); i < size; i += all_threads()) {
        whole at = index_of(index, i, count, inner, each);
        if (at < 0 || at >= length) {
            report(record, call, at, length);
            continue;
        }
        out[place_of(i, at, length, count, inner)] = accum(value);
    }
}

#if DTYPE == 64
typedef unsigned long long word;
__device__ inline word word_of(accum value) { return (word)__double_as_longlong(value); }
__device__ inline accum number_of(word bits) { return __longlong_as_double((long long)bits); }
#else
typedef unsigned int word;
__device__ inline word word_of(accum value) { return (word)__float_as_int(value); }
__device__ inline accum number_of(word bits) { return __int_as_float((int)bits); }
#endif

enum { PROD, AMAX, AMIN };

// nan is passed on.
__device__ inline accum joined(accum a, accum b, whole which) {
    if (which == PROD) return a * b;
    if (a != a) return a;
    return b != b || (which == AMAX ? b > a : b < a) ? b : a;
}

extern "C" __global__ void reduce_at(
    accum* out, const whole* index, const scalar* source, whole record, whole call, whole size, whole length, whole count,
    whole inner, whole each, whole which
) {
    for (whole i = first_place(); i < size; i += all_threads()) {
        whole at = index_of(index, i, count, inner, each);
        if (at < 0 || at >= length) {
            report(record, call, at, length);
            continue;
        }
        word* target = (word*)(out + place_of(i, at, length, count, inner));
        accum value = load(source[i]);
        word seen = *target, expected;
        do {
            expected = seen;
            seen = atomicCAS(target, expected, word_of(joined(number_of(expected), value, which)));
        } while (seen != expected);
    }
}
