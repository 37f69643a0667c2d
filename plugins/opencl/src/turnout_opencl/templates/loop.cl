/* One element-wise function over large arrays: a work-item walks through a piece of a line of the last dim. Line by line, operands are
   next to each other or the same for all elements, which the build knows, so that compilers keep the elements in vectors.

   extra: elements of a piece, pieces of a line, elements of a line. */

__kernel void loop(const Call call, __global RESULT *restrict o, @OPERANDS@) {
  const long g = get_global_id(0), i = g / call.extra[1], from = g % call.extra[1] * call.extra[0];
  if (i >= call.n) return;
  LOCATE(i)
  const long to = min(from + call.extra[0], call.extra[2]);
  o += at[0];
@LINES@
  const T w = NUMBER(3);
  long j = from;
#if LANES > 1
  for (; j + LANES <= to; j += LANES) {
@VECTORS@
  }
#endif
  for (; j < to; j++) {
@ELEMENTS@
  }
}
