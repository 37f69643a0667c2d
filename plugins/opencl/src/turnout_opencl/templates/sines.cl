/* Sines (quarter 0) and cosines (quarter 1) of vectors of floats: the rest of a division by pi / 2, in double precision, and
   two polynomials for -pi / 4 to pi / 4 (Moshier, Cephes, sinf.c and cosf.c). Large numbers and NaN are left to the scalar
   functions. No function of vectors is called: PoCL inlines none. */

#define INT_V PASTE(int, LANES)
#define AS_INTS PASTE(as_int, LANES)
#define AS_FLOATS PASTE(as_float, LANES)
#define DOUBLES(v) __builtin_convertvector(v, PASTE(double, LANES))
#define LARGEST_TURNED 100000.0f
#define ROUNDING 12582912.0f /* 1.5 times 2 ^ 23: a sum with it is rounded to an integer, which is its last bits */
/* 33 bits of pi / 2, whose products with turns are exact, and the rest (fdlibm, e_rem_pio2.c). */
#define HALF_PI_HIGH 1.57079632673412561417e+00
#define HALF_PI_LOW 6.07710050650619224932e-11

VT sines(VT x, int quarter) {
#pragma OPENCL FP_CONTRACT ON
  const VT shifted = x * 0.63661977236758134f + ROUNDING;
  const PASTE(double, LANES) turns = DOUBLES(shifted - ROUNDING);
  const VT r = __builtin_convertvector((DOUBLES(x) - turns * HALF_PI_HIGH) - turns * HALF_PI_LOW, VT);
  const INT_V q = AS_INTS(shifted) + quarter;
  const VT s = r * r;
  const VT sine = r + r * s * (-1.6666654611e-1f + s * (8.3321608736e-3f - s * 1.9515295891e-4f));
  const VT cosine = 1.0f - 0.5f * s + s * s * (4.166664568298827e-2f + s * (-1.388731625493765e-3f + s * 2.443315711809948e-5f));
  VT found = (q & 1) != 0 ? cosine : sine;
  found = AS_FLOATS(AS_INTS(found) ^ ((q & 2) << 30));
  if (!quarter) found = x == 0.0f ? x : found; /* which keeps the sign of 0 */
  const INT_V far = (AS_INTS(x) & 0x7fffffff) >= as_int(LARGEST_TURNED);
  int some = 0;
#pragma unroll
  for (int l = 0; l < LANES; l++) some |= ((const int *)&far)[l];
  if (some) {
    float given[LANES], made[LANES];
    *(VT *)given = x;
    *(VT *)made = found;
    for (int l = 0; l < LANES; l++)
      if (!(fabs(given[l]) < LARGEST_TURNED)) made[l] = quarter ? cos(given[l]) : sin(given[l]);
    found = *(VT *)made;
  }
  return found;
}
