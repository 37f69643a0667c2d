/* Copies into one type from any other; `op` says which. */

#if MOVES_ONLY
__kernel void cast(const Call call, __global S *o, __global const void *a) {
  const long i = get_global_id(0);
  if (i >= call.n) return;
  LOCATE(i)
  o[at[0]] = ((__global const S *)a)[at[1]];
}
#else
#if TRUTH
#define AS_T(v) ((T)((v) != 0))
#elif FLOATING
#define AS_T(v) ((T)(v))
#else
/* Through long, so that negative floating-point numbers wrap around in unsigned types. */
#define AS_T(v) ((T)(v))
#endif
#if FLOATING || TRUTH
#define FROM_FLOAT(v) AS_T(v)
#elif UNSIGNED_LONG
#define FROM_FLOAT(v) ((v) < 0 ? (T)(long)(v) : (T)(v))
#else
#define FROM_FLOAT(v) ((T)(long)(v))
#endif

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
