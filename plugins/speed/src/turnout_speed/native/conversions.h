/* Dtypes, layouts, and which conversions of elements are NumPy's own. */
/* The backend of a device; a new reference, or NULL with an error. */
static PyObject *backend_of(PyObject *device)
{
    PyObject *found = (PyObject *)Py_TYPE(device) == DEVICE ? Py_XNewRef(SLOT(device, AT_BACKEND)) : NULL;
    return found != NULL ? found : PyObject_GetAttr(device, S_BACKEND);
}

/* The array library's dtype for one of Turnout's, on the device of a tensor; a new reference, or NULL with or without an error. */
static PyObject *native_of(PyObject *device, PyObject *dtype)
{
    PyObject *backend = backend_of(device), *natives = backend == NULL ? NULL : PyObject_GetAttr(backend, S_NATIVE);
    PyObject *found = natives == NULL || !PyDict_CheckExact(natives) ? NULL : Py_XNewRef(PyDict_GetItemWithError(natives, dtype));
    Py_XDECREF(backend);
    Py_XDECREF(natives);
    if (found != NULL && !PyArray_DescrCheck(found))
        Py_CLEAR(found);
    return found;
}

/* Whether the elements have the strides that row-major memory has; dims of length 1 may have others. */
static int is_row_major(PyArrayObject *array)
{
    npy_intp step = PyArray_ITEMSIZE(array);
    for (int d = PyArray_NDIM(array) - 1; d >= 0; d--) {
        if (PyArray_STRIDE(array, d) != step)
            return 0;
        step *= PyArray_DIM(array, d);
    }
    return is_plain(array);
}

/* Whether every float becomes a number of the other dtype without a warning of NumPy's. */
#define EACH_WITHIN(TYPE, CONDITION)                              \
    for (npy_intp k = 0; k < size; k++) {                         \
        double number = (double)((const TYPE *)PyArray_DATA(array))[k]; \
        if (!(CONDITION))                                         \
            return 0;                                             \
    }
static int converts_quietly(PyArrayObject *array, int to)
{
    npy_intp size = PyArray_SIZE(array);
    int from = PyArray_TYPE(array), whole = to == NPY_INT32 || to == NPY_INT64;
    if (PyArray_CanCastSafely(from, to))
        return !PyTypeNum_ISUSERDEF(from) && !PyTypeNum_ISUSERDEF(to) && to != NPY_HALF;
    if ((PyTypeNum_ISINTEGER(from) || from == NPY_BOOL) && (PyTypeNum_ISINTEGER(to) || to == NPY_FLOAT || to == NPY_DOUBLE || to == NPY_BOOL))
        return size <= SMALL_SIZE / 2;
    if (size > SMALL_SIZE / 2)
        return 0;
    if (from == NPY_DOUBLE && to == NPY_FLOAT) {
        EACH_WITHIN(double, !isfinite(number) || fabs(number) <= FLT_MAX)
        return 1;
    }
    if (from == NPY_DOUBLE && whole) {
        EACH_WITHIN(double, fabs(number) < 2147483648.0)
        return 1;
    }
    if (from == NPY_FLOAT && whole) {
        EACH_WITHIN(float, fabs(number) < 2147483648.0)
        return 1;
    }
    return (from == NPY_FLOAT || from == NPY_DOUBLE) && to == NPY_BOOL;
}

/* An array in another dtype, row-major; NULL with or without an error: NumPy might warn, or has many elements to look at. */
static PyObject *converted(PyArrayObject *array, PyObject *native)
{
    if (native == (PyObject *)PyArray_DESCR(array))
        return Py_NewRef(array);
    if (!is_plain(array) || !PyArray_DescrCheck(native) || !converts_quietly(array, ((PyArray_Descr *)native)->type_num))
        return NULL;
    return PyArray_CastToType(array, (PyArray_Descr *)Py_NewRef(native), 0);
}
