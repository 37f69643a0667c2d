/* Weighted sums along one dim of a row-major array (outer, length, inner).

   size: outer, results along the dim, inner. extra: length, taps of each result. Taps of index -1 are not there. */

__kernel void weigh(const Call call, __global S *o, __global const S *a, __global const long *indices,
                    __global const T *weights) {
  const long i = get_global_id(0);
  if (i >= call.n) return;
  const long inner = i % call.size[2], j = i / call.size[2] % call.size[1], outer = i / call.size[2] / call.size[1];
  const long from = call.base[1] + outer * call.extra[0] * call.size[2] + inner;
  A sum = 0;
  for (long t = j * call.extra[1]; t < (j + 1) * call.extra[1]; t++)
    if (indices[t] >= 0) sum += (A)LD(a, from + indices[t] * call.size[2]) * (A)weights[t];
  ST(o, call.base[0] + i, (T)sum);
}
