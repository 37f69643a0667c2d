/* Convolutions of images of three dims, and windows as columns.

   inner_size: channels of a group of the input, kernel dims, image dims, channels of a group of the output.
   inner_step: 0 stride, 1 padding, 2 dilation, along each dim. */

#define CHANNELS call.inner_size[0]
#define KERNEL(d) call.inner_size[1 + (d)]
#define IMAGE(d) call.inner_size[4 + (d)]
#define GROUP_OUT call.inner_size[7]
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

/* size: images, channels, spatial dims of the results; step: of o, x, w along these dims. op 1 is the transposed convolution. */
__kernel void convolve(const Call call, __global S *o, __global const S *x, __global const S *w, __global const S *bias) {
  const long i = get_global_id(0);
  if (i >= call.n) return;
  long p[3], left = i;
  for (int d = 2; d >= 0; d--) {
    p[d] = left % call.size[2 + d];
    left /= call.size[2 + d];
  }
  const long c = left % call.size[1], n = left / call.size[1], g = c / GROUP_OUT;
  const long px = call.base[1] + n * call.step[1][0] + g * CHANNELS * call.step[1][1];
  const long pw = call.base[2] + (call.op ? g * CHANNELS * call.step[2][0] + (c % GROUP_OUT) * call.step[2][1]
                                          : c * call.step[2][0]);
  const long per_channel = call.step[2][call.op ? 0 : 1];
  A sum = bias ? (A)LD(bias, call.base[3] + c * call.step[3][0]) : (A)0;
  for (long k0 = 0; k0 < KERNEL(0); k0++) {
    const long q0 = call.op ? window_over(call, 0, p[0], k0, IMAGE(0)) : under(call, 0, p[0], k0);
    if (q0 < 0) continue;
    for (long k1 = 0; k1 < KERNEL(1); k1++) {
      const long q1 = call.op ? window_over(call, 1, p[1], k1, IMAGE(1)) : under(call, 1, p[1], k1);
      if (q1 < 0) continue;
      for (long k2 = 0; k2 < KERNEL(2); k2++) {
        const long q2 = call.op ? window_over(call, 2, p[2], k2, IMAGE(2)) : under(call, 2, p[2], k2);
        if (q2 < 0) continue;
        long ax = px + q0 * call.step[1][2] + q1 * call.step[1][3] + q2 * call.step[1][4];
        long aw = pw + k0 * call.step[2][2] + k1 * call.step[2][3] + k2 * call.step[2][4];
        for (long channel = 0; channel < CHANNELS; channel++) {
          sum += (A)LD(x, ax) * (A)LD(w, aw);
          ax += call.step[1][1];
          aw += per_channel;
        }
      }
    }
  }
  ST(o, call.base[0] + n * call.step[0][0] + c * call.step[0][1] + p[0] * call.step[0][2] + p[1] * call.step[0][3] +
            p[2] * call.step[0][4], (T)sum);
}

/* The same for ACROSS results next to each other in a line. Along lines a transposed convolution has stride 1 here. The last
   work-item of a line is moved back over results that another one has, and does not store these. */
#define ACROSS 16

__kernel void lines(const Call call, __global S *o, __global const S *restrict x, __global const S *restrict w,
                    __global const S *bias) {
  const long i = get_global_id(0), pieces = (call.size[4] + ACROSS - 1) / ACROSS;
  if (i >= call.n) return;
  long p[3], left = i / pieces;
  const long own = i % pieces * ACROSS;
  p[2] = max(min(own, call.size[4] - ACROSS), 0L);
  for (int d = 1; d >= 0; d--) {
    p[d] = left % call.size[2 + d];
    left /= call.size[2 + d];
  }
  const long c = left % call.size[1], n = left / call.size[1], g = c / GROUP_OUT;
  __global const S *px = x + call.base[1] + n * call.step[1][0] + g * CHANNELS * call.step[1][1];
  __global const S *pw = w + call.base[2] + (call.op ? g * CHANNELS * call.step[2][0] + (c % GROUP_OUT) * call.step[2][1]
                                                     : c * call.step[2][0]);
  const long per_channel = call.step[2][call.op ? 0 : 1], length = IMAGE(2), stride = call.op ? 1 : STRIDE(2);
  T sum[ACROSS];
  for (int l = 0; l < ACROSS; l++) sum[l] = bias ? (T)LD(bias, call.base[3] + c * call.step[3][0]) : (T)0;
  for (long channel = 0; channel < CHANNELS; channel++, px += call.step[1][1], pw += per_channel)
    for (long k0 = 0; k0 < KERNEL(0); k0++) {
      const long q0 = call.op ? window_over(call, 0, p[0], k0, IMAGE(0)) : under(call, 0, p[0], k0);
      if (q0 < 0) continue;
      for (long k1 = 0; k1 < KERNEL(1); k1++) {
        const long q1 = call.op ? window_over(call, 1, p[1], k1, IMAGE(1)) : under(call, 1, p[1], k1);
        if (q1 < 0) continue;
        __global const S *line = px + q0 * call.step[1][2] + q1 * call.step[1][3];
        for (long k2 = 0; k2 < KERNEL(2); k2++) {
          const T factor = (T)LD(pw, k0 * call.step[2][2] + k1 * call.step[2][3] + k2 * call.step[2][4]);
          const long q2 = call.op ? p[2] + PADDING(2) - k2 * DILATION(2) : p[2] * stride - PADDING(2) + k2 * DILATION(2);
          if (q2 >= 0 && q2 + (ACROSS - 1) * stride < length && stride * call.step[1][4] == 1) {
            for (int l = 0; l < ACROSS; l++) sum[l] += (T)LD(line, q2 + l) * factor;
          } else {
            for (int l = 0; l < ACROSS; l++) {
              const long q = q2 + l * stride;
              const int inside = q >= 0 && q < length;
              sum[l] += inside ? (T)LD(line, (inside ? q : 0) * call.step[1][4]) * factor : (T)0;
            }
          }
        }
      }
    }
  o += call.base[0] + n * call.step[0][0] + c * call.step[0][1] + p[0] * call.step[0][2] + p[1] * call.step[0][3];
  for (int l = 0; l < ACROSS; l++)
    if (p[2] + l >= own && p[2] + l < call.size[4]) ST(o, (p[2] + l) * call.step[0][4], sum[l]);
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

/* The same windows in panels of LANES positions, as `multiply` reads them: o (images, panels, channels * kernel, LANES). The grid is
   panels, blocks of SHARED channels, images. Positions beyond the last one are those of the last one. */
#if !TRUTH && !MOVES_ONLY
#define LANES (sizeof(T) == 8 ? 8 : 16)
#define SHARED 16 /* channels of a work-item: where its windows stand is computed once */

__kernel void panels(const Call call, __global T *restrict o, __global const S *restrict x) {
  const long panel = get_global_id(0), first = get_global_id(1) * SHARED, image = get_global_id(2);
  const long positions = call.size[1] * call.size[2] * call.size[3], taps = KERNEL(0) * KERNEL(1) * KERNEL(2);
  __global const S *from = x + call.base[1] + image * call.step[1][0] + first * call.step[1][1];
  __global T *to = o + ((image * get_global_size(0) + panel) * CHANNELS + first) * taps * LANES;
  const long last = min(first + SHARED, CHANNELS);
  int q[3][LANES], place[LANES];
  const int rows[3] = {(int)call.size[1], (int)call.size[2], (int)call.size[3]};
  int left = (int)(panel * LANES), at[3];
  for (int d = 2; d >= 0; d--) {
    at[d] = left % rows[d];
    left /= rows[d];
  }
  for (int l = 0; l < LANES; l++) {
    place[l] = 0;
    for (int d = 0; d < 3; d++) {
      q[d][l] = at[d] * (int)STRIDE(d) - (int)PADDING(d);
      place[l] += q[d][l] * (int)call.step[1][2 + d];
    }
    if (panel * LANES + l + 1 >= positions) continue;
    if (++at[2] == rows[2]) {
      at[2] = 0;
      if (++at[1] == rows[1]) {
        at[1] = 0;
        at[0]++;
      }
    }
  }
  for (int k0 = 0; k0 < (int)KERNEL(0); k0++)
    for (int k1 = 0; k1 < (int)KERNEL(1); k1++)
      for (int k2 = 0; k2 < (int)KERNEL(2); k2++, to += LANES) {
        const int d0 = k0 * (int)DILATION(0), d1 = k1 * (int)DILATION(1), d2 = k2 * (int)DILATION(2);
        const int moved = d0 * (int)call.step[1][2] + d1 * (int)call.step[1][3] + d2 * (int)call.step[1][4];
        int where[LANES], inside = 1, next = 1;
        for (int l = 0; l < LANES; l++) {
          const int in = ((uint)(q[0][l] + d0) < (uint)IMAGE(0)) & ((uint)(q[1][l] + d1) < (uint)IMAGE(1)) &
                         ((uint)(q[2][l] + d2) < (uint)IMAGE(2));
          where[l] = in ? place[l] + moved : -1;
          inside &= in;
          next &= where[l] == where[0] + l;
        }
        for (long channel = 0; channel < last - first; channel++) {
          __global const S *line = from + channel * call.step[1][1];
          __global T *column = to + channel * taps * LANES;
          if (inside & next) {
            for (int l = 0; l < LANES; l++) column[l] = LD(line, where[0] + l);
          } else if (inside) {
            for (int l = 0; l < LANES; l++) column[l] = LD(line, where[l]);
          } else {
            for (int l = 0; l < LANES; l++) column[l] = where[l] < 0 ? (T)0 : LD(line, where[l]);
          }
        }
      }
}
#endif

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
