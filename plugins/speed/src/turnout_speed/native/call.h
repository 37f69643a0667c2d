/* Call: a stub, a public function or a method. Arguments, key set, look-up in the operator's cache. */
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

#define TARGETS 3

typedef struct {
    Face face;
    int count;
    Target targets[TARGETS];
    PyObject *tail;         /* the last line of the text: (kernel, ks, arguments); or NULL */
    PyObject *chosen;       /* the overloads by the types of a call; or NULL */
    PyObject *named;        /* the class of several results, or NULL */
    int least, most;        /* the positional arguments of a call that is looked for there */
    int by_name;            /* whether keywords may be given */
    PyObject *seen;         /* the line of the text that calls one of them: (overload, arguments); or NULL */
    int after;              /* the positional arguments from which on it does */
} Call;

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
        return PyUnicode_Check(value);
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
        if (!is_list)
            return PyTuple_GetSlice(value, 0, n);
        PyObject *made = PyTuple_New(n); /* a collection here may change the list */
        for (Py_ssize_t i = 0; made != NULL && i < n; i++)
            if (i < PyList_GET_SIZE(value) && is_int(PyList_GET_ITEM(value, i)))
                PyTuple_SET_ITEM(made, i, Py_NewRef(PyList_GET_ITEM(value, i)));
            else
                Py_CLEAR(made);
        return made;
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

/* Call a kernel of Python from the frame that the text of the function would have: its last line. Not again, if that fails. */
static Outcome call_kernel(const Target *target, PyObject *tail, PyObject *kernel, PyObject *ks, PyObject **values, PyObject **result)
{
    PyObject *passed[MOST + 3];
    Py_ssize_t count = 2;
    passed[1] = is_kernel(kernel) ? text_of((Face *)kernel) : kernel;
    passed[2] = ks;
    for (int i = 0; i < target->arguments; i++)
        if (target->source[i] >= 0 || target->name[i] != NULL)
            passed[1 + count++] = values[i];
    *result = PyObject_Vectorcall(tail, passed + 1, count | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    return *result == NULL ? FAILED : DONE;
}

/* What a call gives to a target: its key set, and its arguments with what was made of them here. */
typedef struct {
    PyObject *ks;   /* of its tensors; NULL: none yet */
    PyObject *rest; /* the ints that were written one by one, or NULL */
    Py_ssize_t used; /* arguments */
    int count;
    PyObject *made[MOST + 1], *values[MOST];
} Arguments;

/* The ints from the parameter that takes all that are left. 0 with or without an error. */
static int take_rest(const Target *target, PyObject *const *args, Py_ssize_t n, Arguments *given)
{
    PyObject *rest = PyTuple_New(n - target->rest);
    for (Py_ssize_t k = target->rest; rest != NULL && k < n; k++)
        if (is_int(args[k]))
            PyTuple_SET_ITEM(rest, k - target->rest, Py_NewRef(args[k]));
        else
            Py_CLEAR(rest);
    if (rest != NULL)
        given->made[given->count++] = given->rest = rest;
    return rest != NULL;
}

/* An argument of the schema: given by position or by name, or its default; NULL without one. */
static inline PyObject *find_argument(const Target *target, int i, PyObject *const *args, Py_ssize_t n, PyObject *const *keywords,
                                      PyObject *kwnames, Arguments *given)
{
    int from = target->source[i];
    if (given->rest != NULL && from == target->rest)
        return given->rest;
    if (from >= 0 && from < n)
        return args[from];
    for (Py_ssize_t k = 0; kwnames != NULL && target->name[i] != NULL && k < PyTuple_GET_SIZE(kwnames); k++)
        if (PyTuple_GET_ITEM(kwnames, k) == target->name[i]) {
            given->used++;
            return keywords[k];
        }
    return target->standard[i];
}

/* The keys of tensors in a list. */
static int add_keys_of_list(Arguments *given, PyObject *value, int optional)
{
    int is_list = PyList_CheckExact(value);
    if (!is_list && !PyTuple_CheckExact(value))
        return 0;
    Py_ssize_t length = is_list ? PyList_GET_SIZE(value) : PyTuple_GET_SIZE(value);
    PyObject **items = is_list ? ((PyListObject *)value)->ob_item : ((PyTupleObject *)value)->ob_item;
    for (Py_ssize_t k = 0; k < length; k++)
        if (!(items[k] == Py_None ? optional : add_keys(&given->ks, items[k])))
            return 0;
    return 1;
}

/* Whether a value is plain for an argument of the schema; it is added to the values. */
static inline int take_argument(const Target *target, int i, PyObject *value, Arguments *given)
{
    given->values[i] = value;
    switch (target->kind[i]) {
    case IS_TENSOR:
        return value == Py_None ? target->optional[i] : add_keys(&given->ks, value);
    case IS_TENSORS:
        return add_keys_of_list(given, value, target->optional[i]);
    case IS_INTS:
        if ((value == Py_None && target->optional[i]) || (value == given->rest && value != NULL))
            return 1;
        if ((value = as_ints(value, target->size[i])) == NULL)
            return 0;
        given->values[i] = given->made[given->count++] = value;
        return 1;
    default:
        return fits(target->kind[i], target->optional[i], value);
    }
}

/* What serves the key set in this context: a new reference, because the cache may be cleared while it runs; NULL with or without an
 * error. */
static PyObject *find_kernel(const Target *target, Arguments *given)
{
    PyObject *state = dispatch_state();
    if (state == NULL)
        return NULL;
    if (given->ks == NULL)
        given->ks = in_effect(ZERO, state);
    else if (state != FRESH)
        Py_SETREF(given->ks, in_effect(given->ks, state));
    Py_DECREF(state);
    return given->ks == NULL ? NULL : Py_XNewRef(PyDict_GetItemWithError(target->cache, given->ks));
}

/* Take the arguments; 0 with or without an error: they are not plain, or not those of this target. */
static int take_arguments(const Target *target, PyObject *const *args, Py_ssize_t n, PyObject *kwnames, Arguments *given)
{
    PyObject *const *keywords = args + n;
    Py_ssize_t named = kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames);
    if (target->rest >= 0 && n > target->rest && PyLong_CheckExact(args[target->rest])) {
        if (!take_rest(target, args, n, given))
            return 0;
        n = target->rest + 1;
    }
    if (n > target->parameters || (target->alone && (given->rest == NULL || named)))
        return 0;
    given->used = n;
    for (int i = 0; i < target->arguments; i++) {
        PyObject *value = find_argument(target, i, args, n, keywords, kwnames, given);
        if (value == NULL || !take_argument(target, i, value, given))
            return 0;
    }
    return given->used == n + named && !(given->ks == NULL && target->tensors);
}

/* Run what serves a target that has taken its arguments. */
static inline Outcome serve(const Target *target, PyObject *tail, Arguments *given, PyObject **result)
{
    PyObject *kernel = find_kernel(target, given);
    Outcome outcome = DECLINED;
    if (kernel != NULL && is_kernel(kernel)) {
        outcome = ((Face *)kernel)->run((Face *)kernel, given->ks, given->values, target->arguments, result);
        TAKEN += outcome == DONE;
    }
    if (outcome == DECLINED && kernel != NULL && tail != NULL && !PyErr_Occurred())
        outcome = call_kernel(target, tail, kernel, given->ks, given->values, result);
    Py_XDECREF(kernel);
    return outcome;
}

/* `taken`: whether the call is one of this target, so that no other can serve it. */
static inline Outcome run_target(const Target *target, PyObject *tail, PyObject *const *args, Py_ssize_t n, PyObject *kwnames, int *taken,
                          PyObject **result)
{
    Arguments given;
    given.ks = given.rest = NULL;
    given.count = 0;
    *taken = take_arguments(target, args, n, kwnames, &given);
    Outcome outcome = *taken ? serve(target, tail, &given, result) : DECLINED;
    if (outcome == DECLINED)
        outcome = decline_after_error();
    while (given.count > 0)
        Py_DECREF(given.made[--given.count]);
    Py_XDECREF(given.ks);
    return outcome;
}

/* What stands for an argument in the key of a choice: its type, and for a sequence those of its elements, too. */
static PyObject *kind_of(PyObject *value)
{
    if (!PyList_CheckExact(value) && !PyTuple_Check(value))
        return Py_NewRef(Py_TYPE(value));
    PyObject *types = PyFrozenSet_New(NULL);
    Py_ssize_t n = 0;
    for (; types != NULL && n < Py_SIZE(value); n++) { /* asked each time: a type may have a hash of its own, which changes the list */
        PyObject *item = PyList_CheckExact(value) ? PyList_GET_ITEM(value, n) : PyTuple_GET_ITEM(value, n);
        PyObject *type = Py_NewRef(Py_TYPE(item));
        if (PySet_Add(types, type) < 0)
            Py_CLEAR(types);
        Py_DECREF(type);
    }
    return types == NULL ? NULL : Py_BuildValue("(ONO)", Py_TYPE(value), types, n == 1 ? Py_True : Py_False);
}

/* The key of a call in the overloads that were chosen before: the kinds of its arguments, and its keywords with theirs. */
static PyObject *key_of_call(PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    PyObject *key = PyTuple_New(n);
    for (Py_ssize_t i = 0; key != NULL && i < n; i++) {
        PyObject *kind = kind_of(args[i]);
        if (kind == NULL)
            Py_CLEAR(key);
        else
            PyTuple_SET_ITEM(key, i, kind);
    }
    if (key == NULL || kwnames == NULL)
        return key;
    PyObject *words = PyTuple_New(PyTuple_GET_SIZE(kwnames));
    for (Py_ssize_t i = 0; words != NULL && i < PyTuple_GET_SIZE(kwnames); i++) {
        PyObject *kind = kind_of(args[n + i]);
        PyObject *word = kind == NULL ? NULL : PyTuple_Pack(2, PyTuple_GET_ITEM(kwnames, i), kind);
        Py_XDECREF(kind);
        if (word == NULL)
            Py_CLEAR(words);
        else
            PyTuple_SET_ITEM(words, i, word);
    }
    if (words == NULL) {
        Py_DECREF(key);
        return NULL;
    }
    return Py_BuildValue("(NN)", key, words);
}

/* Whether `self` is given by name. Operators take it so; functions, which share what was chosen, call it `input`. */
static int names_self(PyObject *kwnames)
{
    for (Py_ssize_t i = 0; kwnames != NULL && i < PyTuple_GET_SIZE(kwnames); i++)
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, i), "self") == 0)
            return 1;
    return 0;
}

/* The overload that the types of the arguments choose, if its call can be finished here. `op`: that overload, a new reference; or
 * NULL. */
static Outcome run_chosen(PyObject *chosen, PyObject *const *args, Py_ssize_t n, PyObject *kwnames, PyObject **op, PyObject **result)
{
    PyObject *key = key_of_call(args, n, kwnames);
    *op = key == NULL ? NULL : Py_XNewRef(PyDict_GetItemWithError(chosen, key));
    Py_XDECREF(key);
    PyObject *call = *op == NULL ? NULL : PyObject_GetAttr(*op, S_CALL);
    Outcome outcome = DECLINED;
    int taken;
    if (call != NULL && Py_IS_TYPE(call, &CallType.type))
        outcome = run_target(&((Call *)call)->targets[0], NULL, args, n, kwnames, &taken, result);
    Py_XDECREF(call);
    return outcome == DECLINED ? decline_after_error() : outcome;
}

/* Whether the text finds the same overload by the same key: it tells lists by their class alone. Kernels of Python are not called
 * where the call may be made again. */
static int is_seen(const Call *call, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    if (call->seen == NULL || REPEATABLE || kwnames != NULL || n < call->after)
        return 0;
    for (Py_ssize_t i = 0; i < n; i++)
        if (PyList_CheckExact(args[i]) || PyTuple_Check(args[i]))
            return 0;
    return 1;
}

/* The overload that the types of the arguments choose: finished here, or called from the frame that the text of the function would
 * have. Not again, if that fails. */
static Outcome run_overload(const Call *call, PyObject *const *args, Py_ssize_t n, PyObject *kwnames, PyObject **result)
{
    PyObject *passed[MOST + 2];
    Outcome outcome = run_chosen(call->chosen, args, n, kwnames, &passed[1], result);
    if (outcome == DECLINED && passed[1] != NULL && is_seen(call, args, n, kwnames)) {
        for (Py_ssize_t i = 0; i < n; i++)
            passed[2 + i] = args[i];
        *result = PyObject_Vectorcall(call->seen, passed + 1, (n + 1) | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
        outcome = *result == NULL ? FAILED : DONE;
    }
    Py_XDECREF(passed[1]);
    return outcome;
}

/* Several results with their names, and a list of tensors as a tuple. Steals the reference. */
static PyObject *with_names(PyObject *named, PyObject *result)
{
    if (named == NULL || (!PyTuple_CheckExact(result) && !PyList_CheckExact(result)))
        return result;
    PyObject *given = PyTuple_Pack(1, result);
    PyObject *made = given == NULL ? NULL : PyTuple_Type.tp_new((PyTypeObject *)named, given, NULL);
    Py_XDECREF(given);
    Py_DECREF(result);
    return made;
}

/* The tail is that of the function's own target: a call of another one is finished here or not at all. */
static Outcome run_call(Call *call, PyObject *tail, PyObject *const *args, Py_ssize_t n, PyObject *kwnames, PyObject **result)
{
    Outcome outcome = DECLINED;
    int taken = 0;
    for (int i = 0; i < call->count && !taken && outcome == DECLINED; i++)
        outcome = run_target(&call->targets[i], i == 0 ? tail : NULL, args, n, kwnames, &taken, result);
    if (!taken && outcome == DECLINED && n >= call->least && n <= call->most && (kwnames == NULL || (call->by_name && !names_self(kwnames))))
        outcome = run_overload(call, args, n, kwnames, result);
    return outcome;
}

static PyObject *call_vectorcall(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Call *call = (Call *)self;
    if (!is_traced()) {
        PyObject *result = NULL;
        Outcome outcome = run_call(call, call->tail, args, PyVectorcall_NARGS(nargsf), kwnames, &result);
        if (outcome != DECLINED)
            return outcome == DONE ? with_names(call->named, result) : NULL;
    }
    return PyObject_Vectorcall(call->face.function, args, nargsf, kwnames);
}

static int call_traverse(PyObject *self, visitproc visit, void *arg)
{
    Call *call = (Call *)self;
    int stopped = face_traverse(self, visit, arg);
    if (stopped)
        return stopped;
    Py_VISIT(call->tail);
    Py_VISIT(call->chosen);
    Py_VISIT(call->seen);
    Py_VISIT(call->named);
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
    Py_CLEAR(call->tail);
    Py_CLEAR(call->chosen);
    Py_CLEAR(call->seen);
    Py_CLEAR(call->named);
    for (int t = 0; t < call->count; t++) {
        Py_CLEAR(call->targets[t].cache);
        for (int i = 0; i < call->targets[t].arguments; i++) {
            Py_CLEAR(call->targets[t].standard[i]);
            Py_CLEAR(call->targets[t].name[i]);
        }
    }
    call->count = 0;
    return face_clear(self);
}

static const char *const KINDS[] = {
    [IS_TENSOR] = "Tensor", [IS_SCALAR] = "Scalar", [IS_INT] = "int", [IS_FLOAT] = "float", [IS_BOOL] = "bool", [IS_STR] = "str",
    [IS_DTYPE] = "ScalarType", [IS_DEVICE] = "Device", [IS_INTS] = "ints", [IS_TENSORS] = "tensors", [IS_NONE] = "none", NULL,
};

/* (cache, parameters, ((kind, optional, size, source, default or MISSING, name or None), ...), rest or -1, alone) */
static int read_target(Target *target, PyObject *row)
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
        target->standard[i] = standard == MISSING ? NULL : Py_NewRef(standard);
        target->name[i] = NULL;
        if (name != Py_None) {
            target->name[i] = Py_NewRef(name);
            PyUnicode_InternInPlace(&target->name[i]);
        }
        target->arguments = i + 1;
    }
    return 0;
}

/* (function, targets, tail or None, class of several results or None, overloads), where `overloads` is None or (chosen,
 * least, most, by name, line that calls one of them or None, after) */
static PyObject *make_call(PyObject *module, PyObject *args)
{
    PyObject *function, *targets, *tail, *named, *overloads, *chosen = NULL, *seen = Py_None;
    int least = 0, most = -1, by_name = 0, after = 0;
    if (!PyArg_ParseTuple(args, "OO!OOO", &function, &PyTuple_Type, &targets, &tail, &named, &overloads))
        return NULL;
    if (overloads != Py_None && !PyTuple_Check(overloads)) {
        PyErr_SetString(PyExc_TypeError, "a tuple of overloads");
        return NULL;
    }
    if (overloads != Py_None && !PyArg_ParseTuple(overloads, "O!iipOi", &PyDict_Type, &chosen, &least, &most, &by_name, &seen, &after))
        return NULL;
    if (PyTuple_GET_SIZE(targets) > TARGETS
        || (named != Py_None && !(PyType_Check(named) && PyType_IsSubtype((PyTypeObject *)named, &PyTuple_Type)))) {
        PyErr_SetString(PyExc_ValueError, "too many targets, or results of no tuple");
        return NULL;
    }
    Call *made = (Call *)new_face(&CallType, function, call_vectorcall, NULL);
    if (made == NULL)
        return NULL;
    made->count = 0;
    made->tail = or_null(tail);
    made->named = or_null(named);
    made->chosen = Py_XNewRef(chosen);
    made->least = least;
    made->most = most;
    made->by_name = by_name;
    made->seen = or_null(seen);
    made->after = after;
    for (int i = 0; i < PyTuple_GET_SIZE(targets); i++) {
        memset(&made->targets[i], 0, sizeof(Target));
        made->count = i + 1;
        if (read_target(&made->targets[i], PyTuple_GET_ITEM(targets, i)) < 0)
            return refuse(made);
    }
    return finished(made);
}
