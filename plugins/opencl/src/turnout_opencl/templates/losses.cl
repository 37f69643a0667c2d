/* Negative log likelihood. */

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
