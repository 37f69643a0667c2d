// Element-wise functions. A thread computes 16 bytes at once of what lies together: with an element for each thread, starting
// threads would take more time than memory does.

// y[i] = f(x[i])
template <typename X, typename Y, typename F>
__device__ inline void each(const X* x, Y* y, whole size, F f) {
    whole packs = together(x) && together(y) ? size / WIDTH : 0;
    for (whole i = first_place(); i < packs; i += all_threads()) {
        Pack<X> a = ((const Pack<X>*)x)[i];
        Pack<Y> r;
        for (int j = 0; j < WIDTH; ++j) r.of[j] = f(a.of[j]);
        ((Pack<Y>*)y)[i] = r;
    }
    for (whole i = packs * WIDTH + first_place(); i < size; i += all_threads()) y[i] = f(x[i]);
}

// y[i] = f(a[i], b[i])
template <typename A, typename B, typename Y, typename F>
__device__ inline void each_two(const A* a, const B* b, Y* y, whole size, F f) {
    whole packs = together(a) && together(b) && together(y) ? size / WIDTH : 0;
    for (whole i = first_place(); i < packs; i += all_threads()) {
        Pack<A> p = ((const Pack<A>*)a)[i];
        Pack<B> q = ((const Pack<B>*)b)[i];
        Pack<Y> r;
        for (int j = 0; j < WIDTH; ++j) r.of[j] = f(p.of[j], q.of[j]);
        ((Pack<Y>*)y)[i] = r;
    }
    for (whole i = packs * WIDTH + first_place(); i < size; i += all_threads()) y[i] = f(a[i], b[i]);
}

// y[i] = f(a[i], b[i / inner % count]): b repeats along leading dims, and each of its elements along trailing ones. Without count,
// b is a number.
template <typename Y, typename F>
__device__ inline void between(
    const scalar* a, const scalar* b, Y* y, whole size, whole inner, whole count, double number, F f
) {
    if (!count) {
        scalar other = made((accum)number);
        each(a, y, size, [=](scalar at) { return f(at, other); });
    } else if (count == size) {
        each_two(a, b, y, size, f);
    } else if (inner % WIDTH == 0 || (inner == 1 && count % WIDTH == 0)) {
        // A pack of a meets one element of b, or one pack of it.
        whole packs = together(a) && together(b) && together(y) ? size / WIDTH : 0;
        unsigned long long step = inner == 1 ? 1 : inner / WIDTH, period = inner == 1 ? count / WIDTH : count;
        for (whole i = first_place(); i < packs; i += all_threads()) {
            unsigned long long place = i >> 31 ? i / step % period : (unsigned)i / (unsigned)step % (unsigned)period;
            Pack<scalar> p = ((const Pack<scalar>*)a)[i], q;
            if (inner == 1) q = ((const Pack<scalar>*)b)[place];
            else for (int j = 0; j < WIDTH; ++j) q.of[j] = b[place];
            Pack<Y> r;
            for (int j = 0; j < WIDTH; ++j) r.of[j] = f(p.of[j], q.of[j]);
            ((Pack<Y>*)y)[i] = r;
        }
        for (whole i = packs * WIDTH + first_place(); i < size; i += all_threads()) y[i] = f(a[i], b[i / inner % count]);
    } else {
        for (whole i = first_place(); i < size; i += all_threads()) {
            whole place = i >> 31 ? i / inner % count : (whole)((unsigned)i / (unsigned)inner % (unsigned)count);
            y[i] = f(a[i], b[place]);
        }
    }
}

#define OF(expression) [=](scalar at) { accum a = load(at); return made(expression); }
#define OF_TWO(expression) [=](scalar at, scalar bt) { accum a = load(at), b = load(bt); return made(expression); }
#define WHETHER(expression) [=](scalar at, scalar bt) { accum a = load(at), b = load(bt); return expression; }
