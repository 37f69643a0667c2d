/* What a compiled call path and compiled kernels for few elements know of each other.
 *
 * A package of kernels has a PyCapsule with the name TURNOUT_FUNCTIONS around a `turnout_functions`, and names one of its functions in a
 * row (`Compiled`). A call path that finds it there calls it with what the row's kernel would get, and calls the kernel where the
 * function answers 0. So neither package imports the other. A table of another version is not read.
 */
#ifndef TURNOUT_COMPILED_FUNCTIONS_H
#define TURNOUT_COMPILED_FUNCTIONS_H

#include <stdint.h>

#define TURNOUT_FUNCTIONS "turnout.compiled_functions"
#define TURNOUT_FUNCTIONS_VERSION 1

/* A dtype: NumPy's kind and the bytes of an element, in the machine's order. */
#define TURNOUT_TYPE(kind, bytes) ((kind) << 8 | (bytes))
enum {
    TURNOUT_BOOL = TURNOUT_TYPE('b', 1), TURNOUT_INT32 = TURNOUT_TYPE('i', 4), TURNOUT_INT64 = TURNOUT_TYPE('i', 8),
    TURNOUT_FLOAT = TURNOUT_TYPE('f', 4), TURNOUT_DOUBLE = TURNOUT_TYPE('f', 8),
};

enum { TURNOUT_OTHER, TURNOUT_NONE, TURNOUT_FALSE, TURNOUT_TRUE, TURNOUT_NUMBER, TURNOUT_ARRAY };

/* An argument. The fields behind `number` are those of an array, which is row-major and aligned. */
typedef struct {
    int is;               /* one of the words above */
    int64_t number;       /* a Python int that fits */
    int type, ndim;
    int64_t bytes, size;  /* of an element; elements */
    const intptr_t *shape;
    char *data;
} turnout_value;

/* A loop of NumPy's, which the call path lends so that results have NumPy's bits. */
typedef struct {
    void (*run)(char **data, const intptr_t *count, const intptr_t *steps, void *given);
    void *given;
} turnout_loop;

typedef struct {
    turnout_loop add, log, sqrt, cos;
} turnout_loops;

/* 1: the outputs, which are given last, are written. 0: the function does not serve this call, and the kernel writes them. `loops` are
 * those for the dtype of the first array. No function keeps anything, or calls Python. */
typedef int turnout_function(const turnout_value *given, int count, const turnout_loops *loops);

typedef struct {
    const char *name;
    const char *takes; /* a letter an argument: 'a' array, 'o' output, 'n' number, 'm' number or None, 'd' a tuple
                          of one number, 'b' flag, 'w' word, '.' any */
    const char *types; /* of the first array, as "f4f8i8"; "": any */
    int64_t most;      /* elements of the first array and of the last output */
    turnout_function *run;
} turnout_compiled;

typedef struct {
    int version, count;
    const turnout_compiled *functions;
} turnout_functions;

#endif
