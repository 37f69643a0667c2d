/* Functions of other packages for few elements: a row names them, and a table in a capsule has them. */
#include "compiled_functions.h"

#define MOST_TAKEN (MOST + 6) /* arguments and outputs */

static turnout_loops LENT[2]; /* NumPy's for float and double */

/* A function of a table; NULL with an error, or without one: the table is of another version. The capsule has to be held. */
static const turnout_compiled *find_compiled(PyObject *capsule, const char *name)
{
    const turnout_functions *table = PyCapsule_GetPointer(capsule, TURNOUT_FUNCTIONS);
    if (table == NULL || table->version != TURNOUT_FUNCTIONS_VERSION)
        return NULL;
    for (int k = 0; k < table->count; k++)
        if (strcmp(table->functions[k].name, name) == 0 && strlen(table->functions[k].takes) <= MOST_TAKEN)
            return &table->functions[k];
    PyErr_Format(PyExc_ValueError, "no compiled function %s", name);
    return NULL;
}

/* An int that fits; 0 without one. */
static int take_number(PyObject *given, turnout_value *to)
{
    int overflow;
    if (!PyLong_CheckExact(given))
        return 0;
    to->is = TURNOUT_NUMBER;
    to->number = PyLong_AsLongLongAndOverflow(given, &overflow);
    return !overflow;
}

static int take_plain(PyObject *given, turnout_value *to)
{
    PyArrayObject *array = (PyArrayObject *)given;
    if (!PyArray_CheckExact(given) || !is_plain(array))
        return 0;
    to->is = TURNOUT_ARRAY;
    to->bytes = PyArray_ITEMSIZE(array);
    to->type = TURNOUT_TYPE(PyArray_DESCR(array)->kind, (int)to->bytes);
    to->ndim = PyArray_NDIM(array);
    to->size = PyArray_SIZE(array);
    to->shape = (const intptr_t *)PyArray_DIMS(array);
    to->data = PyArray_BYTES(array);
    return 1;
}

/* An argument as a function takes it; 0 if it does not. */
static int take_value(char takes, PyObject *given, turnout_value *to)
{
    to->is = given == Py_None ? TURNOUT_NONE : given == Py_False ? TURNOUT_FALSE : given == Py_True ? TURNOUT_TRUE : TURNOUT_OTHER;
    switch (takes) {
    case 'a':
    case 'o':
        return take_plain(given, to);
    case 'n':
        return take_number(given, to);
    case 'm':
        return given == Py_None || take_number(given, to);
    case 'd':
        return PyTuple_CheckExact(given) && PyTuple_GET_SIZE(given) == 1 && take_number(PyTuple_GET_ITEM(given, 0), to);
    case 'w':
        to->number = (int64_t)PyLong_AsUnsignedLongLongMask(given);
        return 1;
    case 'b':
        return PyBool_Check(given);
    }
    return takes == '.';
}

static int has_type(const char *types, int type)
{
    for (const char *t = types; *t; t += 2)
        if (TURNOUT_TYPE(t[0], t[1] - '0') == type)
            return 1;
    return !*types;
}

/* Whether a function has served a call with what the kernel would get: its arguments, and outputs at the end. */
static int call_compiled(const turnout_compiled *compiled, PyObject *const *given, Py_ssize_t count)
{
    turnout_value values[MOST_TAKEN], *first = NULL;
    if (compiled == NULL || (size_t)count != strlen(compiled->takes))
        return 0;
    for (Py_ssize_t k = 0; k < count; k++) {
        if (!take_value(compiled->takes[k], given[k], &values[k]))
            return 0;
        if (first == NULL && values[k].is == TURNOUT_ARRAY)
            first = &values[k];
    }
    return first != NULL && first->size <= compiled->most && has_type(compiled->types, first->type)
           && values[count - 1].is == TURNOUT_ARRAY && values[count - 1].size <= compiled->most
           && compiled->run(values, (int)count, &LENT[first->type == TURNOUT_DOUBLE]);
}
