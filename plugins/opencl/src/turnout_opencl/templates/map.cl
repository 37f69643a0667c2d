/* Element-wise functions of up to three operands of one type, with a result of that type. An absent operand is a number. */

__kernel void map(const Call call, __global S *o, __global const S *a, __global const S *b, __global const S *c,
                  __global int *flag) {
  const long i = get_global_id(0);
  if (i >= call.n) return;
  LOCATE(i)
  const T x = a ? LD(a, at[1]) : NUMBER(0);
  const T y = b ? LD(b, at[2]) : NUMBER(1);
  const T z = c ? LD(c, at[3]) : NUMBER(2);
  const T w = NUMBER(3);
  T r = x;
  switch (call.op) {
@CASES@
  }
  ST(o, at[0], r);
}
