/* One reduction of large arrays, several results or partial results at once, in vectors. The build defines STEP(r, x, c),
   which takes an element into a result, around a centre c, JOIN(r, x), which takes in a partial result, FIRST(x), the result
   before any element where x is the first one, all of them for vectors too; R, the type of results, and W, the elements of
   RV, a vector of R. For an extreme it defines PICK(r, x), which is STEP where no element is a NaN. */

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

/* Vectors of elements from p on, `far` apart, taken into the vectors r. Whether one of them has a NaN is looked for in pairs of
   vectors, in `odd`, for an extreme that keeps a NaN takes four instructions for each vector. ODD_ENDS gives the result back its
   NaN. */
#ifdef PICK
#define ODD_BEGINS __typeof__((RV)0 != (RV)0) odd = 0;
#define TAKE_BLOCK(r, p, far, c)                                        \
  _Pragma("unroll") for (int v_ = 0; v_ < VECTORS; v_ += 2) {           \
    TAKE(x_, (p) + v_ * (far))                                          \
    TAKE(y_, (p) + (v_ + 1) * (far))                                    \
    r[v_] = PICK(r[v_], x_);                                            \
    r[v_ + 1] = PICK(r[v_ + 1], y_);                                    \
    odd |= (x_ != x_) | (y_ != y_);                                     \
  }
#else
#define ODD_BEGINS
#define TAKE_BLOCK(r, p, far, c)                                        \
  _Pragma("unroll") for (int v_ = 0; v_ < VECTORS; v_++) {              \
    TAKE(x_, (p) + v_ * (far))                                          \
    r[v_] = STEP(r[v_], x_, c);                                         \
  }
#endif

/* The first elements of a line, as many as make whole blocks: `taken`. Of a long line each vector takes a quarter, so that a core
   fetches ahead in four places. With quarters of less than 64 KB, the fetching begins anew too often: with those of 4 KB, a
   line takes up to half as long again. */
#define APART (VECTORS * 65536 / (long)sizeof(S))
#define TAKE_LINE(taken, r, line, length, c)                                   \
  const long taken = (length) / BLOCK * BLOCK;                                 \
  {                                                                            \
    const bool apart_ = taken >= APART;                                        \
    const long far_ = apart_ ? taken / VECTORS : W, hop_ = apart_ ? W : BLOCK; \
    const long end_ = apart_ ? far_ : taken;                                   \
    for (long j_ = 0; j_ < end_; j_ += hop_) {                                 \
      TAKE_BLOCK(r, (line) + j_, far_, c)                                      \
    }                                                                          \
  }
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

/* Whether the other pieces of result i are there. `counts` has zeros between kernels. What the pieces leave for the last one is
   volatile, so that a compiler neither keeps it back nor reads it early. */
bool is_last(volatile __global int *counts, long i, long pieces) {
  mem_fence(CLK_GLOBAL_MEM_FENCE);
  if (atomic_inc(counts + i) != pieces - 1) return false;
  counts[i] = 0;
  mem_fence(CLK_GLOBAL_MEM_FENCE);
  return true;
}

/* The parts of result i joined, in their order. */
#define JOIN_PARTS(all, i)                                                                   \
  R all = parts[(i) * call.extra[3]];                                                        \
  for (long part_ = 1; part_ < call.extra[3]; part_++) {                                     \
    const R x_ = parts[(i) * call.extra[3] + part_];                                         \
    all = JOIN(all, x_);                                                                     \
  }

/* The reduced elements are a line; a work-item per result, or per piece of one. extra[2]: elements of a piece, extra[3]:
   pieces. Where work-groups see what others have written (`counts`), the last piece of a result joins all of them. */
__kernel void along(const Call call, __global S *restrict o, __global const S *restrict a, __global const S *restrict b,
                    volatile __global R *parts, volatile __global int *counts) {
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
    TAKE_LINE(taken, r, line, length, centre)
    j = taken;
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
  if (call.extra[3] > 1) {
    parts[g] = all;
    if (!counts || !is_last(counts, i, call.extra[3])) return;
    JOIN_PARTS(whole, i)
    all = whole;
  }
  FINISH(all)
  ST(o, at[0], (T)all);
}

/* The second stage elsewhere: a work-item per result. */
__kernel void along_joined(const Call call, __global S *restrict o, __global const S *restrict a, __global const S *restrict b,
                           volatile __global R *parts, volatile __global int *counts) {
  const long i = get_global_id(0);
  if (i >= call.n) return;
  LOCATE(i)
  JOIN_PARTS(all, i)
  FINISH(all)
  ST(o, at[0], (T)all);
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
/* The first element from `found` on that is as extreme as `best`. No element of the line beats it, so those that are not themselves
   are it; there is one before `end`. */
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

/* The extreme of the pieces of a line, and where to search for it. */
#define BEST_PART(best, from, i)                              \
  const long parts_ = (i) * call.extra[1];                    \
  R best = parts[parts_];                                     \
  long from = places[parts_];                                 \
  for (long part_ = 1; part_ < call.extra[1]; part_++) {      \
    const R x_ = parts[parts_ + part_];                       \
    if (BEATS(x_, best)) {                                    \
      best = x_;                                              \
      from = places[parts_ + part_];                          \
    }                                                         \
  }

/* Where `best` stands in a line, from an element on, as result i. */
#define STORE_FOUND(from, best)               \
  long found_ = from;                         \
  SEARCH(found_, line, call.inner_n, best)    \
  o[at[0]] = found_;                          \
  if (values) ST(values, at[2], LD(line, found_));

/* Where the extreme element of a line stands, and the element if asked for. The first one counts: it is in the first quarter of the
   first piece whose extreme beats those before it. extra[0]: elements of a piece, extra[1]: pieces of a line. Several pieces are
   joined as in `along`; what is left for that is the extreme, and where its quarter begins. */
__kernel void find(const Call call, __global long *o, __global const S *restrict a, __global S *values,
                   volatile __global R *parts, volatile __global long *places, volatile __global int *counts) {
  const long g = get_global_id(0), i = g / call.extra[1], piece = g % call.extra[1], from = piece * call.extra[0];
  if (i >= call.n) return;
  LOCATE(i)
  __global const S *line = a + at[1];
  const long count = min(call.extra[0], call.inner_n - from);
  const R first = (R)LD(line, from);
  RV r[VECTORS];
#pragma unroll
  for (int v = 0; v < VECTORS; v++) r[v] = first;
  ODD_BEGINS
  TAKE_LINE(taken, r, line + from, count, 0)
  R best;
  long begin = from;
  JOIN_ALL(best, r)
  ODD_ENDS(best)
  if (taken >= APART && best == best) { /* not a NaN, which no quarter holds by itself */
#pragma unroll
    for (int v = VECTORS - 1; v >= 0; v--)
      if (ANY(r[v] == (RV)best)) begin = from + v * (taken / VECTORS);
  }
  for (long k = taken; k < count; k++) {
    const R x = (R)LD(line, from + k);
    if (BEATS(x, best)) {
      best = x;
      begin = from + k;
    }
  }
  if (call.extra[1] > 1) {
    parts[g] = best;
    places[g] = begin;
    if (!counts || !is_last(counts, i, call.extra[1])) return;
    BEST_PART(extreme, where, i)
    best = extreme;
    begin = where;
  }
  STORE_FOUND(begin, best)
}

__kernel void find_joined(const Call call, __global long *o, __global const S *restrict a, __global S *values,
                          volatile __global R *parts, volatile __global long *places, volatile __global int *counts) {
  const long i = get_global_id(0);
  if (i >= call.n) return;
  LOCATE(i)
  __global const S *line = a + at[1];
  BEST_PART(best, from, i)
  STORE_FOUND(from, best)
}
#endif
