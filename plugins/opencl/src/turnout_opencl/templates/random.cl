/* Random words: a hash of (seed, offset + i), SplitMix64's finaliser twice with the key in between. number: start, key. */

ulong mixed(ulong w) {
  w ^= w >> 30;
  w *= 0xBF58476D1CE4E5B9UL;
  w ^= w >> 27;
  w *= 0x94D049BB133111EBUL;
  return w ^ w >> 31;
}

__kernel void bits(const Call call, __global ulong *o) {
  const long i = get_global_id(0);
  if (i >= call.n) return;
  const ulong w = (ulong)i * 0x9E3779B97F4A7C15UL + (ulong)call.number[0];
  o[call.base[0] + i] = mixed(mixed(w) ^ (ulong)call.number[1]);
}
