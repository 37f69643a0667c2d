/* CustomKernel: a kernel of the user on arrays. It runs once, from the frame that the wrapper's text would have; what it raises is
 * raised. */
typedef struct {
    Face face;
    PyObject *keys;
    PyObject *call, *general, *finish; /* lines of the wrapper's text: the kernel, what runs after a warning, any other result */
    int arguments, tensors, tensor[MOST];
} CustomKernel;

/* The general path, after a warning that became an error: an error there has that one as its context. */
static PyObject *call_after_warning(PyObject *general, PyObject *ks, PyObject *const *args, Py_ssize_t n)
{
    PyObject *passed[MOST + 2], *type, *warning, *traceback, *error;
    PyErr_Fetch(&type, &warning, &traceback);
    PyErr_NormalizeException(&type, &warning, &traceback);
    passed[1] = ks;
    for (Py_ssize_t i = 0; i < n; i++)
        passed[2 + i] = args[i];
    PyObject *made = PyObject_Vectorcall(general, passed + 1, (n + 1) | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    if (traceback != NULL && warning != NULL)
        PyException_SetTraceback(warning, traceback);
    if (made == NULL && warning != NULL) {
        PyObject *own, *lines;
        PyErr_Fetch(&own, &error, &lines);
        PyErr_NormalizeException(&own, &error, &lines);
        if (error != warning && PyException_GetContext(error) == NULL)
            PyException_SetContext(error, Py_NewRef(warning));
        PyErr_Restore(own, error, lines);
    }
    Py_XDECREF(type);
    Py_XDECREF(warning);
    Py_XDECREF(traceback);
    return made;
}

static Outcome custom_run(Face *face, PyObject *ks, PyObject *const *args, Py_ssize_t n, PyObject **result)
{
    CustomKernel *self = (CustomKernel *)face;
    PyObject *passed[MOST + 2];
    if (n != self->arguments || REPEATABLE)
        return DECLINED;
    for (int k = 0; k < self->tensors; k++) {
        PyObject *tensor = args[self->tensor[k]];
        if (!Py_IS_TYPE(tensor, Tensor) || SLOT(tensor, AT_ARRAY) == NULL || SLOT(tensor, AT_DEVICE) == NULL)
            return DECLINED;
    }
    for (Py_ssize_t i = 0; i < n; i++)
        passed[1 + i] = args[i];
    PyObject *made = PyObject_Vectorcall(self->call, passed + 1, n | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    if (made == NULL) {
        *result = PyErr_ExceptionMatches(PyExc_Warning) ? call_after_warning(self->general, ks, args, n) : NULL;
        return *result == NULL ? FAILED : DONE;
    }
    int fresh = PyArray_CheckExact(made);
    for (int k = 0; k < self->tensors; k++)
        fresh = fresh && made != SLOT(args[self->tensor[k]], AT_ARRAY);
    PyObject *device = SLOT(args[self->tensor[0]], AT_DEVICE);
    if (fresh && device != NULL) {
        *result = wrap(made, self->keys, device);
        return *result == NULL ? FAILED : DONE;
    }
    passed[1] = made;
    for (Py_ssize_t i = 0; i < n; i++)
        passed[2 + i] = args[i];
    *result = PyObject_Vectorcall(self->finish, passed + 1, (n + 1) | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    Py_DECREF(made);
    return *result == NULL ? FAILED : DONE;
}

/* custom_kernel(function, *, call, general, finish, keys, arguments, tensors): the fields of CustomKernel by their names */
static PyObject *make_custom_kernel(PyObject *module, PyObject *args, PyObject *named)
{
    static char *names[] = {"", "call", "general", "finish", "keys", "arguments", "tensors", NULL};
    PyObject *function, *call = NULL, *general = NULL, *finish = NULL, *keys = NULL, *places = NULL;
    int arguments = 0;
    if (!PyArg_ParseTupleAndKeywords(args, named, "O|$OOOOiO!", names, &function, &call, &general, &finish, &keys, &arguments,
                                     &PyTuple_Type, &places))
        return NULL;
    if (call == NULL || general == NULL || finish == NULL || keys == NULL || places == NULL) {
        PyErr_SetString(PyExc_TypeError, "a kernel of the user needs all that its text calls");
        return NULL;
    }
    if (arguments > MOST || PyTuple_GET_SIZE(places) == 0 || PyTuple_GET_SIZE(places) > arguments)
        return refuse(NULL);
    CustomKernel *made = (CustomKernel *)new_face(&CustomKernelType, function, kernel_vectorcall, custom_run);
    if (made == NULL)
        return NULL;
    made->call = Py_NewRef(call);
    made->general = Py_NewRef(general);
    made->finish = Py_NewRef(finish);
    made->keys = Py_NewRef(keys);
    made->arguments = arguments;
    for (int k = 0; k < PyTuple_GET_SIZE(places); k++) {
        made->tensor[k] = (int)PyLong_AsLong(PyTuple_GET_ITEM(places, k));
        if (PyErr_Occurred() || made->tensor[k] < 0 || made->tensor[k] >= arguments)
            return refuse(made);
        made->tensors = k + 1;
    }
    return finished(made);
}
