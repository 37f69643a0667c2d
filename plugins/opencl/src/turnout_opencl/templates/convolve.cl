/* Images of three dims for convolutions, and windows as columns.

   inner_size: channels, kernel dims, image dims.
   inner_step: 0 stride, 1 padding, 2 dilation, along each dim. */

#define CHANNELS call.inner_size[0]
#define KERNEL(d) call.inner_size[1 + (d)]
#define IMAGE(d) call.inner_size[4 + (d)]
#define STRIDE(d) call.inner_step[0][d]
#define PADDING(d) call.inner_step[1][d]
#define DILATION(d) call.inner_step[2][d]

/* Where window element k of result p stands along dim d, or -1 outside of the image. */
long under(const Call call, int d, long p, long k) {
  const long at = p * STRIDE(d) - PADDING(d) + k * DILATION(d);
  return at < IMAGE(d) ? at : -1;
}

/* The position of the window whose element k is at p, or -1. There are `count` windows along the dim. */
long window_over(const Call call, int d, long p, long k, long count) {
  const long at = p + PADDING(d) - k * DILATION(d);
  if (at < 0 || at % STRIDE(d)) return -1;
  return at / STRIDE(d) < count ? at / STRIDE(d) : -1;
}

/* The windows of x in columns: o (images, channels * kernel, positions), row-major. size: images, positions along each dim. */
__kernel void columns(const Call call, __global S *o, __global const S *x) {
  const long i = get_global_id(0);
  if (i >= call.n) return;
  long p[3], k[3], left = i;
  for (int d = 2; d >= 0; d--) {
    p[d] = left % call.size[1 + d];
    left /= call.size[1 + d];
  }
  for (int d = 2; d >= 0; d--) {
    k[d] = left % KERNEL(d);
    left /= KERNEL(d);
  }
  long at = call.base[1] + left % CHANNELS * call.step[1][1] + left / CHANNELS * call.step[1][0];
  int inside = 1;
  for (int d = 0; d < 3; d++) {
    const long q = under(call, d, p[d], k[d]);
    inside = inside && q >= 0;
    at += q * call.step[1][2 + d];
  }
  ST(o, call.base[0] + i, inside ? LD(x, at) : (T)0);
}

/* Its adjoint: each element of an image, o (images, channels, spatial dims), is the sum of x where windows hold it.
   size as in `convolve`; inner_size: image dims are the numbers of windows. x is (images, channels * kernel, windows). */
__kernel void fold(const Call call, __global S *o, __global const S *x, __global const S *bias) {
  const long i = get_global_id(0);
  if (i >= call.n) return;
  long p[3], left = i;
  for (int d = 2; d >= 0; d--) {
    p[d] = left % call.size[2 + d];
    left /= call.size[2 + d];
  }
  const long c = left % call.size[1], n = left / call.size[1];
  const long lines = KERNEL(0) * KERNEL(1) * KERNEL(2);
  A sum = bias ? (A)LD(bias, call.base[3] + c * call.step[3][0]) : (A)0;
  long line = 0;
  for (long k0 = 0; k0 < KERNEL(0); k0++)
    for (long k1 = 0; k1 < KERNEL(1); k1++)
      for (long k2 = 0; k2 < KERNEL(2); k2++, line++) {
        const long q0 = window_over(call, 0, p[0], k0, IMAGE(0)), q1 = window_over(call, 1, p[1], k1, IMAGE(1)),
                   q2 = window_over(call, 2, p[2], k2, IMAGE(2));
        if (q0 < 0 || q1 < 0 || q2 < 0) continue;
        sum += (A)LD(x, call.base[1] + n * call.step[1][0] + (c * lines + line) * call.step[1][1] +
                            ((q0 * IMAGE(1) + q1) * IMAGE(2) + q2) * call.step[1][2]);
      }
  ST(o, call.base[0] + n * call.step[0][0] + c * call.step[0][1] + p[0] * call.step[0][2] + p[1] * call.step[0][3] +
            p[2] * call.step[0][4], (T)sum);
}

/* Images with their padding, o (images, channels, phases, planes), as `slide` reads them. Along each dim, phase r holds every
   element whose place is r more than a multiple of the stride, so that windows move by one. A work-item writes a line of a
   plane. size: images, channels, dims of a plane; step: of o along images and channels, of x; the kernel stands for the
   phases; extra: elements of a plane. */
#if !TRUTH && !MOVES_ONLY
__kernel void halo(const Call call, __global T *restrict o, __global const S *restrict x) {
  const long i = get_global_id(0);
  if (i >= call.n) return;
  long left = i, from = call.base[1], inside = 1, p[2], r[3];
  for (int d = 1; d >= 0; d--) {
    p[d] = left % call.size[2 + d];
    left /= call.size[2 + d];
  }
  for (int d = 2; d >= 0; d--) {
    r[d] = left % KERNEL(d);
    left /= KERNEL(d);
  }
  for (int d = 0; d < 2; d++) {
    const long q = p[d] * STRIDE(d) + r[d] - PADDING(d);
    inside = inside && q >= 0 && q < IMAGE(d);
    from += q * call.step[1][2 + d];
  }
  const long n = left / call.size[1], c = left % call.size[1], length = call.size[4];
  o += n * call.step[0][0] + c * call.step[0][1] + ((r[0] * KERNEL(1) + r[1]) * KERNEL(2) + r[2]) * call.extra[0] +
       (p[0] * call.size[3] + p[1]) * length;
  const long skipped = PADDING(2) - r[2], stride = STRIDE(2), step = stride * call.step[1][4];
  const long first = inside && skipped > 0 ? min((skipped + stride - 1) / stride, length) : 0;
  const long last = inside ? max(min((IMAGE(2) + skipped + stride - 1) / stride, length), first) : 0;
  x += from + n * call.step[1][0] + c * call.step[1][1] - skipped * call.step[1][4];
  long j = 0;
  for (; j < first; j++) o[j] = 0;
#if PLAIN
  if (step == 1)
    for (; j + LANES <= last; j += LANES) LOOSE(o + j) = LOOSE_CONST(x + j);
#endif
  for (; j < last; j++) o[j] = LD(x, j * step);
  for (; j < length; j++) o[j] = 0;
}

/* Where the elements of a window of all channels of a group stand in such planes. size: dims of a plane after the first one,
   phases; step[0]: along channels; extra: elements of a plane. */
__kernel void places(const Call call, __global long *o) {
  const long i = get_global_id(0);
  if (i >= call.n) return;
  long left = i, phase[3], at[3];
  for (int d = 2; d >= 0; d--) {
    const long moved = left % KERNEL(d) * DILATION(d);
    left /= KERNEL(d);
    phase[d] = moved % STRIDE(d);
    at[d] = moved / STRIDE(d);
  }
  o[i] = left * call.step[0][0] + ((phase[0] * call.size[3] + phase[1]) * call.size[4] + phase[2]) * call.extra[0] +
         (at[0] * call.size[0] + at[1]) * call.size[1] + at[2];
}
#endif
