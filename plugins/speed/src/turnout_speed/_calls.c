/* Calls without a Python frame.
 *
 * The one idea: a call is taken here only if it can be finished here. Everything that is not plain - a subclass, a mode, a wrong
 * argument, an error of the array library - is declined before anything was changed, and the Python function that stands beside
 * it starts from the beginning. So errors, tracebacks, warnings and rare cases are those of the Python function.
 *
 * Call          a stub, a public function or a method: arguments, key set, look-up in the operator's cache
 * ArrayKernel   the wrapper of an array kernel: arrays out of tensors, the kernel, a tensor around its result
 * PlanKernel    the wrapper of an array kernel that gets its output: what the shape function answered, new arrays, the kernel
 * RecordKernel  a kernel at Autograd: the call below, and a node that says how it was made
 * ViewKernel    a view operator at ADInplaceOrView: a remembered geometry, an array over the same memory, and the record of the view
 * WriteKernel   an operator that writes its first argument, at ADInplaceOrView: the call below, and the count of the write
 * CompositeKernel  a composite kernel that ends in one call of another operator
 * CopyKernel    a kernel that copies a row-major tensor, in another dtype if it is asked to
 * SelectKernel  a factory at BackendSelect: the device, and the call below
 * FactoryKernel a factory: new memory, zeroed or filled with one number
 * FillKernel    a kernel that fills its first argument with one number
 * Getter        x[index], for ints, slices and an index tensor
 *
 * Only NumPy's arrays are read, through its C interface, and only within the bounds that they state.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>
#include <stddef.h>
#include <math.h>
#include <float.h>
#include <fenv.h>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>
#include <numpy/ufuncobject.h>

#define MOST 12 /* arguments of an operator; one with more keeps its Python function */

typedef enum { FAILED = -1, DECLINED = 0, DONE = 1 } Outcome;

/* ---- what is known of Turnout: set once by `configure` */

static PyTypeObject *Tensor, *Storage, *View, *SIZE;
static Py_ssize_t AT_OFFSET, AT_ROOT, AT_STORAGE_VER, AT_VIEWS, AT_BASE, AT_CHAIN, AT_SEEN, AT_MULTI, AT_NO_GRAD, AT_MAKER;
static Py_ssize_t AT_ARRAY, AT_KEYS, AT_DEVICE, AT_GMASK, AT_NODE, AT_VER, AT_STORAGE, AT_VIEW_OF, AT_EXTRA;
static PyObject *STUB_BUILTINS, *DISPATCH, *FRESH, *GRAD, *DTYPE, *DEVICE;
static PyObject *CLOCK;
static PyObject *S_DISPATCH, *S_EPOCH, *S_VER, *S_BACKEND, *S_VIEW_ARRAY, *S_KEYS, *S_REMEMBERED, *S_SHARED_STORAGE, *S_CALL;
static PyObject *S_NATIVE, *S_NEW_ARRAY, *S_DENSE, *S_CURRENT_DEVICE, *S_RESOLVE_DEVICE;
static PyObject *FAKE_MODE, *EMPTY;
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

static PyTypeObject CallType, ArrayKernelType, RecordKernelType, ViewKernelType, WriteKernelType, PlanKernelType,
    CompositeKernelType, CopyKernelType, SelectKernelType, FactoryKernelType, FillKernelType,
    GetterType;

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

typedef Outcome (*Run)(Face *, PyObject *ks, PyObject *const *args, Py_ssize_t n, PyObject **result);

/* A new object of one of the types, with nothing but its face; the collector does not know it yet. */
static Face *new_face(PyTypeObject *type, PyObject *function, vectorcallfunc vectorcall, Run run)
{
    Face *made = PyObject_GC_New(Face, type);
    if (made == NULL)
        return NULL;
    memset((char *)made + sizeof(Face), 0, type->tp_basicsize - sizeof(Face));
    made->vectorcall = vectorcall;
    made->function = Py_NewRef(function);
    made->weakrefs = NULL;
    made->run = run;
    return made;
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
    return Py_IS_TYPE(value, &ArrayKernelType) || Py_IS_TYPE(value, &RecordKernelType) || Py_IS_TYPE(value, &ViewKernelType)
           || Py_IS_TYPE(value, &WriteKernelType) || Py_IS_TYPE(value, &PlanKernelType) || Py_IS_TYPE(value, &CompositeKernelType)
           || Py_IS_TYPE(value, &CopyKernelType) || Py_IS_TYPE(value, &SelectKernelType)
           || Py_IS_TYPE(value, &FactoryKernelType) || Py_IS_TYPE(value, &FillKernelType);
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

enum { IS_TENSOR, IS_SCALAR, IS_INT, IS_FLOAT, IS_BOOL, IS_STR, IS_DTYPE, IS_DEVICE, IS_INTS, IS_TENSORS, IS_NONE };

typedef struct {
    PyObject *cache;
    int arguments;          /* of the schema */
    int tensors;            /* of them hold tensors: without any, the state alone gives the key set */
    int kind[MOST];
    int optional[MOST];     /* whether it may be None; of a list of tensors, whether its elements may be */
    int size[MOST];         /* of a list of ints: how often one that stands for the list is repeated, or 0 */
    int source[MOST];       /* the parameter that gives it, or -1: it always has its default */
    PyObject *standard[MOST]; /* its default, or NULL */
    PyObject *name[MOST];   /* the parameter's name, or NULL where it cannot be given by name */
    int parameters;         /* how many may be given by position */
    int rest;               /* the parameter that takes all that are left: ints, or one list of them; or -1 */
    int alone;              /* whether that is taken for ints without keywords only */
} Target;

typedef struct {
    Face face;
    int count;
    Target targets[2];
    PyObject *tail;         /* the last line of the text: (kernel, ks, arguments); or NULL */
    PyObject *chosen;       /* the overloads by the types of a call; or NULL */
    int most;               /* the arguments of a call that is looked for there */
} Call;

/* Whether a value is an int of 64 bits. */
static inline int is_int(PyObject *value)
{
    int overflow = 1;
    if (PyLong_CheckExact(value))
        PyLong_AsLongLongAndOverflow(value, &overflow);
    return !overflow;
}

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
        return is_int(value);
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
    default:
        return 0;
    }
}

/* A list of ints as the Python function would pass it on: a plain tuple. A new reference; NULL with or without an error. */
static PyObject *as_ints(PyObject *value, int size)
{
    int is_list = PyList_CheckExact(value);
    if (is_list || PyTuple_CheckExact(value) || Py_IS_TYPE(value, SIZE)) {
        Py_ssize_t n = is_list ? PyList_GET_SIZE(value) : PyTuple_GET_SIZE(value);
        PyObject **items = is_list ? ((PyListObject *)value)->ob_item : ((PyTupleObject *)value)->ob_item;
        for (Py_ssize_t i = 0; i < n; i++)
            if (!is_int(items[i]))
                return NULL;
        return is_list ? PyList_AsTuple(value) : PyTuple_GetSlice(value, 0, n);
    }
    if (size == 0 || !is_int(value))
        return NULL;
    PyObject *made = PyTuple_New(size);
    for (int i = 0; made != NULL && i < size; i++)
        PyTuple_SET_ITEM(made, i, Py_NewRef(value));
    return made;
}

/* ks | the keys of a tensor; 0 if it is none, or with an error. */
static inline int add_keys(PyObject **ks, PyObject *tensor)
{
    PyObject *keys = Py_IS_TYPE(tensor, Tensor) ? SLOT(tensor, AT_KEYS) : NULL;
    if (keys == NULL)
        return 0;
    if (*ks == NULL)
        *ks = Py_NewRef(keys);
    else if (keys != *ks)
        Py_SETREF(*ks, PyNumber_Or(*ks, keys));
    return *ks != NULL;
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

/* Call a kernel of Python from the frame that the text of the function would have: its last line. Not again, if that fails. */
static Outcome call_kernel(const Target *target, PyObject *tail, PyObject *kernel, PyObject *ks, PyObject **values, PyObject **result)
{
    PyObject *passed[MOST + 3];
    Py_ssize_t count = 2;
    passed[1] = is_kernel(kernel) ? ((Face *)kernel)->function : kernel; /* it has just declined */
    passed[2] = ks;
    for (int i = 0; i < target->arguments; i++)
        if (target->source[i] >= 0 || target->name[i] != NULL)
            passed[1 + count++] = values[i];
    *result = PyObject_Vectorcall(tail, passed + 1, count | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    return *result == NULL ? FAILED : DONE;
}

static Outcome run_target(const Target *target, PyObject *tail, PyObject *const *args, Py_ssize_t n, PyObject *kwnames, PyObject **result)
{
    PyObject *values[MOST], *made[MOST + 1]; /* what was made of an argument here, to be released */
    PyObject *ks = NULL, *kernel = NULL;
    int count = 0;
    Outcome outcome = DECLINED;
    Py_ssize_t named = kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames);
    PyObject *rest = NULL; /* the ints that were written one by one */
    PyObject *const *keywords = args + n;
    if (target->rest >= 0 && n > target->rest && PyLong_CheckExact(args[target->rest])) {
        rest = PyTuple_New(n - target->rest);
        for (Py_ssize_t k = target->rest; rest != NULL && k < n; k++)
            if (is_int(args[k]))
                PyTuple_SET_ITEM(rest, k - target->rest, Py_NewRef(args[k]));
            else
                Py_CLEAR(rest);
        if (rest == NULL)
            return decline_after_error();
        made[count++] = rest;
        n = target->rest + 1;
    }
    Py_ssize_t used = n;
    if (n > target->parameters || (target->alone && (rest == NULL || named)))
        goto end;
    for (int i = 0; i < target->arguments; i++) {
        PyObject *value = NULL;
        int from = target->source[i];
        if (rest != NULL && from == target->rest)
            value = rest;
        else if (from >= 0 && from < n)
            value = args[from];
        else {
            for (Py_ssize_t k = 0; k < named && target->name[i] != NULL; k++)
                if (PyTuple_GET_ITEM(kwnames, k) == target->name[i]) {
                    value = keywords[k];
                    used++;
                    break;
                }
            if (value == NULL)
                value = target->standard[i];
            if (value == NULL)
                goto end;
        }
        values[i] = value;
        switch (target->kind[i]) {
        case IS_TENSOR:
            if (!(value == Py_None ? target->optional[i] : add_keys(&ks, value)))
                goto end;
            break;
        case IS_TENSORS: {
            int is_list = PyList_CheckExact(value);
            if (!is_list && !PyTuple_CheckExact(value))
                goto end;
            Py_ssize_t length = is_list ? PyList_GET_SIZE(value) : PyTuple_GET_SIZE(value);
            PyObject **items = is_list ? ((PyListObject *)value)->ob_item : ((PyTupleObject *)value)->ob_item;
            for (Py_ssize_t k = 0; k < length; k++)
                if (!(items[k] == Py_None ? target->optional[i] : add_keys(&ks, items[k])))
                    goto end;
            break;
        }
        case IS_INTS:
            if ((value == Py_None && target->optional[i]) || (value == rest && rest != NULL))
                break;
            value = as_ints(value, target->size[i]);
            if (value == NULL)
                goto end;
            values[i] = made[count++] = value;
            break;
        default:
            if (!fits(target->kind[i], target->optional[i], value))
                goto end;
        }
    }
    if (used != n + named || (ks == NULL && target->tensors))
        goto end;
    PyObject *state = dispatch_state();
    if (state == NULL)
        goto end;
    if (ks == NULL)
        ks = with_state(Py_NewRef(ZERO), state);
    else if (state != FRESH)
        ks = with_state(ks, state);
    Py_DECREF(state);
    kernel = ks == NULL ? NULL : Py_XNewRef(PyDict_GetItemWithError(target->cache, ks)); /* it may be cleared while it runs */
    if (kernel == NULL)
        goto end;
    if (is_kernel(kernel)) {
        outcome = ((Face *)kernel)->run((Face *)kernel, ks, values, target->arguments, result);
        TAKEN += outcome == DONE;
    }
    if (outcome == DECLINED && tail != NULL && !PyErr_Occurred())
        outcome = call_kernel(target, tail, kernel, ks, values, result);
end:
    if (outcome == DECLINED)
        outcome = decline_after_error();
    while (count > 0)
        Py_DECREF(made[--count]);
    Py_XDECREF(kernel);
    Py_XDECREF(ks);
    return outcome;
}

/* The overload that the types of the arguments choose, if its call can be finished here. */
static Outcome run_chosen(PyObject *chosen, PyObject *const *args, Py_ssize_t n, PyObject **result)
{
    PyObject *types = PyTuple_New(n);
    if (types == NULL)
        return decline_after_error();
    for (Py_ssize_t i = 0; i < n; i++)
        PyTuple_SET_ITEM(types, i, Py_NewRef(Py_TYPE(args[i])));
    PyObject *op = Py_XNewRef(PyDict_GetItemWithError(chosen, types));
    Py_DECREF(types);
    PyObject *call = op == NULL ? NULL : PyObject_GetAttr(op, S_CALL);
    Outcome outcome = DECLINED;
    if (call != NULL && Py_IS_TYPE(call, &CallType))
        outcome = run_target(&((Call *)call)->targets[0], NULL, args, n, NULL, result);
    Py_XDECREF(op);
    Py_XDECREF(call);
    return outcome == DECLINED ? decline_after_error() : outcome;
}

static PyObject *call_vectorcall(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Call *call = (Call *)self;
    if (!is_traced()) {
        PyObject *result = NULL;
        Py_ssize_t n = PyVectorcall_NARGS(nargsf);
        Outcome outcome = DECLINED;
        /* The tail is that of the function's own target: a call of another one is finished here or not at all. */
        for (int i = 0; i < call->count && outcome == DECLINED; i++)
            outcome = run_target(&call->targets[i], i == 0 ? call->tail : NULL, args, n, kwnames, &result);
        if (outcome == DECLINED && n <= call->most && kwnames == NULL)
            outcome = run_chosen(call->chosen, args, n, &result);
        if (outcome != DECLINED)
            return outcome == DONE ? result : NULL;
    }
    return PyObject_Vectorcall(call->face.function, args, nargsf, kwnames);
}

static int call_traverse(PyObject *self, visitproc visit, void *arg)
{
    Call *call = (Call *)self;
    Py_VISIT(call->face.function);
    Py_VISIT(call->tail);
    Py_VISIT(call->chosen);
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
    Py_CLEAR(call->tail);
    Py_CLEAR(call->chosen);
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

/* What a kernel holds lies behind its face, object after object. */
#define HOLDS(STRUCT, LAST) ((int)((offsetof(STRUCT, LAST) + sizeof(PyObject *) - sizeof(Face)) / sizeof(PyObject *)))
#define HELD(self) ((PyObject **)((char *)(self) + sizeof(Face)))

static int visit_held(PyObject *self, int count, visitproc visit, void *arg)
{
    Py_VISIT(((Face *)self)->function);
    for (int i = 0; i < count; i++)
        Py_VISIT(HELD(self)[i]);
    return 0;
}

static int clear_held(PyObject *self, int count)
{
    Py_CLEAR(((Face *)self)->function);
    for (int i = 0; i < count; i++)
        Py_CLEAR(HELD(self)[i]);
    return 0;
}

#define HOLDING(NAME, COUNT)                                                                                              \
    static int NAME##_traverse(PyObject *self, visitproc visit, void *arg) { return visit_held(self, COUNT, visit, arg); } \
    static int NAME##_clear(PyObject *self) { return clear_held(self, COUNT); }

static void face_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    if (((Face *)self)->weakrefs != NULL)
        PyObject_ClearWeakRefs(self);
    Py_TYPE(self)->tp_clear(self);
    PyObject_GC_Del(self);
}

static const char *const KINDS[] = {"Tensor", "Scalar", "int", "float", "bool", "str", "ScalarType", "Device", "ints",
                                    "tensors", "none", NULL};

/* (cache, parameters, ((kind, optional, size, source, default or MISSING, name or None), ...), rest or -1, alone) */
static int read_target(Target *target, PyObject *row, PyObject *missing)
{
    PyObject *arguments, *cache;
    if (!PyArg_ParseTuple(row, "O!iO!ip", &PyDict_Type, &cache, &target->parameters, &PyTuple_Type, &arguments, &target->rest,
                          &target->alone))
        return -1;
    target->cache = Py_NewRef(cache);
    if (PyTuple_GET_SIZE(arguments) > MOST) {
        PyErr_SetString(PyExc_ValueError, "too many arguments");
        return -1;
    }
    for (int i = 0; i < PyTuple_GET_SIZE(arguments); i++) {
        const char *kind;
        PyObject *standard, *name;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(arguments, i), "spiiOO", &kind, &target->optional[i], &target->size[i],
                              &target->source[i], &standard, &name))
            return -1;
        target->kind[i] = -1;
        for (int k = 0; KINDS[k] != NULL; k++)
            if (strcmp(KINDS[k], kind) == 0)
                target->kind[i] = k;
        if (target->kind[i] < 0) {
            PyErr_Format(PyExc_ValueError, "unknown kind %s", kind);
            return -1;
        }
        target->tensors += target->kind[i] == IS_TENSOR || target->kind[i] == IS_TENSORS;
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

/* (function, targets, MISSING, tail or None, chosen or None, most) */
static PyObject *make_call(PyObject *module, PyObject *args)
{
    PyObject *function, *targets, *missing, *tail, *chosen;
    int most;
    if (!PyArg_ParseTuple(args, "OO!OOOi", &function, &PyTuple_Type, &targets, &missing, &tail, &chosen, &most))
        return NULL;
    if (PyTuple_GET_SIZE(targets) > 2 || (chosen != Py_None && !PyDict_CheckExact(chosen))) {
        PyErr_SetString(PyExc_ValueError, "at most two targets");
        return NULL;
    }
    Call *made = (Call *)new_face(&CallType, function, call_vectorcall, NULL);
    if (made == NULL)
        return NULL;
    made->count = 0;
    made->tail = tail == Py_None ? NULL : Py_NewRef(tail);
    made->chosen = chosen == Py_None ? NULL : Py_NewRef(chosen);
    made->most = made->chosen == NULL ? -1 : most;
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

/* ---- programs: steps that are calls of NumPy's own loops */

#define STEPS 8
#define CONSTANTS 4
#define PLACES 6           /* dims of an array that a program serves */
#define SMALL_SIZE 8192    /* elements; above, a call of NumPy costs as little */
#define MANY_STEPS_SIZE 256 /* elements where a program has several steps */
#define PRODUCT_SIZE (1 << 16) /* products of numbers in a matrix product */
#define TYPES (NPY_CDOUBLE + 1)

enum { FROM_STEP = 16, FROM_CONSTANT = 32, COUNT = 48 }; /* operands; below FROM_STEP: arguments of the call */

typedef struct {
    PyUFuncGenericFunction run; /* NULL: there is none for this type */
    void *data;
    int to;
} Loop;

typedef struct {
    int operands, operand[2], reduces; /* a function of two that reduces is given one */
    int multiplies;                    /* a product of matrices, or of batches of them: the first step of a program */
    int is_reduced;                    /* whether the result has length 1 in the reduced dims */
    int first;                         /* a reduction starts with the first element rather than with 0 */
    Loop loops[TYPES];                 /* by the type of the tensors */
} Step;

typedef struct {
    int count;                 /* 0: no program */
    Step steps[STEPS];
    double constants[CONSTANTS];
    npy_intp limit;            /* elements */
    int dim, keepdim, reduces; /* arguments, or -1; whether a step reduces */
    int spreads;               /* whether a product repeats batches of length 1, and has any number of them */
} Program;

/* What a step reads or writes: a place, and how far the next element is in each dim. */
typedef struct {
    char *data;
    npy_intp strides[PLACES];
} Operand;

/* Call a loop over `n` dims. Dims that are one line for every operand are one call. */
static void run_loop(const Loop *loop, int n, const npy_intp *shape, int count, const Operand *operands)
{
    npy_intp lengths[PLACES], steps[PLACES][3], at[PLACES] = {0};
    char *data[3];
    int dims = 0;
    for (int d = 0; d < n; d++) {
        if (shape[d] == 1)
            continue;
        int joins = dims > 0;
        for (int k = 0; joins && k < count; k++)
            joins = steps[dims - 1][k] == operands[k].strides[d] * shape[d];
        dims += !joins;
        lengths[dims - 1] = joins ? lengths[dims - 1] * shape[d] : shape[d];
        for (int k = 0; k < count; k++)
            steps[dims - 1][k] = operands[k].strides[d];
    }
    for (int k = 0; k < count; k++)
        data[k] = operands[k].data;
    if (dims == 0) {
        dims = 1;
        lengths[0] = 1;
        for (int k = 0; k < count; k++)
            steps[0][k] = 0;
    }
    for (;;) {
        char *passed[3] = {data[0], data[1], count > 2 ? data[2] : NULL};
        loop->run(passed, &lengths[dims - 1], steps[dims - 1], loop->data);
        int d = dims - 2;
        for (; d >= 0; d--) {
            at[d]++;
            for (int k = 0; k < count; k++)
                data[k] += steps[d][k];
            if (at[d] < lengths[d])
                break;
            for (int k = 0; k < count; k++)
                data[k] -= steps[d][k] * lengths[d];
            at[d] = 0;
        }
        if (d < 0)
            return;
    }
}

static void set_strides(Operand *operand, int n, const npy_intp *shape, npy_intp itemsize, int reduced_from, int reduced_to)
{
    for (int d = n - 1; d >= 0; d--) {
        int reduced = d >= reduced_from && d < reduced_to;
        operand->strides[d] = reduced ? 0 : itemsize;
        itemsize *= reduced ? 1 : shape[d];
    }
}

/* The dims that are reduced: [from, to) of n; 0 if they are no run of dims, or are written wrongly. */
static int reduced_dims(const Program *program, PyObject *const *args, int n, int *from, int *to)
{
    PyObject *dim = program->dim < 0 ? Py_None : args[program->dim];
    Py_ssize_t count = PyTuple_CheckExact(dim) ? PyTuple_GET_SIZE(dim) : 1;
    unsigned found = 0;
    *from = 0;
    *to = n;
    if (dim == Py_None || count == 0)
        return 1;
    if (n == 0)
        return 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *one = PyTuple_CheckExact(dim) ? PyTuple_GET_ITEM(dim, i) : dim;
        int overflow;
        long at = PyLong_CheckExact(one) ? PyLong_AsLongAndOverflow(one, &overflow) : n;
        at += at < 0 ? n : 0;
        if (at < 0 || at >= n || found & 1u << at)
            return 0;
        found |= 1u << at;
    }
    for (*from = 0; !(found & 1u << *from);)
        ++*from;
    for (*to = *from; *to < n && found & 1u << *to;)
        ++*to;
    return found >> *to == 0;
}

static inline int is_plain(PyArrayObject *array)
{
    return PyArray_CHKFLAGS(array, NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED) && PyArray_ISNOTSWAPPED(array);
}

/* A number as an element of a type: its place, or NULL where the array library would convert or refuse it in another way. */
static char *number_as(PyObject *value, int type, char *place)
{
    double number;
    if (PyFloat_CheckExact(value))
        number = PyFloat_AS_DOUBLE(value);
    else if (PyLong_CheckExact(value)) {
        int overflow;
        long long whole = PyLong_AsLongLongAndOverflow(value, &overflow);
        if (overflow || whole < -(1LL << 24) || whole > 1LL << 24)
            return NULL;
        number = (double)whole;
    } else
        return NULL;
    if (type == NPY_DOUBLE)
        memcpy(place, &number, sizeof number);
    else if (type == NPY_FLOAT && !(isfinite(number) && fabs(number) > FLT_MAX)) { /* NumPy warns of it */
        float single = (float)number;
        memcpy(place, &single, sizeof single);
    } else
        return NULL;
    return place;
}

/* The strides of an array of fewer or shorter dims, repeated over `shape`; 0 if it does not fit. */
static int spread_over(PyArrayObject *array, int n, const npy_intp *shape, Operand *operand)
{
    int behind = n - PyArray_NDIM(array);
    if (behind < 0)
        return 0;
    for (int d = 0; d < n; d++) {
        npy_intp length = d < behind ? 1 : PyArray_DIM(array, d - behind);
        if (length != shape[d] && length != 1)
            return 0;
        operand->strides[d] = length == 1 ? 0 : PyArray_STRIDE(array, d - behind);
    }
    operand->data = PyArray_BYTES(array);
    return 1;
}

/* How far the next matrix of a batch is in dim `d` of `n`: 0 where it is the same one. */
static npy_intp batch_stride(PyArrayObject *array, int d, int n)
{
    int own = d - n + PyArray_NDIM(array);
    return own < 0 || PyArray_DIM(array, own) == 1 ? 0 : PyArray_STRIDE(array, own);
}

/* What a product of matrices needs: the dims of its result. Their number; 0 where the array library does more than one call. */
static int product_shape(const Program *program, PyArrayObject *a, PyArrayObject *b, npy_intp *shape)
{
    int na = PyArray_NDIM(a), nb = PyArray_NDIM(b), n = na > nb ? na : nb;
    if (na < 2 || nb < 2 || n > (program->spreads ? PLACES : 3) || PyArray_DESCR(a) != PyArray_DESCR(b)
        || PyArray_DIM(a, na - 1) != PyArray_DIM(b, nb - 2) || !PyArray_ISALIGNED(a) || !PyArray_ISALIGNED(b)
        || !PyArray_ISNOTSWAPPED(a) || !PyArray_ISNOTSWAPPED(b))
        return 0;
    if (program->spreads ? na > 2 && nb == 2 : na != nb) /* the rows of a batch beside one matrix are one large product */
        return 0;
    for (int d = 0; d < n - 2; d++) {
        npy_intp of_a = d < n - na ? 1 : PyArray_DIM(a, d - n + na), of_b = d < n - nb ? 1 : PyArray_DIM(b, d - n + nb);
        if (of_a != of_b && !(program->spreads && (of_a == 1 || of_b == 1)))
            return 0;
        shape[d] = of_a == 1 ? of_b : of_a;
    }
    shape[n - 2] = PyArray_DIM(a, na - 2);
    shape[n - 1] = PyArray_DIM(b, nb - 1);
    npy_intp work = PyArray_DIM(a, na - 1);
    for (int d = 0; d < n; d++)
        if (shape[d] < 1 || work < 1 || shape[d] > PRODUCT_SIZE || (work *= shape[d]) > PRODUCT_SIZE)
            return 0;
    return n;
}

/* The loop takes the last dim of the batches, or none; the dims before it are gone through here. */
static void run_product(const Loop *loop, PyArrayObject *a, PyArrayObject *b, int n, const npy_intp *shape, const Operand *result)
{
    int na = PyArray_NDIM(a), nb = PyArray_NDIM(b), last = n - 3;
    npy_intp lengths[4] = {last >= 0 ? shape[last] : 1, shape[n - 2], PyArray_DIM(a, na - 1), shape[n - 1]};
    npy_intp at[PLACES] = {0}, steps[9] = {
        0, 0, 0, PyArray_STRIDE(a, na - 2), PyArray_STRIDE(a, na - 1), PyArray_STRIDE(b, nb - 2), PyArray_STRIDE(b, nb - 1),
        result->strides[n - 2], result->strides[n - 1],
    };
    npy_intp strides[3][PLACES];
    for (int d = 0; d <= last; d++) {
        strides[0][d] = batch_stride(a, d, n);
        strides[1][d] = batch_stride(b, d, n);
        strides[2][d] = result->strides[d];
        for (int k = 0; k < 3; k++)
            steps[k] = strides[k][d];
    }
    char *data[3] = {PyArray_BYTES(a), PyArray_BYTES(b), result->data};
    for (;;) {
        char *passed[3] = {data[0], data[1], data[2]};
        loop->run(passed, lengths, steps, loop->data);
        int d = last - 1;
        for (; d >= 0; d--) {
            for (int k = 0; k < 3; k++)
                data[k] += strides[k][d];
            if (++at[d] < shape[d])
                break;
            for (int k = 0; k < 3; k++)
                data[k] -= strides[k][d] * shape[d];
            at[d] = 0;
        }
        if (d < 0)
            return;
    }
}

/* The result of a program for these arguments, with arrays in place of tensors: that of the row's kernel, bit by bit. NULL without
 * an error: the program does not serve them. Reads and writes only elements of row-major arrays and of its own memory. */
static PyObject *run_program(const Program *program, PyObject *const *args, int arguments)
{
    npy_intp shape[PLACES], size = 1; /* of all tensors together */
    int n = 0, type = -1, from = 0, to = 0;
    PyArrayObject *factors[2] = {NULL, NULL};
    if (program->steps[0].multiplies) {
        for (int k = 0; k < 2; k++)
            if (!PyArray_CheckExact(args[program->steps[0].operand[k]]))
                return NULL;
            else
                factors[k] = (PyArrayObject *)args[program->steps[0].operand[k]];
        n = product_shape(program, factors[0], factors[1], shape);
        type = PyArray_TYPE(factors[0]);
        if (n == 0 || type >= TYPES)
            return NULL;
    }
    for (int i = 0; i < arguments; i++) {
        if (!PyArray_CheckExact(args[i]) || args[i] == (PyObject *)factors[0] || args[i] == (PyObject *)factors[1])
            continue;
        PyArrayObject *array = (PyArrayObject *)args[i];
        int dims = PyArray_NDIM(array);
        if (!is_plain(array) || dims > PLACES || PyArray_TYPE(array) >= TYPES || (type >= 0 && type != PyArray_TYPE(array)))
            return NULL;
        type = PyArray_TYPE(array);
        if (factors[0] != NULL)
            continue; /* it is spread over the product, or does not fit */
        if (dims > n) {
            for (int d = n - 1; d >= 0; d--)
                shape[d + dims - n] = shape[d];
            for (int d = 0; d < dims - n; d++)
                shape[d] = 1;
            n = dims;
        }
        for (int d = 0; d < dims; d++)
            if (shape[n - dims + d] == 1)
                shape[n - dims + d] = PyArray_DIM(array, d);
    }
    for (int d = 0; d < n; d++)
        if ((size *= shape[d]) < 1 || size > program->limit)
            return NULL;
    if (type < 0 || program->steps[program->count - 1].loops[type].run == NULL || size > program->limit
        || (program->reduces && !reduced_dims(program, args, n, &from, &to)))
        return NULL;
    if (PyTypeNum_ISINTEGER(type))
        feclearexcept(FE_ALL_EXCEPT);
    double space[MANY_STEPS_SIZE * 2], numbers[2];
    char *free_space = (char *)space, *end = free_space + sizeof space;
    Operand results[STEPS];
    PyArrayObject *made = NULL;
    for (int s = 0; s < program->count; s++) {
        const Step *step = &program->steps[s];
        const Loop *loop = &step->loops[type];
        Operand operands[3];
        int places = 0, reduced = step->reduces;
        npy_intp full[PLACES];
        memcpy(full, shape, sizeof full);
        if (reduced)
            places = 1; /* the result comes first, too */
        for (int k = 0; k < step->operands && !step->multiplies; k++) {
            Operand *operand = &operands[places + k];
            int of = step->operand[k];
            memset(operand->strides, 0, sizeof operand->strides);
            operand->data = (char *)&numbers[k];
            if (of >= FROM_STEP && of < FROM_CONSTANT)
                *operand = results[of - FROM_STEP];
            else if (of >= FROM_CONSTANT) {
                double number = of == COUNT ? 1 : program->constants[of - FROM_CONSTANT];
                for (int d = from; of == COUNT && d < to; d++)
                    number *= (double)shape[d];
                if (type == NPY_FLOAT)
                    *(float *)operand->data = (float)number;
                else if (type == NPY_DOUBLE)
                    *(double *)operand->data = number;
                else
                    return NULL;
            } else if (PyArray_CheckExact(args[of])) {
                if (!spread_over((PyArrayObject *)args[of], n, shape, operand))
                    return NULL;
            } else if (number_as(args[of], type, operand->data) == NULL)
                return NULL;
        }
        Operand *result = &results[s];
        PyArray_Descr *descr = PyArray_DescrFromType(loop->to);
        npy_intp itemsize = PyDataType_ELSIZE(descr);
        set_strides(result, n, shape, itemsize, step->is_reduced ? from : n, step->is_reduced ? to : n);
        npy_intp elements = size;
        for (int d = from; step->is_reduced && d < to; d++) {
            elements /= shape[d];
            full[d] = reduced ? shape[d] : 1;
        }
        if (s == program->count - 1) {
            int keepdim = program->keepdim >= 0 && args[program->keepdim] == Py_True, dims = 0;
            npy_intp kept[PLACES];
            for (int d = 0; d < n; d++)
                if (!step->is_reduced || d < from || d >= to)
                    kept[dims++] = shape[d];
                else if (keepdim)
                    kept[dims++] = 1;
            made = (PyArrayObject *)PyArray_NewFromDescr(&PyArray_Type, descr, dims, kept, NULL, NULL, 0, NULL);
            if (made == NULL)
                return NULL;
            result->data = PyArray_BYTES(made);
        } else {
            Py_DECREF(descr);
            result->data = free_space;
            free_space += (elements * itemsize + 15) / 16 * 16;
            if (free_space > end)
                return NULL;
        }
        if (step->multiplies) {
            run_product(loop, factors[0], factors[1], n, shape, result);
            continue;
        }
        if (!reduced) {
            operands[step->operands] = *result;
            run_loop(loop, n, full, step->operands + 1, operands);
            continue;
        }
        operands[0] = operands[2] = *result;
        if (!step->first) {
            memset(result->data, 0, elements * itemsize);
            run_loop(loop, n, full, 3, operands);
            continue;
        }
        /* The reduced dims of row-major memory are one: what lies before them, they, and what lies behind. */
        npy_intp three[3] = {1, 1, 1};
        for (int d = 0; d < n; d++)
            three[d < from ? 0 : d < to ? 1 : 2] *= shape[d];
        npy_intp line = three[2] * itemsize;
        char *data = operands[1].data;
        for (npy_intp i = 0; i < three[0]; i++)
            memcpy(result->data + i * line, data + i * three[1] * line, line);
        if (--three[1] > 0) {
            Operand flat[3] = {{result->data, {line, 0, itemsize}}, {data + line, {(three[1] + 1) * line, line, itemsize}},
                               {result->data, {line, 0, itemsize}}};
            run_loop(loop, 3, three, 3, flat);
        }
    }
    if (PyErr_Occurred() || (PyTypeNum_ISINTEGER(type) && fetestexcept(FE_DIVBYZERO | FE_OVERFLOW | FE_INVALID)))
        Py_CLEAR(made); /* whole numbers divided by zero: the kernel says it */
    return (PyObject *)made;
}

/* The loop of a function for operands of one type. */
static Loop loop_of(PyUFuncObject *ufunc, int type)
{
    Loop found = {NULL, NULL, -1};
    for (int i = 0; i < ufunc->ntypes; i++) {
        const char *types = ufunc->types + i * ufunc->nargs;
        int fits = types[ufunc->nin] < TYPES && types[ufunc->nin] != NPY_OBJECT;
        for (int k = 0; k < ufunc->nin; k++)
            fits = fits && types[k] == type;
        if (fits && ufunc->functions[i] != NULL) {
            found.run = ufunc->functions[i];
            found.data = ufunc->data == NULL ? NULL : ufunc->data[i];
            found.to = types[ufunc->nin];
            break;
        }
    }
    return found;
}

/* (steps, limit, dim, keepdim, spreads), each step (ufunc, operand, ...) with operands as numbered above, and floats. 0, or -1 with an error. */
static int read_program(Program *program, PyObject *row)
{
    PyObject *steps;
    int constants = 0;
    if (!PyArg_ParseTuple(row, "O!niip", &PyTuple_Type, &steps, &program->limit, &program->dim, &program->keepdim, &program->spreads))
        return -1;
    Py_ssize_t count = PyTuple_GET_SIZE(steps);
    if (count > STEPS)
        goto wrong;
    if (program->limit > (count > 1 ? MANY_STEPS_SIZE : SMALL_SIZE))
        program->limit = count > 1 ? MANY_STEPS_SIZE : SMALL_SIZE;
    for (Py_ssize_t s = 0; s < count; s++) {
        PyObject *one = PyTuple_GET_ITEM(steps, s);
        Step *step = &program->steps[s];
        if (!PyTuple_CheckExact(one) || PyTuple_GET_SIZE(one) < 2 || PyTuple_GET_SIZE(one) > 3
            || !PyObject_TypeCheck(PyTuple_GET_ITEM(one, 0), &PyUFunc_Type))
            goto wrong;
        PyUFuncObject *ufunc = (PyUFuncObject *)PyTuple_GET_ITEM(one, 0);
        step->operands = (int)PyTuple_GET_SIZE(one) - 1;
        step->reduces = ufunc->nin == 2 && step->operands == 1;
        step->multiplies = s == 0 && ufunc->core_enabled && ufunc->core_signature != NULL
                           && strcmp(ufunc->core_signature, "(n?,k),(k,m?)->(n?,m?)") == 0;
        if (ufunc->nout != 1 || (ufunc->core_enabled && !step->multiplies) || !(ufunc->nin == step->operands || step->reduces))
            goto wrong;
        if (step->reduces) {
            PyObject *identity = PyObject_GetAttrString((PyObject *)ufunc, "identity");
            if (identity == NULL)
                return -1;
            step->first = identity == Py_None;
            int zero = PyLong_CheckExact(identity) && PyObject_Not(identity) == 1;
            Py_DECREF(identity);
            if (!step->first && !zero)
                goto wrong;
        }
        program->reduces |= step->reduces;
        step->is_reduced = program->reduces;
        for (int k = 0; k < step->operands; k++) {
            PyObject *operand = PyTuple_GET_ITEM(one, k + 1);
            if (PyFloat_CheckExact(operand)) {
                if (constants >= CONSTANTS)
                    goto wrong;
                program->constants[constants] = PyFloat_AS_DOUBLE(operand);
                step->operand[k] = FROM_CONSTANT + constants++;
                continue;
            }
            long at = PyLong_AsLong(operand);
            if (PyErr_Occurred())
                return -1;
            if (!((at >= 0 && at < MOST) || at == COUNT || (at >= FROM_STEP && at < FROM_STEP + s)))
                goto wrong;
            step->operand[k] = (int)at;
            if (step->multiplies && at >= FROM_STEP)
                goto wrong;
            if (!step->reduces && (at < FROM_STEP || (at != COUNT && !program->steps[at - FROM_STEP].is_reduced)))
                step->is_reduced = 0;
        }
        for (int type = 0; type < TYPES; type++) {
            int own = type;
            for (int k = 0; k < step->operands; k++)
                if (step->operand[k] >= FROM_STEP && step->operand[k] < FROM_CONSTANT) {
                    const Loop *before = &program->steps[step->operand[k] - FROM_STEP].loops[type];
                    own = before->run == NULL ? -1 : before->to;
                }
            step->loops[type] = own == type ? loop_of(ufunc, type) : (Loop){NULL, NULL, -1};
            if (step->reduces && step->loops[type].to != type)
                step->loops[type].run = NULL;
            if (type != NPY_FLOAT && type != NPY_DOUBLE && (count > 1 || program->reduces || type > NPY_ULONGLONG))
                step->loops[type].run = NULL;
        }
    }
    program->count = (int)count;
    return 0;
wrong:
    PyErr_SetString(PyExc_ValueError, "a wrong step");
    return -1;
}

/* ---- ArrayKernel */

typedef struct {
    Face face;
    PyObject *standard[MOST]; /* with which `simple` may be called instead of `kernel`, or NULL */
    PyObject *half;           /* NULL: float16 needs no look */
    PyObject *simple, *kernel, *as_array, *keys;
    PyObject *below, *finish; /* of a kernel without a shape function: what serves other calls, and what wraps other results; or NULL */
    int arguments;            /* without the key set */
    int tensors;              /* of them are tensors that must be given */
    int tensor[MOST];
    int number[MOST];         /* whether the argument is a number in place of a tensor */
    int absent[MOST];         /* whether it must be None */
    int rank[MOST];           /* of the tensors, or -1 */
    int bools, unsure, inplace;
    Program program;          /* where it has one, and the other arguments have their defaults */
    int ignored[MOST];        /* of an argument without default: the program is for False only */
    npy_intp limit, limit_of_halves;
    char refuses[16];
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

/* Write a result into the array of the tensor that was given first. Declined where that is not plain memory of its own. */
static Outcome write_back(PyArrayObject *first, PyObject *made)
{
    PyArrayObject *from = (PyArrayObject *)made;
    if (!is_plain(first) || !is_plain(from) || !PyArray_ISWRITEABLE(first) || PyArray_DESCR(from) != PyArray_DESCR(first)
        || PyArray_NDIM(from) != PyArray_NDIM(first)
        || !PyArray_CompareLists(PyArray_DIMS(from), PyArray_DIMS(first), PyArray_NDIM(first)))
        return DECLINED;
    memmove(PyArray_DATA(first), PyArray_DATA(from), PyArray_NBYTES(first));
    return DONE;
}

/* The kernel that this one leaves a call to. It runs once: what it raises goes to the caller. */
static Outcome call_below(ArrayKernel *self, PyObject *ks, PyObject *const *args, Py_ssize_t n, PyObject **result)
{
    PyObject *passed[MOST + 2];
    passed[1] = ks;
    for (Py_ssize_t i = 0; i < n; i++)
        passed[2 + i] = args[i];
    *result = PyObject_Vectorcall(self->below, passed + 1, (n + 1) | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    return *result == NULL ? FAILED : DONE;
}

static Outcome array_run(Face *face, PyObject *ks, PyObject *const *args, Py_ssize_t n, PyObject **result)
{
    ArrayKernel *self = (ArrayKernel *)face;
    PyObject *given[MOST + 1];
    if (n != self->arguments)
        return DECLINED;
    int plain = 1; /* whether every other argument has its default */
    for (int i = 0; i < n; i++) {
        given[i] = args[i];
        if (self->absent[i] && args[i] != Py_None)
            return DECLINED;
        if (self->number[i] && (!self->bools && PyBool_Check(args[i])))
            return DECLINED;
        if (self->standard[i] != NULL && args[i] != self->standard[i])
            plain = 0;
    }
    PyArray_Descr *descr = NULL;
    PyArrayObject *first = NULL; /* its tensor belongs to the caller; a kernel can exchange the tensor's array, so it is held */
    for (int k = 0; k < self->tensors; k++) {
        PyObject *tensor = args[self->tensor[k]];
        PyObject *array = Py_IS_TYPE(tensor, Tensor) ? SLOT(tensor, AT_ARRAY) : NULL;
        if (array == NULL || !PyArray_CheckExact(array) || SLOT(tensor, AT_DEVICE) == NULL || SLOT(tensor, AT_STORAGE) == NULL)
            return DECLINED;
        if (k == 0) {
            first = (PyArrayObject *)array;
            descr = PyArray_DESCR(first);
        } else if (PyArray_DESCR((PyArrayObject *)array) != descr && self->finish == NULL)
            return DECLINED;
        if (self->rank[k] >= 0 && PyArray_NDIM((PyArrayObject *)array) != self->rank[k])
            return DECLINED;
        if (self->inplace && k > 0 && SLOT(args[self->tensor[0]], AT_STORAGE) != Py_None
            && SLOT(args[self->tensor[0]], AT_STORAGE) == SLOT(tensor, AT_STORAGE))
            return DECLINED;
        given[self->tensor[k]] = array;
    }
    if ((self->refuses[0] && strchr(self->refuses, descr->kind) != NULL) || (PyObject *)descr == self->half)
        return DECLINED;
    if (self->inplace && (!is_plain(first) || PyArray_SIZE(first) > SMALL_SIZE))
        return DECLINED;
    if (self->below != NULL && self->limit && PyArray_SIZE(first) <= self->limit)
        return call_below(self, ks, args, n, result);
    npy_intp limit = PyArray_ITEMSIZE(first) == 2 ? self->limit_of_halves : self->limit;
    int simple = plain && self->simple != NULL && !(limit && PyArray_SIZE(first) > limit);
    int serves = self->program.count;
    for (int i = 0; serves && i < n; i++)
        if (i != self->program.dim && i != self->program.keepdim
            && ((self->standard[i] != NULL && args[i] != self->standard[i]) || (self->ignored[i] && args[i] != Py_False)))
            serves = 0;
    PyObject *made = serves ? run_program(&self->program, given, (int)n) : NULL;
    if (made == NULL) {
        if (PyErr_Occurred())
            return decline_after_error();
        PyObject *passed[MOST + 1];
        Py_ssize_t count = 0;
        Py_INCREF(first);
        for (int i = 0; i < n; i++)
            if (!simple || self->standard[i] == NULL)
                passed[1 + count++] = Py_NewRef(given[i]); /* the kernel may let go of what holds it */
        made = PyObject_Vectorcall(simple ? self->simple : self->kernel, passed + 1, count | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
        for (Py_ssize_t i = 0; i < count; i++)
            Py_DECREF(passed[1 + i]);
        Py_DECREF(first);
        if (made == NULL)
            return decline_after_error();
        if (self->finish != NULL && made == Py_NotImplemented) {
            Py_DECREF(made);
            return self->below == NULL ? DECLINED : call_below(self, ks, args, n, result);
        }
        if (self->finish != NULL && !PyArray_CheckExact(made)) {
            PyObject *given_args = PyTuple_New(n);
            for (Py_ssize_t i = 0; given_args != NULL && i < n; i++)
                PyTuple_SET_ITEM(given_args, i, Py_NewRef(args[i]));
            *result = given_args == NULL ? NULL : PyObject_CallFunctionObjArgs(self->finish, made, given_args, NULL);
            Py_XDECREF(given_args);
            Py_DECREF(made);
            return *result == NULL ? FAILED : DONE;
        }
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
    if (self->inplace) {
        Outcome outcome = SLOT(tensor, AT_ARRAY) == (PyObject *)first ? write_back(first, made) : DECLINED;
        Py_DECREF(made);
        if (outcome == DONE)
            *result = Py_NewRef(tensor);
        return outcome;
    }
    if (self->unsure && PyArray_DESCR((PyArrayObject *)made) != descr) {
        Py_DECREF(made);
        return DECLINED;
    }
    *result = wrap(made, self->keys, SLOT(tensor, AT_DEVICE));
    return *result == NULL ? decline_after_error() : DONE;
}

/* (function, arguments, simple or None, kernel, as_array, keys, half or None, limit, limit of halves, bools, unsure, refuses, MISSING,
 * inplace, program[, below or None, finish]), where `arguments` are rows (role, default or MISSING, rank): role "tensor", "absent", "number"
 * or "value". */
static PyObject *make_array_kernel(PyObject *module, PyObject *args)
{
    PyObject *function, *arguments, *simple, *kernel, *as_array, *keys, *half, *missing, *program, *below = Py_None, *finish = NULL;
    Py_ssize_t limit, limit_of_halves;
    int bools, unsure, inplace;
    const char *refuses;
    if (!PyArg_ParseTuple(args, "OO!OOOOOnnppsOpO|OO", &function, &PyTuple_Type, &arguments, &simple, &kernel, &as_array, &keys, &half,
                          &limit, &limit_of_halves, &bools, &unsure, &refuses, &missing, &inplace, &program, &below, &finish))
        return NULL;
    if (PyTuple_GET_SIZE(arguments) > MOST || strlen(refuses) >= sizeof(((ArrayKernel *)0)->refuses)) {
        PyErr_SetString(PyExc_ValueError, "too many arguments");
        return NULL;
    }
    ArrayKernel *made = (ArrayKernel *)new_face(&ArrayKernelType, function, kernel_vectorcall, array_run);
    if (made == NULL)
        return NULL;
    made->limit = limit;
    made->limit_of_halves = limit_of_halves;
    made->bools = bools;
    made->unsure = unsure;
    strcpy(made->refuses, refuses);
    made->half = half == Py_None ? NULL : Py_NewRef(half);
    made->simple = simple == Py_None ? NULL : Py_NewRef(simple);
    made->kernel = Py_NewRef(kernel);
    made->as_array = Py_NewRef(as_array);
    made->keys = Py_NewRef(keys);
    made->inplace = inplace;
    made->below = below == Py_None ? NULL : Py_NewRef(below);
    made->finish = Py_XNewRef(finish);
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
        made->ignored[i] = strcmp(role, "value") == 0 && standard == missing;
        made->standard[i] = standard == missing ? NULL : Py_NewRef(standard);
    }
    PyObject_GC_Track(made);
    if (program != Py_None && read_program(&made->program, program) < 0) {
        Py_DECREF(made);
        return NULL;
    }
    if (made->tensors == 0) {
        Py_DECREF(made);
        PyErr_SetString(PyExc_ValueError, "a kernel needs a tensor");
        return NULL;
    }
    return (PyObject *)made;
}

/* ---- what is kept of calls that look alike */

#define KEPT 8   /* calls */
#define WORDS 96 /* that say what a call looks like */
#define DIMS 32

typedef struct {
    npy_intp words[WORDS];
    int count;
    PyObject *held; /* the objects whose addresses are among the words */
    PyObject *value;
} Kept;

typedef struct {
    Kept kept[KEPT];
    unsigned next;
} Memo;

typedef struct {
    npy_intp words[WORDS];
    int count;
    PyObject *held[MOST * 3];
    int holds;
} Look;

static inline int add_word(Look *look, npy_intp word)
{
    if (look->count >= WORDS)
        return 0;
    look->words[look->count++] = word;
    return 1;
}

static inline int add_object(Look *look, PyObject *value)
{
    if (look->holds >= MOST * 3)
        return 0;
    look->held[look->holds++] = value;
    return add_word(look, (npy_intp)value);
}

/* The array of a plain tensor, and how it looks; NULL if it is none, or has too much to say. */
static PyObject *look_at(Look *look, PyObject *tensor)
{
    PyObject *array = Py_IS_TYPE(tensor, Tensor) ? SLOT(tensor, AT_ARRAY) : NULL;
    if (array == NULL || !PyArray_CheckExact(array) || SLOT(tensor, AT_DEVICE) == NULL)
        return NULL;
    PyArrayObject *a = (PyArrayObject *)array;
    int n = PyArray_NDIM(a);
    if (!add_object(look, (PyObject *)PyArray_DESCR(a)) || !add_word(look, n) || look->count + 2 * n > WORDS)
        return NULL;
    for (int d = 0; d < n; d++) {
        look->words[look->count++] = PyArray_DIM(a, d);
        look->words[look->count++] = PyArray_STRIDE(a, d);
    }
    return array;
}

static int look_at_value(Look *look, PyObject *value)
{
    if (PyLong_CheckExact(value)) {
        int overflow;
        long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
        return !overflow && add_word(look, (npy_intp)&PyLong_Type) && add_word(look, (npy_intp)number);
    }
    if (PyFloat_CheckExact(value)) {
        double number = PyFloat_AS_DOUBLE(value);
        npy_intp word;
        memcpy(&word, &number, sizeof word);
        return add_word(look, (npy_intp)&PyFloat_Type) && add_word(look, word);
    }
    if (PyTuple_CheckExact(value)) {
        if (!add_word(look, (npy_intp)&PyTuple_Type) || !add_word(look, PyTuple_GET_SIZE(value)))
            return 0;
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); i++)
            if (!look_at_value(look, PyTuple_GET_ITEM(value, i)))
                return 0;
        return 1;
    }
    if (value == Py_None || PyBool_Check(value))
        return add_word(look, (npy_intp)value);
    if (PyUnicode_CheckExact(value) || (PyObject *)Py_TYPE(value) == DTYPE || (PyObject *)Py_TYPE(value) == DEVICE)
        return add_object(look, value);
    return 0;
}

/* What is kept for a call: a borrowed reference, or NULL. */
static PyObject *find_kept(const Memo *memo, const Look *look)
{
    for (int k = 0; k < KEPT; k++) {
        const Kept *kept = &memo->kept[k];
        if (kept->count == look->count && memcmp(kept->words, look->words, look->count * sizeof(npy_intp)) == 0)
            return kept->value;
    }
    return NULL;
}

/* Keep a value for calls that look like this one, in place of the oldest. -1 with an error. */
static int keep(Memo *memo, const Look *look, PyObject *value)
{
    PyObject *held = PyTuple_New(look->holds);
    if (held == NULL)
        return -1;
    for (int i = 0; i < look->holds; i++)
        PyTuple_SET_ITEM(held, i, Py_NewRef(look->held[i]));
    Kept *kept = &memo->kept[memo->next++ % KEPT];
    PyObject *before[2] = {kept->held, kept->value};
    memcpy(kept->words, look->words, look->count * sizeof(npy_intp));
    kept->count = look->count;
    kept->held = held;
    kept->value = Py_NewRef(value);
    Py_XDECREF(before[0]);
    Py_XDECREF(before[1]);
    return 0;
}

static int visit_memo(const Memo *memo, visitproc visit, void *arg)
{
    for (int k = 0; k < KEPT; k++) {
        Py_VISIT(memo->kept[k].held);
        Py_VISIT(memo->kept[k].value);
    }
    return 0;
}

static void clear_memo(Memo *memo)
{
    for (int k = 0; k < KEPT; k++) {
        memo->kept[k].count = 0;
        Py_CLEAR(memo->kept[k].held);
        Py_CLEAR(memo->kept[k].value);
    }
}

/* ---- PlanKernel */

static int index_of(const char *const *names, const char *name)
{
    for (int i = 0; names[i] != NULL; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    PyErr_Format(PyExc_ValueError, "unknown word %s", name);
    return -1;
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

/* What a kernel that only moves elements does: arguments and outputs as it gets them. */
enum { MOVES_NOT, JOINS, PICKS };

/* Arrays one behind the other along a dim: (arrays, dim, out). */
static int join(PyObject *const *given)
{
    PyArrayObject *out = (PyArrayObject *)given[2];
    int n = PyArray_NDIM(out);
    long dim = PyLong_CheckExact(given[1]) ? PyLong_AsLong(given[1]) : n;
    dim += dim < 0 ? n : 0;
    if (!PyList_CheckExact(given[0]) || dim < 0 || dim >= n)
        return 0;
    npy_intp outer = 1, inner = PyArray_ITEMSIZE(out), length = 0;
    for (int d = 0; d < n; d++)
        if (d < dim)
            outer *= PyArray_DIM(out, d);
        else if (d > dim)
            inner *= PyArray_DIM(out, d);
    for (Py_ssize_t k = 0; k < PyList_GET_SIZE(given[0]); k++) {
        PyObject *one = PyList_GET_ITEM(given[0], k);
        PyArrayObject *array = (PyArrayObject *)one;
        if (!PyArray_CheckExact(one) || !is_plain(array) || PyArray_DESCR(array) != PyArray_DESCR(out) || PyArray_NDIM(array) != n)
            return 0;
        for (int d = 0; d < n; d++)
            if (d != dim && PyArray_DIM(array, d) != PyArray_DIM(out, d))
                return 0;
        length += PyArray_DIM(array, (int)dim);
    }
    if (length != PyArray_DIM(out, (int)dim))
        return 0;
    char *line = PyArray_BYTES(out);
    for (Py_ssize_t k = 0; k < PyList_GET_SIZE(given[0]); k++) {
        PyArrayObject *array = (PyArrayObject *)PyList_GET_ITEM(given[0], k);
        npy_intp bytes = PyArray_DIM(array, (int)dim) * inner;
        for (npy_intp o = 0; o < outer; o++)
            memcpy(line + o * length * inner, PyArray_BYTES(array) + o * bytes, bytes);
        line += bytes;
    }
    return 1;
}

/* Rows by their numbers: (array, [numbers], out). Negative ones count from the end. */
static int pick(PyObject *const *given)
{
    PyArrayObject *self = (PyArrayObject *)given[0], *out = (PyArrayObject *)given[2], *index;
    if (!PyArray_CheckExact(given[0]) || !PyList_CheckExact(given[1]) || PyList_GET_SIZE(given[1]) != 1
        || !PyArray_CheckExact(PyList_GET_ITEM(given[1], 0)))
        return 0;
    index = (PyArrayObject *)PyList_GET_ITEM(given[1], 0);
    if (!is_plain(self) || !is_plain(index) || PyArray_TYPE(index) != NPY_INT64 || PyArray_NDIM(self) < 1
        || PyArray_DESCR(self) != PyArray_DESCR(out) || PyArray_SIZE(self) == 0)
        return 0;
    npy_intp length = PyArray_DIM(self, 0), bytes = PyArray_NBYTES(self) / length, count = PyArray_SIZE(index);
    if (PyArray_NBYTES(out) != count * bytes)
        return 0;
    const npy_int64 *numbers = (const npy_int64 *)PyArray_DATA(index);
    for (npy_intp k = 0; k < count; k++) {
        npy_intp at = numbers[k] + (numbers[k] < 0 ? length : 0);
        if (at < 0 || at >= length)
            return 0; /* the kernel says it */
        memcpy(PyArray_BYTES(out) + k * bytes, PyArray_BYTES(self) + at * bytes, bytes);
    }
    return 1;
}

static int move_elements(int moves, PyObject *const *given, Py_ssize_t count)
{
    if (moves == MOVES_NOT || count != 3 || !PyArray_CheckExact(given[2]) || PyArray_SIZE((PyArrayObject *)given[2]) > SMALL_SIZE)
        return 0;
    return moves == JOINS ? join(given) : pick(given);
}

enum { A_TENSOR, A_OPTIONAL, A_LIST, A_VALUE };
enum { EXTRA = 64 }; /* what a kernel is passed: arguments by their place, and from here on what its plan adds */

typedef struct {
    Face face;
    PyObject *find, *kernel, *few, *keys, *as_given;
    npy_intp limit;
    int arguments, role[MOST], outs, first; /* the first tensor's place */
    int passes, passed[MOST];
    int moves;  /* what the kernel does, where it only moves elements */
    Memo memo;
} PlanKernel;

#define OUTS 6

/* The plan of a call that looks like this: one that is kept, else the one that Python finds. A new reference, or NULL. */
static PyObject *plan_of(PlanKernel *self, const Look *look, PyObject *const *args)
{
    PyObject *plan = Py_XNewRef(find_kept(&self->memo, look));
    if (plan != NULL)
        return plan;
    plan = PyObject_Vectorcall(self->find, args, self->arguments, NULL);
    if (plan != NULL && !(PyTuple_CheckExact(plan) && PyTuple_GET_SIZE(plan) == 4 * self->outs + 3))
        Py_CLEAR(plan);
    if (plan != NULL && keep(&self->memo, look, plan) < 0)
        Py_CLEAR(plan);
    return plan;
}

/* A new array of a plan's shape and dtype; NULL with or without an error. */
static PyObject *new_output(PyObject *shape, PyObject *native, PyObject *strides)
{
    npy_intp dims[DIMS];
    int n = strides == Py_None && PyArray_DescrCheck(native) ? numbers_of(shape, dims, DIMS) : -1;
    return n < 0 ? NULL : PyArray_NewFromDescr(&PyArray_Type, (PyArray_Descr *)Py_NewRef(native), n, dims, NULL, NULL, 0, NULL);
}

static Outcome plan_run(Face *face, PyObject *ks, PyObject *const *args, Py_ssize_t n, PyObject **result)
{
    PlanKernel *self = (PlanKernel *)face;
    PyObject *arrays[MOST] = {NULL}, *outs[OUTS] = {NULL}, *passed[MOST + OUTS + 1], *plan = NULL, *made = NULL, *device = NULL;
    Look look;
    Outcome outcome = DECLINED;
    look.count = look.holds = 0;
    if (n != self->arguments)
        return DECLINED;
    for (int i = 0; i < n; i++) {
        PyObject *value = args[i], *array;
        if (self->role[i] == A_VALUE) {
            if (!look_at_value(&look, value))
                goto end;
            arrays[i] = Py_NewRef(value);
            continue;
        }
        if (value == Py_None) {
            if (self->role[i] != A_OPTIONAL || !add_word(&look, (npy_intp)Py_None))
                goto end;
            arrays[i] = Py_NewRef(value);
        } else if (self->role[i] != A_LIST) {
            if ((array = look_at(&look, value)) == NULL)
                goto end;
            arrays[i] = Py_NewRef(array);
            device = device != NULL || i != self->first ? device : SLOT(value, AT_DEVICE);
        } else {
            int is_list = PyList_CheckExact(value);
            Py_ssize_t length = is_list ? PyList_GET_SIZE(value) : PyTuple_CheckExact(value) ? PyTuple_GET_SIZE(value) : 0;
            if (length == 0 || !add_word(&look, length) || (arrays[i] = PyList_New(length)) == NULL)
                goto end;
            for (Py_ssize_t k = 0; k < length; k++) {
                PyObject *tensor = is_list ? PyList_GET_ITEM(value, k) : PyTuple_GET_ITEM(value, k);
                array = tensor == Py_None ? Py_None : look_at(&look, tensor);
                if (array == NULL || (tensor == Py_None && !add_word(&look, (npy_intp)Py_None)))
                    goto end;
                PyList_SET_ITEM(arrays[i], k, Py_NewRef(array));
                if (k == 0 && i == self->first)
                    device = tensor == Py_None ? NULL : SLOT(tensor, AT_DEVICE);
            }
        }
    }
    if (device == NULL || (plan = plan_of(self, &look, args)) == NULL)
        goto end;
    Py_INCREF(device);
    int at = 4 * self->outs;
    PyObject *casts = PyTuple_GET_ITEM(plan, at), *values = PyTuple_GET_ITEM(plan, at + 1), *extra = PyTuple_GET_ITEM(plan, at + 2);
    if (casts != Py_None || !PyTuple_CheckExact(extra) || (values != Py_None && !PyList_CheckExact(values)))
        goto release;
    if (values != Py_None) {
        Py_ssize_t k = 0;
        for (int i = 0; i < n; i++)
            if (self->role[i] == A_VALUE && k < PyList_GET_SIZE(values)) {
                PyObject *other = PyList_GET_ITEM(values, k++);
                if (other != self->as_given)
                    Py_SETREF(arrays[i], Py_NewRef(other));
            }
    }
    for (int k = 0; k < self->outs; k++) {
        outs[k] = new_output(PyTuple_GET_ITEM(plan, 4 * k), PyTuple_GET_ITEM(plan, 4 * k + 1), PyTuple_GET_ITEM(plan, 4 * k + 3));
        if (outs[k] == NULL)
            goto release;
    }
    Py_ssize_t count = 0;
    for (int i = 0; i < self->passes; i++) {
        int from = self->passed[i];
        if (from >= EXTRA && from - EXTRA >= PyTuple_GET_SIZE(extra))
            goto release;
        passed[1 + count++] = from >= EXTRA ? PyTuple_GET_ITEM(extra, from - EXTRA) : arrays[from];
    }
    for (int k = 0; k < self->outs; k++)
        passed[1 + count++] = outs[k];
    PyObject *kernel = self->kernel;
    if (self->few != NULL && PyArray_CheckExact(arrays[self->first]) && PyArray_SIZE((PyArrayObject *)arrays[self->first]) <= self->limit
        && PyArray_SIZE((PyArrayObject *)outs[0]) <= self->limit)
        kernel = self->few;
    if (move_elements(self->moves, passed + 1, count))
        made = Py_NewRef(Py_None);
    else
        made = PyObject_Vectorcall(kernel, passed + 1, count | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    if (made == NULL || !(made == Py_None || (self->outs == 1 && made == outs[0])))
        goto release;
    PyObject *tensors[OUTS];
    int wrapped = 0;
    for (; wrapped < self->outs; wrapped++) {
        tensors[wrapped] = wrap(outs[wrapped], self->keys, device);
        outs[wrapped] = NULL;
        if (tensors[wrapped] == NULL)
            break;
    }
    if (wrapped == 1 && self->outs == 1)
        *result = Py_NewRef(tensors[0]);
    else if (wrapped == self->outs && (*result = PyTuple_New(wrapped)) != NULL)
        for (int k = 0; k < wrapped; k++)
            PyTuple_SET_ITEM(*result, k, Py_NewRef(tensors[k]));
    while (wrapped > 0)
        Py_DECREF(tensors[--wrapped]);
    outcome = *result == NULL ? DECLINED : DONE;
release:
    Py_DECREF(device);
end:
    if (outcome == DECLINED)
        outcome = decline_after_error();
    for (int i = 0; i < n; i++)
        Py_XDECREF(arrays[i]);
    for (int k = 0; k < OUTS; k++)
        Py_XDECREF(outs[k]);
    Py_XDECREF(made);
    Py_XDECREF(plan);
    return outcome;
}

static const char *const ROLES[] = {"tensor", "optional", "list", "value", NULL};
static const char *const MOVES[] = {"", "join", "pick", NULL};

/* (function, find, kernel, few or None, limit, keys, AS_GIVEN, roles of the arguments, passed, outputs, moves), where `passed` holds the
 * places of arguments and, from EXTRA on, of what plans add */
static PyObject *make_plan_kernel(PyObject *module, PyObject *args)
{
    PyObject *function, *find, *kernel, *few, *keys, *as_given, *roles, *passed;
    Py_ssize_t limit;
    int outs;
    const char *moves;
    if (!PyArg_ParseTuple(args, "OOOOnOOO!O!is", &function, &find, &kernel, &few, &limit, &keys, &as_given, &PyTuple_Type, &roles,
                          &PyTuple_Type, &passed, &outs, &moves))
        return NULL;
    int moved = index_of(MOVES, moves);
    if (moved < 0)
        return NULL;
    if (PyTuple_GET_SIZE(roles) > MOST || PyTuple_GET_SIZE(passed) > MOST || outs < 1 || outs > OUTS) {
        PyErr_SetString(PyExc_ValueError, "a wrong number of arguments");
        return NULL;
    }
    PlanKernel *made = (PlanKernel *)new_face(&PlanKernelType, function, kernel_vectorcall, plan_run);
    if (made == NULL)
        return NULL;
    made->find = Py_NewRef(find);
    made->kernel = Py_NewRef(kernel);
    made->few = few == Py_None ? NULL : Py_NewRef(few);
    made->limit = limit;
    made->keys = Py_NewRef(keys);
    made->as_given = Py_NewRef(as_given);
    made->outs = outs;
    made->moves = moved;
    made->first = -1;
    PyObject_GC_Track(made);
    for (int i = 0; i < PyTuple_GET_SIZE(roles); i++) {
        const char *role = PyUnicode_AsUTF8(PyTuple_GET_ITEM(roles, i));
        if (role == NULL || (made->role[i] = index_of(ROLES, role)) < 0)
            goto failed;
        if (made->first < 0 && (made->role[i] == A_TENSOR || made->role[i] == A_LIST))
            made->first = i;
        made->arguments = i + 1;
    }
    for (int i = 0; i < PyTuple_GET_SIZE(passed); i++) {
        long at = PyLong_AsLong(PyTuple_GET_ITEM(passed, i));
        if (PyErr_Occurred() || at < 0 || (at >= made->arguments && at < EXTRA) || at >= 2 * EXTRA)
            goto failed;
        made->passed[i] = (int)at;
        made->passes = i + 1;
    }
    if (made->first >= 0)
        return (PyObject *)made;
failed:
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, "no such argument");
    Py_DECREF(made);
    return NULL;
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
    RecordKernel *made = (RecordKernel *)new_face(&RecordKernelType, function, kernel_vectorcall, record_run);
    if (made == NULL)
        return NULL;
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
    int is_as_strided;
    Memo memo;                     /* of them */
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

/* What a view operator remembers of a call: (shape, strides and start in bytes, start in elements). A new reference; NULL with or
 * without an error. Nothing is changed: a tensor that shares its memory with no other one has no storage yet. */
static PyObject *geometry_of(ViewKernel *self, PyObject *const *args, Py_ssize_t n)
{
    PyObject *tensor = args[0], *offset = SLOT(tensor, AT_STORAGE) == Py_None ? ZERO : SLOT(tensor, AT_OFFSET);
    PyArrayObject *array = (PyArrayObject *)SLOT(tensor, AT_ARRAY);
    PyObject *passed[MOST + 4], *found = NULL;
    if (offset == NULL || array == NULL || !PyArray_CheckExact(array))
        return NULL;
    Look look;
    look.count = look.holds = 0;
    int known = look_at(&look, tensor) != NULL && look_at_value(&look, offset);
    for (Py_ssize_t i = 1; i < n && known; i++)
        known = look_at_value(&look, args[i]);
    if (known && (found = find_kept(&self->memo, &look)) != NULL)
        return Py_NewRef(found);
    passed[0] = tuple_of(PyArray_DIMS(array), PyArray_NDIM(array));
    passed[1] = tuple_of(PyArray_STRIDES(array), PyArray_NDIM(array));
    passed[2] = PyLong_FromSsize_t(PyArray_ITEMSIZE(array));
    passed[3] = offset;
    for (Py_ssize_t i = 1; i < n; i++)
        passed[3 + i] = args[i];
    if (passed[0] != NULL && passed[1] != NULL && passed[2] != NULL)
        found = PyObject_Vectorcall(self->remembered, passed, 3 + n, NULL);
    Py_XDECREF(passed[0]);
    Py_XDECREF(passed[1]);
    Py_XDECREF(passed[2]);
    if (found != NULL && !(PyTuple_CheckExact(found) && PyTuple_GET_SIZE(found) == 4))
        Py_CLEAR(found);
    if (found != NULL && known && keep(&self->memo, &look, found) < 0)
        Py_CLEAR(found);
    return found;
}

/* The key set of a tensor that NumPy's own constructor may make for a view on this device; NULL with or without an error. */
static PyObject *keys_of_views(PyObject *device)
{
    PyObject *backend = PyObject_GetAttr(device, S_BACKEND);
    PyObject *maker = backend == NULL ? NULL : PyObject_GetAttr(backend, S_VIEW_ARRAY);
    PyObject *keys = maker != (PyObject *)&PyArray_Type ? NULL : PyObject_GetAttr(backend, S_KEYS);
    Py_XDECREF(backend);
    Py_XDECREF(maker);
    return keys;
}

/* Whether a backend makes, fills and duplicates arrays as NumPy does. 0 with or without an error. */
static int is_plain_maker(PyObject *device)
{
    PyObject *backend = PyObject_GetAttr(device, S_BACKEND);
    PyObject *maker = backend == NULL ? NULL : PyObject_GetAttr(backend, S_NEW_ARRAY);
    Py_XDECREF(backend);
    Py_XDECREF(maker);
    return maker != NULL && maker == EMPTY;
}

/* The tensor of a geometry over the memory of `storage`, without its record. NULL with or without an error. */
static PyObject *viewed_by(PyObject *geometry, PyObject *keys, PyObject *device, PyObject *storage)
{
    PyObject *root = Py_XNewRef(SLOT(storage, AT_ROOT)), *over = root == NULL ? NULL : array_over(root, geometry);
    PyObject *made = over == NULL ? NULL : wrap(over, keys, device);
    Py_XDECREF(root);
    if (made != NULL) {
        Py_SETREF(SLOT(made, AT_STORAGE), Py_NewRef(storage));
        SLOT(made, AT_OFFSET) = Py_NewRef(PyTuple_GET_ITEM(geometry, 3));
    }
    return made;
}

static int has_record(PyObject *view)
{
    return SLOT(view, AT_BASE) != NULL && SLOT(view, AT_CHAIN) != NULL && PyTuple_CheckExact(SLOT(view, AT_CHAIN))
           && SLOT(view, AT_MULTI) != NULL && SLOT(view, AT_NO_GRAD) != NULL && SLOT(view, AT_MAKER) != NULL;
}

/* How a view comes from its base: the links of what is viewed, or none, and one more. */
static PyObject *chain_of(PyObject *old, PyObject *op, PyObject *rest)
{
    PyObject *link = Py_BuildValue("((OOO))", op, rest, Py_None);
    if (link != NULL && old != Py_None)
        Py_SETREF(link, PySequence_Concat(SLOT(old, AT_CHAIN), link));
    return link;
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
    PyObject *old = SLOT(args[0], AT_VIEW_OF);
    if ((old != Py_None && (self->is_as_strided || !Py_IS_TYPE(old, View) || !has_record(old))) || views == NULL
        || !PyList_CheckExact(views) || PyList_GET_SIZE(views) >= 32) {
        PyObject *none = PyObject_CallFunctionObjArgs(self->attach, made, args[0], self->op, rest, Py_None, NULL);
        failed = none == NULL ? -1 : 0;
        Py_XDECREF(none);
        Py_DECREF(rest);
        return failed;
    }
    int on = (enabled = levels_enabled()) == NULL ? -1 : PyObject_IsTrue(enabled);
    if (on >= 0 && (chain = chain_of(old, self->op, rest)) != NULL && SLOT(storage, AT_STORAGE_VER) != NULL
        && (view = PyType_GenericAlloc(View, 0)) != NULL && (ref = PyWeakref_NewRef(made, NULL)) != NULL) {
        int is_base = old == Py_None;
        SLOT(view, AT_BASE) = Py_NewRef(is_base ? args[0] : SLOT(old, AT_BASE));
        SLOT(view, AT_CHAIN) = Py_NewRef(chain);
        SLOT(view, AT_SEEN) = Py_NewRef(SLOT(storage, AT_STORAGE_VER));
        SLOT(view, AT_MULTI) = Py_NewRef(is_base ? Py_False : SLOT(old, AT_MULTI));
        SLOT(view, AT_NO_GRAD) = Py_NewRef(!on ? Py_True : is_base ? Py_False : SLOT(old, AT_NO_GRAD));
        SLOT(view, AT_MAKER) = Py_NewRef(is_base ? NO_TEXT : SLOT(old, AT_MAKER));
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
        clear_memo(&self->memo);
        Py_XSETREF(self->kernel, kernel);
    }
    PyObject *storage = SLOT(args[0], AT_STORAGE), *device = SLOT(args[0], AT_DEVICE), *made = NULL;
    if (self->remembered == NULL || storage == NULL || device == NULL)
        return DECLINED;
    PyObject *remembered = Py_NewRef(self->remembered); /* all stay, whatever the calls of Python do */
    Py_INCREF(device);
    PyObject *keys = keys_of_views(device), *geometry = keys == NULL ? NULL : geometry_of(self, args, n);
    storage = SLOT(args[0], AT_STORAGE);
    if (geometry == NULL || storage == NULL)
        storage = NULL;
    else
        storage = storage == Py_None ? PyObject_CallMethodNoArgs(args[0], S_SHARED_STORAGE) : Py_NewRef(storage);
    if (storage != NULL && Py_IS_TYPE(storage, Storage))
        made = viewed_by(geometry, keys, device, storage);
    if (made != NULL && record_view(self, made, args, n, storage) < 0)
        Py_CLEAR(made);
    Py_XDECREF(storage);
    Py_XDECREF(geometry);
    Py_XDECREF(keys);
    Py_DECREF(device);
    Py_DECREF(remembered);
    *result = made;
    return made == NULL ? decline_after_error() : DONE;
}

/* (function, op, cache, below, attach, whether it may leave the memory of what is viewed) */
static PyObject *make_view_kernel(PyObject *module, PyObject *args)
{
    PyObject *function, *op, *cache, *below, *attach;
    int is_as_strided;
    if (!PyArg_ParseTuple(args, "OOO!OOp", &function, &op, &PyDict_Type, &cache, &below, &attach, &is_as_strided))
        return NULL;
    ViewKernel *made = (ViewKernel *)new_face(&ViewKernelType, function, kernel_vectorcall, view_run);
    if (made == NULL)
        return NULL;
    made->op = Py_NewRef(op);
    made->cache = Py_NewRef(cache);
    made->below = Py_NewRef(below);
    made->attach = Py_NewRef(attach);
    made->is_as_strided = is_as_strided;
    PyObject_GC_Track(made);
    return (PyObject *)made;
}

/* ---- WriteKernel */

typedef struct {
    Face face;
    PyObject *cache, *below;
} WriteKernel;

/* Count a write of the first argument; -1 with an error. */
static int count_write(PyObject *tensor)
{
    PyObject *storage = SLOT(tensor, AT_STORAGE);
    PyObject **counter = storage == Py_None ? &SLOT(tensor, AT_VER) : &SLOT(storage, AT_STORAGE_VER);
    PyObject *one = PyLong_FromLong(1), *next = one == NULL ? NULL : PyNumber_Add(*counter, one);
    Py_XDECREF(one);
    if (next == NULL)
        return -1;
    Py_SETREF(*counter, next);
    return 0;
}

static Outcome write_run(Face *face, PyObject *ks, PyObject *const *args, Py_ssize_t n, PyObject **result)
{
    WriteKernel *self = (WriteKernel *)face;
    if (n < 1 || !Py_IS_TYPE(args[0], Tensor))
        return DECLINED;
    PyObject *storage = SLOT(args[0], AT_STORAGE), *view = SLOT(args[0], AT_VIEW_OF);
    if (storage == NULL || !(storage == Py_None || (Py_IS_TYPE(storage, Storage) && SLOT(storage, AT_STORAGE_VER) != NULL))
        || SLOT(args[0], AT_VER) == NULL || view == NULL
        || !(view == Py_None || (Py_IS_TYPE(view, View) && SLOT(view, AT_NO_GRAD) == Py_False)))
        return DECLINED;
    PyObject *below = PyNumber_And(ks, self->below);
    if (below == NULL)
        return decline_after_error();
    Outcome outcome = run_cached(self->cache, below, args, n, result);
    Py_DECREF(below);
    if (outcome == DONE && count_write(args[0]) < 0) {
        Py_CLEAR(*result);
        return FAILED; /* it is written: not once more */
    }
    return outcome;
}

/* (function, cache, below) */
static PyObject *make_write_kernel(PyObject *module, PyObject *args)
{
    PyObject *function, *cache, *below;
    if (!PyArg_ParseTuple(args, "OO!O", &function, &PyDict_Type, &cache, &below))
        return NULL;
    WriteKernel *made = (WriteKernel *)new_face(&WriteKernelType, function, kernel_vectorcall, write_run);
    if (made == NULL)
        return NULL;
    made->cache = Py_NewRef(cache);
    made->below = Py_NewRef(below);
    PyObject_GC_Track(made);
    return (PyObject *)made;
}

/* ---- CompositeKernel */

enum { ANYTHING = -1, NO_VALUE = -2, ROW_MAJOR = -3, LENGTHS = -4, OTHER_DTYPE = -5, SAME_DTYPE = -6, IS_FALSE = -7,
       CONTIGUOUS = -8 }; /* or a number of dims */
enum { ENDING = 32 }; /* operands: arguments by their place, and from here on other endings; constants are objects */

#define ENDINGS 8

typedef struct {
    int nested;                 /* only an operand of another one */
    int when[MOST];
    PyObject *op;
    int count, operand[MOST];
    PyObject *constant[MOST];   /* in place of an operand, or NULL */
    PyObject *keywords;         /* the names of the last operands, or NULL */
    int item;                   /* of the result, or -1 */
} Ending;

typedef struct {
    Face face;
    int arguments, count;
    Ending endings[ENDINGS];
} CompositeKernel;

/* The array library's dtype for one of Turnout's, on the device of a tensor; a new reference, or NULL with or without an error. */
static PyObject *native_of(PyObject *device, PyObject *dtype)
{
    PyObject *backend = PyObject_GetAttr(device, S_BACKEND), *natives = backend == NULL ? NULL : PyObject_GetAttr(backend, S_NATIVE);
    PyObject *found = natives == NULL || !PyDict_CheckExact(natives) ? NULL : Py_XNewRef(PyDict_GetItemWithError(natives, dtype));
    Py_XDECREF(backend);
    Py_XDECREF(natives);
    if (found != NULL && !PyArray_DescrCheck(found))
        Py_CLEAR(found);
    return found;
}

/* Whether a dtype is another one than that of a tensor with an array; -1 if nobody knows. */
static int is_other_dtype(PyObject *tensor, PyObject *dtype)
{
    PyObject *array = Py_IS_TYPE(tensor, Tensor) ? SLOT(tensor, AT_ARRAY) : NULL, *device = array == NULL ? NULL : SLOT(tensor, AT_DEVICE);
    if (device == NULL || !PyArray_CheckExact(array) || (PyObject *)Py_TYPE(dtype) != DTYPE)
        return -1;
    PyObject *native = native_of(device, dtype);
    int other = native == NULL ? -1 : native != (PyObject *)PyArray_DESCR((PyArrayObject *)array);
    Py_XDECREF(native);
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
        return PyUnicode_CheckExact(value) && PyUnicode_CompareWithASCIIString(value, "contiguous_format") == 0;
    if (wanted == NO_VALUE)
        return value == Py_None;
    if (wanted == LENGTHS) {
        if (!PyTuple_CheckExact(value))
            return 0;
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); i++) {
            PyObject *length = PyTuple_GET_ITEM(value, i);
            int overflow;
            if (!PyLong_CheckExact(length) || PyLong_AsLongLongAndOverflow(length, &overflow) < 0 || overflow)
                return 0;
        }
        return 1;
    }
    PyObject *array = Py_IS_TYPE(value, Tensor) ? SLOT(value, AT_ARRAY) : NULL;
    if (array == NULL || !PyArray_CheckExact(array))
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
    if (call != NULL && Py_IS_TYPE(call, &CallType))
        outcome = run_target(&((Call *)call)->targets[0], NULL, args, n - (keywords == NULL ? 0 : PyTuple_GET_SIZE(keywords)), keywords,
                             result);
    Py_XDECREF(call);
    return outcome;
}

static Outcome run_ending(CompositeKernel *self, const Ending *ending, PyObject *const *args, PyObject **result)
{
    PyObject *values[MOST] = {NULL}, *made = NULL;
    Outcome outcome = DONE;
    int n = 0;
    for (; n < ending->count && outcome == DONE; n++)
        if (ending->constant[n] != NULL)
            values[n] = Py_NewRef(ending->constant[n]);
        else if (ending->operand[n] < ENDING)
            values[n] = Py_NewRef(args[ending->operand[n]]);
        else
            outcome = run_ending(self, &self->endings[ending->operand[n] - ENDING], args, &values[n]);
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
    if (n != self->arguments)
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
 * `operands` ints as numbered above, or a tuple of a constant, `keywords` the names of the last of them. Without an operator, the first
 * operand is the result. Another ending comes before those that use it. */
static PyObject *make_composite_kernel(PyObject *module, PyObject *args)
{
    PyObject *function, *endings;
    int arguments;
    if (!PyArg_ParseTuple(args, "OiO!", &function, &arguments, &PyTuple_Type, &endings))
        return NULL;
    if (arguments < 0 || arguments > MOST || PyTuple_GET_SIZE(endings) > ENDINGS) {
        PyErr_SetString(PyExc_ValueError, "a wrong number of arguments");
        return NULL;
    }
    CompositeKernel *made = (CompositeKernel *)new_face(&CompositeKernelType, function, kernel_vectorcall, composite_run);
    if (made == NULL)
        return NULL;
    made->arguments = arguments;
    PyObject_GC_Track(made);
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
    return (PyObject *)made;
failed:
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, "no such argument");
    Py_DECREF(made);
    return NULL;
}

/* ---- CopyKernel */

typedef struct {
    Face face;
    int dtype; /* the argument that says in which dtype, or -1 */
} CopyKernel;

/* Whether the elements have the strides that row-major memory has; dims of length 1 may have others. */
static int is_row_major(PyArrayObject *array)
{
    npy_intp step = PyArray_ITEMSIZE(array);
    for (int d = PyArray_NDIM(array) - 1; d >= 0; d--) {
        if (PyArray_STRIDE(array, d) != step)
            return 0;
        step *= PyArray_DIM(array, d);
    }
    return is_plain(array);
}

/* Whether every float becomes a number of the other dtype without a warning of NumPy's. */
#define EACH_WITHIN(TYPE, CONDITION)                              \
    for (npy_intp k = 0; k < size; k++) {                         \
        double number = (double)((const TYPE *)PyArray_DATA(array))[k]; \
        if (!(CONDITION))                                         \
            return 0;                                             \
    }
static int converts_quietly(PyArrayObject *array, int to)
{
    npy_intp size = PyArray_SIZE(array);
    int from = PyArray_TYPE(array), whole = to == NPY_INT32 || to == NPY_INT64;
    if (PyArray_CanCastSafely(from, to))
        return !PyTypeNum_ISUSERDEF(from) && !PyTypeNum_ISUSERDEF(to) && to != NPY_HALF;
    if ((PyTypeNum_ISINTEGER(from) || from == NPY_BOOL) && (PyTypeNum_ISINTEGER(to) || to == NPY_FLOAT || to == NPY_DOUBLE || to == NPY_BOOL))
        return size <= SMALL_SIZE / 2;
    if (size > SMALL_SIZE / 2)
        return 0;
    if (from == NPY_DOUBLE && to == NPY_FLOAT) {
        EACH_WITHIN(double, !isfinite(number) || fabs(number) <= FLT_MAX)
        return 1;
    }
    if (from == NPY_DOUBLE && whole) {
        EACH_WITHIN(double, fabs(number) < 2147483648.0)
        return 1;
    }
    if (from == NPY_FLOAT && whole) {
        EACH_WITHIN(float, fabs(number) < 2147483648.0)
        return 1;
    }
    return (from == NPY_FLOAT || from == NPY_DOUBLE) && to == NPY_BOOL;
}

static Outcome copy_run(Face *face, PyObject *ks, PyObject *const *args, Py_ssize_t n, PyObject **result)
{
    CopyKernel *self = (CopyKernel *)face;
    PyObject *array = n > 0 && Py_IS_TYPE(args[0], Tensor) ? SLOT(args[0], AT_ARRAY) : NULL;
    PyObject *device = array == NULL ? NULL : SLOT(args[0], AT_DEVICE);
    if (device == NULL || !PyArray_CheckExact(array) || !is_row_major((PyArrayObject *)array)) /* a copy keeps the strides */
        return DECLINED;
    for (Py_ssize_t i = 1; i < n; i++)
        if (args[i] != Py_None && args[i] != Py_False && i != self->dtype)
            return DECLINED;
    Py_INCREF(array); /* both stay, whatever the call of Python does */
    Py_INCREF(device);
    PyArrayObject *from = (PyArrayObject *)array;
    PyObject *keys = is_plain_maker(device) ? keys_of_views(device) : NULL, *made = NULL;
    PyObject *native = keys == NULL || self->dtype < 0 || args[self->dtype] == Py_None ? NULL : native_of(device, args[self->dtype]);
    if (keys != NULL && (self->dtype < 0 || args[self->dtype] == Py_None || native == (PyObject *)PyArray_DESCR(from)))
        made = PyArray_NewCopy(from, NPY_CORDER);
    else if (native != NULL && converts_quietly(from, ((PyArray_Descr *)native)->type_num))
        made = PyArray_CastToType(from, (PyArray_Descr *)Py_NewRef(native), 0);
    *result = made == NULL ? NULL : wrap(made, keys, device);
    Py_XDECREF(native);
    Py_XDECREF(keys);
    Py_DECREF(device);
    Py_DECREF(array);
    return *result == NULL ? decline_after_error() : DONE;
}

/* (function, the argument that is the dtype, or -1) */
static PyObject *make_copy_kernel(PyObject *module, PyObject *args)
{
    PyObject *function;
    int dtype;
    if (!PyArg_ParseTuple(args, "Oi", &function, &dtype))
        return NULL;
    CopyKernel *made = (CopyKernel *)new_face(&CopyKernelType, function, kernel_vectorcall, copy_run);
    if (made == NULL)
        return NULL;
    made->dtype = dtype < MOST ? dtype : -1;
    PyObject_GC_Track(made);
    return (PyObject *)made;
}

/* ---- SelectKernel */

typedef struct {
    Face face;
    PyObject *cache, *above, *default_device;
    int at; /* the argument that is the device */
} SelectKernel;

static Outcome select_run(Face *face, PyObject *ks, PyObject *const *args, Py_ssize_t n, PyObject **result)
{
    SelectKernel *self = (SelectKernel *)face;
    PyObject *passed[MOST];
    if (n > MOST || self->at >= n)
        return DECLINED;
    memcpy(passed, args, n * sizeof *passed);
    PyObject *wanted = args[self->at], *device = wanted == Py_None ? PyObject_CallNoArgs(self->default_device) : Py_NewRef(wanted);
    PyObject *backend = device == NULL || (PyObject *)Py_TYPE(device) != DEVICE ? NULL : PyObject_GetAttr(device, S_BACKEND);
    PyObject *place = backend == NULL       ? NULL
                      : wanted == Py_None ? PyObject_CallMethodNoArgs(backend, S_CURRENT_DEVICE)
                                          : PyObject_CallMethodOneArg(backend, S_RESOLVE_DEVICE, device);
    PyObject *dense = place == NULL ? NULL : PyObject_GetAttr(backend, S_DENSE);
    PyObject *rest = dense == NULL ? NULL : PyNumber_And(ks, self->above), *below = rest == NULL ? NULL : PyNumber_Or(rest, dense);
    Outcome outcome = DECLINED;
    if (below != NULL) {
        passed[self->at] = place;
        outcome = run_cached(self->cache, below, passed, n, result);
    } else
        outcome = decline_after_error();
    Py_XDECREF(device);
    Py_XDECREF(backend);
    Py_XDECREF(place);
    Py_XDECREF(dense);
    Py_XDECREF(rest);
    Py_XDECREF(below);
    return outcome;
}

/* (function, cache, the keys that are left, default_device, the argument that is the device) */
static PyObject *make_select_kernel(PyObject *module, PyObject *args)
{
    PyObject *function, *cache, *above, *default_device;
    int at;
    if (!PyArg_ParseTuple(args, "OO!OOi", &function, &PyDict_Type, &cache, &above, &default_device, &at))
        return NULL;
    SelectKernel *made = (SelectKernel *)new_face(&SelectKernelType, function, kernel_vectorcall, select_run);
    if (made == NULL)
        return NULL;
    made->cache = Py_NewRef(cache);
    made->above = Py_NewRef(above);
    made->default_device = Py_NewRef(default_device);
    made->at = at;
    PyObject_GC_Track(made);
    return (PyObject *)made;
}

/* ---- FactoryKernel */

typedef struct {
    Face face;
    PyObject *number;                     /* what it fills with, or NULL: the argument `value` */
    PyObject *default_dtype;              /* a function */
    int like, size, value, dtype, device; /* places of arguments, or -1; all others must be None */
    int fills;                            /* 0: memory as it is */
} FactoryKernel;

/* Write a number into all elements of a plain array; 0 where only Python knows how. */
static int fill_array(PyArrayObject *array, PyObject *value)
{
    char number[sizeof(double)];
    int type = PyArray_TYPE(array), overflow = 0;
    npy_intp size = PyArray_SIZE(array), itemsize = PyArray_ITEMSIZE(array);
    if (PyLong_CheckExact(value) && PyObject_Not(value) == 1) {
        memset(PyArray_DATA(array), 0, PyArray_NBYTES(array));
        return 1;
    }
    if (type == NPY_BOOL && PyBool_Check(value))
        number[0] = value == Py_True;
    else if (type == NPY_INT64 && PyLong_CheckExact(value)) {
        npy_int64 whole = PyLong_AsLongLongAndOverflow(value, &overflow);
        if (overflow)
            return 0;
        memcpy(number, &whole, sizeof whole);
    } else if (number_as(value, type, number) == NULL)
        return 0;
    for (npy_intp k = 0; k < size; k++)
        memcpy(PyArray_BYTES(array) + k * itemsize, number, itemsize);
    return 1;
}

static Outcome factory_run(Face *face, PyObject *ks, PyObject *const *args, Py_ssize_t n, PyObject **result)
{
    FactoryKernel *self = (FactoryKernel *)face;
    PyObject *array = NULL, *device = self->device >= 0 && self->device < n ? args[self->device] : Py_None;
    npy_intp dims[DIMS];
    int count = 0;
    if (self->like >= n || self->size >= n || self->value >= n || self->dtype >= n)
        return DECLINED;
    for (int i = 0; i < n; i++)
        if (i != self->like && i != self->size && i != self->value && i != self->dtype && i != self->device && args[i] != Py_None)
            return DECLINED;
    if (self->like >= 0) {
        array = Py_IS_TYPE(args[self->like], Tensor) ? SLOT(args[self->like], AT_ARRAY) : NULL;
        if (array == NULL || !PyArray_CheckExact(array) || device != Py_None)
            return DECLINED;
        device = SLOT(args[self->like], AT_DEVICE);
    }
    if (self->size >= 0)
        count = numbers_of(args[self->size], dims, DIMS);
    else if (array != NULL) {
        if (!is_row_major((PyArrayObject *)array))
            return DECLINED;
        count = PyArray_NDIM((PyArrayObject *)array);
        for (int d = 0; d < count; d++)
            dims[d] = PyArray_DIM((PyArrayObject *)array, d);
    }
    for (int d = 0; d < count; d++)
        if (dims[d] < 0)
            count = -1;
    if (count < 0 || device == NULL || (PyObject *)Py_TYPE(device) != DEVICE)
        return decline_after_error();
    PyObject *value = self->number != NULL ? self->number : self->value >= 0 ? args[self->value] : NULL;
    PyObject *dtype = self->dtype < 0 ? Py_None : args[self->dtype], *modes = NULL, *native = NULL, *made = NULL;
    if (PyContextVar_Get(FAKE_MODE, NULL, &modes) < 0 || modes == NULL || PyObject_Not(modes) != 1) {
        Py_XDECREF(modes);
        return decline_after_error();
    }
    Py_DECREF(modes);
    Py_INCREF(device);
    PyObject *keys = keys_of_views(device);
    if (keys != NULL && is_plain_maker(device)) {
        if (dtype != Py_None)
            native = native_of(device, dtype);
        else if (array != NULL)
            native = Py_NewRef(PyArray_DESCR((PyArrayObject *)array));
        else if (self->value < 0 || PyFloat_CheckExact(value)) {
            PyObject *standard = PyObject_CallNoArgs(self->default_dtype);
            native = standard == NULL ? NULL : native_of(device, standard);
            Py_XDECREF(standard);
        } else if (PyLong_CheckExact(value))
            native = (PyObject *)PyArray_DescrFromType(NPY_INT64);
    }
    if (native != NULL)
        made = PyArray_NewFromDescr(&PyArray_Type, (PyArray_Descr *)Py_NewRef(native), count, dims, NULL, NULL, 0, NULL);
    if (made != NULL && self->fills && (PyArray_SIZE((PyArrayObject *)made) > SMALL_SIZE || !fill_array((PyArrayObject *)made, value)))
        Py_CLEAR(made);
    *result = made == NULL ? NULL : wrap(made, keys, device);
    Py_XDECREF(native);
    Py_XDECREF(keys);
    Py_DECREF(device);
    return *result == NULL ? decline_after_error() : DONE;
}

/* (function, get_default_dtype, whether it fills, the number or None, places of: the tensor that it is like, size, value, dtype,
 * device; -1 where there is no such argument) */
static PyObject *make_factory_kernel(PyObject *module, PyObject *args)
{
    PyObject *function, *default_dtype, *number;
    int fills, like, size, value, dtype, device;
    if (!PyArg_ParseTuple(args, "OOpOiiiii", &function, &default_dtype, &fills, &number, &like, &size, &value, &dtype, &device))
        return NULL;
    FactoryKernel *made = (FactoryKernel *)new_face(&FactoryKernelType, function, kernel_vectorcall, factory_run);
    if (made == NULL)
        return NULL;
    made->default_dtype = Py_NewRef(default_dtype);
    made->number = number == Py_None ? NULL : Py_NewRef(number);
    made->fills = fills;
    made->like = like;
    made->size = size;
    made->value = value;
    made->dtype = dtype;
    made->device = device;
    PyObject_GC_Track(made);
    return (PyObject *)made;
}

/* ---- FillKernel */

typedef struct {
    Face face;
    PyObject *number; /* what it writes, or NULL: the second argument */
} FillKernel;

static Outcome fill_run(Face *face, PyObject *ks, PyObject *const *args, Py_ssize_t n, PyObject **result)
{
    PyObject *value = ((FillKernel *)face)->number;
    PyObject *array = n > 0 && Py_IS_TYPE(args[0], Tensor) ? SLOT(args[0], AT_ARRAY) : NULL;
    if (value == NULL && n == 2)
        value = args[1];
    if (array == NULL || value == NULL || !PyArray_CheckExact(array))
        return DECLINED;
    PyArrayObject *target = (PyArrayObject *)array;
    PyObject *device = SLOT(args[0], AT_DEVICE);
    if (device == NULL || !is_plain_maker(device) || !is_plain(target) || !PyArray_ISWRITEABLE(target)
        || PyArray_SIZE(target) > SMALL_SIZE || !fill_array(target, value))
        return decline_after_error();
    *result = Py_NewRef(args[0]);
    return DONE;
}

/* (function, the number that it writes, or None) */
static PyObject *make_fill_kernel(PyObject *module, PyObject *args)
{
    PyObject *function, *number;
    if (!PyArg_ParseTuple(args, "OO", &function, &number))
        return NULL;
    FillKernel *made = (FillKernel *)new_face(&FillKernelType, function, kernel_vectorcall, fill_run);
    if (made == NULL)
        return NULL;
    made->number = number == Py_None ? NULL : Py_NewRef(number);
    PyObject_GC_Track(made);
    return (PyObject *)made;
}

/* ---- Getter: x[index] */

typedef struct {
    Face face;
    PyObject *select, *slice, *index; /* the operators */
} Getter;

static int is_bound(PyObject *value) { return value == Py_None || PyLong_CheckExact(value); }

/* A view by one item after the other, ints and slices. */
static Outcome get_views(Getter *self, PyObject *tensor, PyObject *const *items, Py_ssize_t n, PyObject **result)
{
    PyObject *viewed = Py_NewRef(tensor), *dim = Py_NewRef(ZERO), *one = NULL;
    Outcome outcome = DONE;
    long at = 0;
    for (Py_ssize_t i = 0; i < n && outcome == DONE; i++) {
        PyObject *made = NULL, *item = items[i];
        if (PyLong_CheckExact(item))
            outcome = call_operator(self->select, (PyObject *[]){viewed, dim, item}, 3, NULL, &made);
        else {
            PySliceObject *cut = PySlice_Check(item) ? (PySliceObject *)item : NULL;
            if (cut == NULL || !is_bound(cut->start) || !is_bound(cut->stop) || !is_bound(cut->step)) {
                outcome = DECLINED;
                break;
            }
            if (cut->start != Py_None || cut->stop != Py_None || cut->step != Py_None) {
                if (cut->step == Py_None && one == NULL)
                    one = PyLong_FromLong(1);
                PyObject *step = cut->step == Py_None ? one : cut->step;
                outcome = step == NULL ? DECLINED
                          : call_operator(self->slice, (PyObject *[]){viewed, dim, cut->start, cut->stop, step}, 5, NULL, &made);
            }
            Py_SETREF(dim, PyLong_FromLong(++at));
            if (dim == NULL)
                outcome = DECLINED;
        }
        if (made != NULL)
            Py_SETREF(viewed, made);
    }
    Py_XDECREF(dim);
    Py_XDECREF(one);
    if (outcome == DONE && viewed == tensor)
        outcome = DECLINED;
    if (outcome == DONE)
        *result = viewed;
    else
        Py_DECREF(viewed);
    return outcome;
}

static PyObject *getter_vectorcall(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Getter *getter = (Getter *)self;
    PyObject *array, *result = NULL;
    if (kwnames == NULL && PyVectorcall_NARGS(nargsf) == 2 && !is_traced() && Py_IS_TYPE(args[0], Tensor)
        && (array = SLOT(args[0], AT_ARRAY)) != NULL && PyArray_CheckExact(array)) {
        PyObject *index = args[1];
        int dims = PyArray_NDIM((PyArrayObject *)array);
        Outcome outcome = DECLINED;
        if (PyLong_CheckExact(index))
            outcome = call_operator(getter->select, (PyObject *[]){args[0], ZERO, index}, 3, NULL, &result);
        else if (PyTuple_CheckExact(index) && PyTuple_GET_SIZE(index) <= dims)
            outcome = get_views(getter, args[0], ((PyTupleObject *)index)->ob_item, PyTuple_GET_SIZE(index), &result);
        else if (PySlice_Check(index) && dims > 0)
            outcome = get_views(getter, args[0], &index, 1, &result);
        else if (Py_IS_TYPE(index, Tensor) && (array = SLOT(index, AT_ARRAY)) != NULL && PyArray_CheckExact(array)) {
            PyArrayObject *places = (PyArrayObject *)array;
            PyObject *list = NULL;
            int taken = PyArray_TYPE(places) == NPY_BOOL ? PyArray_NDIM(places) : 1;
            if (PyArray_NDIM(places) > 0 && taken <= dims && PyArray_TYPE(places) != NPY_UBYTE && (list = PyList_New(1)) != NULL) {
                PyList_SET_ITEM(list, 0, Py_NewRef(index));
                outcome = call_operator(getter->index, (PyObject *[]){args[0], list}, 2, NULL, &result);
                Py_DECREF(list);
            }
        }
        if (outcome == DECLINED)
            outcome = decline_after_error();
        if (outcome != DECLINED)
            return outcome == DONE ? result : NULL;
    }
    return PyObject_Vectorcall(getter->face.function, args, nargsf, kwnames);
}

/* (function, select.int, slice.Tensor, index.Tensor) */
static PyObject *make_getter(PyObject *module, PyObject *args)
{
    PyObject *function, *select, *slice, *index;
    if (!PyArg_ParseTuple(args, "OOOO", &function, &select, &slice, &index))
        return NULL;
    Getter *made = (Getter *)new_face(&GetterType, function, getter_vectorcall, NULL);
    if (made == NULL)
        return NULL;
    made->select = Py_NewRef(select);
    made->slice = Py_NewRef(slice);
    made->index = Py_NewRef(index);
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

static int plan_traverse(PyObject *self, visitproc visit, void *arg)
{
    int stopped = visit_held(self, HOLDS(PlanKernel, as_given), visit, arg);
    return stopped ? stopped : visit_memo(&((PlanKernel *)self)->memo, visit, arg);
}

static int plan_clear(PyObject *self)
{
    clear_memo(&((PlanKernel *)self)->memo);
    return clear_held(self, HOLDS(PlanKernel, as_given));
}

static int view_traverse(PyObject *self, visitproc visit, void *arg)
{
    int stopped = visit_held(self, HOLDS(ViewKernel, remembered), visit, arg);
    return stopped ? stopped : visit_memo(&((ViewKernel *)self)->memo, visit, arg);
}

static int view_clear(PyObject *self)
{
    clear_memo(&((ViewKernel *)self)->memo);
    return clear_held(self, HOLDS(ViewKernel, remembered));
}

HOLDING(face, 0)
HOLDING(array, HOLDS(ArrayKernel, finish))
HOLDING(record, HOLDS(RecordKernel, node))
HOLDING(write, HOLDS(WriteKernel, below))
HOLDING(select, HOLDS(SelectKernel, default_device))
HOLDING(factory, HOLDS(FactoryKernel, default_dtype))
HOLDING(fill, HOLDS(FillKernel, number))
HOLDING(getter, HOLDS(Getter, index))

FACE(CallType, "Call", Call, call_vectorcall, call_traverse, call_clear);
FACE(ArrayKernelType, "ArrayKernel", ArrayKernel, kernel_vectorcall, array_traverse, array_clear);
FACE(RecordKernelType, "RecordKernel", RecordKernel, kernel_vectorcall, record_traverse, record_clear);
FACE(ViewKernelType, "ViewKernel", ViewKernel, kernel_vectorcall, view_traverse, view_clear);
FACE(PlanKernelType, "PlanKernel", PlanKernel, kernel_vectorcall, plan_traverse, plan_clear);
FACE(CompositeKernelType, "CompositeKernel", CompositeKernel, kernel_vectorcall, composite_traverse, composite_clear);
FACE(CopyKernelType, "CopyKernel", CopyKernel, kernel_vectorcall, face_traverse, face_clear);
FACE(SelectKernelType, "SelectKernel", SelectKernel, kernel_vectorcall, select_traverse, select_clear);
FACE(FactoryKernelType, "FactoryKernel", FactoryKernel, kernel_vectorcall, factory_traverse, factory_clear);
FACE(FillKernelType, "FillKernel", FillKernel, kernel_vectorcall, fill_traverse, fill_clear);
FACE(GetterType, "Getter", Getter, getter_vectorcall, getter_traverse, getter_clear);
FACE(WriteKernelType, "WriteKernel", WriteKernel, kernel_vectorcall, write_traverse, write_clear);

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
        || take(names, "Storage", (PyObject **)&Storage) < 0
        || take(names, "View", (PyObject **)&View) < 0 || take(names, "Size", (PyObject **)&SIZE) < 0
        || take(names, "FAKE_MODE", &FAKE_MODE) < 0 || take(names, "EMPTY", &EMPTY) < 0)
        return NULL;
    for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++)
        if ((*slots[i].at = slot_of(*slots[i].type, slots[i].name)) < 0)
            return NULL;
    Py_RETURN_NONE;
}

static PyObject *is_compiled(PyObject *module, PyObject *value)
{
    return PyBool_FromLong(Py_IS_TYPE(value, &CallType) || Py_IS_TYPE(value, &GetterType) || is_kernel(value));
}

static PyObject *taken(PyObject *module, PyObject *unused) { return PyLong_FromSsize_t(TAKEN); }

static PyMethodDef functions[] = {
    {"taken", taken, METH_NOARGS, "taken()\n--\n\nHow many calls of stubs, functions and methods were finished here."},
    {"configure", configure, METH_O, "configure(names)\n--\n\nName the classes and variables of Turnout that calls read."},
    {"call", make_call, METH_VARARGS, "call(function, targets, missing)\n--\n\nA stub, function or method."},
    {"array_kernel", make_array_kernel, METH_VARARGS, "The wrapper of an array kernel."},
    {"record_kernel", make_record_kernel, METH_VARARGS, "A kernel at Autograd."},
    {"view_kernel", make_view_kernel, METH_VARARGS, "A kernel at ADInplaceOrView that records a view."},
    {"plan_kernel", make_plan_kernel, METH_VARARGS, "The wrapper of an array kernel whose shape function's answers are kept."},
    {"composite_kernel", make_composite_kernel, METH_VARARGS, "A composite kernel that ends in one call of an operator."},
    {"copy_kernel", make_copy_kernel, METH_VARARGS, "A composite kernel that copies its first argument."},
    {"select_kernel", make_select_kernel, METH_VARARGS, "A factory at BackendSelect."},
    {"factory_kernel", make_factory_kernel, METH_VARARGS, "A factory that fills with one number, or with none."},
    {"getter", make_getter, METH_VARARGS, "x[index]."},
    {"write_kernel", make_write_kernel, METH_VARARGS, "A kernel at ADInplaceOrView that counts a write."},
    {"fill_kernel", make_fill_kernel, METH_VARARGS, "A kernel that fills its first argument with a number."},
    {"is_compiled", is_compiled, METH_O, "is_compiled(value)\n--\n\nWhether a callable was made here."},
    {NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "_calls", .m_size = -1, .m_methods = functions};

PyMODINIT_FUNC PyInit__calls(void)
{
    import_array();
    import_umath();
    if (PyType_Ready(&CallType) < 0 || PyType_Ready(&ArrayKernelType) < 0 || PyType_Ready(&RecordKernelType) < 0
        || PyType_Ready(&ViewKernelType) < 0 || PyType_Ready(&WriteKernelType) < 0
        || PyType_Ready(&PlanKernelType) < 0 || PyType_Ready(&CompositeKernelType) < 0 || PyType_Ready(&CopyKernelType) < 0
        || PyType_Ready(&SelectKernelType) < 0 || PyType_Ready(&FactoryKernelType) < 0
        || PyType_Ready(&FillKernelType) < 0 || PyType_Ready(&GetterType) < 0)
        return NULL;
    S_DISPATCH = PyUnicode_InternFromString("DISPATCH");
    S_EPOCH = PyUnicode_InternFromString("epoch");
    S_VER = PyUnicode_InternFromString("ver");
    S_BACKEND = PyUnicode_InternFromString("backend");
    S_VIEW_ARRAY = PyUnicode_InternFromString("view_array");
    S_KEYS = PyUnicode_InternFromString("keys");
    S_REMEMBERED = PyUnicode_InternFromString("remembered");
    S_SHARED_STORAGE = PyUnicode_InternFromString("shared_storage");
    S_CALL = PyUnicode_InternFromString("call");
    S_NATIVE = PyUnicode_InternFromString("native");
    S_NEW_ARRAY = PyUnicode_InternFromString("new_array");
    S_DENSE = PyUnicode_InternFromString("dense");
    S_CURRENT_DEVICE = PyUnicode_InternFromString("current_device");
    S_RESOLVE_DEVICE = PyUnicode_InternFromString("resolve_device");
    ZERO = PyLong_FromLong(0);
    NO_TEXT = PyUnicode_FromString("");
    if (S_DISPATCH == NULL || S_EPOCH == NULL || S_VER == NULL || S_BACKEND == NULL || S_VIEW_ARRAY == NULL || S_KEYS == NULL
        || S_REMEMBERED == NULL || S_SHARED_STORAGE == NULL || S_CALL == NULL || S_NATIVE == NULL || S_NEW_ARRAY == NULL
        || S_DENSE == NULL || S_CURRENT_DEVICE == NULL || S_RESOLVE_DEVICE == NULL || ZERO == NULL || NO_TEXT == NULL)
        return NULL;
    return PyModule_Create(&definition);
}
