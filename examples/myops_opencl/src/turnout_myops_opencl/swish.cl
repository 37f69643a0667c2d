/* T is float or double: the build defines it. */
#if DOUBLE
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

__kernel void swish(__global T *x, const T beta) {
  const size_t i = get_global_id(0);
  const T value = x[i];
  const T scaled = beta * value;
  const T e = exp(-fabs(scaled)); /* at most 1, so nothing overflows */
  x[i] = value * (scaled >= 0 ? (T)1 : e) / (1 + e);
}
