/* The state of dispatch, in the one place where C reads it: (include, keep), in a variable of the context. */

/* FRESH, another pair, or NULL where only the Python function knows. A new reference. */
static inline PyObject *dispatch_state(void)
{
    PyObject *reader = PyDict_GetItemWithError(STUB_BUILTINS, S_DISPATCH);
    PyObject *state = NULL;
    if (reader == NULL || !PyCFunction_Check(reader) || PyCFunction_GET_SELF(reader) != DISPATCH)
        return NULL;
    if (PyContextVar_Get(DISPATCH, NULL, &state) < 0)
        return NULL;
    return state;
}

/* (ks | state[0]) & state[1]; a new reference, or NULL with an error. A state is a tuple, or the list of a guard. */
static inline PyObject *in_effect(PyObject *ks, PyObject *state)
{
    PyObject *include = PySequence_GetItem(state, 0), *keep = PySequence_GetItem(state, 1), *both = NULL, *made = NULL;
    if (include != NULL && keep != NULL && (both = PyNumber_Or(ks, include)) != NULL)
        made = PyNumber_And(both, keep);
    Py_XDECREF(include);
    Py_XDECREF(keep);
    Py_XDECREF(both);
    return made;
}

/* The state without the bits that a mask lacks; NULL with an error. */
static inline PyObject *masked_state(PyObject *state, PyObject *mask)
{
    PyObject *include = PySequence_GetItem(state, 0), *keep = include == NULL ? NULL : PySequence_GetItem(state, 1);
    PyObject *one = keep == NULL ? NULL : PyNumber_And(include, mask), *two = one == NULL ? NULL : PyNumber_And(keep, mask);
    PyObject *made = two == NULL ? NULL : PyTuple_Pack(2, one, two);
    Py_XDECREF(include);
    Py_XDECREF(keep);
    Py_XDECREF(one);
    Py_XDECREF(two);
    return made;
}
