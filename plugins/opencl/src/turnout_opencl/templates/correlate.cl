/* Gradients of the weights of convolutions: for ROWS channels of results and TAPS elements of their windows, the sums over positions
   of gradients times what stands under them in planes (see `halo`). They stay in registers, as vectors of positions.

   The grid is blocks of rows and taps, groups, and chunks of images, each of which has sums of its own. `places` says where the
   elements of a window stand. Lines of results have at least LANES elements: what is left of a line is a vector that ends with it,
   of which the elements that were there before count as 0.

   size: images, channels of results of a group, dims of results, channels of a group, elements of a window. step: of the gradients
   and of the planes, along images and channels. inner_size: dims of a plane. extra: images of a chunk, blocks of taps. */

#define D(d) (int)call.size[2 + (d)]
#define PLANE(d) (int)call.inner_size[d]

/* The products of the vectors at j of a line. KEPT(v) is v, or v with zeros. */
#define MULTIPLY(j, KEPT)                                                     \
  {                                                                           \
    VT under[TAPS];                                                           \
    _Pragma("unroll") for (int t_ = 0; t_ < TAPS; t_++) {                     \
      const VT v_ = LOOSE_CONST(window + at[t_] + (j));                       \
      under[t_] = KEPT(v_);                                                   \
    }                                                                         \
    _Pragma("unroll") for (int i_ = 0; i_ < ROWS; i_++) {                     \
      const VT v_ = LOOSE_CONST(lines[i_] + (j)), given = KEPT(v_);           \
      _Pragma("unroll") for (int t_ = 0; t_ < TAPS; t_++) sum[i_][t_] += given * under[t_]; \
    }                                                                         \
  }
#define ALL(v) (v)
#define NEW(v) (place >= first ? (v) : (VT)0)

__kernel void correlate(const Call call, __global T *restrict o, __global const T *restrict grad, __global const T *restrict x,
                        __global const long *restrict places) {
#if FLOATING
#pragma OPENCL FP_CONTRACT ON
#endif
  const long block = get_global_id(0), g = get_global_id(1), chunk = get_global_id(2), groups = get_global_size(1);
  const int rows = (int)call.size[1], row = (int)(block / call.extra[1]) * ROWS, depth = (int)call.size[6];
  const int tap = (int)(block % call.extra[1]) * TAPS, length = D(2);
  const long to = min((chunk + 1) * call.extra[0], call.size[0]);
  long at[TAPS];
  VT sum[ROWS][TAPS], place;
#pragma unroll
  for (int l = 0; l < LANES; l++) ((T *)&place)[l] = l;
  const VT first = (T)(LANES - length % LANES);
#pragma unroll
  for (int t = 0; t < TAPS; t++) at[t] = places[min(tap + t, depth - 1)];
#pragma unroll
  for (int i = 0; i < ROWS; i++)
#pragma unroll
    for (int t = 0; t < TAPS; t++) sum[i][t] = 0;
  for (long n = chunk * call.extra[0]; n < to; n++) {
    __global const T *lines[ROWS], *plane = x + call.base[1] + n * call.step[1][0] + g * call.size[5] * call.step[1][1];
#pragma unroll
    for (int i = 0; i < ROWS; i++)
      lines[i] = grad + call.base[0] + n * call.step[0][0] + (g * rows + min(row + i, rows - 1)) * call.step[0][1];
    for (int p0 = 0; p0 < D(0); p0++)
      for (int p1 = 0; p1 < D(1); p1++) {
        __global const T *window = plane + ((long)p0 * PLANE(1) + p1) * PLANE(2);
        int j = 0;
        for (; j + LANES <= length; j += LANES) MULTIPLY(j, ALL)
        if (j < length) MULTIPLY(length - LANES, NEW)
#pragma unroll
        for (int i = 0; i < ROWS; i++) lines[i] += length;
      }
  }
  o += call.base[2] + (chunk * groups * rows + g * rows + row) * depth + tap;
#pragma unroll
  for (int i = 0; i < ROWS; i++)
#pragma unroll
    for (int t = 0; t < TAPS; t++) {
      T all = 0;
#pragma unroll
      for (int l = 0; l < LANES; l++) all += ((T *)&sum[i][t])[l];
      if (row + i < rows && tap + t < depth) o[i * depth + t] = all;
    }
}
