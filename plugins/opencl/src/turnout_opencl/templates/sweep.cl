/* One reduction of large arrays, several results or partial results at once, in vectors. The build defines STEP(r, x, c),
   which takes an element into a result, around a centre c, JOIN(r, x), which takes in a partial result, FIRST(x), the result
   before any element where x is the first one, all of them for vectors too; R, the type of results, and W, the elements of
   RV, a vector of R. For an extreme it defines PICK(r, x), which is STEP where no element is a NaN. */

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

#if W == 8
#define ANY(mask) as_ulong(__builtin_convertvector(mask, char8))
#elif W == 4
#define ANY(mask) as_uint(__builtin_convertvector(mask, char4))
#endif

/* A block of elements from p on, taken into the vectors r. Whether one of them is a NaN is looked for in pairs of vectors, in
   `odd`, for an extreme that keeps a NaN takes four instructions for each vector. ODD_ENDS gives the result back its NaN. */
#ifdef PICK
#define ODD_BEGINS __typeof__((RV)0 != (RV)0) odd = 0;
#define TAKE_BLOCK(r, p, c)                                             \
  _Pragma("unroll") for (int v_ = 0; v_ < VECTORS; v_ += 2) {           \
    TAKE(x_, (p) + v_ * W)                                              \
    TAKE(y_, (p) + (v_ + 1) * W)                                        \
    r[v_] = PICK(r[v_], x_);                                            \
    r[v_ + 1] = PICK(r[v_ + 1], y_);                                    \
    odd |= (x_ != x_) | (y_ != y_);                                     \
  }
#else
#define ODD_BEGINS
#define TAKE_BLOCK(r, p, c)                                             \
  _Pragma("unroll") for (int v_ = 0; v_ < VECTORS; v_++) {              \
    TAKE(x_, (p) + v_ * W)                                              \
    r[v_] = STEP(r[v_], x_, c);                                         \
  }
#endif
#if defined(PICK) && FLOATING
#define ODD_ENDS(all) \
  if (ANY(odd)) all = (R)NAN;
#else
#define ODD_ENDS(all)
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
  ODD_BEGINS
  if (step == 1) {
    for (; j + BLOCK <= length; j += BLOCK) {
      TAKE_BLOCK(r, line + j, centre)
    }
    for (; j + W <= length; j += W) {
      TAKE(x, line + j)
      r[0] = STEP(r[0], x, centre);
    }
  }
  R all;
  JOIN_ALL(all, r)
  ODD_ENDS(all)
  for (; j < length; j++) {
    const R x = (R)LD(line, j * step);
    all = STEP(all, x, centre);
  }
  FINISH(all)
  ST(o, at[0] + piece, (T)all);
}

/* The results stand next to each other: a work-item walks through rows of up to LINE of them, one after the other, as they lie in
   memory. extra[2]: results of a line, extra[3]: work-items of a line; number[2]: rows of a chunk, number[3]: chunks, each of
   which writes a line of its own. */
#define LINE 1024

/* The vectors v of `kept`, from the elements of a line. */
#define KEEP(v)                                       \
  {                                                   \
    TAKE(x, line + (v) * W)                           \
    kept_vectors[v] = STEP(kept_vectors[v], x, centre_vectors[v]); \
  }

__kernel void across(const Call call, __global S *restrict o, __global const S *restrict a, __global const S *restrict b) {
  const long g = get_global_id(0), chunks = call.number[3], whole = g / chunks, chunk = g % chunks;
  const long i = whole / call.extra[3], from = whole % call.extra[3] * LINE;
  if (i >= call.n) return;
  LOCATE(i)
  const long step = call.inner_step[1][0], first = chunk * call.number[2], last = min(first + call.number[2], call.inner_n);
  const int count = (int)min((long)LINE, call.extra[2] - from), even = count / W * W;
  __global const S *line = a + at[1] + from + first * step;
  RV kept_vectors[LINE / W], centre_vectors[LINE / W];
  R *kept = (R *)kept_vectors, *centre = (R *)centre_vectors;
  for (int l = 0; l < count; l++) {
    kept[l] = FIRST((R)LD(line, l));
    centre[l] = b ? (R)LD(b, at[2] + from + l) : (R)0;
  }
  for (long j = first; j < last; j++, line += step) {
    int v = 0;
    for (; (v + VECTORS) * W <= count; v += VECTORS) {
#pragma unroll
      for (int u = 0; u < VECTORS; u++) KEEP(v + u)
    }
    for (; (v + 1) * W <= count; v++) KEEP(v)
    for (int m = even; m < count; m++) {
      const R x = (R)LD(line, m);
      kept[m] = STEP(kept[m], x, centre[m]);
    }
  }
  o += at[0] + chunk * call.extra[2] + from;
  for (int l = 0; l < count; l++) {
    R r = kept[l];
    FINISH(r)
    ST(o, l, (T)r);
  }
}

#ifdef BEATS
#define SEARCHED 16384

/* Where the first element that is as extreme as `best` stands. No element beats it, so those that are not themselves are it. */
#define SEARCH(found, line, end, best)                                            \
  for (; found + BLOCK <= end; found += BLOCK) {                                  \
    long any_ = 0;                                                                \
    _Pragma("unroll") for (int v_ = 0; v_ < VECTORS; v_++) {                      \
      TAKE(x_, line + found + v_ * W)                                             \
      any_ |= ANY((x_ == (RV)(best)) | (x_ != x_));                               \
    }                                                                             \
    if (any_) break;                                                              \
  }                                                                               \
  for (; found + 1 < end; found++) {                                              \
    const R x_ = (R)LD(line, found);                                              \
    if (x_ == (best) || x_ != x_) break;                                          \
  }

/* Where the extreme element of a line stands, and the element if asked for. The first one counts: it is in the first block whose
   extreme beats those before it. extra[0]: elements of a piece, extra[1]: pieces of a line. Of one of several pieces: the block,
   and the extreme; `join` searches. */
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
    ODD_BEGINS
    for (; k + BLOCK <= count; k += BLOCK) {
      TAKE_BLOCK(r, line + j + k, 0)
    }
    R all;
    JOIN_ALL(all, r)
    ODD_ENDS(all)
    for (; k < count; k++) {
      const R x = (R)LD(line, j + k);
      all = STEP(all, x, 0);
    }
    if (BEATS(all, best)) {
      best = all;
      block = j;
    }
  }
  if (call.extra[1] == 1) {
    const long end = min(block + SEARCHED, to);
    SEARCH(block, line, end, best)
  }
  o[at[0] + piece] = block;
  if (values) ST(values, at[2] + piece, call.extra[1] == 1 ? LD(line, block) : (T)best);
}

/* The extreme of the pieces of each line, and where it stands. extra[0]: pieces, extra[1]: elements of a piece; at[3]: the line. */
__kernel void join(const Call call, __global long *o, __global const long *places, __global S *values,
                   __global const S *restrict a, __global const S *extremes) {
  const long i = get_global_id(0);
  if (i >= call.n) return;
  LOCATE(i)
  long piece = 0;
  R best = (R)LD(extremes, at[1]);
  for (long j = 1; j < call.extra[0]; j++) {
    const R x = (R)LD(extremes, at[1] + j);
    if (BEATS(x, best)) {
      best = x;
      piece = j;
    }
  }
  __global const S *line = a + at[3];
  long found = places[at[1] + piece];
  const long end = min(min(found + SEARCHED, (piece + 1) * call.extra[1]), call.extra[2]);
  SEARCH(found, line, end, best)
  o[at[0]] = found;
  if (values) ST(values, at[2], LD(line, found));
}
#endif
