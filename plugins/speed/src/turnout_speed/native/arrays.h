/* ArrayKernel: arrays out of tensors, the kernel, a tensor around its result. */
typedef struct {
    Face face;
    PyObject *standard[MOST]; /* defaults of the arguments, or NULL */
    PyObject *functions[CASES];
    PyObject *as_array, *keys;
    PyObject *general;        /* what serves the calls that this one does not take, if it is compiled, or NULL */
    PyObject *below, *finish; /* of a kernel without a shape function: what serves other calls, and what wraps other results; or NULL */
    PyObject *large;          /* in place: what writes many elements straight into the first tensor, or NULL */
    PyObject *rest;           /* the line of its text that calls `below` where the kernel has returned NotImplemented, or NULL */
    int arguments;            /* without the key set */
    int tensors;              /* of them are tensors that must be given */
    int tensor[MOST];
    int number[MOST];         /* whether the argument is a number in place of a tensor */
    int absent[MOST];         /* whether it must be None */
    int rank[MOST];           /* of the tensors, or -1 */
    int bools, unsure, inplace;
    int kept;                 /* whether a number beside two-byte floats is left to `general` */
    int ordered;              /* whether the result lies as the inputs do: those that are not row-major are left to `general` */
    Program program;          /* where it has one, and the other arguments have their defaults */
    int ignored[MOST];        /* of an argument without default: the program is for False only */
    Case cases[CASES];
    int sized;                /* the argument whose elements are counted */
    npy_intp few;             /* so many elements are left to `below` at once */
    char refuses[16];
} ArrayKernel;

static Outcome run_kernel(PyObject *kernel, PyObject *ks, PyObject *const *args, Py_ssize_t n, PyObject **result)
{
    return kernel == NULL ? DECLINED : ((Face *)kernel)->run((Face *)kernel, ks, args, n, result);
}

/* The kernel that this one leaves a call to. If it declines, or is of Python, the text of this one calls it, with frames of both. */
static Outcome call_below(ArrayKernel *self, PyObject *ks, PyObject *const *args, Py_ssize_t n, PyObject **result)
{
    return is_kernel(self->below) ? run_kernel(self->below, ks, args, n, result) : DECLINED;
}

/* Many elements in place: floats of one shape and dtype, so that the kernel cannot fail once it has begun. */
static Outcome write_many(ArrayKernel *self, PyArrayObject *first, PyObject *const *args, PyObject *const *given, PyObject **result)
{
    PyObject *passed[MOST + 2];
    int n = self->arguments;
    if (self->large == NULL || PyArray_DESCR(first)->kind != 'f' || !PyArray_ISWRITEABLE(first))
        return DECLINED;
    for (int k = 1; k < self->tensors; k++) {
        PyArrayObject *other = (PyArrayObject *)given[self->tensor[k]];
        if (PyArray_NDIM(other) != PyArray_NDIM(first) || PyArray_DESCR(other) != PyArray_DESCR(first)
            || !PyArray_CompareLists(PyArray_DIMS(other), PyArray_DIMS(first), PyArray_NDIM(first)))
            return DECLINED;
    }
    for (int i = 0; i < n; i++)
        if (given[i] == args[i] && !self->absent[i]
            && (PyArray_ITEMSIZE(first) == 2 || (!PyFloat_CheckExact(args[i]) && !PyLong_CheckExact(args[i]))))
            return DECLINED;
    for (int i = 0; i < n; i++)
        passed[1 + i] = Py_NewRef(given[i]); /* other threads run meanwhile */
    passed[1 + n] = Py_NewRef((PyObject *)first);
    PyObject *made = PyObject_Vectorcall(self->large, passed + 1, (n + 1) | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    for (int i = 0; i <= n; i++)
        Py_DECREF(passed[1 + i]);
    if (made == NULL)
        return decline_after_error();
    Py_DECREF(made);
    *result = Py_NewRef(args[self->tensor[0]]);
    return DONE;
}

/* Whether a storage has its version in its own field. */
static int has_version(PyObject *storage)
{
    return Py_IS_TYPE(storage, Storage) && SLOT(storage, AT_STORAGE_VER) != NULL && SLOT(storage, AT_STORAGE_VER) != Py_None;
}

/* The version of a storage. A new reference, or NULL with an error. */
static PyObject *version_in(PyObject *storage)
{
    return has_version(storage) ? Py_NewRef(SLOT(storage, AT_STORAGE_VER)) : PyObject_CallMethodNoArgs(storage, S_VERSION);
}

static int owns_memory(PyObject *storage) { return Py_IS_TYPE(storage, Storage) && SLOT(storage, AT_OF) == Py_None; }

/* Whether two storages may be of one memory; where a tensor has none, nobody shares its memory. */
static int may_share(PyObject *storage, PyObject *other)
{
    if (storage == Py_None || other == Py_None || other == NULL)
        return 0;
    return storage == other || !owns_memory(storage) || !owns_memory(other);
}

/* What the kernel returned in place of an array as one: 0 with an error, or without one if it is none. */
static int make_array(ArrayKernel *self, PyObject **made)
{
    /* A number of NumPy's, as it gives for 0 dims, needs no Python to become an array. */
    Py_SETREF(*made, PyArray_IsScalar(*made, Number) || PyArray_IsScalar(*made, Bool) ? PyArray_FromScalar(*made, NULL)
                                                                                     : PyObject_CallOneArg(self->as_array, *made));
    if (*made != NULL && !PyArray_CheckExact(*made))
        Py_CLEAR(*made);
    return *made != NULL;
}

/* A kernel without a shape function has left the call to the one below. It need not say so again to the text. */
static Outcome leave_to_below(ArrayKernel *self, PyObject *ks, PyObject *const *args, Py_ssize_t n, PyObject **result)
{
    Outcome outcome = self->below == NULL ? DECLINED : call_below(self, ks, args, n, result);
    if (outcome == DECLINED && self->rest != NULL && !PyErr_Occurred()) {
        Py_XSETREF(REST.kernel, (Face *)Py_NewRef(self));
        REST.from = self->rest;
    }
    return outcome;
}

/* Tensors around what a kernel without a shape function has returned in place of one array. */
static Outcome finish_call(ArrayKernel *self, PyObject *made, PyObject *const *args, Py_ssize_t n, PyObject **result)
{
    PyObject *given = PyTuple_New(n);
    for (Py_ssize_t i = 0; given != NULL && i < n; i++)
        PyTuple_SET_ITEM(given, i, Py_NewRef(args[i]));
    *result = given == NULL ? NULL : PyObject_CallFunctionObjArgs(self->finish, made, given, NULL);
    Py_XDECREF(given);
    return *result == NULL ? FAILED : DONE;
}

/* Call the function of a case. A new reference, or NULL with an error; the arrays are held while it runs. */
static PyObject *call_case(ArrayKernel *self, PyObject *const *given, int taken)
{
    PyObject *passed[MOST + 1];
    Py_ssize_t count = 0;
    for (int i = 0; i < self->arguments; i++)
        if (!self->cases[taken].brief || self->standard[i] == NULL)
            passed[1 + count++] = Py_NewRef(given[i]); /* the kernel may let go of what holds it */
    PyObject *made = PyObject_Vectorcall(self->functions[taken], passed + 1, count | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    for (Py_ssize_t i = 0; i < count; i++)
        Py_DECREF(passed[1 + i]);
    return made;
}

/* Wrap: write an array into the first tensor, or make a tensor around it. Takes its reference. */
static Outcome deliver_array(ArrayKernel *self, PyObject *made, PyObject *ks, PyObject *const *args, Py_ssize_t n, PyArrayObject *first,
                             PyArray_Descr *descr, PyObject **result)
{
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
        return run_kernel(self->general, ks, args, n, result);
    }
    *result = wrap(made, self->keys, SLOT(tensor, AT_DEVICE));
    return *result == NULL ? decline_after_error() : DONE;
}

/* What array_run does once it has looked at all arguments. `first` is held: a kernel, a collection that it starts, or another thread
 * can exchange the tensor's array. */
static Outcome compute_array(ArrayKernel *self, PyObject *ks, PyObject *const *args, PyObject *const *given, Py_ssize_t n, PyArrayObject *first,
                             int plain, PyObject **result)
{
    npy_intp size = PyArray_SIZE(PyArray_CheckExact(given[self->sized]) ? (PyArrayObject *)given[self->sized] : first);
    PyArray_Descr *descr = PyArray_DESCR(first);
    PyObject *made = serves_call(&self->program, args, (int)n, self->standard, self->ignored) ? run_program(&self->program, given, (int)n) : NULL;
    if (made != NULL)
        return deliver_array(self, made, ks, args, n, first, descr, result);
    if (PyErr_Occurred())
        return decline_after_error();
    made = call_case(self, given, case_for(self->cases, size, PyArray_ITEMSIZE(first) == 2, plain));
    if (made == NULL && PyErr_ExceptionMatches(PyExc_NotImplementedError)) { /* it asks for its output */
        PyErr_Clear();
        return run_kernel(self->general, ks, args, n, result);
    }
    if (made != NULL && self->finish != NULL && !PyArray_CheckExact(made)) {
        Outcome outcome = made == Py_NotImplemented ? leave_to_below(self, ks, args, n, result) : finish_call(self, made, args, n, result);
        Py_DECREF(made);
        return outcome;
    }
    if (made == NULL || (!PyArray_CheckExact(made) && !make_array(self, &made)))
        return decline_after_error();
    return deliver_array(self, made, ks, args, n, first, descr, result);
}

/* Whether the dims of an array lie in row-major order, those of stride 0 or one element apart: `ordered` of
 * turnout_aten.kernels.functional. */
static int is_ordered(PyArrayObject *array)
{
    npy_intp before = 0;
    for (int i = 0; i < PyArray_NDIM(array); i++) {
        npy_intp stride = PyArray_STRIDE(array, i);
        if (stride == 0 || PyArray_DIM(array, i) == 1)
            continue;
        if (stride < 0 || (before && stride >= before))
            return 0;
        before = stride;
    }
    return 1;
}

static Outcome array_run(Face *face, PyObject *ks, PyObject *const *args, Py_ssize_t n, PyObject **result)
{
    ArrayKernel *self = (ArrayKernel *)face;
    PyObject *given[MOST + 1];
    Py_CLEAR(REST.kernel);
    if (n != self->arguments)
        return DECLINED;
    int plain = 1; /* whether every other argument has its default */
    int whole = 1; /* whether all arrays of several dims are row-major */
    for (int i = 0; i < n; i++) {
        given[i] = args[i];
        if ((self->absent[i] && args[i] != Py_None) || (self->number[i] && !self->bools && PyBool_Check(args[i])))
            return run_kernel(self->general, ks, args, n, result);
        if (self->standard[i] != NULL && args[i] != self->standard[i])
            plain = 0;
    }
    PyArray_Descr *descr = NULL;
    PyArrayObject *first = NULL; /* nothing is called before it is held */
    for (int k = 0; k < self->tensors; k++) {
        PyObject *tensor = args[self->tensor[k]], *array = numpy_of(tensor);
        if (array == NULL || SLOT(tensor, AT_DEVICE) == NULL || SLOT(tensor, AT_STORAGE) == NULL)
            return DECLINED;
        if (PyArray_NDIM((PyArrayObject *)array) > 1 && !PyArray_IS_C_CONTIGUOUS((PyArrayObject *)array))
            whole = 0;
        if (k == 0) {
            first = (PyArrayObject *)array;
            descr = PyArray_DESCR(first);
        } else if (PyArray_DESCR((PyArrayObject *)array) != descr && self->finish == NULL)
            return run_kernel(self->general, ks, args, n, result);
        if (self->rank[k] >= 0 && PyArray_NDIM((PyArrayObject *)array) != self->rank[k])
            return run_kernel(self->general, ks, args, n, result);
        if (self->inplace && k > 0 && may_share(SLOT(args[self->tensor[0]], AT_STORAGE), SLOT(tensor, AT_STORAGE)))
            return DECLINED;
        given[self->tensor[k]] = array;
    }
    for (int k = 0; self->ordered && !whole && k < self->tensors; k++)
        if (!is_ordered((PyArrayObject *)given[self->tensor[k]]))
            return run_kernel(self->general, ks, args, n, result);
    if ((self->refuses[0] && strchr(self->refuses, descr->kind) != NULL)
        || (self->kept && PyArray_ITEMSIZE(first) == 2 && descr->kind != 'i' && descr->kind != 'u'))
        return run_kernel(self->general, ks, args, n, result);
    if (self->inplace && !is_plain(first))
        return DECLINED;
    if (self->inplace && PyArray_SIZE(first) > SMALL_SIZE)
        return write_many(self, first, args, given, result);
    if (self->below != NULL && self->few && PyArray_SIZE(first) <= self->few)
        return call_below(self, ks, args, n, result);
    Py_INCREF(first);
    Outcome outcome = compute_array(self, ks, args, given, n, first, plain, result);
    Py_DECREF(first);
    return outcome;
}

/* Rows (role, default or MISSING, rank): role "tensor", "absent", "number" or "value". 0, or -1 with an error. */
static int read_arguments(ArrayKernel *made, PyObject *arguments)
{
    made->arguments = (int)PyTuple_GET_SIZE(arguments);
    for (int i = 0; i < made->arguments; i++) {
        const char *role;
        PyObject *standard;
        int rank;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(arguments, i), "sOi", &role, &standard, &rank))
            return -1;
        if (strcmp(role, "tensor") == 0) {
            made->rank[made->tensors] = rank;
            made->tensor[made->tensors++] = i;
        }
        made->absent[i] = strcmp(role, "absent") == 0;
        made->number[i] = strcmp(role, "number") == 0;
        made->ignored[i] = strcmp(role, "value") == 0 && standard == MISSING;
        made->standard[i] = standard == MISSING ? NULL : Py_NewRef(standard);
    }
    return 0;
}

/* array_kernel(function, *, arguments, cases, keys, ...): the fields of ArrayKernel by their names, None for NULL. */
static PyObject *make_array_kernel(PyObject *module, PyObject *args, PyObject *named)
{
    static char *names[] = {"", "arguments", "cases", "keys", "as_array", "general", "large", "program", "below",
                            "finish", "rest", "few", "sized", "bools", "unsure", "inplace", "ordered", "kept", "refuses",
                            NULL};
    PyObject *function, *arguments = NULL, *cases = NULL, *keys = NULL, *as_array = Py_None, *general = Py_None,
             *large = Py_None, *program = Py_None, *below = Py_None, *finish = Py_None, *rest = Py_None;
    Py_ssize_t few = 0;
    int sized = 0, bools = 1, unsure = 0, inplace = 0, ordered = 0, kept = 0;
    const char *refuses = "";
    if (!PyArg_ParseTupleAndKeywords(args, named, "O|$O!O!OOOOOOOOnippppps", names, &function, &PyTuple_Type, &arguments, &PyTuple_Type,
                                     &cases, &keys, &as_array, &general, &large, &program, &below, &finish, &rest, &few, &sized, &bools, &unsure, &inplace, &ordered, &kept, &refuses))
        return NULL;
    if (arguments == NULL || cases == NULL || keys == NULL) {
        PyErr_SetString(PyExc_TypeError, "a kernel has arguments, cases and keys");
        return NULL;
    }
    if (PyTuple_GET_SIZE(arguments) > MOST || sized < 0 || sized >= MOST || strlen(refuses) >= sizeof(((ArrayKernel *)0)->refuses)) {
        PyErr_SetString(PyExc_ValueError, "too many arguments");
        return NULL;
    }
    ArrayKernel *made = (ArrayKernel *)new_face(&ArrayKernelType, function, kernel_vectorcall, array_run);
    if (made == NULL)
        return NULL;
    made->few = few;
    made->sized = sized;
    made->bools = bools;
    made->unsure = unsure;
    made->kept = kept;
    made->inplace = inplace;
    made->ordered = ordered;
    strcpy(made->refuses, refuses);
    made->keys = Py_NewRef(keys);
    made->as_array = Py_NewRef(as_array);
    made->general = is_kernel(general) ? Py_NewRef(general) : NULL;
    PyObject **const fields[] = {&made->large, &made->below, &made->finish, &made->rest};
    PyObject *const given[] = {large, below, finish, rest};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        *fields[i] = or_null(given[i]);
    if (read_arguments(made, arguments) < 0 || read_cases(cases, made->functions, made->cases) < 0)
        return refuse(made);
    if (program != Py_None && read_program(&made->program, program) < 0)
        return refuse(made);
    if (made->tensors == 0) {
        PyErr_SetString(PyExc_ValueError, "a kernel needs a tensor");
        return refuse(made);
    }
    return finished(made);
}
