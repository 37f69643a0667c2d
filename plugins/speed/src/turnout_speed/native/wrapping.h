/* Results: a tensor around a new array, or what is written into a tensor that was given. */
/* The array of a plain tensor, if it is one of NumPy's; or NULL. */
static inline PyObject *numpy_of(PyObject *value)
{
    PyObject *array = Py_IS_TYPE(value, Tensor) ? SLOT(value, AT_ARRAY) : NULL;
    return array != NULL && PyArray_CheckExact(array) ? array : NULL;
}

/* A new plain tensor around an array, whose reference it takes. `_rules.c` alone fills the fields of others,
 * around batched values. The device may be what a tensor's slot has, NULL too: it is held before anything is allocated. */
static PyObject *wrap(PyObject *array, PyObject *keys, PyObject *device)
{
    PyObject *epoch = Py_XNewRef(SLOT(CLOCK, AT_EPOCH)), *place = Py_XNewRef(device);
    PyObject *made = epoch == NULL || place == NULL ? NULL : PyType_GenericAlloc(Tensor, 0);
    if (made == NULL) {
        Py_XDECREF(epoch);
        Py_XDECREF(place);
        Py_DECREF(array);
        return NULL;
    }
    SLOT(made, AT_ARRAY) = array;
    SLOT(made, AT_KEYS) = Py_NewRef(keys);
    SLOT(made, AT_DEVICE) = place;
    SLOT(made, AT_GMASK) = Py_NewRef(ZERO);
    SLOT(made, AT_NODE) = Py_NewRef(Py_None);
    SLOT(made, AT_VER) = epoch;
    SLOT(made, AT_STORAGE) = Py_NewRef(Py_None);
    SLOT(made, AT_VIEW_OF) = Py_NewRef(Py_None);
    SLOT(made, AT_EXTRA) = Py_NewRef(Py_None);
    return made;
}

/* Write a result into the array of the tensor that was given first. Declined where that is not plain memory of its own. */
static Outcome write_back(PyArrayObject *first, PyObject *made)
{
    PyArrayObject *from = (PyArrayObject *)made;
    if (!is_plain(first) || !is_plain(from) || !PyArray_ISWRITEABLE(first) || PyArray_DESCR(from) != PyArray_DESCR(first)
        || PyArray_NDIM(from) != PyArray_NDIM(first)
        || !PyArray_CompareLists(PyArray_DIMS(from), PyArray_DIMS(first), PyArray_NDIM(first)))
        return DECLINED;
    memmove(PyArray_DATA(first), PyArray_DATA(from), PyArray_NBYTES(first));
    return DONE;
}

static PyObject *tuple_of(const npy_intp *values, int n)
{
    PyObject *made = PyTuple_New(n);
    for (int i = 0; made != NULL && i < n; i++) {
        PyObject *value = PyLong_FromSsize_t(values[i]);
        if (value == NULL)
            Py_CLEAR(made);
        else
            PyTuple_SET_ITEM(made, i, value);
    }
    return made;
}
