/* Convolutions by windows that slide over planes (see `halo`): ROWS channels of results and VECTORS vectors of positions next
   to each other in a plane, gaps at the ends of its lines included, are in registers; what falls into gaps is not stored. The
   grid is panels of weights as `pack` makes them, blocks of positions, images times groups. `places` says where the elements
   of a window stand.

   size: images, channels of results of a group, dims of results, channels of a group, elements of a window. step: of o; of
   the planes along images and channels. inner_size: dims of a plane. extra: groups, positions, whether the last block is
   moved back so that it ends with the last position. */

#define PLANE(d) (int)call.inner_size[d]
#define BLOCK (VECTORS * LANES)

/* Positions that passed the end of a line, or of the lines of a plane. */
#define CARRY             \
  if (p2 == PLANE(2)) {   \
    p2 = 0;               \
    p1++;                 \
  }                       \
  if (p1 == PLANE(1)) {   \
    p1 = 0;               \
    p0++;                 \
  }

__kernel void slide(const Call call, __global S *restrict o, __global const T *restrict x, __global const T *restrict w,
                    __global const S *bias, __global const long *restrict places) {
#if FLOATING
#pragma OPENCL FP_CONTRACT ON
#endif
  const long panel = get_global_id(0), batch = get_global_id(2), g = batch % call.extra[0], n = batch / call.extra[0];
  const int rows = (int)call.size[1], row = (int)panel * ROWS, positions = (int)call.extra[1];
  int at = (int)get_global_id(1) * BLOCK;
  if (row >= rows || at >= positions) return;
  if (call.extra[2]) at = min(at, positions - BLOCK);
  const long length = call.size[6];
  __global const T *from = x + call.base[1] + n * call.step[1][0] + g * call.size[5] * call.step[1][1] + at;
  w += (g * ((rows + ROWS - 1) / ROWS) + panel) * length * ROWS;
  VT sum[ROWS][VECTORS];
#pragma unroll
  for (int i = 0; i < ROWS; i++) {
    const T first = bias ? LD(bias, call.base[3] + (g * rows + min(row + i, rows - 1)) * call.step[3][0]) : (T)0;
#pragma unroll
    for (int v = 0; v < VECTORS; v++) sum[i][v] = first;
  }
  for (long k = 0; k < length; k++, w += ROWS) {
    __global const T *window = from + places[k];
    VT given[VECTORS];
#pragma unroll
    for (int v = 0; v < VECTORS; v++) given[v] = LOOSE_CONST(window + v * LANES);
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
#pragma unroll
      for (int v = 0; v < VECTORS; v++) sum[i][v] += w[i] * given[v];
    }
  }
  const int d0 = (int)call.size[2], d1 = (int)call.size[3], d2 = (int)call.size[4];
  int p2 = at % PLANE(2), p1 = at / PLANE(2) % PLANE(1), p0 = at / PLANE(2) / PLANE(1);
  o += call.base[0] + n * call.step[0][0] + (g * rows + row) * call.step[0][1];
#pragma unroll
  for (int v = 0; v < VECTORS; v++) {
    const long to = p0 * call.step[0][2] + p1 * call.step[0][3] + p2 * call.step[0][4];
#if PLAIN
    if (call.step[0][4] == 1 && p2 + LANES <= d2 && p1 < d1 && p0 < d0) {
#pragma unroll
      for (int i = 0; i < ROWS; i++)
        if (row + i < rows) LOOSE(o + to + i * call.step[0][1]) = sum[i][v];
      p2 += LANES;
    } else
#endif
    {
      VT made[ROWS];
#pragma unroll
      for (int i = 0; i < ROWS; i++) made[i] = sum[i][v];
      for (int l = 0; l < LANES; l++, p2++) {
        CARRY
        if (p2 >= d2 || p1 >= d1 || p0 >= d0) continue;
        const long each = p0 * call.step[0][2] + p1 * call.step[0][3] + p2 * call.step[0][4];
        for (int i = 0; i < ROWS && row + i < rows; i++) ST(o, each + i * call.step[0][1], ((T *)&made[i])[l]);
      }
    }
    CARRY
  }
}
