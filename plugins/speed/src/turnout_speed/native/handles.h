/* Handles: operators, packets and handles of `custom_op`, called without the frame of their `__call__`.
 *
 * Their classes are Python's. A call of an instance goes to the class's slot, which Python fills with "call the `__call__` of the
 * class". Here another function stands in it; it reads what to call from the handle each time. Python fills the slot again where
 * somebody sets `__call__`, and has its own in subclasses. */
static ternaryfunc CALL_METHOD; /* Python's own function for the slot */
static PyTypeObject *OPERATOR, *PACKET;
static Py_ssize_t AT_CALL, AT_CHOSEN, AT_OPERATOR;

/* The arguments of a call as `vectorcall` has them: the positional ones, then the values of keywords. 0 if they are too many. */
static int read_call(PyObject *args, PyObject *kwargs, PyObject **values, PyObject **kwnames)
{
    Py_ssize_t n = PyTuple_GET_SIZE(args), named = kwargs == NULL ? 0 : PyDict_GET_SIZE(kwargs), at = 0;
    PyObject *name, *value;
    *kwnames = NULL;
    if (n + named > MOST)
        return 0;
    for (Py_ssize_t i = 0; i < n; i++)
        values[i] = PyTuple_GET_ITEM(args, i);
    if (named == 0)
        return 1;
    if ((*kwnames = PyTuple_New(named)) == NULL)
        return 0;
    for (Py_ssize_t i = 0; PyDict_Next(kwargs, &at, &name, &value); i++) {
        PyTuple_SET_ITEM(*kwnames, i, Py_NewRef(name));
        values[n + i] = value;
    }
    return 1;
}

/* An operator or a packet: a call that cannot be finished here goes to the method, whose frame is part of tracebacks. */
static PyObject *call_or_method(PyObject *self, PyObject *args, PyObject *kwargs)
{
    PyObject *values[MOST], *kwnames = NULL, *op = NULL, *result = NULL;
    Outcome outcome = DECLINED;
    if (!is_traced() && read_call(args, kwargs, values, &kwnames)) {
        Py_ssize_t n = PyTuple_GET_SIZE(args);
        PyObject *held = Py_XNewRef(SLOT(self, Py_IS_TYPE(self, OPERATOR) ? AT_CALL : AT_CHOSEN));
        if (held != NULL && Py_IS_TYPE(self, PACKET) && PyDict_CheckExact(held))
            outcome = run_chosen(held, values, n, kwnames, &op, &result);
        else if (held != NULL && Py_IS_TYPE(held, &CallType.type))
            outcome = run_call((Call *)held, NULL, values, n, kwnames, &result);
        Py_XDECREF(op);
        Py_XDECREF(held);
    }
    Py_XDECREF(kwnames);
    if (outcome == DECLINED && decline_after_error() == DECLINED)
        return CALL_METHOD(self, args, kwargs);
    return result;
}

/* A handle of `custom_op`: its `__call__` is what its operator calls. */
static PyObject *call_of_operator(PyObject *self, PyObject *args, PyObject *kwargs)
{
    PyObject *op = SLOT(self, AT_OPERATOR), *call = NULL;
    if (op != NULL && Py_IS_TYPE(op, OPERATOR))
        call = Py_XNewRef(SLOT(op, AT_CALL));
    if (call == NULL)
        return CALL_METHOD(self, args, kwargs);
    PyObject *result = PyObject_Call(call, args, kwargs);
    Py_DECREF(call);
    return result;
}

static PyObject *put_into_slot(PyTypeObject *type, ternaryfunc call)
{
    if (type->tp_call == NULL || !(type->tp_flags & Py_TPFLAGS_HEAPTYPE)) {
        PyErr_Format(PyExc_TypeError, "%s has no method __call__", type->tp_name);
        return NULL;
    }
    if (type->tp_call != call) {
        CALL_METHOD = type->tp_call;
        type->tp_call = call;
    }
    Py_RETURN_NONE;
}

/* (class of operators, class of packets) */
static PyObject *call_operators(PyObject *module, PyObject *args)
{
    PyTypeObject *op, *packet;
    Py_ssize_t call, chosen;
    if (!PyArg_ParseTuple(args, "O!O!", &PyType_Type, &op, &PyType_Type, &packet) || (call = slot_of(op, "call")) < 0
        || (chosen = slot_of(packet, "chosen")) < 0)
        return NULL;
    AT_CALL = call;
    AT_CHOSEN = chosen;
    Py_XSETREF(OPERATOR, (PyTypeObject *)Py_NewRef(op));
    Py_XSETREF(PACKET, (PyTypeObject *)Py_NewRef(packet));
    PyObject *done = put_into_slot(op, call_or_method);
    Py_XDECREF(done);
    return done == NULL ? NULL : put_into_slot(packet, call_or_method);
}

/* The class of handles that `custom_op` returns. */
static PyObject *call_handles(PyObject *module, PyObject *type)
{
    if (!PyType_Check(type))
        return refuse(NULL);
    Py_ssize_t at = slot_of((PyTypeObject *)type, "operator");
    PyObject *done = at < 0 ? NULL : put_into_slot((PyTypeObject *)type, call_of_operator);
    if (done != NULL)
        AT_OPERATOR = at;
    return done;
}
