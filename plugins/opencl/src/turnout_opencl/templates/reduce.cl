/* Reductions: each work-item walks through the inner grid of its result r, which is kept in A, wider where it can be. The build
   writes the cases: how r begins where x is the first element, and how it takes in an element x, around a centre c. */

#define R A

__kernel void reduce(const Call call, __global S *o, __global const S *a, __global const S *b) {
  const long i = get_global_id(0);
  if (i >= call.n) return;
  LOCATE(i)
  const A c = b ? (A)LD(b, at[2]) : (A)0;
  A r = 0;
  {
    LOCATE_INNER(0)
    const A x = call.inner_n ? (A)LD(a, in[1]) : (A)0;
    switch (call.op) {
@FIRSTS@
    }
  }
  for (long j = 0; j < call.inner_n; j++) {
    LOCATE_INNER(j)
    const A x = (A)LD(a, in[1]);
    switch (call.op) {
@STEPS@
    }
  }
#if FLOATING
  if (call.extra[0]) r /= (A)REAL_NUMBER(0); /* a mean */
  if (call.extra[1]) r = sqrt(r);
#endif
  ST(o, at[0], (T)r);
}

/* Where the largest (op 0) or smallest (op 1) element stands, and its value if asked for. NaN is both; the first one counts. */
__kernel void find(const Call call, __global long *o, __global const S *a, __global S *values) {
  const long i = get_global_id(0);
  if (i >= call.n) return;
  LOCATE(i)
  long found = 0;
  T best = 0;
  for (long j = 0; j < call.inner_n; j++) {
    LOCATE_INNER(j)
    const T x = LD(a, in[1]);
    if (j == 0 || (call.op ? x < best : x > best) || (x != x && best == best)) {
      found = j;
      best = x;
    }
  }
  o[at[0]] = found;
  if (values) ST(values, at[2], best);
}

/* Running extremes along the inner grid and where they are: the largest (op 0) or the smallest (op 1); of equal ones the newest. */
__kernel void scan_extremes(const Call call, __global S *o, __global const S *a, __global long *places) {
  const long i = get_global_id(0);
  if (i >= call.n) return;
  LOCATE(i)
  T best = 0;
  long found = 0;
  for (long j = 0; j < call.inner_n; j++) {
    LOCATE_INNER(j)
    const T x = LD(a, in[1]);
    if (j == 0 || x != x || (call.op ? x <= best : x >= best)) {
      best = x;
      found = j;
    }
    ST(o, in[0], best);
    places[in[2]] = found;
  }
}

#if FLOATING
/* Running logarithms of sums of exponentials. */
__kernel void scan_logarithms(const Call call, __global S *o, __global const S *a) {
  const long i = get_global_id(0);
  if (i >= call.n) return;
  LOCATE(i)
  A r = -INFINITY;
  for (long j = 0; j < call.inner_n; j++) {
    LOCATE_INNER(j)
    const A x = (A)LD(a, in[1]);
    const A larger = x > r ? x : r, smaller = x > r ? r : x;
    r = x != x || r != r ? x + r : x == r && isinf(x) ? x : larger + log1p(exp(smaller - larger));
    ST(o, in[0], (T)r);
  }
}
#endif

/* Running sums (op 0) or products (op 1) along the inner grid. */
__kernel void scan(const Call call, __global S *o, __global const S *a) {
  const long i = get_global_id(0);
  if (i >= call.n) return;
  LOCATE(i)
  A r = call.op;
  for (long j = 0; j < call.inner_n; j++) {
    LOCATE_INNER(j)
    const A x = (A)LD(a, in[1]);
    r = call.op ? r * x : r + x;
    ST(o, in[0], (T)r);
  }
}
