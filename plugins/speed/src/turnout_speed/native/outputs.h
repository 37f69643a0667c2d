/* IntoKernel: what the functional variant computes, written into a tensor that was given. */
typedef struct {
    Face face;
    PyObject *below; /* the kernel of the functional variant */
    int inputs, at;  /* its arguments, and the tensor that is written: one of them, or the next one */
} IntoKernel;

/* Whether an argument, or one in a list, is the output itself, or has memory in common with a tensor that is written in place. */
static int shares_with(PyObject *value, PyObject *target, PyObject *storage, int is_output)
{
    if (Py_IS_TYPE(value, Tensor))
        return is_output ? value == target : may_share(storage, SLOT(value, AT_STORAGE));
    Py_ssize_t n = PyList_CheckExact(value) ? PyList_GET_SIZE(value) : PyTuple_CheckExact(value) ? PyTuple_GET_SIZE(value) : 0;
    for (Py_ssize_t i = 0; i < n; i++)
        if (shares_with(PyList_CheckExact(value) ? PyList_GET_ITEM(value, i) : PyTuple_GET_ITEM(value, i), target, storage, is_output))
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
    /* Memory that an output shares with others, and an output that is an input, are the Python function's. */
    if (array == NULL || storage == NULL || !PyArray_CheckExact(array) || PyArray_SIZE((PyArrayObject *)array) > SMALL_SIZE
        || !is_plain((PyArrayObject *)array) || (self->at == self->inputs && storage != Py_None))
        return DECLINED;
    for (int i = 0; i < self->inputs; i++)
        if (i != self->at && shares_with(args[i], target, storage, self->at == self->inputs))
            return DECLINED;
    Py_INCREF(array);
    Outcome outcome = run_kernel(self->below, ks, args, self->inputs, &made);
    if (outcome == DONE) {
        outcome = DECLINED;
        if (Py_IS_TYPE(made, Tensor) && SLOT(made, AT_ARRAY) != NULL && PyArray_CheckExact(SLOT(made, AT_ARRAY))
            && SLOT(target, AT_ARRAY) == array)
            outcome = write_back((PyArrayObject *)array, SLOT(made, AT_ARRAY));
        if (outcome == DONE)
            *result = Py_NewRef(target);
        Py_DECREF(made);
    }
    Py_DECREF(array);
    return outcome;
}

/* (function, the kernel of the functional variant, its arguments, the tensor that is written) */
static PyObject *make_into_kernel(PyObject *module, PyObject *args)
{
    PyObject *function, *below;
    int inputs, at;
    if (!PyArg_ParseTuple(args, "OOii", &function, &below, &inputs, &at))
        return NULL;
    if (!is_kernel(below) || at < 0 || at > inputs || inputs > MOST)
        return refuse(NULL);
    IntoKernel *made = (IntoKernel *)new_face(&IntoKernelType, function, kernel_vectorcall, into_run);
    if (made == NULL)
        return NULL;
    made->below = Py_NewRef(below);
    made->inputs = inputs;
    made->at = at;
    return finished(made);
}
