/* IntoKernel: what the functional variant computes, written into a tensor that was given. */
typedef struct {
    Face face;
    PyObject *below;  /* the kernel of the functional variant */
    PyObject *finish; /* finish(ks, made, *arguments): what it made, into a tensor of another dtype or shape */
    int inputs, at;   /* its arguments, and the tensor that is written: one of them, or the next one */
    int dtype_at;     /* the argument in whose place the dtype of that tensor stands, where it is None; or -1 */
} IntoKernel;

/* Whether an argument, or one in a list, may have memory in common with the tensor that is written. */
static int shares_with(PyObject *value, PyObject *storage)
{
    if (Py_IS_TYPE(value, Tensor))
        return may_share(storage, SLOT(value, AT_STORAGE));
    Py_ssize_t n = PyList_CheckExact(value) ? PyList_GET_SIZE(value) : PyTuple_CheckExact(value) ? PyTuple_GET_SIZE(value) : 0;
    for (Py_ssize_t i = 0; i < n; i++)
        if (shares_with(PyList_CheckExact(value) ? PyList_GET_ITEM(value, i) : PyTuple_GET_ITEM(value, i), storage))
            return 1;
    return 0;
}

static Outcome into_run(Face *face, PyObject *ks, PyObject *const *args, Py_ssize_t n, PyObject **result)
{
    IntoKernel *self = (IntoKernel *)face;
    PyObject *target, *array, *storage, *made = NULL;
    if (n != (self->at < self->inputs ? self->inputs : self->inputs + 1) || !Py_IS_TYPE(target = args[self->at], Tensor))
        return DECLINED;
    array = SLOT(target, AT_ARRAY);
    storage = SLOT(target, AT_STORAGE);
    /* Memory that is shared with an argument, and an output to be resized, are the Python function's. */
    if (array == NULL || storage == NULL || !PyArray_CheckExact(array) || PyArray_SIZE((PyArrayObject *)array) > SMALL_SIZE
        || PyArray_SIZE((PyArrayObject *)array) == 0
        || !is_plain((PyArrayObject *)array))
        return DECLINED;
    for (int i = 0; i < self->inputs; i++)
        if (i != self->at && shares_with(args[i], storage))
            return DECLINED;
    if (self->dtype_at >= 0 && args[self->dtype_at] == Py_None) {
        PyObject *first = numpy_of(args[0]);
        if (first == NULL || PyArray_DESCR((PyArrayObject *)first) != PyArray_DESCR((PyArrayObject *)array))
            return DECLINED;
    }
    Py_INCREF(array);
    Outcome outcome = run_kernel(self->below, ks, args, self->inputs, &made);
    if (outcome == DONE) {
        /* Only an error is declined from here on: the text, and those of the calls around this one, run the kernel again. */
        outcome = DECLINED;
        if (numpy_of(made) != NULL && SLOT(target, AT_ARRAY) == array)
            outcome = write_back((PyArrayObject *)array, SLOT(made, AT_ARRAY));
        if (outcome == DONE)
            *result = Py_NewRef(target);
        else {
            PyObject *given[MOST + 3] = {ks, made};
            for (Py_ssize_t i = 0; i < n; i++)
                given[i + 2] = args[i];
            *result = PyObject_Vectorcall(self->finish, given, n + 2, NULL);
            outcome = *result == NULL ? decline_after_error() : DONE;
        }
        Py_DECREF(made);
    }
    Py_DECREF(array);
    return outcome;
}

/* (function, the kernel of the functional variant, finish, its arguments, the tensor that is written, dtype_at) */
static PyObject *make_into_kernel(PyObject *module, PyObject *args)
{
    PyObject *function, *below, *finish;
    int inputs, at, dtype_at;
    if (!PyArg_ParseTuple(args, "OOOiii", &function, &below, &finish, &inputs, &at, &dtype_at))
        return NULL;
    if (!is_kernel(below) || at < 0 || at > inputs || inputs > MOST || dtype_at >= inputs)
        return refuse(NULL);
    IntoKernel *made = (IntoKernel *)new_face(&IntoKernelType, function, kernel_vectorcall, into_run);
    if (made == NULL)
        return NULL;
    made->below = Py_NewRef(below);
    made->finish = Py_NewRef(finish);
    made->inputs = inputs;
    made->at = at;
    made->dtype_at = dtype_at;
    return finished(made);
}
