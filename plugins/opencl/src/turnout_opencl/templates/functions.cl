/* What the expressions of element-wise functions use: rounded quotients, powers, questions, conversions to T. */

#if FLOATING
T floor_divided(T x, T y) {
  if (y == 0) return x / y;
  const T rest = fmod(x, y);
  T quotient = (x - rest) / y;
  if (rest != 0 && (y < 0) != (rest < 0)) quotient -= 1;
  if (quotient == 0) return copysign((T)0, x / y);
  const T whole = floor(quotient);
  return quotient - whole > (T)0.5 ? whole + 1 : whole;
}

T remainder_of(T x, T y) {
  const T rest = fmod(x, y);
  if (rest == 0) return y == 0 ? rest : copysign((T)0, y);
  return (y < 0) != (rest < 0) ? rest + y : rest;
}
#define TRUNCATED(x, y) trunc((x) / (y))
#define FLOORED(x, y) floor_divided(x, y)
#define REMAINDER(x, y) remainder_of(x, y)
#define POWER(x, y) pow(x, y)
#else
/* Division by zero has no value: the flag makes the host raise. */
#define CHECKED(y, value) ((y) == 0 ? (flag[0] = 1, (T)0) : (T)(value))

T whole_quotient(T x, T y) {
#if SIGNED
  if (y == (T)-1) return (T)(0 - x); /* the lowest number divided by -1 traps on some devices */
#endif
  return x / y;
}

T floor_quotient(T x, T y) {
  const T quotient = whole_quotient(x, y);
#if SIGNED
  if ((x < 0) != (y < 0) && quotient * y != x) return (T)(quotient - 1);
#endif
  return quotient;
}

T floor_rest(T x, T y) { return (T)(x - floor_quotient(x, y) * y); }

/* A negative exponent gives the reciprocal rounded to zero: 0 but for bases 1 and -1. */
T integer_power(T x, T y) {
#if SIGNED
  if (y < 0) return x == 1 ? (T)1 : x == (T)-1 ? ((y & 1) ? (T)-1 : (T)1) : (T)0;
#endif
  T value = 1;
  for (; y; y >>= 1) {
    if (y & 1) value *= x;
    x *= x;
  }
  return value;
}
#define TRUNCATED(x, y) CHECKED(y, whole_quotient(x, y))
#define FLOORED(x, y) CHECKED(y, floor_quotient(x, y))
#define REMAINDER(x, y) CHECKED(y, floor_rest(x, y))
#define POWER(x, y) integer_power(x, y)
#endif

#if !FLOATING
#define WHOLE_REST(x, y) CHECKED(y, (x) - whole_quotient(x, y) * (y))
#define OUTSIDE(y) ((ulong)(y) >= sizeof(T) * 8)
#endif

#define LARGER(x, y) (((x) > (y) || (x) != (x)) ? (x) : (y))
#define SMALLER(x, y) (((x) < (y) || (x) != (x)) ? (x) : (y))

#define M_PI_ 3.141592653589793
#define M_LN2_ 0.6931471805599453
#define M_LOG2E_ 1.4426950408889634

#if FLOATING
#define SIGNBIT(x) signbit(x)
#define INFINITE(x) isinf(x)
#else
#define SIGNBIT(x) ((x) < 0)
#define INFINITE(x) 0
#endif

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
