/* alpha * a @ b + beta * c for batches of matrices of any strides. A work-item computes a block of ROWS x COLUMNS results.

   size: rows, columns, inner length. step[k]: of operand k along batch, first and second dim. Positions beyond the edge read
   the last row or column and are not stored, so that the inner loop does not branch. Loops of constant bounds are unrolled,
   or compilers would keep the sums in memory. */

#define ROWS 4
#define COLUMNS 4

#define PLACE(k, row, column) (call.base[k] + batch * call.step[k][0] + (row) * call.step[k][1] + (column) * call.step[k][2])
#define STORE(row, column, sum)                                              \
  T r_ = call.extra[0] ? NUMBER(0) * (sum) : (sum);                          \
  if (c) {                                                                   \
    const T d_ = LD(c, PLACE(3, row, column));                               \
    r_ += call.extra[1] ? NUMBER(1) * d_ : d_;                               \
  }                                                                          \
  ST(o, PLACE(0, row, column), r_);

__kernel void matmul(const Call call, __global S *o, __global const S *a, __global const S *b, __global const S *c) {
  const long column = (long)get_global_id(0) * COLUMNS, row = (long)get_global_id(1) * ROWS, batch = get_global_id(2);
  const long rows = call.size[0], columns = call.size[1], length = call.size[2];
  if (row >= rows || column >= columns || batch >= call.n) return;
  __global const S *pa = a + PLACE(1, 0, 0);
  __global const S *pb = b + PLACE(2, 0, 0);
  long ra[ROWS], cb[COLUMNS];
  T sum[ROWS][COLUMNS];
#pragma unroll
  for (int j = 0; j < COLUMNS; j++) cb[j] = min(column + j, columns - 1) * call.step[2][2];
#pragma unroll
  for (int i = 0; i < ROWS; i++) {
    ra[i] = min(row + i, rows - 1) * call.step[1][1];
#pragma unroll
    for (int j = 0; j < COLUMNS; j++) sum[i][j] = 0;
  }
  for (long k = 0; k < length; k++) {
    T y[COLUMNS];
#pragma unroll
    for (int j = 0; j < COLUMNS; j++) y[j] = LD(pb, cb[j] + k * call.step[2][1]);
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
      const T x = LD(pa, ra[i] + k * call.step[1][2]);
#pragma unroll
      for (int j = 0; j < COLUMNS; j++) sum[i][j] += x * y[j];
    }
  }
#pragma unroll
  for (int i = 0; i < ROWS; i++)
#pragma unroll
    for (int j = 0; j < COLUMNS; j++) {
      if (row + i >= rows || column + j >= columns) continue;
      STORE(row + i, column + j, sum[i][j])
    }
}

/* The same where the columns of b are next to each other: a row of a block is two vectors of them. */
#define COLUMNS_OF (2 * LANES)

#if WIDE

__kernel void wide(const Call call, __global S *o, __global const S *a, __global const S *b, __global const S *c) {
  const long column = (long)get_global_id(0) * COLUMNS_OF, row = (long)get_global_id(1) * ROWS, batch = get_global_id(2);
  const long rows = call.size[0], columns = call.size[1], length = call.size[2];
  if (row >= rows || column >= columns || batch >= call.n) return;
  const int width = (int)min((long)COLUMNS_OF, columns - column);
  __global const S *pa = a + PLACE(1, 0, 0);
  /* At the edge the block is moved back over columns that another work-item has: only these are read, and they are not stored. */
  const long first = columns - COLUMNS_OF < column ? columns - COLUMNS_OF : column;
  __global const S *pb = b + PLACE(2, 0, first);
  long ra[ROWS];
  VT sum[ROWS][2];
#pragma unroll
  for (int i = 0; i < ROWS; i++) {
    ra[i] = min(row + i, rows - 1) * call.step[1][1];
    sum[i][0] = sum[i][1] = 0;
  }
  for (long k = 0; k < length; k++) {
    __global const S *line = pb + k * call.step[2][1];
    const VT first_half = LOOSE_CONST(line), second_half = LOOSE_CONST(line + LANES);
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
      const T x = pa[ra[i] + k * call.step[1][2]];
      sum[i][0] += x * first_half;
      sum[i][1] += x * second_half;
    }
  }
#pragma unroll
  for (int i = 0; i < ROWS; i++) {
    VT line[2] = {sum[i][0], sum[i][1]};
    if (row + i >= rows) continue;
    for (int j = COLUMNS_OF - width; j < COLUMNS_OF; j++) {
      STORE(row + i, first + j, ((T *)line)[j])
    }
  }
}

/* The same where the elements of rows of a and of columns of b are next to each other: vectors of them, for results that are few. */
#define COLUMNS_OF_DOTS 2

__kernel void dots(const Call call, __global S *o, __global const S *a, __global const S *b, __global const S *c) {
#pragma OPENCL FP_CONTRACT ON
  const long column = (long)get_global_id(0) * COLUMNS_OF_DOTS, row = (long)get_global_id(1) * ROWS, batch = get_global_id(2);
  const long rows = call.size[0], columns = call.size[1], length = call.size[2];
  if (row >= rows || column >= columns || batch >= call.n) return;
  __global const S *pa[ROWS], *pb[COLUMNS_OF_DOTS];
  VT sum[ROWS][COLUMNS_OF_DOTS];
#pragma unroll
  for (int j = 0; j < COLUMNS_OF_DOTS; j++) pb[j] = b + PLACE(2, 0, min(column + j, columns - 1));
#pragma unroll
  for (int i = 0; i < ROWS; i++) {
    pa[i] = a + PLACE(1, min(row + i, rows - 1), 0);
#pragma unroll
    for (int j = 0; j < COLUMNS_OF_DOTS; j++) sum[i][j] = 0;
  }
  long k = 0;
  for (; k + LANES <= length; k += LANES) {
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
      const VT x = LOOSE_CONST(pa[i] + k);
#pragma unroll
      for (int j = 0; j < COLUMNS_OF_DOTS; j++) sum[i][j] += x * LOOSE_CONST(pb[j] + k);
    }
  }
#pragma unroll
  for (int i = 0; i < ROWS; i++)
#pragma unroll
    for (int j = 0; j < COLUMNS_OF_DOTS; j++) {
      T all = 0;
#pragma unroll
      for (int l = 0; l < LANES; l++) all += ((T *)&sum[i][j])[l];
      if (row + i >= rows || column + j >= columns) continue;
      for (long rest = k; rest < length; rest++) all += pa[i][rest] * pb[j][rest];
      STORE(row + i, column + j, all)
    }
}
#endif

/* Large products: both matrices are copied into panels first, so that a work-item reads its rows and columns from memory
   without gaps. A panel of a has ROWS_OF rows, one of b COLUMNS_OF columns, and holds them element by element of the inner
   length. */
#if !TRUTH
#define ROWS_OF 6

/* size: lines (rows of a or columns of b), inner length, lines of a panel; step[1]: along batch, lines, inner length. */
__kernel void pack(const Call call, __global T *restrict o, __global const S *restrict a) {
  const long k = get_global_id(0), panel = get_global_id(1), batch = get_global_id(2);
  const long lines = call.size[0], length = call.size[1], width = call.size[2], panels = get_global_size(1);
  if (k >= length) return;
  const long count = min(width, lines - panel * width), step = call.step[1][1];
  __global const S *from = a + call.base[1] + batch * call.step[1][0] + panel * width * step + k * call.step[1][2];
  __global T *to = o + ((batch * panels + panel) * length + k) * width;
  for (long l = 0; l < count; l++) to[l] = LD(from, l * step);
  for (long l = count; l < width; l++) to[l] = 0;
}

/* step[1][0], step[2][0]: from one batch of panels to the next, 0 where all batches have the same. */
__kernel void panels(const Call call, __global S *o, __global const T *restrict a, __global const T *restrict b,
                     __global const S *c) {
#if FLOATING
#pragma OPENCL FP_CONTRACT ON
#endif
  const long column = (long)get_global_id(0) * COLUMNS_OF, row = (long)get_global_id(1) * ROWS_OF, batch = get_global_id(2);
  const long rows = call.size[0], columns = call.size[1], length = call.size[2];
  if (row >= rows || column >= columns) return;
  __global const T *pa = a + batch * call.step[1][0] + row * length;
  __global const VT *pb = (__global const VT *)(b + batch * call.step[2][0] + column * length);
  VT sum[ROWS_OF][2];
#pragma unroll
  for (int i = 0; i < ROWS_OF; i++) sum[i][0] = sum[i][1] = 0;
  for (long k = 0; k < length; k++, pa += ROWS_OF, pb += 2) {
#pragma unroll
    for (int i = 0; i < ROWS_OF; i++) {
      sum[i][0] += pa[i] * pb[0];
      sum[i][1] += pa[i] * pb[1];
    }
  }
  const int count = (int)min((long)COLUMNS_OF, columns - column), height = (int)min((long)ROWS_OF, rows - row);
#pragma unroll
  for (int i = 0; i < ROWS_OF; i++) {
    VT line[2] = {sum[i][0], sum[i][1]};
    if (i >= height) continue;
#if WIDE
    if (count == COLUMNS_OF && call.step[0][2] == 1 && !call.extra[0] && (!c || (!call.step[3][2] && !call.extra[1]))) {
      const VT d = c ? (VT)(c[PLACE(3, row + i, 0)]) : (VT)0;
      LOOSE(o + PLACE(0, row + i, column)) = c ? line[0] + d : line[0];
      LOOSE(o + PLACE(0, row + i, column + LANES)) = c ? line[1] + d : line[1];
      continue;
    }
#endif
    for (int j = 0; j < count; j++) {
      STORE(row + i, column + j, ((T *)line)[j])
    }
  }
}
#endif
