/* Copies into one type from any other; `op` says which. */

#if MOVES_ONLY
__kernel void cast(const Call call, __global S *o, __global const void *a) {
  const long i = get_global_id(0);
  if (i >= call.n) return;
  LOCATE(i)
  o[at[0]] = ((__global const S *)a)[at[1]];
}
#else
__kernel void cast(const Call call, __global S *o, __global const void *a) {
  const long i = get_global_id(0);
  if (i >= call.n) return;
  LOCATE(i)
  const long j = at[1];
  T r = 0;
  switch (call.op) {
@CASES@
  }
  ST(o, at[0], r);
}
#endif
