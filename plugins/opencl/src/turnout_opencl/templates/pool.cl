/* Pooling of row-major planes of three dims. The grid is the results, plane by plane.

   size: their dims. inner_size: kernel dims, dims of the other side (the image; in a gradient the windows).
   inner_step: 0 stride, 1 padding, 2 dilation. extra: 0 a divisor in place of the count, 1 whether padding counts. */

#define KERNEL(d) call.inner_size[d]
#define OTHER(d) call.inner_size[3 + (d)]
#define STRIDE(d) call.inner_step[0][d]
#define PADDING(d) call.inner_step[1][d]
#define DILATION(d) call.inner_step[2][d]

#define RESULT                                   \
  const long i = get_global_id(0);               \
  if (i >= call.n) return;                       \
  long p[3], left = i;                           \
  for (int d = 2; d >= 0; d--) {                 \
    p[d] = left % call.size[d];                  \
    left /= call.size[d];                        \
  }                                              \
  const long plane = call.base[1] + left * OTHER(0) * OTHER(1) * OTHER(2);

#define FLAT(q0, q1, q2) (((q0)*OTHER(1) + (q1)) * OTHER(2) + (q2))

/* The largest element of each window and its index; a NaN is larger than any number, and the last one counts. */
__kernel void largest(const Call call, __global S *o, __global const S *a, __global long *indices) {
  RESULT
  long first[3];
  for (int d = 0; d < 3; d++) first[d] = p[d] * STRIDE(d) - PADDING(d);
  T best = 0;
  long found = -1;
  for (long k0 = 0; k0 < KERNEL(0); k0++)
    for (long k1 = 0; k1 < KERNEL(1); k1++)
      for (long k2 = 0; k2 < KERNEL(2); k2++) {
        const long q0 = first[0] + k0 * DILATION(0), q1 = first[1] + k1 * DILATION(1), q2 = first[2] + k2 * DILATION(2);
        if (q0 < 0 || q1 < 0 || q2 < 0 || q0 >= OTHER(0) || q1 >= OTHER(1) || q2 >= OTHER(2)) continue;
        const T x = LD(a, plane + FLAT(q0, q1, q2));
        if (found < 0 || x > best || x != x) {
          best = x;
          found = FLAT(q0, q1, q2);
        }
      }
  ST(o, call.base[0] + i, best);
  indices[call.base[2] + i] = found;
}

/* How many elements a window counts along dim d; `length` is that of the image. */
long counted(const Call call, int d, long window, long length) {
  long start = window * STRIDE(d) - PADDING(d);
  long end = min(start + KERNEL(d), length + PADDING(d));
  if (!call.extra[1]) {
    start = max(start, 0L);
    end = min(end, length);
  }
  return end - start;
}

__kernel void mean(const Call call, __global S *o, __global const S *a) {
  RESULT
  long from[3], to[3], count = 1;
  for (int d = 0; d < 3; d++) {
    const long start = p[d] * STRIDE(d) - PADDING(d);
    from[d] = max(start, 0L);
    to[d] = min(start + KERNEL(d), OTHER(d));
    count *= counted(call, d, p[d], OTHER(d));
  }
  A sum = 0;
  for (long q0 = from[0]; q0 < to[0]; q0++)
    for (long q1 = from[1]; q1 < to[1]; q1++)
      for (long q2 = from[2]; q2 < to[2]; q2++) sum += (A)LD(a, plane + FLAT(q0, q1, q2));
  ST(o, call.base[0] + i, (T)(sum / (A)(call.extra[0] ? call.extra[0] : count)));
}

/* The gradient of the mean: what each window that holds the element gives to it. */
__kernel void mean_slope(const Call call, __global S *o, __global const S *grad) {
  RESULT
  long from[3], to[3];
  for (int d = 0; d < 3; d++) {
    const long at = p[d] + PADDING(d) - KERNEL(d) + 1;
    from[d] = at > 0 ? (at + STRIDE(d) - 1) / STRIDE(d) : 0;
    to[d] = min((p[d] + PADDING(d)) / STRIDE(d) + 1, OTHER(d));
  }
  A sum = 0;
  for (long w0 = from[0]; w0 < to[0]; w0++)
    for (long w1 = from[1]; w1 < to[1]; w1++)
      for (long w2 = from[2]; w2 < to[2]; w2++) {
        const long count = counted(call, 0, w0, call.size[0]) * counted(call, 1, w1, call.size[1]) * counted(call, 2, w2, call.size[2]);
        sum += (A)LD(grad, plane + FLAT(w0, w1, w2)) / (A)(call.extra[0] ? call.extra[0] : count);
      }
  ST(o, call.base[0] + i, (T)sum);
}

/* Windows that cover an image evenly: window w of `count` over `length` elements. */
#define START(w, count, length) ((w) * (length) / (count))
#define END(w, count, length) ((((w) + 1) * (length) + (count)-1) / (count))

/* op 0 the mean, 1 the largest element and its index: here the first NaN counts. */
__kernel void adaptive(const Call call, __global S *o, __global const S *a, __global long *indices) {
  RESULT
  long from[3], to[3];
  for (int d = 0; d < 3; d++) {
    from[d] = START(p[d], call.size[d], OTHER(d));
    to[d] = END(p[d], call.size[d], OTHER(d));
  }
  A sum = 0;
  T best = 0;
  long found = -1, count = 0;
  for (long q0 = from[0]; q0 < to[0]; q0++)
    for (long q1 = from[1]; q1 < to[1]; q1++)
      for (long q2 = from[2]; q2 < to[2]; q2++) {
        const T x = LD(a, plane + FLAT(q0, q1, q2));
        sum += (A)x;
        count++;
        if (found < 0 || x > best || (x != x && best == best)) {
          best = x;
          found = FLAT(q0, q1, q2);
        }
      }
  if (call.op) {
    ST(o, call.base[0] + i, best);
    indices[call.base[2] + i] = found;
  } else {
    ST(o, call.base[0] + i, (T)(sum / (A)count));
  }
}

__kernel void adaptive_slope(const Call call, __global S *o, __global const S *grad) {
  RESULT
  long from[3], to[3];
  for (int d = 0; d < 3; d++) {
    from[d] = p[d] * OTHER(d) / call.size[d];
    to[d] = ((p[d] + 1) * OTHER(d) + call.size[d] - 1) / call.size[d];
  }
  A sum = 0;
  for (long w0 = from[0]; w0 < to[0]; w0++)
    for (long w1 = from[1]; w1 < to[1]; w1++)
      for (long w2 = from[2]; w2 < to[2]; w2++) {
        long count = 1;
        const long w[3] = {w0, w1, w2};
        for (int d = 0; d < 3; d++) count *= END(w[d], OTHER(d), call.size[d]) - START(w[d], OTHER(d), call.size[d]);
        sum += (A)LD(grad, plane + FLAT(w0, w1, w2)) / (A)count;
      }
  ST(o, call.base[0] + i, (T)sum);
}
