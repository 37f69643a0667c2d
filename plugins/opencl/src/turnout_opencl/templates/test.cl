/* Element-wise questions: operands of one type, bool results. And the choice between two values by a bool. */

__kernel void test(const Call call, __global uchar *o, __global const S *a, __global const S *b) {
  const long i = get_global_id(0);
  if (i >= call.n) return;
  LOCATE(i)
  const T x = a ? LD(a, at[1]) : NUMBER(0);
  const T y = b ? LD(b, at[2]) : NUMBER(1);
  int r = 0;
  switch (call.op) {
@CASES@
  }
  o[at[0]] = (uchar)(r != 0);
}

__kernel void choose(const Call call, __global S *o, __global const uchar *condition, __global const S *a,
                     __global const S *b) {
  const long i = get_global_id(0);
  if (i >= call.n) return;
  LOCATE(i)
  const T x = a ? LD(a, at[2]) : NUMBER(0);
  const T y = b ? LD(b, at[3]) : NUMBER(1);
  ST(o, at[0], condition[at[1]] ? x : y);
}
