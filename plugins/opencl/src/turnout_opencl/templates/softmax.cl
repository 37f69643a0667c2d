/* Softmax of a along the inner grid; the largest element is taken off first, so nothing overflows. In the gradients, a is the
   gradient of the output, b the output. */
enum { SOFTMAX, LOG_SOFTMAX, SOFTMAX_GRADIENT, LOG_SOFTMAX_GRADIENT };

__kernel void softmax(const Call call, __global S *o, __global const S *a, __global const S *b) {
  const long i = get_global_id(0);
  if (i >= call.n) return;
  LOCATE(i)
  A sum = 0;
  T top = 0;
  if (call.op < SOFTMAX_GRADIENT) {
    for (long j = 0; j < call.inner_n; j++) {
      LOCATE_INNER(j)
      const T x = LD(a, in[1]);
      if (j == 0 || x > top || x != x) top = x;
    }
    for (long j = 0; j < call.inner_n; j++) {
      LOCATE_INNER(j)
      sum += (A)exp(LD(a, in[1]) - top);
    }
  } else {
    for (long j = 0; j < call.inner_n; j++) {
      LOCATE_INNER(j)
      const T g = LD(a, in[1]);
      sum += (A)(call.op == SOFTMAX_GRADIENT ? g * LD(b, in[2]) : g);
    }
  }
  const T total = (T)sum;
  const T logarithm = call.op == LOG_SOFTMAX ? (T)log(sum) : (T)0;
  for (long j = 0; j < call.inner_n; j++) {
    LOCATE_INNER(j)
    const T x = LD(a, in[1]);
    T r;
    if (call.op == SOFTMAX) r = exp(x - top) / total;
    else if (call.op == LOG_SOFTMAX) r = x - top - logarithm;
    else if (call.op == SOFTMAX_GRADIENT) r = LD(b, in[2]) * (x - total);
    else r = x - exp(LD(b, in[2])) * total;
    ST(o, in[0], r);
  }
}
