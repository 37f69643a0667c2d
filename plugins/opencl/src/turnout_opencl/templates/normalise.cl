/* Rows of a row-major array to mean 0 and variance 1. One work-item per row.

   extra: length of a row, elements of a channel, channels of a row, groups of rows that repeat (1: all rows have the same). */

__kernel void normalise(const Call call, __global S *o, __global const S *a, __global const S *weight,
                        __global const S *bias, __global S *means, __global S *factors) {
  const long row = get_global_id(0);
  if (row >= call.n) return;
  const long length = call.extra[0], from = call.base[1] + row * length, to = call.base[0] + row * length;
  const long first = row % call.extra[3] * call.extra[2];
  A sum = 0, squares = 0;
  for (long j = 0; j < length; j++) sum += (A)LD(a, from + j);
  const A mean = sum / (A)length;
  for (long j = 0; j < length; j++) {
    const A x = (A)LD(a, from + j) - mean;
    squares += x * x;
  }
  const A factor = 1 / sqrt(squares / (A)length + (A)REAL_NUMBER(0));
  for (long j = 0; j < length; j++) {
    const long channel = first + j / call.extra[1];
    A x = ((A)LD(a, from + j) - mean) * factor;
    if (weight) x *= (A)LD(weight, call.base[2] + channel);
    if (bias) x += (A)LD(bias, call.base[3] + channel);
    ST(o, to + j, (T)x);
  }
  ST(means, row, (T)mean);
  ST(factors, row, (T)factor);
}
