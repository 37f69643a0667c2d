/* Sorting: an order, a list of indices per line, is merged from runs of twice the width in every pass. All passes are stable. */

/* Whether x comes before y: the smaller one, NaN last; with op 1 the larger one, NaN first. */
#define LESS(x, y) ((x) < (y) || ((y) != (y) && (x) == (x)))
#define BEFORE(x, y) (call.op ? LESS(y, x) : LESS(x, y))
#define VALUE(k) LD(a, at[2] + (given ? given[at[1] + (k)] : (k)) * call.extra[2])

/* Merges sorted runs of extra[1] in lines of extra[0] elements, extra[2] apart in a. Without a given order it is 0, 1, 2, ... */
__kernel void merge(const Call call, __global long *o, __global const long *given, __global const S *a) {
  const long i = get_global_id(0);
  if (i >= call.n) return;
  LOCATE(i)
  const long n = call.extra[0], width = call.extra[1];
  const long p = i % n, run = p / width, start = run * width;
  const int second = (int)(run & 1);
  const long from = second ? start - width : min(n, start + width);
  const T mine = VALUE(p);
  /* How many of the other run come before this element: of equal ones those of the first run do. */
  long low = from, high = second ? start : min(n, from + width);
  while (low < high) {
    const long middle = low + (high - low) / 2;
    const T theirs = VALUE(middle);
    if (second ? !BEFORE(mine, theirs) : BEFORE(theirs, mine)) low = middle + 1;
    else high = middle;
  }
  const long to = (second ? from : start) + (p - start) + (low - from);
  o[at[0] + to] = given ? given[at[1] + p] : p;
}

/* How many elements of each chunk of extra[0] are true; the last one is shorter, extra[1] is how many there are. */
__kernel void count(const Call call, __global long *o, __global const S *a) {
  const long i = get_global_id(0);
  if (i >= call.n) return;
  const long end = min((i + 1) * call.extra[0], call.extra[1]);
  long found = 0;
  for (long j = i * call.extra[0]; j < end; j++) found += LD(a, call.base[1] + j) != 0;
  o[i] = found;
}

/* Where they are. sums[i] is how many are true up to the end of chunk i. */
__kernel void found(const Call call, __global long *o, __global const S *a, __global const long *sums) {
  const long i = get_global_id(0);
  if (i >= call.n) return;
  const long end = min((i + 1) * call.extra[0], call.extra[1]);
  long to = i ? sums[i - 1] : 0;
  for (long j = i * call.extra[0]; j < end; j++)
    if (LD(a, call.base[1] + j) != 0) o[to++] = j;
}

/* Where values stand in sorted lines: how many elements are before each (op 0), or not after it (op 1). NaN is last.
   o, values b and the lines a, whose dim has extra[0] elements extra[1] apart; an order of each line is optional. */
__kernel void search(const Call call, __global long *o, __global const S *a, __global const S *b, __global const long *sorter) {
  const long i = get_global_id(0);
  if (i >= call.n) return;
  LOCATE(i)
  const T x = b ? LD(b, at[2]) : NUMBER(0);
  long low = 0, high = call.extra[0];
  while (low < high) {
    const long middle = low + (high - low) / 2;
    const T y = LD(a, at[1] + (sorter ? sorter[at[3] + middle * call.extra[2]] : middle) * call.extra[1]);
    if (call.op ? !LESS(x, y) : LESS(y, x)) low = middle + 1;
    else high = middle;
  }
  o[at[0]] = low;
}
