/* CompositeKernel: a composite kernel that ends in one call of another operator. */
enum { ANYTHING = -1, NO_VALUE = -2, ROW_MAJOR = -3, LENGTHS = -4, OTHER_DTYPE = -5, SAME_DTYPE = -6, IS_FALSE = -7,
       CONTIGUOUS = -8, IS_ZERO = -9, EQUALS = 1000 }; /* or a number of dims */
enum { ENDING = 32 }; /* operands: arguments by their place, and from here on other endings; constants are objects */

#define ENDINGS 8

typedef struct {
    int nested;                 /* only an operand of another one */
    int when[MOST];
    PyObject *op;
    int count, operand[MOST];
    PyObject *constant[MOST];   /* in place of an operand, or NULL */
    int inferred[MOST];         /* whether the operand is sizes of which one may be -1 */
    PyObject *keywords;         /* the names of the last operands, or NULL */
    int item;                   /* of the result, or -1 */
} Ending;

typedef struct {
    Face face;
    int arguments, count;
    Ending endings[ENDINGS];
} CompositeKernel;

/* Whether a dtype is another one than that of a tensor with an array; -1 if nobody knows. */
static int is_other_dtype(PyObject *tensor, PyObject *dtype)
{
    PyObject *array = numpy_of(tensor), *device = array == NULL ? NULL : SLOT(tensor, AT_DEVICE);
    if (device == NULL || (PyObject *)Py_TYPE(dtype) != DTYPE)
        return -1;
    Py_INCREF(array); /* the device's backend may be asked by Python */
    PyObject *native = native_of(device, dtype);
    int other = native == NULL ? -1 : native != (PyObject *)PyArray_DESCR((PyArrayObject *)array);
    Py_XDECREF(native);
    Py_DECREF(array);
    return other;
}

static int meets(int wanted, PyObject *value, PyObject *first)
{
    if (wanted == ANYTHING)
        return 1;
    if (wanted == OTHER_DTYPE || wanted == SAME_DTYPE)
        return is_other_dtype(first, value) == (wanted == OTHER_DTYPE);
    if (wanted == IS_FALSE)
        return value == Py_False;
    if (wanted == CONTIGUOUS)
        return PyUnicode_Check(value) && PyUnicode_CompareWithASCIIString(value, "contiguous_format") == 0;
    if (wanted >= EQUALS / 2) {
        int overflow;
        return PyLong_CheckExact(value) && PyLong_AsLongAndOverflow(value, &overflow) == wanted - EQUALS;
    }
    if (wanted == NO_VALUE)
        return value == Py_None;
    if (wanted == IS_ZERO)
        return PyFloat_CheckExact(value) && PyFloat_AS_DOUBLE(value) == 0;
    if (wanted == LENGTHS) {
        if (!PyTuple_CheckExact(value))
            return 0;
        int open = 0;
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); i++) {
            PyObject *length = PyTuple_GET_ITEM(value, i);
            int overflow;
            long long number = PyLong_CheckExact(length) ? PyLong_AsLongLongAndOverflow(length, &overflow) : -2;
            if (number < -1 || overflow || (open += number == -1) > 1)
                return 0;
        }
        return 1;
    }
    PyObject *array = numpy_of(value);
    if (array == NULL)
        return 0;
    if (wanted == ROW_MAJOR)
        return PyArray_CHKFLAGS((PyArrayObject *)array, NPY_ARRAY_C_CONTIGUOUS);
    return PyArray_NDIM((PyArrayObject *)array) == wanted;
}

/* Make a call of an operator, if it can be finished here. */
static Outcome call_operator(PyObject *op, PyObject *const *args, Py_ssize_t n, PyObject *keywords, PyObject **result)
{
    PyObject *call = PyObject_GetAttr(op, S_CALL);
    Outcome outcome = call == NULL ? decline_after_error() : DECLINED;
    int taken;
    if (call != NULL && Py_IS_TYPE(call, &CallType.type))
        outcome = run_target(&((Call *)call)->targets[0], NULL, args, n - (keywords == NULL ? 0 : PyTuple_GET_SIZE(keywords)), keywords,
                             &taken, result);
    Py_XDECREF(call);
    return outcome;
}

/* Sizes without -1, for the elements of a tensor; a new reference, or NULL with or without an error. */
static PyObject *inferred_sizes(PyObject *sizes, PyObject *tensor)
{
    npy_intp lengths[DIMS], known = 1;
    int n = numbers_of(sizes, lengths, DIMS), open = -1;
    for (int d = 0; d < n; d++)
        if (lengths[d] < 0)
            open = d;
        else if (lengths[d] > SMALL_SIZE * (npy_intp)SMALL_SIZE || (known *= lengths[d]) > (npy_intp)1 << 40)
            return NULL;
    if (n < 0 || open < 0)
        return n < 0 ? NULL : Py_NewRef(sizes);
    PyObject *array = SLOT(tensor, AT_ARRAY); /* an operand before this one may have exchanged it */
    npy_intp size = array != NULL && PyArray_CheckExact(array) ? PyArray_SIZE((PyArrayObject *)array) : -1;
    if (known == 0 || size < 0 || size % known != 0)
        return NULL;
    lengths[open] = size / known;
    return tuple_of(lengths, n);
}

static Outcome run_ending(CompositeKernel *self, const Ending *ending, PyObject *const *args, PyObject **result)
{
    PyObject *values[MOST] = {NULL}, *made = NULL;
    Outcome outcome = DONE;
    int n = 0;
    for (; n < ending->count && outcome == DONE; n++)
        if (ending->inferred[n]) {
            values[n] = inferred_sizes(ending->constant[n] != NULL ? ending->constant[n] : args[ending->operand[n]], args[0]);
            outcome = values[n] == NULL ? decline_after_error() : DONE;
        } else if (ending->constant[n] != NULL)
            values[n] = Py_NewRef(ending->constant[n]);
        else if (ending->operand[n] < ENDING)
            values[n] = Py_NewRef(args[ending->operand[n]]);
        else {
            REPEATABLE++; /* the text makes this call again where the next one is declined */
            outcome = run_ending(self, &self->endings[ending->operand[n] - ENDING], args, &values[n]);
            REPEATABLE--;
        }
    if (outcome == DONE && ending->op == Py_None)
        made = Py_NewRef(values[0]);
    else if (outcome == DONE)
        outcome = call_operator(ending->op, values, n, ending->keywords, &made);
    for (int i = 0; i < n; i++)
        Py_XDECREF(values[i]);
    if (outcome == DONE && ending->item >= 0) {
        PyObject *item = PyTuple_CheckExact(made) && ending->item < PyTuple_GET_SIZE(made) ? PyTuple_GET_ITEM(made, ending->item) : NULL;
        outcome = item == NULL ? DECLINED : DONE;
        Py_SETREF(made, Py_XNewRef(item));
    }
    *result = made;
    return outcome;
}

static Outcome composite_run(Face *face, PyObject *ks, PyObject *const *args, Py_ssize_t n, PyObject **result)
{
    CompositeKernel *self = (CompositeKernel *)face;
    if (n != self->arguments || numpy_of(args[0]) == NULL) /* other arrays are left to Python: the text asks it at once */
        return DECLINED;
    for (int e = 0; e < self->count; e++) {
        int applies = !self->endings[e].nested;
        for (int i = 0; i < n && applies; i++)
            applies = meets(self->endings[e].when[i], args[i], args[0]);
        if (applies)
            return run_ending(self, &self->endings[e], args, result);
    }
    return DECLINED;
}

static int composite_traverse(PyObject *self, visitproc visit, void *arg)
{
    CompositeKernel *kernel = (CompositeKernel *)self;
    Py_VISIT(kernel->face.function);
    for (int e = 0; e < kernel->count; e++)
        Py_VISIT(kernel->endings[e].op);
    return 0;
}

static int composite_clear(PyObject *self)
{
    CompositeKernel *kernel = (CompositeKernel *)self;
    Py_CLEAR(kernel->face.function);
    for (int e = 0; e < kernel->count; e++) {
        Py_CLEAR(kernel->endings[e].op);
        Py_CLEAR(kernel->endings[e].keywords);
        for (int i = 0; i < MOST; i++)
            Py_CLEAR(kernel->endings[e].constant[i]);
    }
    kernel->count = 0;
    return 0;
}

/* (function, number of arguments, endings), each (nested, when, op, operands, keywords, item): `when` a number for each argument,
 * `operands` ints as numbered above, or a tuple of a constant, or (one of both, True) for inferred sizes, `keywords` the names of the last of them. Without an operator, the first
 * operand is the result. Another ending comes before those that use it. */
static PyObject *make_composite_kernel(PyObject *module, PyObject *args)
{
    PyObject *function, *endings;
    int arguments;
    if (!PyArg_ParseTuple(args, "OiO!", &function, &arguments, &PyTuple_Type, &endings))
        return NULL;
    if (arguments < 1 || arguments > MOST || PyTuple_GET_SIZE(endings) > ENDINGS) {
        return wrong_count();
    }
    CompositeKernel *made = (CompositeKernel *)new_face(&CompositeKernelType, function, kernel_vectorcall, composite_run);
    if (made == NULL)
        return NULL;
    made->arguments = arguments;
    for (int e = 0; e < PyTuple_GET_SIZE(endings); e++) {
        Ending *ending = &made->endings[e];
        PyObject *when, *op, *operands, *keywords;
        made->count = e + 1;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(endings, e), "pO!OO!O!i", &ending->nested, &PyTuple_Type, &when, &op, &PyTuple_Type,
                              &operands, &PyTuple_Type, &keywords, &ending->item))
            goto failed;
        ending->op = Py_NewRef(op);
        ending->keywords = PyTuple_GET_SIZE(keywords) ? Py_NewRef(keywords) : NULL;
        if (PyTuple_GET_SIZE(when) != arguments || PyTuple_GET_SIZE(operands) > MOST
            || PyTuple_GET_SIZE(keywords) > PyTuple_GET_SIZE(operands) || PyTuple_GET_SIZE(operands) == 0)
            goto failed;
        for (int i = 0; i < arguments; i++)
            ending->when[i] = (int)PyLong_AsLong(PyTuple_GET_ITEM(when, i));
        for (int i = 0; i < PyTuple_GET_SIZE(operands); i++) {
            PyObject *operand = PyTuple_GET_ITEM(operands, i);
            ending->count = i + 1;
            if (PyTuple_CheckExact(operand) && PyTuple_GET_SIZE(operand) == 2) {
                ending->inferred[i] = 1;
                operand = PyTuple_GET_ITEM(operand, 0);
            }
            if (PyTuple_CheckExact(operand) && PyTuple_GET_SIZE(operand) == 1) {
                ending->constant[i] = Py_NewRef(PyTuple_GET_ITEM(operand, 0));
                continue;
            }
            long at = PyLong_AsLong(operand);
            if (PyErr_Occurred() || at < 0 || (at >= arguments && at < ENDING) || at >= ENDING + e)
                goto failed;
            ending->operand[i] = (int)at;
        }
        if (PyErr_Occurred())
            goto failed;
    }
    return finished(made);
failed:
    return refuse(made);
}
