/* alpha * a @ b + beta * c for batches of matrices of any strides. A work-item computes a block of ROWS x COLUMNS results.

   size: rows, columns, inner length. step[k]: of operand k along batch, first and second dim.
   Positions beyond the edge read the last row or column and are not stored, so that the inner loop does not branch. */

#define ROWS 4
#define COLUMNS 4

__kernel void matmul(const Call call, __global S *o, __global const S *a, __global const S *b, __global const S *c) {
  const long column = (long)get_global_id(0) * COLUMNS, row = (long)get_global_id(1) * ROWS, batch = get_global_id(2);
  const long rows = call.size[0], columns = call.size[1], length = call.size[2];
  if (row >= rows || column >= columns || batch >= call.n) return;
  __global const S *pa = a + call.base[1] + batch * call.step[1][0];
  __global const S *pb = b + call.base[2] + batch * call.step[2][0];
  long ra[ROWS], cb[COLUMNS];
  for (int i = 0; i < ROWS; i++) ra[i] = min(row + i, rows - 1) * call.step[1][1];
  for (int j = 0; j < COLUMNS; j++) cb[j] = min(column + j, columns - 1) * call.step[2][2];
  T sum[ROWS][COLUMNS];
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < COLUMNS; j++) sum[i][j] = 0;
  for (long k = 0; k < length; k++) {
    T x[ROWS], y[COLUMNS];
    for (int i = 0; i < ROWS; i++) x[i] = LD(pa, ra[i] + k * call.step[1][2]);
    for (int j = 0; j < COLUMNS; j++) y[j] = LD(pb, cb[j] + k * call.step[2][1]);
    for (int i = 0; i < ROWS; i++)
      for (int j = 0; j < COLUMNS; j++) sum[i][j] += x[i] * y[j];
  }
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < COLUMNS; j++) {
      if (row + i >= rows || column + j >= columns) continue;
      T r = call.extra[0] ? NUMBER(0) * sum[i][j] : sum[i][j];
      if (c) {
        const T d = LD(c, call.base[3] + batch * call.step[3][0] + (row + i) * call.step[3][1] + (column + j) * call.step[3][2]);
        r += call.extra[1] ? NUMBER(1) * d : d;
      }
      ST(o, call.base[0] + batch * call.step[0][0] + (row + i) * call.step[0][1] + (column + j) * call.step[0][2], r);
    }
}

/* The same where the columns of b are next to each other: a row of a block is WIDTH of them, which compilers keep in vectors. */
#if WIDE
#define WIDTH 16

__kernel void wide(const Call call, __global S *o, __global const S *a, __global const S *b, __global const S *c) {
  const long column = (long)get_global_id(0) * WIDTH, row = (long)get_global_id(1) * ROWS, batch = get_global_id(2);
  const long rows = call.size[0], columns = call.size[1], length = call.size[2];
  if (row >= rows || column >= columns || batch >= call.n) return;
  const int width = (int)min((long)WIDTH, columns - column);
  __global const S *pa = a + call.base[1] + batch * call.step[1][0];
  /* At the edge the block is moved back over columns that another work-item has: nothing else is read, and these are not stored. */
  const long first = columns - WIDTH < column ? columns - WIDTH : column;
  __global const S *pb = b + call.base[2] + batch * call.step[2][0] + first;
  long ra[ROWS];
  for (int i = 0; i < ROWS; i++) ra[i] = min(row + i, rows - 1) * call.step[1][1];
  T sum[ROWS][WIDTH];
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < WIDTH; j++) sum[i][j] = 0;
  for (long k = 0; k < length; k++) {
    __global const S *line = pb + k * call.step[2][1];
    for (int i = 0; i < ROWS; i++) {
      const T x = pa[ra[i] + k * call.step[1][2]];
      for (int j = 0; j < WIDTH; j++) sum[i][j] += x * line[j];
    }
  }
  for (int i = 0; i < ROWS && row + i < rows; i++)
    for (int j = WIDTH - width; j < WIDTH; j++) {
      T r = call.extra[0] ? NUMBER(0) * sum[i][j] : sum[i][j];
      if (c) {
        const T d = LD(c, call.base[3] + batch * call.step[3][0] + (row + i) * call.step[3][1] + (first + j) * call.step[3][2]);
        r += call.extra[1] ? NUMBER(1) * d : d;
      }
      ST(o, call.base[0] + batch * call.step[0][0] + (row + i) * call.step[0][1] + (first + j) * call.step[0][2], r);
    }
}
#endif

/* Large products: both matrices are copied into panels first, so that a work-item reads its rows and columns from memory without gaps.
   A panel of a has ROWS_OF rows, one of b COLUMNS_OF columns, and holds them element by element of the inner length. */
#if !TRUTH
#define ROWS_OF 6
#define COLUMNS_OF (sizeof(T) == 8 ? 8 : 16)

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
  __global const T *pb = b + batch * call.step[2][0] + column * length;
  T sum[ROWS_OF][COLUMNS_OF];
  for (int i = 0; i < ROWS_OF; i++)
    for (int j = 0; j < COLUMNS_OF; j++) sum[i][j] = 0;
  for (long k = 0; k < length; k++)
    for (int i = 0; i < ROWS_OF; i++)
      for (int j = 0; j < COLUMNS_OF; j++) sum[i][j] += pa[k * ROWS_OF + i] * pb[k * COLUMNS_OF + j];
  for (int i = 0; i < ROWS_OF; i++)
    for (int j = 0; j < COLUMNS_OF; j++) { /* of constant bounds, so that the sums stay in registers */
      if (row + i >= rows || column + j >= columns) continue;
      T r = call.extra[0] ? NUMBER(0) * sum[i][j] : sum[i][j];
      if (c) {
        const T d = LD(c, call.base[3] + batch * call.step[3][0] + (row + i) * call.step[3][1] + (column + j) * call.step[3][2]);
        r += call.extra[1] ? NUMBER(1) * d : d;
      }
      ST(o, call.base[0] + batch * call.step[0][0] + (row + i) * call.step[0][1] + (column + j) * call.step[0][2], r);
    }
}
#endif
