/* One reduction of large arrays: LANES results or partial results at once, which compilers keep in vectors. The build defines
   STEP(r, x, c), which takes an element into a result, around a centre c, JOIN(r, s), which takes in a partial result, FIRST(x), the result before any
   element where x is the first one, and R, the type of results. */

#if SIGNED
#define SIZE(x) ((x) < 0 ? -(x) : (x))
#else
#define SIZE(x) (x)
#endif
#define LANES 32
#define WIDTH 64 /* lanes across */

#if FLOATING
#define FINISH(r)                                          \
  if (call.extra[0]) r = (R)((A)r / (A)REAL_NUMBER(0)); \
  if (call.extra[1]) r = (R)sqrt((A)r);
#else
#define FINISH(r)
#endif

/* The reduced elements stand next to each other; a work-item per result. */
__kernel void along(const Call call, __global S *restrict o, __global const S *restrict a, __global const S *restrict b) {
  const long i = get_global_id(0);
  if (i >= call.n) return;
  LOCATE(i)
  const R centre = b ? (R)LD(b, at[2]) : (R)0;
  __global const S *line = a + at[1];
  const long length = call.inner_n;
  const R first = FIRST((R)LD(line, 0));
  R r[LANES];
  for (int l = 0; l < LANES; l++) r[l] = first;
  long j = 0;
  for (; j + LANES <= length; j += LANES) {
    for (int l = 0; l < LANES; l++) {
      const R x = (R)LD(line, j + l);
      r[l] = STEP(r[l], x, centre);
    }
  }
  R all = r[0];
  for (int l = 1; l < LANES; l++) all = JOIN(all, r[l]);
  for (; j < length; j++) {
    const R x = (R)LD(line, j);
    all = STEP(all, x, centre);
  }
  FINISH(all)
  ST(o, at[0], (T)all);
}

/* The results stand next to each other: a work-item walks through rows of up to LINE of them, WIDTH at once, a few rows at a time, so
   that memory is read in order. extra[2]: results of a line, extra[3]: work-items of a line; number[2]: rows of a chunk, number[3]:
   chunks, each of which writes a line of its own. */
#define LINE 1024
#define WIDTH 32
#define FEW 16

__kernel void across(const Call call, __global S *restrict o, __global const S *restrict a, __global const S *restrict b) {
  const long g = get_global_id(0), chunks = call.number[3], whole = g / chunks, chunk = g % chunks;
  const long i = whole / call.extra[3], from = whole % call.extra[3] * LINE;
  if (i >= call.n) return;
  LOCATE(i)
  const long step = call.inner_step[1][0], first = chunk * call.number[2], last = min(first + call.number[2], call.inner_n);
  const int count = (int)min((long)LINE, call.extra[2] - from), even = count / WIDTH * WIDTH;
  __global const S *lines = a + at[1] + from;
  R kept[LINE], centre[LINE];
  for (int l = 0; l < count; l++) {
    kept[l] = FIRST((R)LD(lines, first * step + l));
    centre[l] = b ? (R)LD(b, at[2] + from + l) : (R)0;
  }
  for (long j = first; j < last; j += FEW) {
    const long to = min(j + FEW, last);
    for (int m = 0; m < even; m += WIDTH) {
      R r[WIDTH];
      for (int l = 0; l < WIDTH; l++) r[l] = kept[m + l];
      for (long k = j; k < to; k++) {
        for (int l = 0; l < WIDTH; l++) {
          const R x = (R)LD(lines, k * step + m + l);
          r[l] = STEP(r[l], x, centre[m + l]);
        }
      }
      for (int l = 0; l < WIDTH; l++) kept[m + l] = r[l];
    }
    for (int m = even; m < count; m++)
      for (long k = j; k < to; k++) {
        const R x = (R)LD(lines, k * step + m);
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
#define BLOCK 1024

/* Where the extreme element of a piece of a line stands, and the element if asked for. The first one counts. A block is walked through
   one by one only if its extreme beats those before it. extra[0]: elements of a piece, extra[1]: pieces of a line. */
__kernel void find(const Call call, __global long *o, __global const S *restrict a, __global S *values) {
  const long g = get_global_id(0), i = g / call.extra[1], piece = g % call.extra[1], from = piece * call.extra[0];
  if (i >= call.n) return;
  LOCATE(i)
  __global const S *line = a + at[1];
  const long to = min(from + call.extra[0], call.inner_n);
  R best = (R)LD(line, from);
  long found = from;
  for (long j = from; j < to; j += BLOCK) {
    const int count = (int)min((long)BLOCK, to - j);
    R r[LANES];
    for (int l = 0; l < LANES; l++) r[l] = best;
    int k = 0;
    for (; k + LANES <= count; k += LANES)
      for (int l = 0; l < LANES; l++) {
        const R x = (R)LD(line, j + k + l);
        r[l] = STEP(r[l], x, 0);
      }
    R all = best;
    for (int l = 0; l < LANES; l++) all = JOIN(all, r[l]);
    for (; k < count; k++) {
      const R x = (R)LD(line, j + k);
      all = STEP(all, x, 0);
    }
    if (!BEATS(all, best)) continue;
    for (k = 0; k < count; k++) {
      const R x = (R)LD(line, j + k);
      if (BEATS(x, best)) {
        best = x;
        found = j + k;
      }
    }
  }
  o[at[0] + piece] = found;
  if (values) ST(values, at[2] + piece, (T)best);
}

/* The extreme of the pieces of each line. */
__kernel void join(const Call call, __global long *o, __global const long *places, __global S *values, __global const S *extremes) {
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
