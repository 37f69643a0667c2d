/* Reading and writing by computed positions, triangles, ranges. */

/* positions = (or +=) index * extra[1]; extra[0] is the dim's length, extra[2] allows counting from its end, extra[3] adds.
   An index out of range is reported in flag: {1, the index}, and its position is -1. */
__kernel void places(const Call call, __global long *o, __global const long *index, __global long *flag) {
  const long i = get_global_id(0);
  if (i >= call.n) return;
  LOCATE(i)
  long k = index[at[1]];
  const long given = k, length = call.extra[0];
  if (k < 0 && call.extra[2]) k += length;
  if (k < 0 || k >= length) {
    flag[1] = given;
    flag[0] = 1;
    o[at[0]] = -1;
    return;
  }
  o[at[0]] = k * call.extra[1] + (call.extra[3] ? o[at[0]] : 0);
}

__kernel void take(const Call call, __global S *o, __global const S *a, __global const long *places) {
  const long i = get_global_id(0);
  if (i >= call.n) return;
  LOCATE(i)
  ST(o, at[0], LD(a, at[1] + places[at[2]] * call.extra[0]));
}

/* What `put` does with an element. The inner grid is walked in order: of repeated positions the last write stands, and sums are the same
   in every run. */
enum { WRITE, ADD, MULTIPLY, LARGER, SMALLER };

__kernel void put(const Call call, __global S *o, __global const S *a, __global const long *places) {
  const long i = get_global_id(0);
  if (i >= call.n) return;
  LOCATE(i)
  for (long j = 0; j < call.inner_n; j++) {
    LOCATE_INNER(j)
    if (places[in[2]] < 0) continue;
    const long to = in[0] + places[in[2]];
    const T x = a ? LD(a, in[1]) : NUMBER(0);
    if (call.op == WRITE) {
      ST(o, to, x);
      continue;
    }
    const T old = LD(o, to);
    switch (call.op) {
      case ADD: ST(o, to, (T)(old + (call.extra[0] ? x * NUMBER(1) : x))); break;
      case MULTIPLY: ST(o, to, (T)(old * x)); break;
      case LARGER: ST(o, to, old != old || old > x ? old : x); break;
      case SMALLER: ST(o, to, old != old || old < x ? old : x); break;
    }
  }
}

/* op 0 keeps what is on and below the diagonal extra[0], op 1 what is on and above it. The inner grid is a matrix. */
__kernel void triangle(const Call call, __global S *o, __global const S *a) {
  const long i = get_global_id(0);
  if (i >= call.n) return;
  LOCATE(i)
  const long row = i / call.extra[2] % call.extra[1], column = i % call.extra[2];
  const long above = column - row;
  const int kept = call.op ? above >= call.extra[0] : above <= call.extra[0];
  const T x = LD(a, at[1]);
  ST(o, at[0], kept ? x : (T)0);
}

__kernel void range(const Call call, __global S *o) {
  const long i = get_global_id(0);
  if (i >= call.n) return;
  LOCATE(i)
#if FLOATING
  ST(o, at[0], (T)((real)i * REAL_NUMBER(1) + REAL_NUMBER(0)));
#else
  ST(o, at[0], (T)(i * call.number[1] + call.number[0]));
#endif
}

__kernel void fill(const Call call, __global S *o) {
  const long i = get_global_id(0);
  if (i >= call.n) return;
  LOCATE(i)
  ST(o, at[0], NUMBER(0));
}
