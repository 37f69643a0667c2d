/* Softmax and negative log likelihood. */

/* Of a along the inner grid; the largest element is taken off first, so nothing overflows. In the gradients, a is the gradient of the
   output, b the output. */
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

/* The class of a row: -1 for extra[1], which is left out, and for one out of range, which flag reports: {1, the class}. */
long class_of(const Call call, long target, __global long *flag) {
  if (target == call.extra[1]) return -1;
  if (target >= 0 && target < call.extra[0]) return target;
  flag[1] = target;
  flag[0] = 1;
  return -1;
}

/* Of each row of a: its loss and its weight. extra: classes, the class left out, step between classes, step between weights. */
__kernel void likelihood(const Call call, __global S *o, __global S *weights_out, __global const S *a,
                         __global const long *targets, __global const S *weights, __global long *flag) {
  const long i = get_global_id(0);
  if (i >= call.n) return;
  LOCATE(i)
  const long k = class_of(call, targets[at[2]], flag);
  const T w = k < 0 ? (T)0 : weights ? LD(weights, call.base[3] + k * call.extra[3]) : (T)1;
  ST(o, at[0], k < 0 ? (T)0 : -LD(a, at[1] + k * call.extra[2]) * w);
  ST(weights_out, at[0], w);
}

/* The gradient into `o`, which is 0 already: -grad * weight (/ total) at each row's class. */
__kernel void likelihood_slope(const Call call, __global S *o, __global const S *grad, __global const long *targets,
                               __global const S *weights, __global const S *total, __global long *flag) {
  const long i = get_global_id(0);
  if (i >= call.n) return;
  LOCATE(i)
  const long k = class_of(call, targets[at[2]], flag);
  if (k < 0) return;
  const T w = weights ? LD(weights, call.base[3] + k * call.extra[3]) : (T)1;
  const T g = total ? LD(grad, at[1]) / LD(total, call.number[0]) : LD(grad, at[1]);
  ST(o, at[0] + k * call.extra[2], -g * w);
}
