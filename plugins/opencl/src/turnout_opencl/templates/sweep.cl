/* One reduction of large arrays, several results or partial results at once, in vectors. The build defines STEP(r, x, c),
   which takes an element into a result, around a centre c, JOIN(r, x), which takes in a partial result, FIRST(x), the result
   before any element where x is the first one, all of them for vectors too; R, the type of results, and W, the elements of
   RV, a vector of R. */

#if SIGNED
#define SIZE(x) ((x) < (R)0 ? -(x) : (x))
#else
#define SIZE(x) (x)
#endif
#define VECTORS 4 /* vectors of results of a work-item */
#define BLOCK (VECTORS * W)

/* W elements from p on, in x. `convert_double8` is a call in PoCL, as `vload8` is. */
#if PLAIN && W > 1
#define TAKE(x, p) const RV x = __builtin_convertvector(LOOSE_CONST(p), RV);
#else
#define TAKE(x, p)                                      \
  RV x;                                                 \
  _Pragma("unroll") for (int l_ = 0; l_ < W; l_++) ((R *)&x)[l_] = (R)LD(p, l_);
#endif

/* All vectors and their elements joined, in pairs. */
#define JOIN_ALL(all, r)                                                                          \
  RV pairs_ = JOIN(JOIN(r[0], r[1]), JOIN(r[2], r[3]));                                           \
  R lanes_[W];                                                                                    \
  _Pragma("unroll") for (int l_ = 0; l_ < W; l_++) lanes_[l_] = ((R *)&pairs_)[l_];               \
  _Pragma("unroll") for (int half_ = W / 2; half_; half_ /= 2)                                    \
      _Pragma("unroll") for (int l_ = 0; l_ < half_; l_++) lanes_[l_] = JOIN(lanes_[l_], lanes_[l_ + half_]); \
  all = lanes_[0];

#if FLOATING
#define FINISH(r)                                          \
  if (call.extra[0]) r = (R)((A)r / (A)REAL_NUMBER(0)); \
  if (call.extra[1]) r = (R)sqrt((A)r);
#else
#define FINISH(r)
#endif

/* The reduced elements are a line; a work-item per result, or per piece of one. extra[2]: elements of a piece, extra[3]:
   pieces. */
__kernel void along(const Call call, __global S *restrict o, __global const S *restrict a, __global const S *restrict b) {
  const long g = get_global_id(0), i = g / call.extra[3], piece = g % call.extra[3], from = piece * call.extra[2];
  if (i >= call.n) return;
  LOCATE(i)
  const R centre = b ? (R)LD(b, at[2]) : (R)0;
  const long step = call.inner_step[1][0], length = min(call.extra[2], call.inner_n - from);
  __global const S *line = a + at[1] + from * step;
  const R first = FIRST((R)LD(line, 0));
  RV r[VECTORS];
#pragma unroll
  for (int v = 0; v < VECTORS; v++) r[v] = first;
  long j = 0;
  if (step == 1) {
    for (; j + BLOCK <= length; j += BLOCK) {
#pragma unroll
      for (int v = 0; v < VECTORS; v++) {
        TAKE(x, line + j + v * W)
        r[v] = STEP(r[v], x, centre);
      }
    }
    for (; j + W <= length; j += W) {
      TAKE(x, line + j)
      r[0] = STEP(r[0], x, centre);
    }
  }
  R all;
  JOIN_ALL(all, r)
  for (; j < length; j++) {
    const R x = (R)LD(line, j * step);
    all = STEP(all, x, centre);
  }
  FINISH(all)
  ST(o, at[0] + piece, (T)all);
}

/* The results stand next to each other: a work-item walks through rows of up to LINE of them, FEW rows at a time. extra[2]:
   results of a line, extra[3]: work-items of a line; number[2]: rows of a chunk, number[3]: chunks, each of which writes a
   line of its own. */
#define LINE 1024
#define FEW 4

__kernel void across(const Call call, __global S *restrict o, __global const S *restrict a, __global const S *restrict b) {
  const long g = get_global_id(0), chunks = call.number[3], whole = g / chunks, chunk = g % chunks;
  const long i = whole / call.extra[3], from = whole % call.extra[3] * LINE;
  if (i >= call.n) return;
  LOCATE(i)
  const long step = call.inner_step[1][0], first = chunk * call.number[2], last = min(first + call.number[2], call.inner_n);
  const int count = (int)min((long)LINE, call.extra[2] - from), even = count / W * W;
  __global const S *lines = a + at[1] + from;
  RV kept_vectors[LINE / W], centre_vectors[LINE / W];
  R *kept = (R *)kept_vectors, *centre = (R *)centre_vectors;
  for (int l = 0; l < count; l++) {
    kept[l] = FIRST((R)LD(lines, first * step + l));
    centre[l] = b ? (R)LD(b, at[2] + from + l) : (R)0;
  }
  long j = first;
  for (; j + FEW <= last; j += FEW) {
    __global const S *line = lines + j * step;
    for (int m = 0; m < even; m += W) {
      RV r = kept_vectors[m / W];
#pragma unroll
      for (int k = 0; k < FEW; k++) {
        TAKE(x, line + k * step + m)
        r = STEP(r, x, centre_vectors[m / W]);
      }
      kept_vectors[m / W] = r;
    }
    for (int m = even; m < count; m++)
      for (int k = 0; k < FEW; k++) {
        const R x = (R)LD(line, k * step + m);
        kept[m] = STEP(kept[m], x, centre[m]);
      }
  }
  for (; j < last; j++)
    for (int m = 0; m < count; m++) {
      const R x = (R)LD(lines, j * step + m);
      kept[m] = STEP(kept[m], x, centre[m]);
    }
  o += at[0] + chunk * call.extra[2] + from;
  for (int l = 0; l < count; l++) {
    R r = kept[l];
    FINISH(r)
    ST(o, l, (T)r);
  }
}

#ifdef BEATS
#define SEARCHED 2048

/* Where the extreme element of a piece of a line stands, and the element if asked for. The first one counts: it is in the
   first block whose extreme beats those before it. extra[0]: elements of a piece, extra[1]: pieces of a line. */
__kernel void find(const Call call, __global long *o, __global const S *restrict a, __global S *values) {
  const long g = get_global_id(0), i = g / call.extra[1], piece = g % call.extra[1], from = piece * call.extra[0];
  if (i >= call.n) return;
  LOCATE(i)
  __global const S *line = a + at[1];
  const long to = min(from + call.extra[0], call.inner_n);
  R best = (R)LD(line, from);
  long block = from;
  for (long j = from; j < to; j += SEARCHED) {
    const int count = (int)min((long)SEARCHED, to - j);
    RV r[VECTORS];
#pragma unroll
    for (int v = 0; v < VECTORS; v++) r[v] = best;
    int k = 0;
    for (; k + BLOCK <= count; k += BLOCK) {
#pragma unroll
      for (int v = 0; v < VECTORS; v++) {
        TAKE(x, line + j + k + v * W)
        r[v] = STEP(r[v], x, 0);
      }
    }
    R all;
    JOIN_ALL(all, r)
    for (; k < count; k++) {
      const R x = (R)LD(line, j + k);
      all = STEP(all, x, 0);
    }
    if (BEATS(all, best)) {
      best = all;
      block = j;
    }
  }
  for (; block + 1 < to; block++) {
    const R x = (R)LD(line, block);
    if (x == best || (x != x && best != best)) break;
  }
  o[at[0] + piece] = block;
  if (values) ST(values, at[2] + piece, (T)LD(line, block));
}

/* The extreme of the pieces of each line. */
__kernel void join(const Call call, __global long *o, __global const long *places, __global S *values,
                   __global const S *extremes) {
  const long i = get_global_id(0);
  if (i >= call.n) return;
  LOCATE(i)
  long found = at[1];
  R best = (R)LD(extremes, at[1]);
  for (long j = 1; j < call.extra[0]; j++) {
    const R x = (R)LD(extremes, at[1] + j);
    if (BEATS(x, best)) {
      best = x;
      found = at[1] + j;
    }
  }
  o[at[0]] = places[found];
  if (values) ST(values, at[2], (T)best);
}
#endif
