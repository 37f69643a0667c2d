/* Random words. number: start, key; the host has hashed the seed. */

__kernel void bits(const Call call, __global ulong *o) {
  const long i = get_global_id(0);
  if (i < call.n) o[call.base[0] + i] = word_at((ulong)i, (ulong)call.number[0], (ulong)call.number[1]);
}
