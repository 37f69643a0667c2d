/* Special functions, computed in A, which is double where the device has it. Formulas: Abramowitz and Stegun (1964), by number. */

#if FLOATING
#define PI_A ((A)M_PI_)
#define ROOT_PI ((A)1.7724538509055160)

/* psi(x): reflection (6.3.7), recurrence (6.3.5) up to 10, then the asymptotic series (6.3.18). */
A digamma_(A x) {
  if (x == 0) return copysign((A)INFINITY, -x);
  if (x < 0 && x == trunc(x)) return (A)NAN;
  A r = 0;
  if (x < 0) {
    if (isinf(x)) return (A)NAN;
    const A part = x - trunc(x); /* the tangent of a large angle would lose it */
    r = -PI_A / tan(PI_A * part);
    x = 1 - x;
  }
  for (; x < 10; x += 1) r -= 1 / x;
  const A y = 1 / (x * x);
  const A series = y * ((A)(1.0 / 12) - y * ((A)(1.0 / 120) - y * ((A)(1.0 / 252) - y * ((A)(1.0 / 240) -
                   y * ((A)(1.0 / 132) - y * ((A)(691.0 / 32760) - y * (A)(1.0 / 12)))))));
  return isinf(x) ? x : r + log(x) - (A)0.5 / x - series;
}

/* Modified Bessel functions of order 0 or 1, times exp(-|x|) if asked for: the power series (9.6.10), whose terms are positive, and
   the asymptotic series (9.7.1). */
A bessel_i(A x, int order, int scaled) {
  const A z = fabs(x), quarter = z * z / 4;
  A r;
  if (isinf(z)) {
    r = scaled ? (A)0 : (A)NAN; /* as in PyTorch: the exponential times 0 */
  } else if (z < 40) {
    A term = order ? z / 2 : (A)1;
    r = term;
    for (int k = 1; k < 100 && term > r * (A)1e-18; k++) {
      term *= quarter / ((A)k * (k + order));
      r += term;
    }
    if (scaled) r *= exp(-z);
  } else {
    const A mu = 4 * order;
    A term = 1;
    r = 1;
    for (int k = 1; k < 30; k++) {
      term *= -(mu - (2 * k - 1) * (2 * k - 1)) / (k * 8 * z);
      r += term;
      if (fabs(term) < (A)1e-17) break;
    }
    r /= sqrt(2 * PI_A * z);
    if (!scaled) r *= z > 700 ? exp(z / 2) * exp(z / 2) : exp(z);
  }
  return order && x < 0 ? -r : r;
}

/* exp(x * x) erfc(x): the product, and the continued fraction (7.1.14) where erfc is too small. */
A erfcx_(A x) {
  if (isinf(x)) return x < 0 ? x * x : (A)0;
  if (x < 5) {
    const A high = (A)(float)x, low = x - high; /* the square without an error: exp would make it large */
    return exp(high * high) * exp((x + high) * low) * erfc(x);
  }
  A r = x;
  for (int k = 80; k > 0; k--) r = x + (A)k / 2 / r;
  return 1 / (r * ROOT_PI);
}

/* log of the normal distribution's cumulative function. */
A log_ndtr_(A x) {
  const A z = x * (A)0.7071067811865476;
  return x < -1 ? log(erfcx_(-z) / 2) - z * z : log1p(-erfc(z) / 2);
}

/* z with erfc(z) = q, for 0 < q <= 1: from Winitzki's inverse by Halley's method. */
A erfc_inverse(A q) {
  const A w = log(q * (2 - q)), t = (A)4.330746750799873 + w / 2; /* 2 / (pi a) + w / 2 with a = 0.147 */
  A z = sqrt(fmax(sqrt(t * t - w / (A)0.147) - t, (A)0));
  for (int k = 0; k < 4; k++) {
    const A off = (erfcx_(z) - q * exp(z * z)) * ROOT_PI / 2; /* divided by the derivative */
    z += off / (1 - z * off);
  }
  return z;
}

/* The inverse of erf; near 0 of erf itself, elsewhere of erfc. */
A erfinv_(A x) {
  const A size = fabs(x);
  if (x != x || size > 1) return (A)NAN;
  if (size == 1) return x * (A)INFINITY;
  if (size > (A)0.5) return copysign(erfc_inverse(1 - size), x);
  A z = x * ROOT_PI / 2 * (1 + PI_A / 12 * x * x);
  for (int k = 0; k < 4; k++) {
    const A off = (erf(z) - x) * ROOT_PI / 2 * exp(z * z);
    z -= off / (1 + z * off);
  }
  return z;
}

A ndtri_(A p) {
  if (p != p || p < 0 || p > 1) return (A)NAN;
  if (p == 0 || p == 1) return p == 0 ? -(A)INFINITY : (A)INFINITY;
  const A root = (A)1.4142135623730951;
  if (p < (A)0.25) return -root * erfc_inverse(2 * p);
  if (p > (A)0.75) return root * erfc_inverse(2 * (1 - p));
  return root * erfinv_(2 * p - 1);
}

/* Hurwitz's zeta function: the sum up to a + 9, and the Euler-Maclaurin formula (23.1.30) for the rest. */
A zeta_(A s, A a) {
  if (s == 1) return (A)INFINITY;
  if (s < 1) return (A)NAN;
  if (a <= 0 && a == floor(a)) return (A)INFINITY;
  if (a != a || s != s || (a <= 0 && s != floor(s))) return (A)NAN;
  if (isinf(a)) return 0;
  /* B(2k) / (2k)! */
  const A numbers[12] = {(A)8.333333333333333e-2, (A)-1.388888888888889e-3, (A)3.306878306878307e-5, (A)-8.267195767195768e-7,
                         (A)2.087675698786810e-8, (A)-5.284190138687493e-10, (A)1.338253653068468e-11, (A)-3.389680296322583e-13,
                         (A)8.586062056277845e-15, (A)-2.174868698558062e-16, (A)5.509002828360230e-18, (A)-1.395446468581252e-19};
  A sum = 0;
  for (int k = 0; k < 10 || a < 10; k++, a += 1) {
    const A term = pow(a, -s);
    sum += term;
    if (fabs(term) < fabs(sum) * (A)1e-17) return sum;
  }
  sum += pow(a, 1 - s) / (s - 1) + pow(a, -s) / 2;
  A factor = s * pow(a, -s - 1);
  for (int k = 0; k < 12; k++) {
    const A term = numbers[k] * factor;
    sum += term;
    if (fabs(term) < fabs(sum) * (A)1e-17) break;
    factor *= (s + 2 * k + 1) * (s + 2 * k + 2) / (a * a);
  }
  return sum;
}

/* (-1)^(n + 1) n! zeta(n + 1, x) */
A polygamma_(A n, A x) {
  return (fmod(n, (A)2) == 0 ? -1 : 1) * exp(lgamma(n + 1)) * zeta_(n + 1, x);
}

A logit_(A x) { return log(x / (1 - x)); }

A rounded_to(A x, A scale, int divides) { return divides ? rint(x / scale) * scale : rint(x * scale) / scale; }
#else

T greatest_divisor(T x, T y) {
#if SIGNED
  if (x < 0) x = -x;
  if (y < 0) y = -y;
#endif
  while (y != 0) {
    const T rest = x % y;
    x = y;
    y = rest;
  }
  return x;
}

T least_multiple(T x, T y) {
  if (x == 0 || y == 0) return 0;
  const T divisor = greatest_divisor(x, y);
  return x / divisor * y < 0 ? -(x / divisor * y) : x / divisor * y; // small integers are multiplied as int, and cut off here
}
#endif
