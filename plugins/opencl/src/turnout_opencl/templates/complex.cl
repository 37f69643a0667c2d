/* Arithmetic of complex64: pairs of floats, stored as an S of their size. The formulas are those of NumPy, so that infinities
   and zeros end alike. */

#define PAIR(bits) as_float2(bits)

float2 times(float2 x, float2 y) {
  return (float2)(x.x * y.x - x.y * y.y, x.x * y.y + x.y * y.x);
}

/* Smith, Algorithm 116 (1962). */
float2 over(float2 x, float2 y) {
  const float real = fabs(y.x), imaginary = fabs(y.y);
  if (real == 0 && imaginary == 0) return (float2)(x.x / real, x.y / real);
  if (real >= imaginary) {
    const float ratio = y.y / y.x, scale = 1.0f / (y.x + y.y * ratio);
    return (float2)((x.x + x.y * ratio) * scale, (x.y - x.x * ratio) * scale);
  }
  const float ratio = y.x / y.y, scale = 1.0f / (y.y + y.x * ratio);
  return (float2)((x.x * ratio + x.y) * scale, (x.y * ratio - x.x) * scale);
}

/* The operands of element i; a number stands for one that is not there. */
#define LOAD                                                                      \
  const long i = get_global_id(0);                                                \
  if (i >= call.n) return;                                                        \
  LOCATE(i)                                                                       \
  const float2 x = a ? PAIR(a[at[1]]) : PAIR(call.number[0]);                     \
  const float2 y = b ? PAIR(b[at[2]]) : PAIR(call.number[1]);

enum { PLUS, MINUS, ADD, SUBTRACT, TIMES, OVER, NEGATIVE, CONJUGATE, RECIPROCAL }; /* of pairs */
enum { EQUAL, UNEQUAL, IS_NAN, IS_INFINITE }; /* of comparisons */

__kernel void pairs(const Call call, __global S *o, __global const S *a, __global const S *b) {
  LOAD
  const float2 w = PAIR(call.number[2]);
  float2 r = x;
  switch (call.op) {
    case PLUS: r = x + y; break;
    case MINUS: r = x - y; break;
    case ADD: r = x + times(w, y); break;
    case SUBTRACT: r = x - times(w, y); break;
    case TIMES: r = times(x, y); break;
    case OVER: r = over(x, y); break;
    case NEGATIVE: r = -x; break;
    case CONJUGATE: r = (float2)(x.x, -x.y); break;
    case RECIPROCAL: r = over((float2)(1, 0), x); break;
  }
  o[at[0]] = as_ulong(r);
}

__kernel void lengths(const Call call, __global float *o, __global const S *a, __global const S *b) {
  LOAD
  o[at[0]] = hypot(x.x, x.y);
}

__kernel void comparisons(const Call call, __global uchar *o, __global const S *a, __global const S *b) {
  LOAD
  const int same = x.x == y.x && x.y == y.y;
  int r = 0;
  switch (call.op) {
    case EQUAL: r = same; break;
    case UNEQUAL: r = !same; break;
    case IS_NAN: r = isnan(x.x) || isnan(x.y); break;
    case IS_INFINITE: r = isinf(x.x) || isinf(x.y); break;
  }
  o[at[0]] = (uchar)r;
}

#ifdef FP64
#define SUM double2
#define NARROW(r) convert_float2(r)
#define WIDEN(x) convert_double2(x)
#else
#define SUM float2
#define NARROW(r) (r)
#define WIDEN(x) (x)
#endif

SUM product_of(SUM x, SUM y) {
  return (SUM)(x.x * y.x - x.y * y.y, x.x * y.y + x.y * y.x);
}

/* Sums (op 0) and products (op 1) of what the inner grid walks along, over extra[0] if it is not 0; and running ones (ops 2, 3). */
__kernel void totals(const Call call, __global S *o, __global const S *a) {
  const long i = get_global_id(0);
  if (i >= call.n) return;
  LOCATE(i)
  const int multiplies = call.op & 1, runs = call.op >> 1;
  SUM r = (SUM)(multiplies, 0);
  for (long j = 0; j < call.inner_n; j++) {
    LOCATE_INNER(j)
    const SUM x = WIDEN(PAIR(a[in[1]]));
    r = multiplies ? product_of(r, x) : r + x;
    if (runs) o[in[0]] = as_ulong(NARROW(r));
  }
  if (call.extra[0]) r /= call.extra[0];
  if (!runs) o[at[0]] = as_ulong(NARROW(r));
}

/* The inner grid walks along what is summed. */
__kernel void products(const Call call, __global S *o, __global const S *a, __global const S *b) {
  const long i = get_global_id(0);
  if (i >= call.n) return;
  LOCATE(i)
  float2 sum = 0;
  for (long j = 0; j < call.inner_n; j++) {
    LOCATE_INNER(j)
    sum += times(PAIR(a[in[1]]), PAIR(b[in[2]]));
  }
  o[at[0]] = as_ulong(sum);
}
