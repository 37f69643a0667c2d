/* Fact: the property `shape` or `dtype` of tensors. It is a `property`, and calls its function where it cannot answer. */
#define KNOWN_DTYPES 8

typedef struct {
    PyObject *backend, *descr, *dtype;
} KnownDtype;

static struct {
    KnownDtype kept[KNOWN_DTYPES]; /* what backends whose arrays are NumPy's answered */
    unsigned next;
} DTYPES;

static PyTypeObject ShapeType, DtypeType;

static PyObject *ask_property(PyObject *self, PyObject *instance, PyObject *owner)
{
    return PyProperty_Type.tp_descr_get(self, instance, owner);
}

/* The array of a plain tensor that NumPy made, or NULL. */
static PyArrayObject *array_of(PyObject *tensor)
{
    PyObject *array = tensor != NULL && !is_traced() ? numpy_of(tensor) : NULL;
    return array != NULL && SLOT(tensor, AT_DEVICE) != NULL ? (PyArrayObject *)array : NULL;
}

static PyObject *shape_get(PyObject *self, PyObject *instance, PyObject *owner)
{
    PyArrayObject *array = array_of(instance);
    if (array == NULL)
        return ask_property(self, instance, owner);
    Py_INCREF(array);
    int n = PyArray_NDIM(array);
    PyTypeObject *type = (PyTypeObject *)SIZE;
    PyObject *made = type->tp_alloc(type, n);
#if PY_VERSION_HEX >= 0x030E0000
    if (made != NULL)
        ((PyTupleObject *)made)->ob_hash = -1; /* not known yet */
#endif
    for (int d = 0; d < n && made != NULL; d++) {
        PyObject *length = PyLong_FromSsize_t(PyArray_DIM(array, d));
        if (length == NULL)
            Py_CLEAR(made);
        else
            PyTuple_SET_ITEM(made, d, length);
    }
    Py_DECREF(array);
    return made;
}

/* The answer of the property, and what is kept of it. */
static PyObject *ask_dtype(PyObject *self, PyObject *instance, PyObject *owner, PyObject *backend, PyObject *descr, PyObject *device)
{
    PyObject *made = ask_property(self, instance, owner);
    if (made != NULL && is_plain_maker(device)) {
        KnownDtype *kept = &DTYPES.kept[DTYPES.next++ % KNOWN_DTYPES], before = *kept;
        *kept = (KnownDtype){Py_NewRef(backend), Py_NewRef(descr), Py_NewRef(made)};
        Py_XDECREF(before.backend);
        Py_XDECREF(before.descr);
        Py_XDECREF(before.dtype);
    } else if (made != NULL)
        PyErr_Clear();
    return made;
}

static PyObject *dtype_get(PyObject *self, PyObject *instance, PyObject *owner)
{
    PyArrayObject *array = array_of(instance);
    if (array == NULL)
        return ask_property(self, instance, owner);
    PyObject *descr = Py_NewRef(PyArray_DESCR(array)), *device = Py_NewRef(SLOT(instance, AT_DEVICE)), *made = NULL;
    PyObject *backend = backend_of(device);
    for (int k = 0; k < KNOWN_DTYPES && backend != NULL && made == NULL; k++)
        if (DTYPES.kept[k].descr == descr && DTYPES.kept[k].backend == backend)
            made = Py_NewRef(DTYPES.kept[k].dtype);
    if (made == NULL && backend != NULL)
        made = ask_dtype(self, instance, owner, backend, descr, device);
    Py_XDECREF(backend);
    Py_DECREF(descr);
    Py_DECREF(device);
    return made;
}

/* The text of the function, as a property has it. Python's `property` sets the text of a subclass itself. */
static PyObject *fact_doc(PyObject *self, void *closure)
{
    PyObject *get = PyObject_GetAttrString(self, "fget"), *found = get == NULL ? NULL : PyObject_GetAttrString(get, "__doc__");
    Py_XDECREF(get);
    return found;
}

static int set_fact_doc(PyObject *self, PyObject *value, void *closure) { return 0; }

static PyGetSetDef fact_properties[] = {{"__doc__", fact_doc, set_fact_doc, NULL, NULL}, {NULL}};

#define FACT(TYPE, NAME, GET)                                                                                      \
    static PyTypeObject TYPE = {                                                                                   \
        PyVarObject_HEAD_INIT(NULL, 0).tp_name = "turnout_speed._calls." NAME, .tp_base = &PyProperty_Type,        \
        .tp_flags = Py_TPFLAGS_DEFAULT, .tp_descr_get = GET, .tp_getset = fact_properties,                         \
    }

FACT(ShapeType, "Shape", shape_get);
FACT(DtypeType, "Dtype", dtype_get);

/* (property, "shape" or "dtype") */
static PyObject *make_fact(PyObject *module, PyObject *args)
{
    PyObject *property;
    const char *name;
    if (!PyArg_ParseTuple(args, "O!s", &PyProperty_Type, &property, &name))
        return NULL;
    if (strcmp(name, "shape") != 0 && strcmp(name, "dtype") != 0)
        return refuse(NULL);
    PyObject *get = PyObject_GetAttrString(property, "fget");
    PyObject *made = get == NULL ? NULL : PyObject_CallOneArg((PyObject *)(name[0] == 's' ? &ShapeType : &DtypeType), get);
    Py_XDECREF(get);
    return made;
}
