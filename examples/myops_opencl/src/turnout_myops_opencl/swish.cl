/* T is float or double: the build defines it. */
#if DOUBLE
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

__kernel void swish(__global const T *x, const long start, const T beta, __global T *out) {
  const size_t i = get_global_id(0);
  const T value = x[start + i];
  const T scaled = beta * value;
  const T e = exp(-fabs(scaled)); /* at most 1, so nothing overflows */
  out[i] = value * (scaled >= 0 ? (T)1 : e) / (1 + e);
}
