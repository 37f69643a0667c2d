/* Rules of vmap and of forward mode without Python frames around them.
 *
 * RuleKernel stands for the kernel at Batched of an operator that has a rule: it peels the innermost vmap off the arguments, calls
 * the rule with the values, and wraps what it made. Where a rule would only pass the values on, it is not called either.
 *
 * TangentKernel stands for the kernel at Forward of an operator that writes nothing and returns one tensor: it finds the innermost
 * level that an argument has a tangent at, calls what is below for the value and the rule for its tangent, and attaches that.
 *
 * As in `_calls.c`, a call is taken only if it is plain. Anything else (autocast, lists, a tensor of an ended vmap, a result that is no
 * tensor) is the Python function's, which starts from the beginning.
 */
#include "native/shared.h"


/* ---- what is known of Turnout: set once by `configure` */

static PyObject *NOTHING, *NO_LEVELS;
static Py_ssize_t TAKEN, PUSHED; /* calls that were finished here, for those who want to know */

enum { OTHER, UNARY, ALIGNED };

typedef struct {
    Face face;
    PyObject *rule, *call;           /* `call` is NULL where the rule does not get the operator's */
    PyObject *levels, *shared;       /* the active vmaps, and the gradient levels with inputs that a vmap does not batch */
    PyObject *switches, *keys;       /* of functionalities that are off until they are switched on; of a batched tensor */
    PyObject *wrapped, *is_shared, *spread;
    PyTypeObject *tensor, *value, *level; /* BatchedTensor, BatchedValue, Level */
    Py_ssize_t at_value, at_bdim, at_level, at_shape, at_num, at_size;
    int kind, arguments, tensors, at[MOST];
} RuleKernel;

static Kind RuleKernelType;

/* Whether no functionality is switched on in this context; 0 also where only the Python function knows. */
static int is_unswitched(RuleKernel *self)
{
    PyObject *state = dispatch_state(), *bits = state == NULL ? NULL : in_effect(ZERO, state);
    PyObject *found = bits == NULL ? NULL : PyNumber_And(bits, self->switches);
    int answer = found != NULL ? !PyObject_IsTrue(found) : PyErr_Occurred() ? -1 : 0;
    Py_XDECREF(state);
    Py_XDECREF(bits);
    Py_XDECREF(found);
    return answer;
}

/* The number of dims of a value, or -1 where it is not an array of NumPy's or another batched value. */
static int ndim_of(RuleKernel *self, PyObject *tensor)
{
    PyObject *array = SLOT(tensor, AT_ARRAY);
    if (array != NULL && PyArray_CheckExact(array))
        return PyArray_NDIM((PyArrayObject *)array);
    if (array != NULL && Py_IS_TYPE(array, self->value) && PyTuple_CheckExact(SLOT(array, self->at_shape)))
        return (int)PyTuple_GET_SIZE(SLOT(array, self->at_shape));
    return -1;
}

/* The shape of one example. The array is held, as all that is read of a slot before something is called. */
static PyObject *shape_without(RuleKernel *self, PyObject *tensor, Py_ssize_t bdim)
{
    PyObject *array = Py_XNewRef(SLOT(tensor, AT_ARRAY)), *shape, *made;
    if (array != NULL && PyArray_CheckExact(array)) {
        int n = PyArray_NDIM((PyArrayObject *)array);
        made = bdim < 0 || bdim >= n ? NULL : PyTuple_New(n - 1);
        for (int d = 0, to = 0; d < n && made != NULL; d++)
            if (d != bdim) {
                PyObject *length = PyLong_FromSsize_t(PyArray_DIM((PyArrayObject *)array, d));
                if (length == NULL)
                    Py_CLEAR(made);
                else
                    PyTuple_SET_ITEM(made, to++, length);
            }
        Py_DECREF(array);
        return made;
    }
    shape = array == NULL ? NULL : PyObject_GetAttr(array, S_SHAPE);
    Py_XDECREF(array);
    if (shape == NULL || !PyTuple_Check(shape) || bdim < 0 || bdim >= PyTuple_GET_SIZE(shape)) {
        Py_XDECREF(shape);
        return NULL;
    }
    if ((made = PyTuple_New(PyTuple_GET_SIZE(shape) - 1)) != NULL)
        for (Py_ssize_t d = 0, to = 0; d < PyTuple_GET_SIZE(shape); d++)
            if (d != bdim)
                PyTuple_SET_ITEM(made, to++, Py_NewRef(PyTuple_GET_ITEM(shape, d)));
    Py_DECREF(shape);
    return made;
}

/* A tensor of the examples of `made` along `bdim`. Where it is anything but one tensor, Python wraps it. */
static PyObject *wrap(RuleKernel *self, PyObject *made, PyObject *bdim, PyObject *level)
{
    PyObject *shape, *value, *tensor;
    if (bdim == Py_None && (Py_IS_TYPE(made, Tensor) || Py_IS_TYPE(made, self->tensor)))
        return Py_NewRef(made);
    if (!(Py_IS_TYPE(made, Tensor) || Py_IS_TYPE(made, self->tensor)) || !PyLong_CheckExact(bdim) || SLOT(made, AT_DEVICE) == NULL)
        return PyObject_CallFunctionObjArgs(self->wrapped, made, bdim, level, NULL);
    shape = shape_without(self, made, PyLong_AsSsize_t(bdim));
    if (shape == NULL) {
        if (PyErr_Occurred())
            return NULL;
        return PyObject_CallFunctionObjArgs(self->wrapped, made, bdim, level, NULL);
    }
    value = PyType_GenericAlloc(self->value, 0);
    tensor = value == NULL ? NULL : PyType_GenericAlloc(self->tensor, 0);
    if (tensor == NULL) {
        Py_XDECREF(value);
        Py_DECREF(shape);
        return NULL;
    }
    SLOT(value, self->at_value) = Py_NewRef(made);
    SLOT(value, self->at_bdim) = Py_NewRef(bdim);
    SLOT(value, self->at_level) = Py_NewRef(level);
    SLOT(value, self->at_shape) = shape;
    SLOT(tensor, AT_ARRAY) = value;
    SLOT(tensor, AT_KEYS) = Py_NewRef(self->keys);
    SLOT(tensor, AT_DEVICE) = Py_XNewRef(SLOT(made, AT_DEVICE));
    SLOT(tensor, AT_GMASK) = Py_NewRef(ZERO);
    SLOT(tensor, AT_NODE) = Py_NewRef(Py_None);
    SLOT(tensor, AT_VER) = Py_NewRef(ZERO);
    SLOT(tensor, AT_STORAGE) = Py_NewRef(Py_None);
    SLOT(tensor, AT_VIEW_OF) = Py_NewRef(Py_None);
    SLOT(tensor, AT_EXTRA) = Py_NewRef(Py_None);
    return tensor;
}

/* The innermost level of the arguments, borrowed; NULL with or without an error: none, or not plain. */
static PyObject *innermost(RuleKernel *self, PyObject *const *args)
{
    PyObject *level = NULL;
    for (int k = 0; k < self->tensors; k++) {
        PyObject *tensor = args[self->at[k]], *array, *found;
        if (tensor == Py_None || Py_IS_TYPE(tensor, Tensor))
            continue;
        if (!Py_IS_TYPE(tensor, self->tensor) || (array = SLOT(tensor, AT_ARRAY)) == NULL || !Py_IS_TYPE(array, self->value))
            return NULL;
        found = SLOT(array, self->at_level);
        if (found == NULL || !Py_IS_TYPE(found, self->level) || SLOT(array, self->at_value) == NULL || SLOT(array, self->at_bdim) == NULL)
            return NULL;
        if (level == NULL)
            level = found;
        else if (level != found) {
            int later = PyObject_RichCompareBool(SLOT(found, self->at_num), SLOT(level, self->at_num), Py_GT);
            if (later < 0)
                return NULL;
            level = later ? found : level;
        }
    }
    return level;
}

/* 1 if the level is active, and nothing is shared that a nested vmap would have to spread; 0 or -1 as in `is_unswitched`. */
static int is_simple(RuleKernel *self, PyObject *level, int *shares)
{
    PyObject *active = NULL;
    int found = 0;
    *shares = PyDict_GET_SIZE(self->shared) > 0;
    if (PyContextVar_Get(self->levels, NULL, &active) < 0 || active == NULL)
        return -1;
    if (PyTuple_CheckExact(active) && !(*shares && PyTuple_GET_SIZE(active) > 1))
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(active); i++)
            found |= PyTuple_GET_ITEM(active, i) == level;
    Py_DECREF(active);
    return found;
}

/* Whether broadcasting batches is broadcasting their examples: each batch is in front and has all the dims. */
static int is_aligned(RuleKernel *self, PyObject *const *values, PyObject *const *dims)
{
    int examples = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int k = 0; k < self->tensors; k++) {
            PyObject *value = values[self->at[k]], *bdim = dims[self->at[k]];
            if (value == Py_None)
                continue;
            int n = ndim_of(self, value), batched = bdim != Py_None;
            if (n < 0 || (batched && (bdim != ZERO || n < 2)) || (pass && batched && n - 1 != examples))
                return 0;
            if (n - batched > examples)
                examples = n - batched;
        }
    return 1;
}

/* Call the rule, or the operator itself where the rule would do no more. A new (made, bdim) in place. */
static PyObject *apply(RuleKernel *self, PyObject *level, PyObject **values, PyObject **dims, PyObject **bdim)
{
    PyObject *passed[MOST + 4], **first = passed + 1, *all, *answer;
    int n = self->arguments, count = 0;
    if (self->kind != OTHER && (self->kind == UNARY ? dims[0] != Py_None : is_aligned(self, values, dims))) {
        *bdim = self->kind == UNARY ? Py_NewRef(dims[0]) : Py_NewRef(ZERO);
        for (int i = 0; i < n; i++)
            first[i] = values[i];
        return PyObject_Vectorcall(self->call, first, n | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    }
    if ((all = PyList_New(n)) == NULL)
        return NULL;
    for (int i = 0; i < n; i++)
        PyList_SET_ITEM(all, i, Py_NewRef(dims[i]));
    PyObject *size = Py_NewRef(SLOT(level, self->at_size));
    if (self->call != NULL)
        first[count++] = self->call;
    first[count++] = size;
    first[count++] = all;
    for (int i = 0; i < n; i++)
        first[count++] = values[i];
    answer = PyObject_Vectorcall(self->rule, first, count | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    Py_DECREF(all);
    Py_DECREF(size);
    if (answer == NULL)
        return NULL;
    if (!PyTuple_CheckExact(answer) || PyTuple_GET_SIZE(answer) != 2) {
        Py_DECREF(answer);
        PyErr_SetString(PyExc_TypeError, "a batching rule returns (value, bdim)");
        return NULL;
    }
    PyObject *made = Py_NewRef(PyTuple_GET_ITEM(answer, 0));
    *bdim = Py_NewRef(PyTuple_GET_ITEM(answer, 1));
    Py_DECREF(answer);
    return made;
}

/* An example of a call: the values below the innermost vmap, and where their batches are. All is held while rules run. */
typedef struct {
    PyObject *values[MOST], *dims[MOST], *level;
} Peeled;

/* Peel. 0 with or without an error: declined, and nothing has happened. */
static int peel(RuleKernel *self, PyObject *const *args, Peeled *peeled, int *shares)
{
    if ((peeled->level = innermost(self, args)) == NULL || is_unswitched(self) != 1 || is_simple(self, peeled->level, shares) != 1)
        return 0;
    for (int i = 0; i < self->arguments; i++) {
        peeled->values[i] = args[i];
        peeled->dims[i] = Py_None;
    }
    for (int k = 0; k < self->tensors; k++) {
        int i = self->at[k];
        PyObject *array = Py_IS_TYPE(args[i], self->tensor) ? SLOT(args[i], AT_ARRAY) : NULL;
        if (array != NULL && SLOT(array, self->at_level) == peeled->level) {
            peeled->values[i] = SLOT(array, self->at_value);
            peeled->dims[i] = SLOT(array, self->at_bdim);
        }
        if (args[i] != Py_None && !Py_IS_TYPE(peeled->values[i], Tensor) && !Py_IS_TYPE(peeled->values[i], self->tensor))
            return 0;
    }
    Py_INCREF(peeled->level);
    for (int i = 0; i < self->arguments; i++) {
        Py_INCREF(peeled->values[i]);
        Py_INCREF(peeled->dims[i]);
    }
    return 1;
}

/* Give a tensor a batch if gradients that are recorded outside need one for each example. -1 with an error. */
static int spread_shared(RuleKernel *self, Peeled *peeled, int i)
{
    PyObject *value = peeled->values[i];
    if (peeled->dims[i] != Py_None || !Py_IS_TYPE(value, Tensor) || SLOT(value, AT_GMASK) == NULL)
        return 0;
    int is = PyObject_IsTrue(SLOT(value, AT_GMASK));
    if (is <= 0)
        return 0;
    PyObject *answer = PyObject_CallFunctionObjArgs(self->is_shared, value, peeled->level, NULL), *own;
    is = answer == NULL ? -1 : PyObject_IsTrue(answer);
    Py_XDECREF(answer);
    if (is <= 0)
        return is;
    if ((own = PyObject_CallFunctionObjArgs(self->spread, value, peeled->level, NULL)) == NULL)
        return -1;
    Py_SETREF(peeled->values[i], own);
    Py_SETREF(peeled->dims[i], Py_NewRef(ZERO));
    return 0;
}

/* Peel, apply, wrap. After the first of them Python runs: what it raises goes to the caller. */
static Outcome rule_run(Face *face, PyObject *ks, PyObject *const *args, Py_ssize_t n, PyObject **result)
{
    RuleKernel *self = (RuleKernel *)face;
    Peeled peeled;
    PyObject *bdim = NULL, *made = NULL;
    int shares = 0, failed = 0;
    if (n != self->arguments || !peel(self, args, &peeled, &shares))
        return PyErr_Occurred() ? FAILED : DECLINED;
    for (int k = 0; k < self->tensors && shares && !failed; k++)
        failed = spread_shared(self, &peeled, self->at[k]) < 0;
    if (!failed && (made = apply(self, peeled.level, peeled.values, peeled.dims, &bdim)) != NULL)
        *result = wrap(self, made, bdim, peeled.level);
    Py_XDECREF(made);
    Py_XDECREF(bdim);
    for (Py_ssize_t i = 0; i < n; i++) {
        Py_DECREF(peeled.values[i]);
        Py_DECREF(peeled.dims[i]);
    }
    Py_DECREF(peeled.level);
    if (*result == NULL && !PyErr_Occurred())
        PyErr_SetString(PyExc_SystemError, "a batching rule failed without an error");
    TAKEN++;
    return *result == NULL ? FAILED : DONE;
}

FACE(RuleKernelType, "RuleKernel", RuleKernel, HOLDS(RuleKernel, level), face_traverse, face_clear);

/* The positions of tensors among `arguments`; returns how many. */
static int places(PyObject *given, int arguments, int *at)
{
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(given); k++) {
        long place = PyLong_AsLong(PyTuple_GET_ITEM(given, k));
        if (place < 0 || place >= arguments) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_ValueError, "no such argument");
            return -1;
        }
        at[k] = (int)place;
    }
    return (int)PyTuple_GET_SIZE(given);
}

/* rule_kernel(function, rule, arguments, tensors, names, *, kind, call, switches): the number of arguments, the positions of tensors and
 * the names of turnout_batched; `call` is None where the rule does not get one. */
static PyObject *make_rule_kernel(PyObject *module, PyObject *given, PyObject *named)
{
    static char *fields[] = {"", "", "", "", "", "kind", "call", "switches", NULL};
    PyObject *function, *rule, *call = Py_None, *at, *switches = NULL, *names;
    int kind = OTHER, arguments;
    if (!PyArg_ParseTupleAndKeywords(given, named, "OOiO!O!|$iOO", fields, &function, &rule, &arguments, &PyTuple_Type, &at,
                                     &PyDict_Type, &names, &kind, &call, &switches))
        return NULL;
    static const char *const needed[] = {"LEVELS", "SHARED", "BATCHED", "wrapped", "is_shared", "spread", "Tensor", "Value", "Level"};
    PyObject *found[9];
    for (int i = 0; i < 9; i++)
        if ((found[i] = PyDict_GetItemString(names, needed[i])) == NULL) {
            PyErr_Format(PyExc_KeyError, "%s", needed[i]);
            return NULL;
        }
    if (switches == NULL || arguments > MOST || PyTuple_GET_SIZE(at) > arguments || !PyDict_CheckExact(found[1]) || !PyType_Check(found[6])
        || !PyType_Check(found[7]) || !PyType_Check(found[8]) || kind < OTHER || kind > ALIGNED || (kind != OTHER && call == Py_None)) {
        PyErr_SetString(PyExc_ValueError, "not the parts of a rule");
        return NULL;
    }
    RuleKernel *made = (RuleKernel *)new_face(&RuleKernelType, function, kernel_vectorcall, rule_run);
    if (made == NULL)
        return NULL;
    made->rule = Py_NewRef(rule);
    made->call = or_null(call);
    made->levels = Py_NewRef(found[0]);
    made->shared = Py_NewRef(found[1]);
    made->keys = Py_NewRef(found[2]);
    made->wrapped = Py_NewRef(found[3]);
    made->is_shared = Py_NewRef(found[4]);
    made->spread = Py_NewRef(found[5]);
    made->tensor = (PyTypeObject *)Py_NewRef(found[6]);
    made->value = (PyTypeObject *)Py_NewRef(found[7]);
    made->switches = Py_NewRef(switches);
    made->kind = kind;
    made->arguments = arguments;
    made->level = (PyTypeObject *)Py_NewRef(found[8]);
    if ((made->at_value = slot_of(made->value, "value")) < 0 || (made->at_bdim = slot_of(made->value, "bdim")) < 0
        || (made->at_level = slot_of(made->value, "level")) < 0 || (made->at_shape = slot_of(made->value, "shape")) < 0
        || (made->at_num = slot_of(made->level, "num")) < 0 || (made->at_size = slot_of(made->level, "size")) < 0
        || (made->tensors = places(at, arguments, made->at)) < 0)
        return refuse(made);
    return finished(made);
}

/* ---- tangents */

typedef struct {
    Face face;
    PyObject *compute, *cache, *resolve;      /* the rule, and how the kernel below is found */
    PyObject *active, *vmaps, *gradients;     /* the levels that run, and what is set for rules */
    PyObject *forward, *below;                /* the bit of the key, and all others */
    PyObject *tangents_of, *attach, *keep;    /* what Python does where a tensor is not plain */
    PyTypeObject *tangents, *level, *storage; /* Tangents, ForwardLevel, Storage */
    Py_ssize_t at_seen, at_behind, at_columns, at_recorded, at_count;
    int arguments, tensors, at[MOST];
    int through;                              /* `compute` is a kernel that is written in operators, which push tangents each */
} TangentKernel;

static inline int set_variable(PyObject *variable, PyObject *value)
{
    PyObject *token = value == NULL ? NULL : PyContextVar_Set(variable, value);
    Py_XDECREF(token);
    return token == NULL ? -1 : 0;
}

/* What a variable holds: `value`, to be put back, and its `items`, which a guard may change in a list that it has set. */
typedef struct {
    PyObject *value, *items;
} Held;

/* Whether a variable holds a tuple or a list of `size` items, any number if that is -1. 0 with or without an error. */
static int hold(Held *held, PyObject *variable, Py_ssize_t size)
{
    if (PyContextVar_Get(variable, NULL, &held->value) < 0 || held->value == NULL)
        return 0;
    if (PyTuple_CheckExact(held->value))
        held->items = Py_NewRef(held->value);
    else if (PyList_CheckExact(held->value))
        held->items = PyList_AsTuple(held->value);
    return held->items != NULL && (size < 0 || PyTuple_GET_SIZE(held->items) == size);
}

static void let_go(Held *held)
{
    Py_XDECREF(held->value);
    Py_XDECREF(held->items);
}

/* The version of a tensor, borrowed; NULL where only Python knows. */
static PyObject *version_of(TangentKernel *self, PyObject *tensor)
{
    PyObject *storage = SLOT(tensor, AT_STORAGE);
    if (storage == Py_None)
        return SLOT(tensor, AT_VER);
    PyObject *version = storage != NULL && Py_IS_TYPE(storage, self->storage) ? SLOT(storage, self->at_count) : NULL;
    return version == Py_None ? NULL : version;
}

/* `tangents_of(tensor)`, new: None where the tensor has none. */
static PyObject *tangents_in(TangentKernel *self, PyObject *tensor)
{
    PyObject *extra = SLOT(tensor, AT_EXTRA), *view = SLOT(tensor, AT_VIEW_OF), *found = NULL, *version, *seen, *behind;
    int plain = extra == Py_None;
    if (extra != NULL && PyDict_CheckExact(extra)) {
        plain = 1;
        found = PyDict_GetItemWithError(extra, S_TANGENTS);
        if (found == NULL && PyErr_Occurred())
            return NULL;
    }
    if (plain && view == Py_None && (found == NULL || Py_IS_TYPE(found, self->tangents)))
        return Py_NewRef(found == NULL ? Py_None : found);
    if (found != NULL && Py_IS_TYPE(found, self->tangents) && (version = version_of(self, tensor)) != NULL) {
        seen = SLOT(found, self->at_seen);
        behind = SLOT(found, self->at_behind);
        if (seen != NULL && behind != NULL && PyFrozenSet_CheckExact(behind) && PySet_GET_SIZE(behind) == 0) {
            int same = PyObject_RichCompareBool(seen, version, Py_EQ);
            if (same != 0)
                return same < 0 ? NULL : Py_NewRef(found);
        }
    }
    return PyObject_CallOneArg(self->tangents_of, tensor);
}

/* Whether a tensor has the key. */
static int has_key(TangentKernel *self, PyObject *tensor)
{
    PyObject *both = PyNumber_And(SLOT(tensor, AT_KEYS), self->forward);
    int has = both == NULL ? -1 : PyObject_IsTrue(both);
    Py_XDECREF(both);
    return has;
}

/* Whether a level computes its tangents when it meets them: 0 for one that notes what to compute. */
static int computes(TangentKernel *self, PyObject *level)
{
    if (Py_IS_TYPE(level, self->level))
        return 1;
    PyObject *deferred = PyObject_TypeCheck(level, self->level) ? PyObject_GetAttr(level, S_IS_DEFERRED) : NULL;
    int plain = deferred == Py_False;
    Py_XDECREF(deferred);
    return plain;
}

/* The place of the innermost level that an argument has a tangent at, and the list of those tangents; -1 if there is none. */
static Py_ssize_t innermost_level(TangentKernel *self, PyObject *active, PyObject **carried, PyObject **given)
{
    if ((*given = PyList_New(self->tensors)) == NULL)
        return -1;
    for (Py_ssize_t depth = PyTuple_GET_SIZE(active) - 1; depth >= 0; depth--) {
        PyObject *level = PyTuple_GET_ITEM(active, depth);
        int any = 0;
        for (int k = 0; k < self->tensors; k++) { /* each is held before anything is called */
            PyObject *here = carried[k] == NULL || !PyDict_Check(carried[k]) ? NULL : PyDict_GetItemWithError(carried[k], level);
            if (here == NULL && PyErr_Occurred())
                return -1;
            any |= here != NULL && here != Py_None;
            PyList_SetItem(*given, k, Py_NewRef(here == NULL ? Py_None : here));
        }
        if (any)
            return computes(self, level) && SLOT(level, self->at_columns) != NULL && SLOT(level, self->at_recorded) != NULL ? depth : -1;
    }
    return -1;
}

/* Make it the tangent of a result that is exactly a tensor: 1 if that is done, 0 where Python has to do it. */
static int attach_plainly(TangentKernel *self, PyObject *result, PyObject *level, PyObject *tangent)
{
    PyObject *version = NULL, *extra, *found, *keys;
    if (SLOT(result, AT_KEYS) != NULL && SLOT(result, AT_EXTRA) != NULL && SLOT(result, AT_VIEW_OF) != NULL)
        version = SLOT(result, AT_VIEW_OF) == Py_None ? ZERO : version_of(self, result);
    if (version == NULL || !(SLOT(result, AT_EXTRA) == Py_None || PyDict_CheckExact(SLOT(result, AT_EXTRA))))
        return 0;
    Py_INCREF(version);
    extra = SLOT(result, AT_EXTRA) == Py_None ? PyDict_New() : Py_NewRef(SLOT(result, AT_EXTRA));
    found = extra == NULL ? NULL : PyDict_GetItemWithError(extra, S_TANGENTS);
    Py_XINCREF(found);
    if (found == NULL && extra != NULL && !PyErr_Occurred()
        && (found = self->tangents->tp_new(self->tangents, NOTHING, NULL)) != NULL) {
        SLOT(found, self->at_seen) = Py_NewRef(version);
        SLOT(found, self->at_behind) = Py_NewRef(NO_LEVELS);
        if (PyDict_SetItem(extra, S_TANGENTS, found) < 0)
            Py_CLEAR(found);
    }
    Py_DECREF(version);
    keys = found == NULL || PyObject_SetItem(found, level, tangent) < 0 ? NULL : PyNumber_Or(SLOT(result, AT_KEYS), self->forward);
    Py_XDECREF(found);
    if (keys == NULL) {
        Py_XDECREF(extra);
        return -1;
    }
    Py_SETREF(SLOT(result, AT_EXTRA), extra);
    Py_SETREF(SLOT(result, AT_KEYS), keys);
    return 1;
}

/* Whether the class of a node says that it saves no output. */
static int keeps_nothing(PyObject *node)
{
    PyObject *keeps = PyObject_GetAttr((PyObject *)Py_TYPE(node), S_KEEPS);
    int nothing = keeps != NULL && PyTuple_CheckExact(keeps) && PyTuple_GET_SIZE(keeps) == 0;
    if (keeps == NULL)
        PyErr_Clear(); /* an output of a node with several */
    Py_XDECREF(keeps);
    return nothing;
}

/* Make it the tangent of a result, and of what the node that made the result saved of it. */
static int attach_to(TangentKernel *self, PyObject *result, PyObject *level, PyObject *tangent)
{
    int exact = Py_IS_TYPE(result, Tensor), done = exact ? attach_plainly(self, result, level, tangent) : 0;
    PyObject *answer, *mask;
    if (done == 0) {
        answer = PyObject_CallFunctionObjArgs(self->attach, result, level, tangent, NULL);
        done = answer == NULL ? -1 : 1;
        Py_XDECREF(answer);
    }
    if (done < 0)
        return -1;
    mask = exact ? Py_XNewRef(SLOT(result, AT_GMASK)) : PyObject_GetAttrString(result, "gmask");
    int tracked = mask != NULL ? PyObject_IsTrue(mask) : PyErr_Occurred() ? -1 : 0;
    Py_XDECREF(mask);
    if (tracked > 0) {
        PyObject *node = exact ? Py_XNewRef(SLOT(result, AT_NODE)) : PyObject_GetAttrString(result, "node"), *carried = NULL;
        if (!(exact && node != NULL && keeps_nothing(node))) {
            carried = node == NULL ? NULL : exact ? tangents_in(self, result) : PyObject_CallOneArg(self->tangents_of, result);
            answer = carried == NULL ? NULL : PyObject_CallFunctionObjArgs(self->keep, node, result, carried, NULL);
            tracked = answer == NULL ? -1 : 1;
            Py_XDECREF(answer);
            Py_XDECREF(carried);
        }
        Py_XDECREF(node);
        if (tracked < 0 && !PyErr_Occurred())
            PyErr_SetString(PyExc_AttributeError, "node");
    }
    return tracked < 0 ? -1 : 0;
}

/* The tangent of `result` by the rule, inside the vmap of the level's columns, and recorded at the level's gradient levels only. */
static PyObject *tangent_of(TangentKernel *self, PyObject *level, PyObject *given, PyObject *result, PyObject *const *args,
                            const Held *around, const Held *recorded)
{
    PyObject *columns = Py_NewRef(SLOT(level, self->at_columns)), *own, *inside = NULL, *found = NULL, *passed[MOST + 3];
    own = PyNumber_And(PyTuple_GET_ITEM(recorded->items, 0), SLOT(level, self->at_recorded));
    int differs = own == NULL ? -1 : PyObject_RichCompareBool(own, PyTuple_GET_ITEM(recorded->items, 0), Py_NE), ready = differs >= 0;
    if (ready && differs) {
        PyObject *allowed = PyNumber_And(PyTuple_GET_ITEM(recorded->items, 1), SLOT(level, self->at_recorded));
        PyObject *pair = allowed == NULL ? NULL : PyTuple_Pack(2, own, allowed);
        ready = set_variable(self->gradients, pair) == 0;
        Py_XDECREF(pair);
        Py_XDECREF(allowed);
    }
    if (ready && columns != Py_None) {
        Py_ssize_t size = PyTuple_GET_SIZE(around->items);
        inside = PyTuple_New(size + 1);
        for (Py_ssize_t i = 0; inside != NULL && i <= size; i++)
            PyTuple_SET_ITEM(inside, i, Py_NewRef(i < size ? PyTuple_GET_ITEM(around->items, i) : columns));
        ready = set_variable(self->vmaps, inside) == 0;
    }
    if (ready) {
        passed[1] = given;
        passed[2] = result;
        for (int i = 0; i < self->arguments; i++)
            passed[3 + i] = args[i];
        found = PyObject_Vectorcall(self->compute, passed + 1, (self->arguments + 2) | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    }
    if ((differs > 0 && put_back(self->gradients, recorded->value) < 0) | (inside != NULL && put_back(self->vmaps, around->value) < 0))
        Py_CLEAR(found);
    Py_XDECREF(own);
    Py_XDECREF(inside);
    Py_DECREF(columns);
    return found;
}

/* The value by what is below, and its tangent, at the levels outside of the one at `depth`. */
static PyObject *push_at(TangentKernel *self, PyObject *ks, PyObject *const *args, const Held *active, Py_ssize_t depth, PyObject *given,
                         const Held *before, const Held *around, const Held *recorded)
{
    PyObject *level = PyTuple_GET_ITEM(active->items, depth), *result = NULL, *found = NULL, *kernel, *passed[MOST + 2];
    PyObject *outside = PyTuple_GetSlice(active->items, 0, depth), *pair = NULL, *kept;
    int ready = set_variable(self->active, outside) == 0;
    Py_INCREF(ks);
    if (ready && depth == 0) {
        kept = PyNumber_And(PyTuple_GET_ITEM(before->items, 1), self->below);
        pair = kept == NULL ? NULL : PyTuple_Pack(2, PyTuple_GET_ITEM(before->items, 0), kept);
        Py_XDECREF(kept);
        PyObject *lower = pair == NULL ? NULL : PyNumber_And(ks, self->below);
        ready = lower != NULL && set_variable(DISPATCH, pair) == 0;
        if (lower != NULL)
            Py_SETREF(ks, lower);
    }
    if (ready) {
        kernel = PyDict_GetItemWithError(self->cache, ks);
        kernel = kernel != NULL ? Py_NewRef(kernel) : PyErr_Occurred() ? NULL : PyObject_CallOneArg(self->resolve, ks);
        passed[1] = ks;
        for (int i = 0; i < self->arguments; i++)
            passed[2 + i] = args[i];
        if (kernel != NULL)
            result = PyObject_Vectorcall(kernel, passed + 1, (self->arguments + 1) | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
        Py_XDECREF(kernel);
        if (result != NULL)
            found = tangent_of(self, level, given, result, args, around, recorded);
    }
    if ((pair != NULL && put_back(DISPATCH, before->value) < 0) | (put_back(self->active, active->value) < 0))
        Py_CLEAR(found);
    if (found == NULL || (found != Py_None && attach_to(self, result, level, found) < 0))
        Py_CLEAR(result);
    Py_XDECREF(found);
    Py_XDECREF(outside);
    Py_XDECREF(pair);
    Py_DECREF(ks);
    return result;
}

/* The kernel that is written in operators, called as it is. */
static PyObject *push_through(TangentKernel *self, PyObject *ks, PyObject *const *args)
{
    PyObject *passed[MOST + 2];
    passed[1] = ks;
    for (int i = 0; i < self->arguments; i++)
        passed[2 + i] = args[i];
    return PyObject_Vectorcall(self->compute, passed + 1, (self->arguments + 1) | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
}

static Outcome tangent_run(Face *face, PyObject *ks, PyObject *const *args, Py_ssize_t n, PyObject **result)
{
    TangentKernel *self = (TangentKernel *)face;
    PyObject *carried[MOST] = {NULL}, *given = NULL;
    Held active = {NULL, NULL}, before = {NULL, NULL}, around = {NULL, NULL}, recorded = {NULL, NULL};
    int plain = n == self->arguments, carries = 0;
    for (int k = 0; k < self->tensors && plain; k++) {
        PyObject *tensor = args[self->at[k]];
        if (tensor == Py_None)
            continue;
        int has = Py_IS_TYPE(tensor, Tensor) && SLOT(tensor, AT_KEYS) != NULL ? has_key(self, tensor) : -1;
        plain = has == 0 || (has > 0 && (carried[k] = tangents_in(self, tensor)) != NULL);
        carries |= has > 0;
    }
    if (self->through && plain && carries) {
        if (hold(&active, self->active, -1) && innermost_level(self, active.items, carried, &given) >= 0)
            *result = push_through(self, ks, args);
    } else if (plain && carries && hold(&active, self->active, -1) && hold(&before, DISPATCH, 2) && hold(&around, self->vmaps, -1)
               && hold(&recorded, self->gradients, 2)) {
        Py_ssize_t depth = innermost_level(self, active.items, carried, &given);
        if (depth >= 0)
            *result = push_at(self, ks, args, &active, depth, given, &before, &around, &recorded);
        if (depth >= 0 && *result == NULL && !PyErr_Occurred())
            PyErr_SetString(PyExc_SystemError, "a tangent failed without an error");
    }
    for (int k = 0; k < self->tensors; k++)
        Py_XDECREF(carried[k]);
    Py_XDECREF(given);
    let_go(&active);
    let_go(&before);
    let_go(&around);
    let_go(&recorded);
    if (*result == NULL && !PyErr_Occurred())
        return DECLINED; /* nothing has happened */
    PUSHED++;
    return *result == NULL ? FAILED : DONE;
}

FACE(TangentKernelType, "TangentKernel", TangentKernel, HOLDS(TangentKernel, storage), face_traverse, face_clear);

/* tangent_kernel(function, rule, arguments, tensors, names, *, cache, resolve, through): the number of arguments, the positions of
 * tensors and the names of turnout_autograd; `through` says that the rule is a kernel. */
static PyObject *make_tangent_kernel(PyObject *module, PyObject *given, PyObject *named)
{
    static char *fields[] = {"", "", "", "", "", "cache", "resolve", "through", NULL};
    PyObject *function, *compute, *cache = NULL, *resolve = NULL, *at, *names;
    int arguments, through = 0;
    if (!PyArg_ParseTupleAndKeywords(given, named, "OOiO!O!|$O!Op", fields, &function, &compute, &arguments, &PyTuple_Type, &at,
                                     &PyDict_Type, &names, &PyDict_Type, &cache, &resolve, &through))
        return NULL;
    static const char *const needed[] = {"ACTIVE", "LEVELS", "GRAD", "FORWARD", "BELOW", "tangents_of", "attach", "keep_tangents",
                                         "Tangents", "Level", "Storage"};
    PyObject *found[11];
    for (int i = 0; i < 11; i++)
        if ((found[i] = PyDict_GetItemString(names, needed[i])) == NULL) {
            PyErr_Format(PyExc_KeyError, "%s", needed[i]);
            return NULL;
        }
    if (cache == NULL || resolve == NULL || arguments > MOST || PyTuple_GET_SIZE(at) > arguments || !PyType_Check(found[8]) || !PyType_Check(found[9])
        || !PyType_Check(found[10]) || !PyType_IsSubtype((PyTypeObject *)found[8], &PyDict_Type)) {
        PyErr_SetString(PyExc_ValueError, "not the parts of a tangent");
        return NULL;
    }
    TangentKernel *made = (TangentKernel *)new_face(&TangentKernelType, function, kernel_vectorcall, tangent_run);
    if (made == NULL)
        return NULL;
    made->compute = Py_NewRef(compute);
    made->cache = Py_NewRef(cache);
    made->resolve = Py_NewRef(resolve);
    PyObject **const parts[] = {&made->active, &made->vmaps, &made->gradients, &made->forward, &made->below, &made->tangents_of,
                                &made->attach, &made->keep};
    for (int i = 0; i < 8; i++)
        *parts[i] = Py_NewRef(found[i]);
    made->tangents = (PyTypeObject *)Py_NewRef(found[8]);
    made->level = (PyTypeObject *)Py_NewRef(found[9]);
    made->storage = (PyTypeObject *)Py_NewRef(found[10]);
    made->arguments = arguments;
    made->through = through;
    if ((made->at_seen = slot_of(made->tangents, "seen")) < 0 || (made->at_behind = slot_of(made->tangents, "behind")) < 0
        || (made->at_columns = slot_of(made->level, "columns")) < 0 || (made->at_recorded = slot_of(made->level, "recorded")) < 0
        || (made->at_count = slot_of(made->storage, "ver")) < 0 || (made->tensors = places(at, arguments, made->at)) < 0)
        return refuse(made);
    return finished(made);
}

static PyObject *configure(PyObject *module, PyObject *names)
{
    PyObject *tensor, *builtins, *dispatch, *restore;
    if (!PyArg_ParseTuple(names, "O!O!OO", &PyType_Type, &tensor, &PyDict_Type, &builtins, &dispatch, &restore))
        return NULL;
    Py_XSETREF(Tensor, (PyTypeObject *)Py_NewRef(tensor));
    Py_XSETREF(STUB_BUILTINS, Py_NewRef(builtins));
    Py_XSETREF(DISPATCH, Py_NewRef(dispatch));
    Py_XSETREF(RESTORE, Py_NewRef(restore));
    if (find_tensor_slots() < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *taken(PyObject *module, PyObject *unused) { return PyLong_FromSsize_t(TAKEN); }

static PyObject *pushed(PyObject *module, PyObject *unused) { return PyLong_FromSsize_t(PUSHED); }

static PyMethodDef functions[] = {
    {"taken", taken, METH_NOARGS, "taken()\n--\n\nHow many calls at Batched were finished here."},
    {"pushed", pushed, METH_NOARGS, "pushed()\n--\n\nHow many calls at Forward were finished here."},
    {"configure", configure, METH_VARARGS, "configure(tensor, stub_builtins, dispatch, restore)\n--\n\nName what calls read."},
    {"rule_kernel", (PyCFunction)(void (*)(void))make_rule_kernel, METH_VARARGS | METH_KEYWORDS, "The kernel at Batched of an operator that has a rule."},
    {"tangent_kernel", (PyCFunction)(void (*)(void))make_tangent_kernel, METH_VARARGS | METH_KEYWORDS, "The kernel at Forward of an operator that returns one tensor."},
    {NULL},
};

static int fill(PyObject *module)
{
    if (!is_of_this_interpreter())
        return -1;
    import_array1(-1);
    static PyTypeObject *const types[] = {&FaceType, &RuleKernelType.type, &TangentKernelType.type, NULL};
    ZERO = PyLong_FromLong(0);
    NOTHING = PyTuple_New(0);
    NO_LEVELS = PyFrozenSet_New(NULL);
    if (ZERO == NULL || NOTHING == NULL || NO_LEVELS == NULL || intern_names() < 0 || ready_types(types) < 0)
        return -1;
    return 0;
}

MODULE_SLOTS(fill);

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "_rules", .m_methods = functions, .m_slots = slots};

PyMODINIT_FUNC PyInit__rules(void) { return PyModuleDef_Init(&definition); }
