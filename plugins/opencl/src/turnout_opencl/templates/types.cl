/* What every program starts with. The build defines, for one element type: S storage type, T the type computed in, A the type
   that sums are kept in, LD(p, i) and ST(p, i, v) to load and store, FLOATING 1 for floating-point, SIGNED 1 for types with
   negative values, TRUTH 1 for bool, LANES the elements of a vector of T. */

#ifdef FP64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double real;
#define REAL(bits) as_double(bits)
#else
typedef float real;
#define REAL(bits) as_float((int)(bits))
#endif
#pragma OPENCL FP_CONTRACT OFF

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define VT PASTE(T, LANES) /* a vector of T */

/* The vector that begins at any element. `vload8` is a call in PoCL, before which all registers are saved. */
#if !MOVES_ONLY && LANES > 1
typedef struct __attribute__((packed, aligned(sizeof(T)))) {
  VT v;
} Loose;
#define LOOSE(p) (((__global Loose *)(p))->v)
#define LOOSE_CONST(p) (((__global const Loose *)(p))->v)
#endif

#define DIMS 8
#define OPERANDS 4

/* A call. Positions are counted in elements. The grid is what work-items share; `inner` is what each of them walks through. */
typedef struct {
  long op;                        /* which case of the kernel's switch */
  long n;                         /* grid positions */
  long nd;                        /* grid dims that are not collapsed */
  long size[DIMS];
  long step[OPERANDS][DIMS];
  long base[OPERANDS];            /* of each operand's first element */
  long inner_n;
  long inner_nd;
  long inner_size[DIMS];
  long inner_step[OPERANDS][DIMS];
  long number[4];                 /* numbers as bits: of type `real` for floating-point, else integers */
  long extra[4];
} Call;

#if FLOATING
#define NUMBER(k) ((T)REAL(call.number[k]))
#else
#define NUMBER(k) ((T)call.number[k])
#endif
#define REAL_NUMBER(k) REAL(call.number[k])

/* The absolute value, where R is the type of x or of its elements. */
#if SIGNED
#define SIZE(x) ((x) < (R)0 ? -(x) : (x))
#else
#define SIZE(x) (x)
#endif

/* Where each operand's element of grid position i is. */
#define LOCATE(i)                                                                  \
  long at[OPERANDS];                                                               \
  for (int k_ = 0; k_ < OPERANDS; k_++) at[k_] = call.base[k_];                    \
  if (call.nd == 1) {                                                              \
    for (int k_ = 0; k_ < OPERANDS; k_++) at[k_] += (i) * call.step[k_][0];        \
  } else {                                                                         \
    long left_ = (i);                                                              \
    for (int d_ = (int)call.nd - 1; d_ > 0; d_--) {                                \
      const long c_ = left_ % call.size[d_];                                       \
      left_ /= call.size[d_];                                                      \
      for (int k_ = 0; k_ < OPERANDS; k_++) at[k_] += c_ * call.step[k_][d_];      \
    }                                                                              \
    for (int k_ = 0; k_ < OPERANDS; k_++) at[k_] += left_ * call.step[k_][0];      \
  }

/* The same within the inner grid, relative to where LOCATE stands. */
#define LOCATE_INNER(j)                                                            \
  long in[OPERANDS];                                                               \
  for (int k_ = 0; k_ < OPERANDS; k_++) in[k_] = at[k_];                           \
  {                                                                                \
    long left_ = (j);                                                              \
    for (int d_ = (int)call.inner_nd - 1; d_ > 0; d_--) {                          \
      const long c_ = left_ % call.inner_size[d_];                                 \
      left_ /= call.inner_size[d_];                                                \
      for (int k_ = 0; k_ < OPERANDS; k_++) in[k_] += c_ * call.inner_step[k_][d_]; \
    }                                                                              \
    for (int k_ = 0; k_ < OPERANDS; k_++) in[k_] += left_ * call.inner_step[k_][0]; \
  }
