/* Calls without a Python frame.
 *
 * The one idea: a call is taken here only if it can be finished here. Everything that is not plain - a subclass, a mode, a wrong
 * argument, an error of the array library - is declined before anything was changed, and the Python function that stands beside
 * it starts from the beginning. So errors, tracebacks, warnings and rare cases are those of the Python function.
 *
 * Call          a stub, a public function or a method: arguments, key set, look-up in the operator's cache
 * ArrayKernel   the wrapper of an array kernel: arrays out of tensors, the kernel, a tensor around its result
 * RecordKernel  a kernel at Autograd: the call below, and a node that says how it was made
 * ViewKernel    a view operator at ADInplaceOrView: a remembered geometry, an array over the same memory, and the record of the view
 *
 * Only NumPy's arrays are read, through its C interface, and only within the bounds that they state.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>
#include <stddef.h>
#include <math.h>
#include <float.h>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>

#define MOST 12 /* arguments of an operator; one with more keeps its Python function */

typedef enum { FAILED = -1, DECLINED = 0, DONE = 1 } Outcome;

/* ---- what is known of Turnout: set once by `configure` */

static PyTypeObject *Tensor, *Storage, *View;
static Py_ssize_t AT_OFFSET, AT_ROOT, AT_STORAGE_VER, AT_VIEWS, AT_BASE, AT_CHAIN, AT_SEEN, AT_MULTI, AT_NO_GRAD, AT_MAKER;
static Py_ssize_t AT_ARRAY, AT_KEYS, AT_DEVICE, AT_GMASK, AT_NODE, AT_VER, AT_STORAGE, AT_VIEW_OF, AT_EXTRA;
static PyObject *STUB_BUILTINS, *DISPATCH, *FRESH, *GRAD, *DTYPE, *DEVICE;
static PyObject *CLOCK, *NUMPY_ADD, *NUMPY_SUB, *NUMPY_MUL, *NUMPY_DIV;
static PyObject *S_DISPATCH, *S_EPOCH, *S_VER, *S_BACKEND, *S_VIEW_ARRAY, *S_KEYS, *S_REMEMBERED, *S_SHARED_STORAGE;
static PyObject *ZERO, *NO_TEXT;
static Py_ssize_t TAKEN; /* calls that were finished here, for those who want to know */

#define SLOT(tensor, at) (*(PyObject **)((char *)(tensor) + (at)))

/* An error that the Python function will meet again: forget it. KeyboardInterrupt and the like go on. */
static Outcome decline_after_error(void)
{
    if (PyErr_Occurred() != NULL && !PyErr_ExceptionMatches(PyExc_Exception))
        return FAILED;
    PyErr_Clear();
    return DECLINED;
}

/* A debugger or a profiler sees the generated Python text: nothing is taken here. */
static inline int is_traced(void)
{
    PyThreadState *state = PyThreadState_Get();
    return state->c_tracefunc != NULL || state->c_profilefunc != NULL;
}

/* ---- what Call, ArrayKernel and RecordKernel have in common: a Python function, whose attributes they show */

typedef struct Face {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *function;
    PyObject *weakrefs;
    Outcome (*run)(struct Face *, PyObject *ks, PyObject *const *args, Py_ssize_t n, PyObject **result);
} Face;

static PyTypeObject CallType, ArrayKernelType, RecordKernelType, ViewKernelType;

static PyObject *face_getattro(PyObject *self, PyObject *name)
{
    /* `__class__` too: to `inspect`, `pickle` and type checks it is the function. */
    if (PyUnicode_CompareWithASCIIString(name, "__reduce_ex__") == 0 || PyUnicode_CompareWithASCIIString(name, "__get__") == 0
        || PyUnicode_CompareWithASCIIString(name, "__call__") == 0)
        return PyObject_GenericGetAttr(self, name);
    return PyObject_GetAttr(((Face *)self)->function, name);
}

static int face_setattro(PyObject *self, PyObject *name, PyObject *value)
{
    return PyObject_SetAttr(((Face *)self)->function, name, value);
}

static PyObject *face_repr(PyObject *self) { return PyObject_Repr(((Face *)self)->function); }

static PyObject *face_get(PyObject *self, PyObject *instance, PyObject *owner)
{
    if (instance == NULL || instance == Py_None)
        return Py_NewRef(self);
    return PyMethod_New(self, instance);
}

/* pickle finds it by its name, as it does a function. */
static PyObject *face_reduce(PyObject *self, PyObject *protocol)
{
    return PyObject_GetAttrString(((Face *)self)->function, "__qualname__");
}

/* `help` reads it past the attributes. */
static PyObject *face_doc(PyObject *self, void *closure) { return PyObject_GetAttrString(((Face *)self)->function, "__doc__"); }

static PyGetSetDef face_properties[] = {{"__doc__", face_doc, NULL, NULL, NULL}, {NULL}};
static PyMethodDef face_methods[] = {{"__reduce_ex__", face_reduce, METH_O, NULL}, {NULL}};

static void face_init(Face *self, PyObject *function, vectorcallfunc vectorcall)
{
    self->vectorcall = vectorcall;
    self->function = Py_NewRef(function);
    self->weakrefs = NULL;
    self->run = NULL;
}

/* A kernel as others call it: (ks, *args). */
static PyObject *kernel_vectorcall(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Face *face = (Face *)self;
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    if (kwnames == NULL && n > 0 && !is_traced()) {
        PyObject *result = NULL;
        Outcome outcome = face->run(face, args[0], args + 1, n - 1, &result);
        if (outcome != DECLINED)
            return outcome == DONE ? result : NULL;
    }
    return PyObject_Vectorcall(face->function, args, nargsf, kwnames);
}

static inline int is_kernel(PyObject *value)
{
    return Py_IS_TYPE(value, &ArrayKernelType) || Py_IS_TYPE(value, &RecordKernelType) || Py_IS_TYPE(value, &ViewKernelType);
}

/* Look up what serves a key set and run it, if it is a kernel of this module. */
static Outcome run_cached(PyObject *cache, PyObject *ks, PyObject *const *args, Py_ssize_t n, PyObject **result)
{
    PyObject *kernel = PyDict_GetItemWithError(cache, ks);
    if (kernel == NULL)
        return decline_after_error();
    if (!is_kernel(kernel))
        return DECLINED;
    Py_INCREF(kernel); /* the cache may be cleared while it runs */
    Outcome outcome = ((Face *)kernel)->run((Face *)kernel, ks, args, n, result);
    Py_DECREF(kernel);
    return outcome;
}

/* ---- Call */

enum { IS_TENSOR, IS_SCALAR, IS_INT, IS_FLOAT, IS_BOOL, IS_STR, IS_DTYPE, IS_DEVICE, IS_INTS };

typedef struct {
    PyObject *cache;
    int arguments;          /* of the schema */
    int kind[MOST];
    int optional[MOST];
    int source[MOST];       /* the parameter that gives it, or -1: it always has its default */
    PyObject *standard[MOST]; /* its default, or NULL */
    PyObject *name[MOST];   /* the parameter's name, or NULL where it cannot be given by name */
    int parameters;         /* how many may be given by position */
} Target;

typedef struct {
    Face face;
    int count;
    Target targets[2];
} Call;

/* Whether a value is what the schema asks for, so that the Python function would pass it on as it is. */
static inline int fits(int kind, int optional, PyObject *value)
{
    if (value == Py_None)
        return optional;
    switch (kind) {
    case IS_TENSOR:
        return Py_IS_TYPE(value, Tensor);
    case IS_SCALAR:
        if (PyFloat_CheckExact(value))
            return 1;
        if (PyLong_CheckExact(value)) {
            int overflow;
            long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
            return !overflow && number > -(1LL << 30) && number < (1LL << 30);
        }
        return 0;
    case IS_INT:
        return PyLong_CheckExact(value);
    case IS_FLOAT:
        return PyFloat_CheckExact(value);
    case IS_BOOL:
        return PyBool_Check(value);
    case IS_STR:
        return PyUnicode_CheckExact(value);
    case IS_DTYPE:
        return (PyObject *)Py_TYPE(value) == DTYPE;
    case IS_DEVICE:
        return (PyObject *)Py_TYPE(value) == DEVICE;
    case IS_INTS:
        if (!PyTuple_CheckExact(value))
            return 0;
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); i++)
            if (!PyLong_CheckExact(PyTuple_GET_ITEM(value, i)))
                return 0;
        return 1;
    default:
        return 0;
    }
}

/* The state of the context: FRESH, another pair, or NULL where only the Python function knows. A new reference. */
static PyObject *dispatch_state(void)
{
    PyObject *reader = PyDict_GetItemWithError(STUB_BUILTINS, S_DISPATCH);
    PyObject *state = NULL;
    if (reader == NULL || !PyCFunction_Check(reader) || PyCFunction_GET_SELF(reader) != DISPATCH)
        return NULL;
    if (PyContextVar_Get(DISPATCH, NULL, &state) < 0)
        return NULL;
    return state;
}

/* (ks | state[0]) & state[1]; steals ks. */
static PyObject *with_state(PyObject *ks, PyObject *state)
{
    PyObject *include = PySequence_GetItem(state, 0), *keep = PySequence_GetItem(state, 1), *both = NULL, *made = NULL;
    if (include != NULL && keep != NULL && (both = PyNumber_Or(ks, include)) != NULL)
        made = PyNumber_And(both, keep);
    Py_XDECREF(include);
    Py_XDECREF(keep);
    Py_XDECREF(both);
    Py_DECREF(ks);
    return made;
}

static Outcome run_target(Target *target, PyObject *const *args, Py_ssize_t n, PyObject *kwnames, PyObject **result)
{
    PyObject *values[MOST];
    PyObject *ks = NULL;
    Py_ssize_t used = n;
    if (n > target->parameters)
        return DECLINED;
    Py_ssize_t named = kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames);
    for (int i = 0; i < target->arguments; i++) {
        PyObject *value = NULL;
        int from = target->source[i];
        if (from >= 0 && from < n)
            value = args[from];
        else {
            for (Py_ssize_t k = 0; k < named && target->name[i] != NULL; k++)
                if (PyTuple_GET_ITEM(kwnames, k) == target->name[i]) {
                    value = args[n + k];
                    used++;
                    break;
                }
            if (value == NULL)
                value = target->standard[i];
            if (value == NULL)
                goto declined;
        }
        if (!fits(target->kind[i], target->optional[i], value))
            goto declined;
        values[i] = value;
        if (target->kind[i] == IS_TENSOR && value != Py_None) {
            PyObject *keys = SLOT(value, AT_KEYS);
            if (keys == NULL)
                goto declined;
            if (ks == NULL)
                ks = Py_NewRef(keys);
            else if (keys != ks) {
                Py_SETREF(ks, PyNumber_Or(ks, keys));
                if (ks == NULL)
                    return decline_after_error();
            }
        }
    }
    if (used != n + named || ks == NULL)
        goto declined;
    PyObject *state = dispatch_state();
    if (state == NULL) {
        Py_DECREF(ks);
        return decline_after_error();
    }
    if (state != FRESH)
        ks = with_state(ks, state);
    Py_DECREF(state);
    if (ks == NULL)
        return decline_after_error();
    Outcome outcome = run_cached(target->cache, ks, values, target->arguments, result);
    Py_DECREF(ks);
    return outcome;
declined:
    Py_XDECREF(ks);
    return DECLINED;
}

static PyObject *call_vectorcall(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Call *call = (Call *)self;
    if (!is_traced()) {
        PyObject *result = NULL;
        for (int i = 0; i < call->count; i++) {
            Outcome outcome = run_target(&call->targets[i], args, PyVectorcall_NARGS(nargsf), kwnames, &result);
            if (outcome != DECLINED) {
                TAKEN++;
                return outcome == DONE ? result : NULL;
            }
        }
    }
    return PyObject_Vectorcall(call->face.function, args, nargsf, kwnames);
}

static int call_traverse(PyObject *self, visitproc visit, void *arg)
{
    Call *call = (Call *)self;
    Py_VISIT(call->face.function);
    for (int t = 0; t < call->count; t++) {
        Py_VISIT(call->targets[t].cache);
        for (int i = 0; i < call->targets[t].arguments; i++)
            Py_VISIT(call->targets[t].standard[i]);
    }
    return 0;
}

static int call_clear(PyObject *self)
{
    Call *call = (Call *)self;
    Py_CLEAR(call->face.function);
    for (int t = 0; t < call->count; t++) {
        Py_CLEAR(call->targets[t].cache);
        for (int i = 0; i < call->targets[t].arguments; i++) {
            Py_CLEAR(call->targets[t].standard[i]);
            Py_CLEAR(call->targets[t].name[i]);
        }
    }
    call->count = 0;
    return 0;
}

static void face_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    if (((Face *)self)->weakrefs != NULL)
        PyObject_ClearWeakRefs(self);
    Py_TYPE(self)->tp_clear(self);
    PyObject_GC_Del(self);
}

static const char *const KINDS[] = {"Tensor", "Scalar", "int", "float", "bool", "str", "ScalarType", "Device", "ints", NULL};

/* (cache, parameters, ((kind, optional, source, default or MISSING, name or None), ...)) */
static int read_target(Target *target, PyObject *row, PyObject *missing)
{
    PyObject *arguments, *cache;
    if (!PyArg_ParseTuple(row, "O!iO!", &PyDict_Type, &cache, &target->parameters, &PyTuple_Type, &arguments))
        return -1;
    target->cache = Py_NewRef(cache);
    if (PyTuple_GET_SIZE(arguments) > MOST) {
        PyErr_SetString(PyExc_ValueError, "too many arguments");
        return -1;
    }
    for (int i = 0; i < PyTuple_GET_SIZE(arguments); i++) {
        const char *kind;
        PyObject *standard, *name;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(arguments, i), "spiOO", &kind, &target->optional[i], &target->source[i], &standard,
                              &name))
            return -1;
        target->kind[i] = -1;
        for (int k = 0; KINDS[k] != NULL; k++)
            if (strcmp(KINDS[k], kind) == 0)
                target->kind[i] = k;
        if (target->kind[i] < 0) {
            PyErr_Format(PyExc_ValueError, "unknown kind %s", kind);
            return -1;
        }
        target->standard[i] = standard == missing ? NULL : Py_NewRef(standard);
        target->name[i] = NULL;
        if (name != Py_None) {
            target->name[i] = Py_NewRef(name);
            PyUnicode_InternInPlace(&target->name[i]);
        }
        target->arguments = i + 1;
    }
    return 0;
}

static PyObject *make_call(PyObject *module, PyObject *args)
{
    PyObject *function, *targets, *missing;
    if (!PyArg_ParseTuple(args, "OO!O", &function, &PyTuple_Type, &targets, &missing))
        return NULL;
    if (PyTuple_GET_SIZE(targets) < 1 || PyTuple_GET_SIZE(targets) > 2) {
        PyErr_SetString(PyExc_ValueError, "one or two targets");
        return NULL;
    }
    Call *made = PyObject_GC_New(Call, &CallType);
    if (made == NULL)
        return NULL;
    face_init(&made->face, function, call_vectorcall);
    made->count = 0;
    for (int i = 0; i < PyTuple_GET_SIZE(targets); i++) {
        memset(&made->targets[i], 0, sizeof(Target));
        made->count = i + 1;
        if (read_target(&made->targets[i], PyTuple_GET_ITEM(targets, i), missing) < 0) {
            PyObject_GC_Track(made);
            Py_DECREF(made);
            return NULL;
        }
    }
    PyObject_GC_Track(made);
    return (PyObject *)made;
}

/* ---- ArrayKernel */

enum { NO_LOOP, ADD, SUB, MUL, DIV };

typedef struct {
    Face face;
    int arguments;            /* without the key set */
    int tensors;              /* of them are tensors that must be given */
    int tensor[MOST];
    int number[MOST];         /* whether the argument is a number in place of a tensor */
    int absent[MOST];         /* whether it must be None */
    PyObject *standard[MOST]; /* with which `simple` may be called instead of `kernel`, or NULL */
    int rank[MOST];           /* of the tensors, or -1 */
    int bools, unsure, loop;
    npy_intp limit;
    char refuses[16];
    PyObject *half;           /* NULL: float16 needs no look */
    PyObject *simple, *kernel, *as_array, *keys;
} ArrayKernel;

/* A new plain tensor around an array, whose reference it takes. It alone fills the fields of a tensor here. */
static PyObject *wrap(PyObject *array, PyObject *keys, PyObject *device)
{
    PyObject *epoch = PyObject_GetAttr(CLOCK, S_EPOCH);
    PyObject *made = epoch == NULL ? NULL : PyType_GenericAlloc(Tensor, 0);
    if (made == NULL) {
        Py_XDECREF(epoch);
        Py_DECREF(array);
        return NULL;
    }
    SLOT(made, AT_ARRAY) = array;
    SLOT(made, AT_KEYS) = Py_NewRef(keys);
    SLOT(made, AT_DEVICE) = Py_NewRef(device);
    SLOT(made, AT_GMASK) = Py_NewRef(ZERO);
    SLOT(made, AT_NODE) = Py_NewRef(Py_None);
    SLOT(made, AT_VER) = epoch;
    SLOT(made, AT_STORAGE) = Py_NewRef(Py_None);
    SLOT(made, AT_VIEW_OF) = Py_NewRef(Py_None);
    SLOT(made, AT_EXTRA) = Py_NewRef(Py_None);
    return made;
}

#define LOOP_LIMIT 8192 /* elements; above, NumPy's own loops are as fast */

#define LOOP(type, sign) for (npy_intp i = 0; i < size; i++) ((type *)to)[i] = ((const type *)from)[i] sign ((const type *)by)[i * step]
#define LOOPS(type)                                 \
    switch (loop) {                                 \
    case ADD: LOOP(type, +); break;                 \
    case SUB: LOOP(type, -); break;                 \
    case MUL: LOOP(type, *); break;                 \
    default: LOOP(type, /); break;                  \
    }

static inline int is_plain(PyArrayObject *array)
{
    return PyArray_CHKFLAGS(array, NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED) && PyArray_ISNOTSWAPPED(array);
}

/* Element-wise arithmetic on small contiguous arrays of one shape, or an array and a number: NumPy's result, bit by bit, without
 * a look at the floating-point flags. NULL without an error: not of this kind. */
static PyObject *small_loop(int loop, PyArrayObject *self, PyArrayObject *other, double number)
{
    int type = PyArray_TYPE(self);
    npy_intp size = PyArray_SIZE(self);
    npy_intp step = other != NULL;
    if ((type != NPY_FLOAT && type != NPY_DOUBLE) || size > LOOP_LIMIT || !is_plain(self))
        return NULL;
    if (other != NULL
        && (!is_plain(other) || PyArray_NDIM(self) != PyArray_NDIM(other)
            || !PyArray_CompareLists(PyArray_DIMS(self), PyArray_DIMS(other), PyArray_NDIM(self))))
        return NULL;
    if (other == NULL && type == NPY_FLOAT && isfinite(number) && fabs(number) > FLT_MAX)
        return NULL; /* NumPy warns of it */
    PyObject *made = PyArray_SimpleNew(PyArray_NDIM(self), PyArray_DIMS(self), type);
    if (made == NULL)
        return NULL;
    void *to = PyArray_DATA((PyArrayObject *)made);
    const void *from = PyArray_DATA(self);
    float single = (float)number;
    const void *by = other != NULL ? PyArray_DATA(other) : type == NPY_FLOAT ? (const void *)&single : (const void *)&number;
    if (type == NPY_FLOAT) {
        LOOPS(float)
    } else {
        LOOPS(double)
    }
    return made;
}

static Outcome array_run(Face *face, PyObject *ks, PyObject *const *args, Py_ssize_t n, PyObject **result)
{
    ArrayKernel *self = (ArrayKernel *)face;
    PyObject *given[MOST + 1];
    if (n != self->arguments)
        return DECLINED;
    int simple = self->simple != NULL;
    for (int i = 0; i < n; i++) {
        given[i] = args[i];
        if (self->absent[i] && args[i] != Py_None)
            return DECLINED;
        if (self->number[i] && (!self->bools && PyBool_Check(args[i])))
            return DECLINED;
        if (self->standard[i] != NULL && args[i] != self->standard[i])
            simple = 0;
    }
    PyArray_Descr *descr = NULL;
    PyArrayObject *first = NULL; /* its tensor belongs to the caller; a kernel can exchange the tensor's array, so it is held */
    for (int k = 0; k < self->tensors; k++) {
        PyObject *tensor = args[self->tensor[k]];
        PyObject *array = Py_IS_TYPE(tensor, Tensor) ? SLOT(tensor, AT_ARRAY) : NULL;
        if (array == NULL || !PyArray_CheckExact(array) || SLOT(tensor, AT_DEVICE) == NULL)
            return DECLINED;
        if (k == 0) {
            first = (PyArrayObject *)array;
            descr = PyArray_DESCR(first);
        } else if (PyArray_DESCR((PyArrayObject *)array) != descr)
            return DECLINED;
        if (self->rank[k] >= 0 && PyArray_NDIM((PyArrayObject *)array) != self->rank[k])
            return DECLINED;
        given[self->tensor[k]] = array;
    }
    if ((self->refuses[0] && strchr(self->refuses, descr->kind) != NULL) || (PyObject *)descr == self->half)
        return DECLINED;
    if (simple && self->limit && PyArray_SIZE(first) > self->limit)
        simple = 0;
    PyObject *made = NULL;
    if (simple && self->loop) {
        if (self->tensors == 2)
            made = small_loop(self->loop, first, (PyArrayObject *)given[self->tensor[1]], 0.0);
        else if (PyFloat_CheckExact(args[1]))
            made = small_loop(self->loop, first, NULL, PyFloat_AS_DOUBLE(args[1]));
        else if (PyLong_CheckExact(args[1])) {
            int overflow;
            long long number = PyLong_AsLongLongAndOverflow(args[1], &overflow);
            if (!overflow && number >= -(1LL << 24) && number <= (1LL << 24))
                made = small_loop(self->loop, first, NULL, (double)number);
        }
    }
    if (made == NULL) {
        if (PyErr_Occurred())
            return decline_after_error();
        PyObject *passed[MOST + 1];
        Py_ssize_t count = 0;
        for (int i = 0; i < n; i++)
            if (!simple || self->standard[i] == NULL)
                passed[1 + count++] = Py_NewRef(given[i]); /* the kernel may let go of what holds it */
        made = PyObject_Vectorcall(simple ? self->simple : self->kernel, passed + 1, count | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
        for (Py_ssize_t i = 0; i < count; i++)
            Py_DECREF(passed[1 + i]);
        if (made == NULL)
            return decline_after_error();
        if (!PyArray_CheckExact(made)) {
            /* A number of NumPy's, as it gives for 0 dims, needs no Python to become an array. */
            Py_SETREF(made, PyArray_IsScalar(made, Number) || PyArray_IsScalar(made, Bool)
                                ? PyArray_FromScalar(made, NULL) : PyObject_CallOneArg(self->as_array, made));
            if (made == NULL)
                return decline_after_error();
            if (!PyArray_CheckExact(made)) {
                Py_DECREF(made);
                return DECLINED;
            }
        }
    }
    PyObject *tensor = args[self->tensor[0]];
    if (self->unsure && PyArray_DESCR((PyArrayObject *)made) != descr) {
        Py_DECREF(made);
        return DECLINED;
    }
    *result = wrap(made, self->keys, SLOT(tensor, AT_DEVICE));
    return *result == NULL ? decline_after_error() : DONE;
}

static int array_traverse(PyObject *self, visitproc visit, void *arg)
{
    ArrayKernel *kernel = (ArrayKernel *)self;
    Py_VISIT(kernel->face.function);
    for (int i = 0; i < MOST; i++)
        Py_VISIT(kernel->standard[i]);
    Py_VISIT(kernel->half);
    Py_VISIT(kernel->simple);
    Py_VISIT(kernel->kernel);
    Py_VISIT(kernel->as_array);
    Py_VISIT(kernel->keys);
    return 0;
}

static int array_clear(PyObject *self)
{
    ArrayKernel *kernel = (ArrayKernel *)self;
    Py_CLEAR(kernel->face.function);
    for (int i = 0; i < MOST; i++)
        Py_CLEAR(kernel->standard[i]);
    Py_CLEAR(kernel->half);
    Py_CLEAR(kernel->simple);
    Py_CLEAR(kernel->kernel);
    Py_CLEAR(kernel->as_array);
    Py_CLEAR(kernel->keys);
    return 0;
}

/* (function, arguments, simple or None, kernel, as_array, keys, half or None, ufunc or None, limit, bools, unsure, refuses), where
 * `arguments` are rows (role, default or MISSING, rank): role "tensor", "absent", "number" or "value". */
static PyObject *make_array_kernel(PyObject *module, PyObject *args)
{
    PyObject *function, *arguments, *simple, *kernel, *as_array, *keys, *half, *ufunc, *missing;
    Py_ssize_t limit;
    int bools, unsure;
    const char *refuses;
    if (!PyArg_ParseTuple(args, "OO!OOOOOOnppsO", &function, &PyTuple_Type, &arguments, &simple, &kernel, &as_array, &keys, &half,
                          &ufunc, &limit, &bools, &unsure, &refuses, &missing))
        return NULL;
    if (PyTuple_GET_SIZE(arguments) > MOST || strlen(refuses) >= sizeof(((ArrayKernel *)0)->refuses)) {
        PyErr_SetString(PyExc_ValueError, "too many arguments");
        return NULL;
    }
    ArrayKernel *made = PyObject_GC_New(ArrayKernel, &ArrayKernelType);
    if (made == NULL)
        return NULL;
    memset((char *)made + sizeof(Face), 0, sizeof(ArrayKernel) - sizeof(Face));
    face_init(&made->face, function, kernel_vectorcall);
    made->face.run = array_run;
    made->limit = limit;
    made->bools = bools;
    made->unsure = unsure;
    strcpy(made->refuses, refuses);
    made->half = half == Py_None ? NULL : Py_NewRef(half);
    made->simple = simple == Py_None ? NULL : Py_NewRef(simple);
    made->kernel = Py_NewRef(kernel);
    made->as_array = Py_NewRef(as_array);
    made->keys = Py_NewRef(keys);
    made->loop = ufunc == NUMPY_ADD ? ADD : ufunc == NUMPY_SUB ? SUB : ufunc == NUMPY_MUL ? MUL : ufunc == NUMPY_DIV ? DIV : NO_LOOP;
    made->arguments = (int)PyTuple_GET_SIZE(arguments);
    for (int i = 0; i < made->arguments; i++) {
        const char *role;
        PyObject *standard;
        int rank;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(arguments, i), "sOi", &role, &standard, &rank)) {
            PyObject_GC_Track(made);
            Py_DECREF(made);
            return NULL;
        }
        if (strcmp(role, "tensor") == 0) {
            made->rank[made->tensors] = rank;
            made->tensor[made->tensors++] = i;
        }
        made->absent[i] = strcmp(role, "absent") == 0;
        made->number[i] = strcmp(role, "number") == 0;
        made->standard[i] = standard == missing ? NULL : Py_NewRef(standard);
    }
    if (made->tensors == 0 || (made->loop && !(made->tensors == 2 || (made->tensors == 1 && made->arguments >= 2 && made->number[1]))))
        made->loop = NO_LOOP;
    PyObject_GC_Track(made);
    if (made->tensors == 0) {
        Py_DECREF(made);
        PyErr_SetString(PyExc_ValueError, "a kernel needs a tensor");
        return NULL;
    }
    return (PyObject *)made;
}

/* ---- RecordKernel */

enum { SAVE_TENSOR, SAVE_VALUE, SAVE_SHAPE, SAVE_DTYPE, SAVE_DEVICE, SAVE_RESULT };
enum { FITS_NOT, FITS_PAIR, FITS_DTYPE, FITS_ALL };

typedef struct {
    int kind, argument;
    unsigned need;            /* bits of the differentiable arguments; it is saved if one of them is tracked */
    Py_ssize_t at, version_at;
} Save;

typedef struct {
    Face face;
    PyObject *cache, *below, *tracked_bit, *next_seq, *metas, *unlike, *kept;
    PyTypeObject *node;
    Py_ssize_t at_edges, at_seq, at_extra, at_metas;
    int arguments, differentiable, argument[MOST], saves, fits, dtype_argument;
    Save save[2 * MOST];
} RecordKernel;

static PyObject *shape_of(PyObject *tensor)
{
    return PyObject_GetAttrString(SLOT(tensor, AT_ARRAY), "shape");
}

static Outcome fill_node(RecordKernel *self, PyObject *node, PyObject *const *args, PyObject *result, PyObject *tracked, unsigned tracks)
{
    PyObject *seq = PyObject_CallNoArgs(self->next_seq);
    PyObject *edges = seq == NULL ? NULL : PyTuple_New(self->differentiable);
    if (edges == NULL) {
        Py_XDECREF(seq);
        return DECLINED;
    }
    SLOT(node, self->at_seq) = seq;
    SLOT(node, self->at_extra) = Py_NewRef(Py_None);
    SLOT(node, self->at_edges) = edges;
    int inner = 0;
    for (int k = 0; k < self->differentiable; k++) {
        PyObject *tensor = args[self->argument[k]], *edge = Py_None;
        if (tracks & 1u << k) {
            PyObject *before = SLOT(tensor, AT_NODE);
            edge = before != Py_None ? before : tensor;
            inner |= before != Py_None;
        }
        PyTuple_SET_ITEM(edges, k, Py_NewRef(edge));
    }
    for (int i = 0; i < self->saves; i++) {
        Save *save = &self->save[i];
        PyObject *value = NULL, *version;
        if (!(save->need & tracks))
            continue;
        switch (save->kind) {
        case SAVE_TENSOR:
            value = Py_NewRef(args[save->argument]);
            version = SLOT(value, AT_STORAGE);
            version = version == Py_None ? Py_XNewRef(SLOT(value, AT_VER)) : PyObject_GetAttr(version, S_VER);
            if (version == NULL) {
                Py_DECREF(value);
                return DECLINED;
            }
            SLOT(node, save->version_at) = version;
            break;
        case SAVE_VALUE:
            value = Py_NewRef(args[save->argument]);
            break;
        case SAVE_SHAPE:
            value = shape_of(args[save->argument]);
            break;
        case SAVE_DTYPE:
            value = PyObject_GetAttrString(args[save->argument], "dtype");
            break;
        case SAVE_DEVICE:
            value = Py_NewRef(SLOT(args[save->argument], AT_DEVICE));
            break;
        case SAVE_RESULT:
            value = PyObject_CallFunctionObjArgs(self->kept, result, tracked, NULL);
            break;
        }
        if (value == NULL)
            return DECLINED;
        SLOT(node, save->at) = value;
    }
    if (self->fits == FITS_NOT)
        return DONE;
    PyObject *metas = Py_NewRef(Py_None), *one = args[self->argument[0]];
    if (self->fits == FITS_ALL || inner) {
        PyObject *other = self->fits == FITS_PAIR ? args[self->argument[1]] : result;
        PyArrayObject *a = (PyArrayObject *)SLOT(one, AT_ARRAY), *b = (PyArrayObject *)SLOT(other, AT_ARRAY);
        int same = self->fits != FITS_ALL && PyArray_CheckExact(a) && PyArray_CheckExact(b) && PyArray_DESCR(a) == PyArray_DESCR(b)
                   && SLOT(one, AT_DEVICE) == SLOT(other, AT_DEVICE);
        if (same && self->fits == FITS_PAIR)
            same = PyArray_NDIM(a) == PyArray_NDIM(b) && PyArray_CompareLists(PyArray_DIMS(a), PyArray_DIMS(b), PyArray_NDIM(a));
        if (!same) {
            PyObject *passed[MOST + 1] = {result};
            for (int k = 0; k < self->differentiable; k++)
                passed[k + 1] = args[self->argument[k]];
            int all = self->fits == FITS_ALL;
            Py_SETREF(metas, PyObject_Vectorcall(all ? self->unlike : self->metas, passed + !all, self->differentiable + all, NULL));
            if (metas == NULL)
                return DECLINED;
        }
    }
    SLOT(node, self->at_metas) = metas;
    return DONE;
}

/* The gradient levels that record now: a new reference, or NULL with or without an error. */
static PyObject *levels_enabled(void)
{
    PyObject *levels = NULL;
    if (PyContextVar_Get(GRAD, NULL, &levels) < 0 || levels == NULL)
        return NULL;
    PyObject *first = PySequence_GetItem(levels, 0);
    Py_DECREF(levels);
    return first;
}

static Outcome record_run(Face *face, PyObject *ks, PyObject *const *args, Py_ssize_t n, PyObject **result)
{
    RecordKernel *self = (RecordKernel *)face;
    if (n != self->arguments)
        return DECLINED;
    PyObject *first = levels_enabled();
    long long enabled, tracked = 0;
    unsigned tracks = 0;
    int overflow = 0;
    if (first == NULL || !PyLong_CheckExact(first)) {
        Py_XDECREF(first);
        return decline_after_error();
    }
    enabled = PyLong_AsLongLongAndOverflow(first, &overflow);
    Py_DECREF(first);
    if (overflow)
        return DECLINED;
    for (int k = 0; enabled && k < self->differentiable; k++) {
        PyObject *tensor = args[self->argument[k]];
        if (!Py_IS_TYPE(tensor, Tensor) || SLOT(tensor, AT_VIEW_OF) != Py_None || SLOT(tensor, AT_GMASK) == NULL)
            return DECLINED;
        long long mask = PyLong_AsLongLongAndOverflow(SLOT(tensor, AT_GMASK), &overflow);
        if (overflow)
            return DECLINED;
        if (mask & enabled)
            tracks |= 1u << k;
        tracked |= mask & enabled;
    }
    /* Where a dtype is asked for, the result may be of whole numbers. */
    if (tracked && self->dtype_argument >= 0 && args[self->dtype_argument] != Py_None)
        return DECLINED;
    PyObject *below = PyNumber_And(ks, self->below);
    if (below == NULL)
        return decline_after_error();
    Outcome outcome = run_cached(self->cache, below, args, n, result);
    Py_DECREF(below);
    if (outcome != DONE || !tracked)
        return outcome;
    PyObject *made = *result;
    PyObject *node = NULL, *mask = NULL, *keys = NULL;
    *result = NULL;
    if (Py_IS_TYPE(made, Tensor) && SLOT(made, AT_NODE) == Py_None && (mask = PyLong_FromLongLong(tracked)) != NULL
        && (keys = PyNumber_Or(SLOT(made, AT_KEYS), self->tracked_bit)) != NULL
        && (node = PyType_GenericAlloc(self->node, 0)) != NULL && fill_node(self, node, args, made, mask, tracks) == DONE) {
        Py_SETREF(SLOT(made, AT_GMASK), mask);
        Py_SETREF(SLOT(made, AT_KEYS), keys);
        Py_SETREF(SLOT(made, AT_NODE), node);
        *result = made;
        return DONE;
    }
    Py_XDECREF(node);
    Py_XDECREF(mask);
    Py_XDECREF(keys);
    Py_DECREF(made);
    return decline_after_error();
}

static int record_traverse(PyObject *self, visitproc visit, void *arg)
{
    RecordKernel *kernel = (RecordKernel *)self;
    Py_VISIT(kernel->face.function);
    Py_VISIT(kernel->cache);
    Py_VISIT(kernel->next_seq);
    Py_VISIT(kernel->metas);
    Py_VISIT(kernel->unlike);
    Py_VISIT(kernel->kept);
    Py_VISIT(kernel->node);
    return 0;
}

static int record_clear(PyObject *self)
{
    RecordKernel *kernel = (RecordKernel *)self;
    Py_CLEAR(kernel->face.function);
    Py_CLEAR(kernel->cache);
    Py_CLEAR(kernel->below);
    Py_CLEAR(kernel->tracked_bit);
    Py_CLEAR(kernel->next_seq);
    Py_CLEAR(kernel->metas);
    Py_CLEAR(kernel->unlike);
    Py_CLEAR(kernel->kept);
    Py_CLEAR(kernel->node);
    return 0;
}

/* Where a slot of a class lies in its instances; -1 with an error if the name is not a slot that holds any object. */
static Py_ssize_t slot_of(PyTypeObject *type, const char *name)
{
    PyObject *found = PyObject_GetAttrString((PyObject *)type, name);
    Py_ssize_t at = -1;
    if (found != NULL && Py_IS_TYPE(found, &PyMemberDescr_Type) && ((PyMemberDescrObject *)found)->d_member->type == T_OBJECT_EX)
        at = ((PyMemberDescrObject *)found)->d_member->offset;
    else if (found != NULL)
        PyErr_Format(PyExc_TypeError, "%s.%s is not a slot", type->tp_name, name);
    Py_XDECREF(found);
    return at;
}

static const char *const SAVED[] = {"tensor", "value", "shape", "dtype", "device", "result", NULL};
static const char *const FITS[] = {"", "pair", "dtype", "all", NULL};

static int index_of(const char *const *names, const char *name)
{
    for (int i = 0; names[i] != NULL; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    PyErr_Format(PyExc_ValueError, "unknown word %s", name);
    return -1;
}

/* (function, cache, below, tracked, next_seq, metas, unlike, kept, node class, number of arguments, differentiable arguments,
 * saves, fits, dtype argument or -1) */
static PyObject *make_record_kernel(PyObject *module, PyObject *args)
{
    PyObject *function, *cache, *below, *tracked, *next_seq, *metas, *unlike, *kept, *node, *differentiable, *saves;
    const char *fits;
    int arguments, dtype_argument;
    if (!PyArg_ParseTuple(args, "OO!OOOOOOO!iO!O!si", &function, &PyDict_Type, &cache, &below, &tracked, &next_seq, &metas, &unlike,
                          &kept, &PyType_Type, &node, &arguments, &PyTuple_Type, &differentiable, &PyTuple_Type, &saves, &fits,
                          &dtype_argument))
        return NULL;
    int wanted = index_of(FITS, fits);
    if (wanted < 0)
        return NULL;
    if (arguments > MOST || PyTuple_GET_SIZE(differentiable) > MOST || PyTuple_GET_SIZE(saves) > 2 * MOST
        || (wanted == FITS_PAIR && PyTuple_GET_SIZE(differentiable) != 2) || PyTuple_GET_SIZE(differentiable) == 0) {
        PyErr_SetString(PyExc_ValueError, "a wrong number of arguments");
        return NULL;
    }
    RecordKernel *made = PyObject_GC_New(RecordKernel, &RecordKernelType);
    if (made == NULL)
        return NULL;
    memset((char *)made + sizeof(Face), 0, sizeof(RecordKernel) - sizeof(Face));
    face_init(&made->face, function, kernel_vectorcall);
    made->face.run = record_run;
    made->cache = Py_NewRef(cache);
    made->below = Py_NewRef(below);
    made->tracked_bit = Py_NewRef(tracked);
    made->next_seq = Py_NewRef(next_seq);
    made->metas = Py_NewRef(metas);
    made->unlike = Py_NewRef(unlike);
    made->kept = Py_NewRef(kept);
    made->node = (PyTypeObject *)Py_NewRef(node);
    made->arguments = arguments;
    made->dtype_argument = dtype_argument;
    made->fits = wanted;
    PyObject_GC_Track(made);
    if ((made->at_edges = slot_of(made->node, "edges")) < 0 || (made->at_seq = slot_of(made->node, "seq")) < 0
        || (made->at_extra = slot_of(made->node, "extra")) < 0
        || (made->at_metas = wanted == FITS_NOT ? 0 : slot_of(made->node, "metas")) < 0)
        goto failed;
    for (int k = 0; k < PyTuple_GET_SIZE(differentiable); k++) {
        made->argument[k] = (int)PyLong_AsLong(PyTuple_GET_ITEM(differentiable, k));
        if (PyErr_Occurred() || made->argument[k] < 0 || made->argument[k] >= arguments)
            goto failed;
        made->differentiable = k + 1;
    }
    for (int i = 0; i < PyTuple_GET_SIZE(saves); i++) {
        const char *kind, *slot;
        Save *save = &made->save[i];
        /* (kind, slot, argument, need) */
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(saves, i), "ssiI", &kind, &slot, &save->argument, &save->need)
            || (save->kind = index_of(SAVED, kind)) < 0 || (save->at = slot_of(made->node, slot)) < 0)
            goto failed;
        if (save->kind == SAVE_TENSOR) {
            PyObject *version = PyUnicode_FromFormat("%s_version", slot);
            save->version_at = version == NULL ? -1 : slot_of(made->node, PyUnicode_AsUTF8(version));
            Py_XDECREF(version);
            if (save->version_at < 0)
                goto failed;
        }
        if (save->argument >= arguments || (save->argument < 0 && save->kind != SAVE_RESULT)) {
            PyErr_SetString(PyExc_ValueError, "no such argument");
            goto failed;
        }
        made->saves = i + 1;
    }
    return (PyObject *)made;
failed:
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, "no such argument");
    Py_DECREF(made);
    return NULL;
}

/* ---- ViewKernel */

typedef struct {
    Face face;
    PyObject *op, *cache, *below, *attach;
    PyObject *kernel, *remembered; /* the kernel that was found last, and its geometries; NULL if it is not one by geometry */
} ViewKernel;

static PyObject *tuple_of(const npy_intp *values, int n)
{
    PyObject *made = PyTuple_New(n);
    for (int i = 0; made != NULL && i < n; i++) {
        PyObject *value = PyLong_FromSsize_t(values[i]);
        if (value == NULL)
            Py_CLEAR(made);
        else
            PyTuple_SET_ITEM(made, i, value);
    }
    return made;
}

/* Numbers of a tuple; -1 if it is not a tuple of at most `most` numbers. */
static int numbers_of(PyObject *tuple, npy_intp *values, int most)
{
    if (!PyTuple_CheckExact(tuple) || PyTuple_GET_SIZE(tuple) > most)
        return -1;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++)
        if ((values[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(tuple, i))) == -1 && PyErr_Occurred())
            return -1;
    return (int)PyTuple_GET_SIZE(tuple);
}

#define DIMS 32

/* An array over the memory of a row-major root, from (shape, strides and start in bytes, ...). NULL with or without an error:
 * not of this kind, or it would reach outside that memory. */
static PyObject *array_over(PyObject *root, PyObject *geometry)
{
    npy_intp shape[DIMS], strides[DIMS];
    if (!PyArray_CheckExact(root) || !PyArray_CHKFLAGS((PyArrayObject *)root, NPY_ARRAY_C_CONTIGUOUS))
        return NULL;
    PyArrayObject *whole = (PyArrayObject *)root;
    npy_intp bytes = PyArray_NBYTES(whole), start = PyLong_AsSsize_t(PyTuple_GET_ITEM(geometry, 2)), low = start, high = start;
    if (start == -1 && PyErr_Occurred())
        return NULL;
    int n = numbers_of(PyTuple_GET_ITEM(geometry, 0), shape, DIMS);
    if (n < 0 || numbers_of(PyTuple_GET_ITEM(geometry, 1), strides, DIMS) != n || start < 0 || start > bytes)
        return NULL;
    for (int d = 0; d < n; d++) {
        npy_intp step = strides[d] < 0 ? -strides[d] : strides[d];
        if (shape[d] < 1 || step < 0 || (step > 0 && shape[d] - 1 > bytes / step))
            return NULL;
        if (strides[d] < 0)
            low -= (shape[d] - 1) * step;
        else
            high += (shape[d] - 1) * step;
    }
    if (low < 0 || high > bytes - PyArray_ITEMSIZE(whole))
        return NULL;
    PyArray_Descr *descr = PyArray_DESCR(whole);
    Py_INCREF(descr);
    PyObject *made = PyArray_NewFromDescr(&PyArray_Type, descr, n, shape, strides, PyArray_BYTES(whole) + start,
                                          PyArray_FLAGS(whole) & NPY_ARRAY_WRITEABLE, NULL);
    if (made == NULL)
        return NULL;
    PyArray_UpdateFlags((PyArrayObject *)made, NPY_ARRAY_UPDATE_ALL);
    if (PyArray_SetBaseObject((PyArrayObject *)made, Py_NewRef(root)) < 0)
        Py_CLEAR(made);
    return made;
}

/* The tensor that a view operator makes, without its record. NULL with or without an error. `storage` is that of both. */
static PyObject *viewed_by(PyObject *remembered, PyObject *const *args, Py_ssize_t n, PyObject *storage)
{
    PyObject *tensor = args[0], *device = SLOT(tensor, AT_DEVICE), *offset = SLOT(tensor, AT_OFFSET);
    PyObject *root = SLOT(storage, AT_ROOT);
    PyArrayObject *array = (PyArrayObject *)SLOT(tensor, AT_ARRAY);
    PyObject *passed[MOST + 4], *found = NULL, *made = NULL;
    if (device == NULL || offset == NULL || root == NULL || array == NULL || !PyArray_CheckExact(array))
        return NULL;
    PyObject *backend = PyObject_GetAttr(device, S_BACKEND);
    PyObject *maker = backend == NULL ? NULL : PyObject_GetAttr(backend, S_VIEW_ARRAY);
    PyObject *keys = maker != (PyObject *)&PyArray_Type ? NULL : PyObject_GetAttr(backend, S_KEYS);
    Py_XDECREF(backend);
    Py_XDECREF(maker);
    if (keys == NULL)
        return NULL;
    passed[0] = tuple_of(PyArray_DIMS(array), PyArray_NDIM(array));
    passed[1] = tuple_of(PyArray_STRIDES(array), PyArray_NDIM(array));
    passed[2] = PyLong_FromSsize_t(PyArray_ITEMSIZE(array));
    passed[3] = offset;
    for (Py_ssize_t i = 1; i < n; i++)
        passed[3 + i] = args[i];
    Py_INCREF(root); /* both stay, whatever the call of Python does */
    Py_INCREF(device);
    if (passed[0] != NULL && passed[1] != NULL && passed[2] != NULL)
        found = PyObject_Vectorcall(remembered, passed, 3 + n, NULL);
    Py_XDECREF(passed[0]);
    Py_XDECREF(passed[1]);
    Py_XDECREF(passed[2]);
    if (found != NULL && PyTuple_CheckExact(found) && PyTuple_GET_SIZE(found) == 4) {
        PyObject *over = array_over(root, found);
        made = over == NULL ? NULL : wrap(over, keys, device);
        if (made != NULL) {
            Py_SETREF(SLOT(made, AT_STORAGE), Py_NewRef(storage));
            SLOT(made, AT_OFFSET) = Py_NewRef(PyTuple_GET_ITEM(found, 3));
        }
    }
    Py_XDECREF(found);
    Py_DECREF(root);
    Py_DECREF(device);
    Py_DECREF(keys);
    return made;
}

/* Say of a new tensor that it is a view; 0, or -1 with an error. */
static int record_view(ViewKernel *self, PyObject *made, PyObject *const *args, Py_ssize_t n, PyObject *storage)
{
    PyObject *rest = PyTuple_New(n - 1), *views = SLOT(storage, AT_VIEWS), *chain = NULL, *enabled = NULL, *view = NULL, *ref = NULL;
    int failed = -1;
    if (rest == NULL)
        return -1;
    for (Py_ssize_t i = 1; i < n; i++)
        PyTuple_SET_ITEM(rest, i - 1, Py_NewRef(args[i]));
    if (SLOT(args[0], AT_VIEW_OF) != Py_None || views == NULL || !PyList_CheckExact(views) || PyList_GET_SIZE(views) >= 32) {
        PyObject *none = PyObject_CallFunctionObjArgs(self->attach, made, args[0], self->op, rest, Py_None, NULL);
        failed = none == NULL ? -1 : 0;
        Py_XDECREF(none);
        Py_DECREF(rest);
        return failed;
    }
    int on = (enabled = levels_enabled()) == NULL ? -1 : PyObject_IsTrue(enabled);
    if (on >= 0 && (chain = Py_BuildValue("((OOO))", self->op, rest, Py_None)) != NULL && SLOT(storage, AT_STORAGE_VER) != NULL
        && (view = PyType_GenericAlloc(View, 0)) != NULL && (ref = PyWeakref_NewRef(made, NULL)) != NULL) {
        SLOT(view, AT_BASE) = Py_NewRef(args[0]);
        SLOT(view, AT_CHAIN) = Py_NewRef(chain);
        SLOT(view, AT_SEEN) = Py_NewRef(SLOT(storage, AT_STORAGE_VER));
        SLOT(view, AT_MULTI) = Py_NewRef(Py_False);
        SLOT(view, AT_NO_GRAD) = Py_NewRef(on ? Py_False : Py_True);
        SLOT(view, AT_MAKER) = Py_NewRef(NO_TEXT);
        Py_SETREF(SLOT(made, AT_VIEW_OF), Py_NewRef(view));
        failed = PyList_Append(views, ref);
    }
    Py_DECREF(rest);
    Py_XDECREF(enabled);
    Py_XDECREF(chain);
    Py_XDECREF(view);
    Py_XDECREF(ref);
    return failed;
}

static Outcome view_run(Face *face, PyObject *ks, PyObject *const *args, Py_ssize_t n, PyObject **result)
{
    ViewKernel *self = (ViewKernel *)face;
    if (n < 1 || n > MOST || !Py_IS_TYPE(args[0], Tensor))
        return DECLINED;
    PyObject *below = PyNumber_And(ks, self->below);
    PyObject *kernel = below == NULL ? NULL : PyDict_GetItemWithError(self->cache, below);
    Py_XDECREF(below);
    if (kernel == NULL)
        return decline_after_error();
    if (kernel != self->kernel) {
        PyObject *variables = PyFunction_Check(kernel) ? ((PyFunctionObject *)kernel)->func_dict : NULL;
        PyObject *remembered = variables == NULL ? NULL : PyDict_GetItemWithError(variables, S_REMEMBERED);
        Py_INCREF(kernel);
        Py_XSETREF(self->remembered, Py_XNewRef(remembered));
        Py_XSETREF(self->kernel, kernel);
    }
    PyObject *storage = SLOT(args[0], AT_STORAGE), *remembered = self->remembered, *made;
    if (remembered == NULL || storage == NULL)
        return DECLINED;
    storage = storage == Py_None ? PyObject_CallMethodNoArgs(args[0], S_SHARED_STORAGE) : Py_NewRef(storage);
    if (storage == NULL)
        return decline_after_error();
    if (!Py_IS_TYPE(storage, Storage)) {
        Py_DECREF(storage);
        return DECLINED;
    }
    Py_INCREF(remembered);
    made = viewed_by(remembered, args, n, storage);
    Py_DECREF(remembered);
    if (made != NULL && record_view(self, made, args, n, storage) < 0)
        Py_CLEAR(made);
    Py_DECREF(storage);
    *result = made;
    return made == NULL ? decline_after_error() : DONE;
}

static int view_traverse(PyObject *self, visitproc visit, void *arg)
{
    ViewKernel *kernel = (ViewKernel *)self;
    Py_VISIT(kernel->face.function);
    Py_VISIT(kernel->op);
    Py_VISIT(kernel->cache);
    Py_VISIT(kernel->attach);
    Py_VISIT(kernel->kernel);
    Py_VISIT(kernel->remembered);
    return 0;
}

static int view_clear(PyObject *self)
{
    ViewKernel *kernel = (ViewKernel *)self;
    Py_CLEAR(kernel->face.function);
    Py_CLEAR(kernel->op);
    Py_CLEAR(kernel->cache);
    Py_CLEAR(kernel->below);
    Py_CLEAR(kernel->attach);
    Py_CLEAR(kernel->kernel);
    Py_CLEAR(kernel->remembered);
    return 0;
}

/* (function, op, cache, below, attach) */
static PyObject *make_view_kernel(PyObject *module, PyObject *args)
{
    PyObject *function, *op, *cache, *below, *attach;
    if (!PyArg_ParseTuple(args, "OOO!OO", &function, &op, &PyDict_Type, &cache, &below, &attach))
        return NULL;
    ViewKernel *made = PyObject_GC_New(ViewKernel, &ViewKernelType);
    if (made == NULL)
        return NULL;
    memset((char *)made + sizeof(Face), 0, sizeof(ViewKernel) - sizeof(Face));
    face_init(&made->face, function, kernel_vectorcall);
    made->face.run = view_run;
    made->op = Py_NewRef(op);
    made->cache = Py_NewRef(cache);
    made->below = Py_NewRef(below);
    made->attach = Py_NewRef(attach);
    PyObject_GC_Track(made);
    return (PyObject *)made;
}

/* ---- types and module */

#define FACE(TYPE, NAME, STRUCT, CALL, TRAVERSE, CLEAR)                                                             \
    static PyTypeObject TYPE = {                                                                                    \
        PyVarObject_HEAD_INIT(NULL, 0).tp_name = "turnout_speed._calls." NAME, .tp_basicsize = sizeof(STRUCT),      \
        .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR, \
        .tp_vectorcall_offset = offsetof(Face, vectorcall), .tp_call = PyVectorcall_Call, .tp_dealloc = face_dealloc, \
        .tp_traverse = TRAVERSE, .tp_clear = CLEAR, .tp_getattro = face_getattro, .tp_setattro = face_setattro,     \
        .tp_repr = face_repr, .tp_descr_get = face_get, .tp_methods = face_methods,                                 \
        .tp_getset = face_properties,                                                                               \
        .tp_weaklistoffset = offsetof(Face, weakrefs),                                                              \
    }

FACE(CallType, "Call", Call, call_vectorcall, call_traverse, call_clear);
FACE(ArrayKernelType, "ArrayKernel", ArrayKernel, kernel_vectorcall, array_traverse, array_clear);
FACE(RecordKernelType, "RecordKernel", RecordKernel, kernel_vectorcall, record_traverse, record_clear);
FACE(ViewKernelType, "ViewKernel", ViewKernel, kernel_vectorcall, view_traverse, view_clear);

static int take(PyObject *from, const char *name, PyObject **to)
{
    PyObject *value = PyDict_GetItemString(from, name);
    if (value == NULL) {
        PyErr_Format(PyExc_KeyError, "%s", name);
        return -1;
    }
    Py_XSETREF(*to, Py_NewRef(value));
    return 0;
}

/* Said once, before anything is made: the classes and variables of Turnout that calls read. */
static PyObject *configure(PyObject *module, PyObject *names)
{
    static const struct {
        PyTypeObject **type;
        const char *name;
        Py_ssize_t *at;
    } slots[] = {
        {&Tensor, "array", &AT_ARRAY}, {&Tensor, "keys", &AT_KEYS}, {&Tensor, "device", &AT_DEVICE}, {&Tensor, "gmask", &AT_GMASK},
        {&Tensor, "node", &AT_NODE}, {&Tensor, "ver", &AT_VER}, {&Tensor, "storage", &AT_STORAGE}, {&Tensor, "view_of", &AT_VIEW_OF},
        {&Tensor, "extra", &AT_EXTRA}, {&Tensor, "offset", &AT_OFFSET}, {&Storage, "array", &AT_ROOT},
        {&Storage, "ver", &AT_STORAGE_VER}, {&Storage, "views", &AT_VIEWS}, {&View, "base", &AT_BASE}, {&View, "chain", &AT_CHAIN},
        {&View, "seen", &AT_SEEN}, {&View, "multi", &AT_MULTI}, {&View, "no_grad", &AT_NO_GRAD}, {&View, "maker", &AT_MAKER},
    };
    if (!PyDict_Check(names)) {
        PyErr_SetString(PyExc_TypeError, "a dict of names");
        return NULL;
    }
    if (take(names, "Tensor", (PyObject **)&Tensor) < 0 || take(names, "STUB_BUILTINS", &STUB_BUILTINS) < 0
        || take(names, "DISPATCH", &DISPATCH) < 0 || take(names, "FRESH", &FRESH) < 0 || take(names, "GRAD", &GRAD) < 0
        || take(names, "DType", &DTYPE) < 0 || take(names, "Device", &DEVICE) < 0 || take(names, "CLOCK", &CLOCK) < 0
        || take(names, "add", &NUMPY_ADD) < 0 || take(names, "subtract", &NUMPY_SUB) < 0 || take(names, "multiply", &NUMPY_MUL) < 0
        || take(names, "divide", &NUMPY_DIV) < 0 || take(names, "Storage", (PyObject **)&Storage) < 0
        || take(names, "View", (PyObject **)&View) < 0)
        return NULL;
    for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++)
        if ((*slots[i].at = slot_of(*slots[i].type, slots[i].name)) < 0)
            return NULL;
    Py_RETURN_NONE;
}

static PyObject *is_compiled(PyObject *module, PyObject *value)
{
    return PyBool_FromLong(Py_IS_TYPE(value, &CallType) || is_kernel(value));
}

static PyObject *taken(PyObject *module, PyObject *unused) { return PyLong_FromSsize_t(TAKEN); }

static PyMethodDef functions[] = {
    {"taken", taken, METH_NOARGS, "taken()\n--\n\nHow many calls of stubs, functions and methods were finished here."},
    {"configure", configure, METH_O, "configure(names)\n--\n\nName the classes and variables of Turnout that calls read."},
    {"call", make_call, METH_VARARGS, "call(function, targets, missing)\n--\n\nA stub, function or method."},
    {"array_kernel", make_array_kernel, METH_VARARGS, "The wrapper of an array kernel."},
    {"record_kernel", make_record_kernel, METH_VARARGS, "A kernel at Autograd."},
    {"view_kernel", make_view_kernel, METH_VARARGS, "A kernel at ADInplaceOrView that records a view."},
    {"is_compiled", is_compiled, METH_O, "is_compiled(value)\n--\n\nWhether a callable was made here."},
    {NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "_calls", .m_size = -1, .m_methods = functions};

PyMODINIT_FUNC PyInit__calls(void)
{
    import_array();
    if (PyType_Ready(&CallType) < 0 || PyType_Ready(&ArrayKernelType) < 0 || PyType_Ready(&RecordKernelType) < 0
        || PyType_Ready(&ViewKernelType) < 0)
        return NULL;
    S_DISPATCH = PyUnicode_InternFromString("DISPATCH");
    S_EPOCH = PyUnicode_InternFromString("epoch");
    S_VER = PyUnicode_InternFromString("ver");
    S_BACKEND = PyUnicode_InternFromString("backend");
    S_VIEW_ARRAY = PyUnicode_InternFromString("view_array");
    S_KEYS = PyUnicode_InternFromString("keys");
    S_REMEMBERED = PyUnicode_InternFromString("remembered");
    S_SHARED_STORAGE = PyUnicode_InternFromString("shared_storage");
    ZERO = PyLong_FromLong(0);
    NO_TEXT = PyUnicode_FromString("");
    if (S_DISPATCH == NULL || S_EPOCH == NULL || S_VER == NULL || S_BACKEND == NULL || S_VIEW_ARRAY == NULL || S_KEYS == NULL
        || S_REMEMBERED == NULL || S_SHARED_STORAGE == NULL || ZERO == NULL || NO_TEXT == NULL)
        return NULL;
    return PyModule_Create(&definition);
}
