/* GuardKernel: a kernel that calls operators, in a context without the functionalities that the call has passed. */
typedef struct {
    Face face;
    PyObject *call, *mask;
} GuardKernel;

static Outcome guard_run(Face *face, PyObject *ks, PyObject *const *args, Py_ssize_t n, PyObject **result)
{
    GuardKernel *self = (GuardKernel *)face;
    if (!Py_IS_TYPE(self->call, &CompositeKernelType.type)) /* it calls no operators */
        return ((Face *)self->call)->run((Face *)self->call, ks, args, n, result);
    PyObject *before = dispatch_state(), *state = before == NULL ? NULL : masked_state(before, self->mask);
    PyObject *token = state == NULL ? NULL : PyContextVar_Set(DISPATCH, state);
    Outcome outcome = DECLINED;
    Py_XDECREF(state);
    if (token != NULL) {
        outcome = ((Face *)self->call)->run((Face *)self->call, ks, args, n, result);
        Py_DECREF(token);
        if (put_back(DISPATCH, before) < 0) {
            if (outcome == DONE)
                Py_CLEAR(*result);
            outcome = FAILED;
        }
    }
    Py_XDECREF(before);
    return outcome == DECLINED ? decline_after_error() : outcome;
}

/* (function, the kernel, what is left of the context's state) */
static PyObject *make_guard_kernel(PyObject *module, PyObject *args)
{
    PyObject *function, *call, *mask;
    if (!PyArg_ParseTuple(args, "OOO!", &function, &call, &PyLong_Type, &mask))
        return NULL;
    if (!is_kernel(call))
        return refuse(NULL);
    GuardKernel *made = (GuardKernel *)new_face(&GuardKernelType, function, kernel_vectorcall, guard_run);
    if (made == NULL)
        return NULL;
    made->call = Py_NewRef(call);
    made->mask = Py_NewRef(mask);
    return finished(made);
}
