/* Sines (quarter 0) and cosines (quarter 1) of vectors of floats: the rest of a division by pi / 2, in double precision, and two
   polynomials for -pi / 4 to pi / 4 (Moshier, Cephes, sinf.c and cosf.c). Large numbers and NaN are left to the scalar functions. */

#define INT_V PASTE(int, VECTOR)
#define LARGEST_TURNED 100000.0f

V sines(V x, int quarter) {
  float given[VECTOR], made[VECTOR];
  const V turns = rint(x * 0.63661977236758134f);
  VECTOR_STORE(x, 0, given);
  VECTOR_STORE(turns, 0, made);
  for (int l = 0; l < VECTOR; l++) made[l] = (float)((double)given[l] - (double)made[l] * 1.5707963267948966);
  const V r = VECTOR_LOAD(0, made);
  const INT_V q = PASTE(convert_int, VECTOR)(turns) + quarter;
  const V s = r * r;
  const V sine = r + r * s * (-1.6666654611e-1f + s * (8.3321608736e-3f - s * 1.9515295891e-4f));
  const V cosine = 1.0f - 0.5f * s + s * s * (4.166664568298827e-2f + s * (-1.388731625493765e-3f + s * 2.443315711809948e-5f));
  V found = (q & 1) != 0 ? cosine : sine;
  found = (q & 2) != 0 ? -found : found;
  if (!quarter) found = x == 0.0f ? x : found; /* which keeps the sign of 0 */
  const INT_V far = !(fabs(x) < (V)LARGEST_TURNED);
  if (any(far)) {
    VECTOR_STORE(found, 0, made);
    for (int l = 0; l < VECTOR; l++)
      if (!(fabs(given[l]) < LARGEST_TURNED)) made[l] = quarter ? cos(given[l]) : sin(given[l]);
    found = VECTOR_LOAD(0, made);
  }
  return found;
}
