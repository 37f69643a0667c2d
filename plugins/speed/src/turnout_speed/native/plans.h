/* PlanKernel: what the shape function answered for calls that look alike, new arrays, the kernel. */
/* ---- what is kept of calls that look alike */

#define KEPT 8   /* calls */
#define WORDS 96 /* that say what a call looks like */

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
    PyObject *array = numpy_of(tensor);
    if (array == NULL || SLOT(tensor, AT_DEVICE) == NULL)
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

/* ---- the cases of a wrapper: its functions, in the order in which they are tried */

enum { CASES = 3 };

typedef struct {
    npy_intp upto, halves; /* the most elements, and those of two bytes; 0: any number */
    int brief;             /* for calls whose other arguments have their defaults, and without these */
} Case;

/* The first case that serves a call. The last one serves all. */
static inline int case_for(const Case *cases, npy_intp size, int has_halves, int is_standard)
{
    for (int k = 0;; k++) {
        npy_intp most = has_halves ? cases[k].halves : cases[k].upto;
        if ((!most || size <= most) && (is_standard || !cases[k].brief))
            return k;
    }
}

/* Rows (function, upto, halves, brief). 0, or -1 with an error. */
static int read_cases(PyObject *rows, PyObject **functions, Case *cases)
{
    Py_ssize_t count = PyTuple_GET_SIZE(rows);
    for (Py_ssize_t k = 0; k < count && count <= CASES; k++) {
        PyObject *function;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(rows, k), "Onnp", &function, &cases[k].upto, &cases[k].halves, &cases[k].brief))
            return -1;
        functions[k] = Py_NewRef(function);
    }
    if (count > 0 && count <= CASES && !cases[count - 1].upto && !cases[count - 1].halves && !cases[count - 1].brief)
        return 0;
    PyErr_SetString(PyExc_ValueError, "the last case has to serve all calls");
    return -1;
}

enum { A_TENSOR, A_OPTIONAL, A_LIST, A_VALUE };
enum { EXTRA = 64 }; /* what a kernel is passed: arguments by their place, and from here on what its plan adds */

typedef struct {
    Face face;
    PyObject *find, *keys, *as_given, *functions[CASES], *table;
    PyObject *standard[MOST]; /* defaults of the arguments that a program reads only as such, or NULL */
    Case cases[CASES];
    int arguments, role[MOST], outs, first, sized; /* places: the first tensor's, that of the array whose elements are counted */
    int passes, passed[MOST];
    Program program;
    int ignored[MOST];
    int moves;  /* what the kernel does, where it only moves elements */
    const turnout_compiled *compiled; /* what computes the same of few elements, or NULL */
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
    if (plan != NULL && !(PyTuple_CheckExact(plan) && PyTuple_GET_SIZE(plan) == 4 * self->outs + 4))
        Py_CLEAR(plan);
    if (plan != NULL && keep(&self->memo, look, plan) < 0)
        Py_CLEAR(plan);
    return plan;
}

/* A new array of a plan's shape, dtype and dense strides (None: row-major); NULL with or without an error. */
static PyObject *new_output(PyObject *shape, PyObject *native, PyObject *strides)
{
    npy_intp dims[DIMS], steps[DIMS], size = 1, last = 0;
    int n = PyArray_DescrCheck(native) ? numbers_of(shape, dims, DIMS) : -1, ordered = strides != Py_None;
    if (n < 0 || (ordered && numbers_of(strides, steps, DIMS) != n))
        return NULL;
    for (int d = 0; ordered && d < n; d++) {
        if (steps[d] < 0)
            return NULL;
        size *= dims[d];
        last += (dims[d] - 1) * steps[d];
        steps[d] *= PyDataType_ELSIZE((PyArray_Descr *)native);
    }
    if (ordered && size > 0 && last >= size) /* it has gaps: NumPy would not make room for them */
        return NULL;
    native = Py_NewRef(native);
    return PyArray_NewFromDescr(&PyArray_Type, (PyArray_Descr *)native, n, dims, ordered ? steps : NULL, NULL, 0, NULL);
}

/* Convert arrays to the dtypes that a plan names; 0 with or without an error. */
static int convert_arguments(PlanKernel *self, PyObject *casts, PyObject *device, PyObject **arrays)
{
    Py_ssize_t k = 0;
    if (!PyTuple_CheckExact(casts))
        return 0;
    for (int i = 0; i < self->arguments; i++) {
        if (self->role[i] == A_VALUE)
            continue;
        PyObject *dtype = k < PyTuple_GET_SIZE(casts) ? PyTuple_GET_ITEM(casts, k++) : Py_None;
        if (dtype == Py_None || arrays[i] == Py_None)
            continue;
        PyObject *native = native_of(device, dtype);
        int is_list = self->role[i] == A_LIST, failed = native == NULL;
        for (Py_ssize_t j = 0; !failed && j < (is_list ? PyList_GET_SIZE(arrays[i]) : 1); j++) {
            PyObject *old = is_list ? PyList_GET_ITEM(arrays[i], j) : arrays[i];
            PyObject *made = old == Py_None ? Py_NewRef(old) : converted((PyArrayObject *)old, native);
            failed = made == NULL;
            if (failed)
                break;
            if (is_list)
                PyList_SetItem(arrays[i], j, made);
            else
                Py_SETREF(arrays[i], made);
        }
        Py_XDECREF(native);
        if (failed)
            return 0;
    }
    return 1;
}

/* A call, and all that it holds: a collection may run finalisers that give a tensor something else. */
typedef struct {
    PyObject *arrays[MOST]; /* what the tensors have, and the other arguments */
    PyObject *outs[OUTS], *plan, *device;
    int casts;   /* whether it converts arrays */
    int ordered; /* whether an output is not row-major */
    Look look;
} PlannedCall;

/* The arrays of a list of tensors, in a list. 0 with or without an error: it is not plain. */
static int look_at_list(PlanKernel *self, PlannedCall *call, int i, PyObject *value)
{
    int is_list = PyList_CheckExact(value);
    Py_ssize_t length = is_list ? PyList_GET_SIZE(value) : PyTuple_CheckExact(value) ? PyTuple_GET_SIZE(value) : 0;
    if (length == 0 || !add_word(&call->look, length) || (call->arrays[i] = PyList_New(length)) == NULL)
        return 0;
    if (is_list && PyList_GET_SIZE(value) != length) /* changed by a collection */
        return 0;
    for (Py_ssize_t k = 0; k < length; k++) {
        PyObject *tensor = is_list ? PyList_GET_ITEM(value, k) : PyTuple_GET_ITEM(value, k);
        PyObject *array = tensor == Py_None ? Py_None : look_at(&call->look, tensor);
        if (array == NULL || (tensor == Py_None && !add_word(&call->look, (npy_intp)Py_None)))
            return 0;
        PyList_SET_ITEM(call->arrays[i], k, Py_NewRef(array));
        if (k == 0 && i == self->first)
            call->device = tensor == Py_None ? NULL : Py_XNewRef(SLOT(tensor, AT_DEVICE));
    }
    return 1;
}

/* Look: what the call looks like, and what it is about. 0 with or without an error: it is not plain. */
static int look_at_arguments(PlanKernel *self, PlannedCall *call, PyObject *const *args)
{
    call->look.count = call->look.holds = 0;
    for (int i = 0; i < self->arguments; i++) {
        PyObject *value = args[i], *array;
        if (self->role[i] == A_VALUE) {
            if (!look_at_value(&call->look, value))
                return 0;
            call->arrays[i] = Py_NewRef(value);
        } else if (value == Py_None) {
            if (self->role[i] != A_OPTIONAL || !add_word(&call->look, (npy_intp)Py_None))
                return 0;
            call->arrays[i] = Py_NewRef(value);
        } else if (self->role[i] == A_LIST) {
            if (!look_at_list(self, call, i, value))
                return 0;
        } else {
            if ((array = look_at(&call->look, value)) == NULL)
                return 0;
            call->arrays[i] = Py_NewRef(array);
            if (i == self->first)
                call->device = Py_XNewRef(SLOT(value, AT_DEVICE));
        }
    }
    return call->device != NULL;
}

/* Plan: arguments as the kernel takes them, and its outputs. 0 with or without an error. */
static int follow_plan(PlanKernel *self, PlannedCall *call)
{
    int at = 4 * self->outs;
    PyObject *casts = PyTuple_GET_ITEM(call->plan, at), *values = PyTuple_GET_ITEM(call->plan, at + 1);
    call->casts = casts != Py_None;
    if ((call->casts && !convert_arguments(self, casts, call->device, call->arrays))
        || !PyTuple_CheckExact(PyTuple_GET_ITEM(call->plan, at + 2)) || (values != Py_None && !PyList_CheckExact(values)))
        return 0;
    for (int i = 0, k = 0; values != Py_None && i < self->arguments; i++)
        if (self->role[i] == A_VALUE && k < PyList_GET_SIZE(values)) {
            PyObject *other = PyList_GET_ITEM(values, k++);
            if (other != self->as_given)
                Py_SETREF(call->arrays[i], Py_NewRef(other));
        }
    for (int k = 0; k < self->outs; k++) {
        PyObject *strides = PyTuple_GET_ITEM(call->plan, 4 * k + 3);
        call->outs[k] = new_output(PyTuple_GET_ITEM(call->plan, 4 * k), PyTuple_GET_ITEM(call->plan, 4 * k + 1), strides);
        call->ordered |= strides != Py_None;
        if (call->outs[k] == NULL)
            return 0;
    }
    return 1;
}

/* Whether the program has computed the output, which it makes itself. */
static int compute_program(PlanKernel *self, PlannedCall *call, PyObject *const *args)
{
    if (self->outs != 1 || call->ordered || call->casts
        || !serves_call(&self->program, args, self->arguments, self->standard, self->ignored))
        return 0;
    PyArrayObject *made = (PyArrayObject *)run_program(&self->program, call->arrays, self->arguments), *out = (PyArrayObject *)call->outs[0];
    int fits = made != NULL && PyArray_DESCR(made) == PyArray_DESCR(out) && PyArray_NDIM(made) == PyArray_NDIM(out)
               && PyArray_CompareLists(PyArray_DIMS(made), PyArray_DIMS(out), PyArray_NDIM(out));
    if (fits)
        Py_SETREF(call->outs[0], (PyObject *)made);
    else
        Py_XDECREF(made);
    return fits;
}

/* The function of Python that serves a call: one that is made for calls with this plan, or that of a case. */
static PyObject *function_of(PlanKernel *self, PlannedCall *call)
{
    PyObject *ready = PyTuple_GET_ITEM(call->plan, 4 * self->outs + 3), *sized = call->arrays[self->sized];
    if (ready != Py_None)
        return ready;
    npy_intp size = PyArray_SIZE((PyArrayObject *)call->outs[0]), given = NPY_MAX_INTP;
    if (PyArray_CheckExact(sized))
        given = PyArray_SIZE((PyArrayObject *)sized);
    return self->functions[case_for(self->cases, given > size ? given : size, 0, 0)];
}

/* Run: the outputs are written. 0 with or without an error. */
static int compute_outputs(PlanKernel *self, PlannedCall *call, PyObject *const *args)
{
    PyObject *space[MOST + OUTS + 1], **passed = space + 1, *extra = PyTuple_GET_ITEM(call->plan, 4 * self->outs + 2), *made;
    Py_ssize_t count = 0;
    for (int i = 0; i < self->passes; i++) {
        int from = self->passed[i];
        if (from >= EXTRA && from - EXTRA >= PyTuple_GET_SIZE(extra))
            return 0;
        passed[count++] = from >= EXTRA ? PyTuple_GET_ITEM(extra, from - EXTRA) : call->arrays[from];
    }
    for (int k = 0; k < self->outs; k++)
        passed[count++] = call->outs[k];
    if (compute_program(self, call, args))
        return 1;
    if (PyErr_Occurred())
        return 0;
    if (!call->ordered && (move_elements(self->moves, passed, count) || call_compiled(self->compiled, passed, count)))
        return 1;
    made = PyObject_Vectorcall(function_of(self, call), passed, count | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    int done = made != NULL && (made == Py_None || (self->outs == 1 && made == call->outs[0]));
    Py_XDECREF(made);
    return done;
}

/* Wrap: tensors around the outputs. NULL with an error. */
static PyObject *wrap_outputs(PlanKernel *self, PlannedCall *call)
{
    PyObject *tensors[OUTS], *made = NULL;
    int wrapped = 0;
    for (; wrapped < self->outs; wrapped++) {
        tensors[wrapped] = wrap(call->outs[wrapped], self->keys, call->device);
        call->outs[wrapped] = NULL;
        if (tensors[wrapped] == NULL)
            break;
    }
    if (wrapped == 1 && self->outs == 1)
        return tensors[0];
    if (wrapped == self->outs && (made = PyTuple_New(wrapped)) != NULL)
        for (int k = 0; k < wrapped; k++)
            PyTuple_SET_ITEM(made, k, Py_NewRef(tensors[k]));
    while (wrapped > 0)
        Py_DECREF(tensors[--wrapped]);
    return made;
}

/* NULL with or without an error. */
static PyObject *run_planned(PlanKernel *self, PlannedCall *call, PyObject *const *args)
{
    PyObject *moved;
    if (!look_at_arguments(self, call, args))
        return NULL;
    if (self->moves && (moved = make_moved(self->moves, call->arrays, self->arguments)) != NULL)
        return wrap(moved, self->keys, call->device);
    if (PyErr_Occurred() || (call->plan = plan_of(self, &call->look, args)) == NULL || !follow_plan(self, call)
        || !compute_outputs(self, call, args))
        return NULL;
    return wrap_outputs(self, call);
}

static Outcome plan_run(Face *face, PyObject *ks, PyObject *const *args, Py_ssize_t n, PyObject **result)
{
    PlanKernel *self = (PlanKernel *)face;
    PlannedCall call;
    if (n != self->arguments)
        return DECLINED;
    memset(&call, 0, offsetof(PlannedCall, look));
    *result = run_planned(self, &call, args);
    Outcome outcome = *result == NULL ? decline_after_error() : DONE;
    for (int i = 0; i < n; i++)
        Py_XDECREF(call.arrays[i]);
    for (int k = 0; k < OUTS; k++)
        Py_XDECREF(call.outs[k]);
    Py_XDECREF(call.plan);
    Py_XDECREF(call.device);
    return outcome;
}

/* (functions, name). 0, or -1 with an error. */
static int read_compiled(PlanKernel *made, PyObject *compiled)
{
    const char *name;
    PyObject *table;
    if (!PyArg_ParseTuple(compiled, "Os", &table, &name))
        return -1;
    made->compiled = find_compiled(table, name);
    made->table = Py_NewRef(table);
    return PyErr_Occurred() ? -1 : 0;
}

static const char *const ROLES[] = {
    [A_TENSOR] = "tensor", [A_OPTIONAL] = "optional", [A_LIST] = "list", [A_VALUE] = "value", NULL,
};

/* The roles of the arguments and their defaults, or MISSING. 0, or -1 with or without an error. */
static int read_roles(PlanKernel *made, PyObject *roles, PyObject *defaults)
{
    for (int i = 0; i < PyTuple_GET_SIZE(roles); i++) {
        PyObject *standard = PyTuple_GET_ITEM(defaults, i);
        const char *role = PyUnicode_AsUTF8(PyTuple_GET_ITEM(roles, i));
        if (role == NULL || (made->role[i] = index_of(ROLES, role)) < 0)
            return -1;
        made->standard[i] = standard == MISSING ? NULL : Py_NewRef(standard);
        made->ignored[i] = made->role[i] == A_VALUE && standard == MISSING;
        if (made->first < 0 && (made->role[i] == A_TENSOR || made->role[i] == A_LIST))
            made->first = i;
        made->arguments = i + 1;
    }
    return 0;
}

/* The places of arguments and, from EXTRA on, of what plans add. 0, or -1 with or without an error. */
static int read_passed(PlanKernel *made, PyObject *passed)
{
    for (int i = 0; i < PyTuple_GET_SIZE(passed); i++) {
        long at = PyLong_AsLong(PyTuple_GET_ITEM(passed, i));
        if (PyErr_Occurred() || at < 0 || (at >= made->arguments && at < EXTRA) || at >= 2 * EXTRA)
            return -1;
        made->passed[i] = (int)at;
        made->passes = i + 1;
    }
    return 0;
}

/* plan_kernel(function, *, find, cases, keys, roles, passed, outs, ...): the fields of PlanKernel by their names, None for
 * NULL. */
static PyObject *make_plan_kernel(PyObject *module, PyObject *args, PyObject *named)
{
    static char *names[] = {"", "find", "cases", "keys", "as_given", "roles", "passed", "defaults", "outs", "sized",
                            "moves", "compiled", "program", NULL};
    PyObject *function, *find = NULL, *cases = NULL, *keys = NULL, *as_given = NULL, *roles = NULL, *passed = NULL,
             *defaults = NULL, *compiled = Py_None, *program = Py_None;
    int outs = 0, sized = 0;
    const char *moves = "";
    if (!PyArg_ParseTupleAndKeywords(args, named, "O|$OO!OOO!O!O!iisOO", names, &function, &find, &PyTuple_Type, &cases, &keys,
                                     &as_given, &PyTuple_Type, &roles, &PyTuple_Type, &passed, &PyTuple_Type, &defaults, &outs, &sized, &moves,
                                     &compiled, &program))
        return NULL;
    if (find == NULL || cases == NULL || keys == NULL || as_given == NULL || roles == NULL || passed == NULL
        || defaults == NULL) {
        PyErr_SetString(PyExc_TypeError, "a planned kernel needs all that finds a plan and what it is called with");
        return NULL;
    }
    int moved = index_of(MOVES, moves);
    if (moved < 0)
        return NULL;
    if (PyTuple_GET_SIZE(roles) > MOST || PyTuple_GET_SIZE(passed) > MOST || outs < 1 || outs > OUTS) {
        return wrong_count();
    }
    PlanKernel *made = (PlanKernel *)new_face(&PlanKernelType, function, kernel_vectorcall, plan_run);
    if (made == NULL)
        return NULL;
    made->find = Py_NewRef(find);
    made->keys = Py_NewRef(keys);
    made->as_given = Py_NewRef(as_given);
    made->outs = outs;
    made->moves = moved;
    made->sized = sized;
    if (compiled != Py_None && read_compiled(made, compiled) < 0)
        goto failed;
    made->first = -1;
    if (PyTuple_GET_SIZE(defaults) != PyTuple_GET_SIZE(roles) || sized < 0 || sized >= PyTuple_GET_SIZE(roles)
        || read_cases(cases, made->functions, made->cases) < 0 || (program != Py_None && read_program(&made->program, program) < 0))
        goto failed;
    if (read_roles(made, roles, defaults) < 0 || read_passed(made, passed) < 0)
        goto failed;
    if (made->first >= 0)
        return finished(made);
failed:
    return refuse(made);
}
