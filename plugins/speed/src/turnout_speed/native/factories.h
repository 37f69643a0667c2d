/* CopyKernel, SelectKernel, FactoryKernel, FillKernel: new memory, and what is written into all of it. */
/* ---- CopyKernel */

typedef struct {
    Face face;
    int dtype; /* the argument that says in which dtype, or -1 */
} CopyKernel;

static Outcome copy_run(Face *face, PyObject *ks, PyObject *const *args, Py_ssize_t n, PyObject **result)
{
    CopyKernel *self = (CopyKernel *)face;
    PyObject *array = n > 0 ? numpy_of(args[0]) : NULL;
    PyObject *device = array == NULL ? NULL : SLOT(args[0], AT_DEVICE);
    if (device == NULL || self->dtype >= n || !is_row_major((PyArrayObject *)array)) /* a copy keeps the strides */
        return DECLINED;
    for (Py_ssize_t i = 1; i < n; i++)
        if (args[i] != Py_None && args[i] != Py_False && i != self->dtype)
            return DECLINED;
    Py_INCREF(array); /* both stay, whatever the call of Python does */
    Py_INCREF(device);
    PyArrayObject *from = (PyArrayObject *)array;
    PyObject *keys = is_plain_maker(device) ? keys_of_views(device) : NULL, *made = NULL;
    PyObject *native = keys == NULL || self->dtype < 0 || args[self->dtype] == Py_None ? NULL : native_of(device, args[self->dtype]);
    if (keys != NULL && (self->dtype < 0 || args[self->dtype] == Py_None || native == (PyObject *)PyArray_DESCR(from)))
        made = PyArray_NewCopy(from, NPY_CORDER);
    else if (native != NULL && converts_quietly(from, ((PyArray_Descr *)native)->type_num))
        made = PyArray_CastToType(from, (PyArray_Descr *)Py_NewRef(native), 0);
    *result = made == NULL ? NULL : wrap(made, keys, device);
    Py_XDECREF(native);
    Py_XDECREF(keys);
    Py_DECREF(device);
    Py_DECREF(array);
    return *result == NULL ? decline_after_error() : DONE;
}

/* (function, the argument that is the dtype, or -1) */
static PyObject *make_copy_kernel(PyObject *module, PyObject *args)
{
    PyObject *function;
    int dtype;
    if (!PyArg_ParseTuple(args, "Oi", &function, &dtype))
        return NULL;
    CopyKernel *made = (CopyKernel *)new_face(&CopyKernelType, function, kernel_vectorcall, copy_run);
    if (made == NULL)
        return NULL;
    made->dtype = dtype < MOST ? dtype : -1;
    return finished(made);
}

/* ---- SelectKernel */

typedef struct {
    Face face;
    PyObject *cache, *above, *default_device;
    int at; /* the argument that is the device */
} SelectKernel;

/* The first item of a list that Turnout keeps a default in, as a new reference; NULL without an error if it has none. */
static PyObject *default_in(PyObject *list)
{
    PyObject *found = PyList_CheckExact(list) && PyList_GET_SIZE(list) == 1 ? PyList_GET_ITEM(list, 0) : Py_None;
    return found == Py_None ? NULL : Py_NewRef(found);
}

/* The device of tensors made without one. A new reference, or NULL with an error. */
static PyObject *default_device(SelectKernel *self)
{
    PyObject *overrides = NULL, *found = NULL;
    if (PyContextVar_Get(OVERRIDES, NULL, &overrides) < 0)
        return NULL;
    if (overrides != NULL && PyTuple_CheckExact(overrides) && PyTuple_GET_SIZE(overrides) == 0)
        found = default_in(DEFAULT_DEVICES);
    Py_XDECREF(overrides);
    return found != NULL ? found : PyObject_CallNoArgs(self->default_device);
}

/* The device that a backend uses where only its type is named. A new reference, or NULL with an error. */
static PyObject *place_of(PyObject *backend)
{
    PyObject *indexed = PyObject_GetAttr(backend, S_INDEXED), *place = NULL;
    if (indexed != NULL)
        place = indexed == Py_False ? PyObject_GetAttr(backend, S_PLACE) : PyObject_CallMethodNoArgs(backend, S_CURRENT_DEVICE);
    Py_XDECREF(indexed);
    return place;
}

static Outcome select_run(Face *face, PyObject *ks, PyObject *const *args, Py_ssize_t n, PyObject **result)
{
    SelectKernel *self = (SelectKernel *)face;
    PyObject *passed[MOST];
    if (n > MOST || self->at >= n)
        return DECLINED;
    memcpy(passed, args, n * sizeof *passed);
    PyObject *wanted = args[self->at], *device = wanted == Py_None ? default_device(self) : Py_NewRef(wanted);
    PyObject *backend = device == NULL || (PyObject *)Py_TYPE(device) != DEVICE ? NULL : backend_of(device);
    PyObject *place = backend == NULL       ? NULL
                      : wanted == Py_None ? place_of(backend)
                                          : PyObject_CallMethodOneArg(backend, S_RESOLVE_DEVICE, device);
    PyObject *dense = place == NULL ? NULL : PyObject_GetAttr(backend, S_DENSE);
    PyObject *rest = dense == NULL ? NULL : PyNumber_And(ks, self->above), *below = rest == NULL ? NULL : PyNumber_Or(rest, dense);
    Outcome outcome = DECLINED;
    if (below != NULL) {
        passed[self->at] = place;
        outcome = run_cached(self->cache, below, passed, n, result);
    } else
        outcome = decline_after_error();
    Py_XDECREF(device);
    Py_XDECREF(backend);
    Py_XDECREF(place);
    Py_XDECREF(dense);
    Py_XDECREF(rest);
    Py_XDECREF(below);
    return outcome;
}

/* (function, cache, the keys that are left, default_device, the argument that is the device) */
static PyObject *make_select_kernel(PyObject *module, PyObject *args)
{
    PyObject *function, *cache, *above, *default_device;
    int at;
    if (!PyArg_ParseTuple(args, "OO!OOi", &function, &PyDict_Type, &cache, &above, &default_device, &at))
        return NULL;
    SelectKernel *made = (SelectKernel *)new_face(&SelectKernelType, function, kernel_vectorcall, select_run);
    if (made == NULL)
        return NULL;
    made->cache = Py_NewRef(cache);
    made->above = Py_NewRef(above);
    made->default_device = Py_NewRef(default_device);
    made->at = at;
    return finished(made);
}

/* ---- FactoryKernel */

/* The key set of a new tensor on a device; NULL with or without an error: its memory is not NumPy's, or a fake tensor is made. */
static PyObject *keys_of_factories(PyObject *device)
{
    PyObject *modes = NULL;
    int plain = PyContextVar_Get(FAKE_MODE, NULL, &modes) == 0 && modes != NULL && PyObject_Not(modes) == 1;
    Py_XDECREF(modes);
    return plain && is_plain_maker(device) ? keys_of_views(device) : NULL;
}

/* The array library's dtype for one that was given, or for the default; a new reference, or NULL with or without an error. */
static PyObject *native_or_default(PyObject *device, PyObject *dtype)
{
    PyObject *wanted = dtype == Py_None ? default_in(DEFAULT_DTYPES) : Py_NewRef(dtype);
    PyObject *native = wanted == NULL ? NULL : native_of(device, wanted);
    Py_XDECREF(wanted);
    return native;
}


typedef struct {
    Face face;
    PyObject *number;                     /* what it fills with, or NULL: the argument `value` */
    int like, size, value, dtype, device; /* places of arguments, or -1; all others must be None */
    int fills;                            /* 0: memory as it is */
} FactoryKernel;

/* A number as an element of a dtype; 0 where only Python knows how. */
static int element_of(PyObject *value, int type, char *number)
{
    int overflow = 0;
    if (type == NPY_BOOL && PyBool_Check(value))
        number[0] = value == Py_True;
    else if (type == NPY_INT64 && PyLong_CheckExact(value)) {
        npy_int64 whole = PyLong_AsLongLongAndOverflow(value, &overflow);
        memcpy(number, &whole, sizeof whole);
    } else
        return number_as(value, type, number) != NULL;
    return !overflow;
}

/* Whether an array has one dim, whose elements do not share memory: a row, a column, a diagonal, a slice. */
static int is_line(PyArrayObject *array)
{
    return PyArray_NDIM(array) == 1 && PyArray_STRIDE(array, 0) && PyArray_CHKFLAGS(array, NPY_ARRAY_ALIGNED)
        && PyArray_ISNOTSWAPPED(array);
}

/* Write a number into all elements of an array that is plain or a line; 0 where only Python knows how. */
static int fill_array(PyArrayObject *array, PyObject *value)
{
    char number[sizeof(double)];
    npy_intp size = PyArray_SIZE(array), itemsize = PyArray_ITEMSIZE(array);
    npy_intp step = PyArray_NDIM(array) == 1 ? PyArray_STRIDE(array, 0) : itemsize;
    if (step == itemsize && PyLong_CheckExact(value) && PyObject_Not(value) == 1) {
        memset(PyArray_DATA(array), 0, PyArray_NBYTES(array));
        return 1;
    }
    if (!element_of(value, PyArray_TYPE(array), number))
        return 0;
    for (npy_intp k = 0; k < size; k++)
        memcpy(PyArray_BYTES(array) + k * step, number, itemsize);
    return 1;
}

static Outcome factory_run(Face *face, PyObject *ks, PyObject *const *args, Py_ssize_t n, PyObject **result)
{
    FactoryKernel *self = (FactoryKernel *)face;
    PyObject *array = NULL, *device = self->device >= 0 && self->device < n ? args[self->device] : Py_None;
    npy_intp dims[DIMS];
    int count = 0;
    if (self->like >= n || self->size >= n || self->value >= n || self->dtype >= n)
        return DECLINED;
    for (int i = 0; i < n; i++)
        if (i != self->like && i != self->size && i != self->value && i != self->dtype && i != self->device && args[i] != Py_None)
            return DECLINED;
    if (self->like >= 0) {
        array = numpy_of(args[self->like]);
        if (array == NULL || device != Py_None)
            return DECLINED;
        device = SLOT(args[self->like], AT_DEVICE);
    }
    if (self->size >= 0)
        count = numbers_of(args[self->size], dims, DIMS);
    else if (array != NULL) {
        if (!is_row_major((PyArrayObject *)array))
            return DECLINED;
        count = PyArray_NDIM((PyArrayObject *)array);
        for (int d = 0; d < count; d++)
            dims[d] = PyArray_DIM((PyArrayObject *)array, d);
    }
    for (int d = 0; d < count; d++)
        if (dims[d] < 0)
            count = -1;
    if (count < 0 || device == NULL || (PyObject *)Py_TYPE(device) != DEVICE)
        return decline_after_error();
    PyObject *value = self->number != NULL ? self->number : self->value >= 0 ? args[self->value] : NULL;
    PyObject *dtype = self->dtype < 0 ? Py_None : args[self->dtype], *native = NULL, *made = NULL;
    Py_INCREF(device); /* both stay, whatever the calls of Python do */
    Py_XINCREF(array);
    PyObject *keys = keys_of_factories(device);
    if (keys != NULL) {
        if (dtype != Py_None)
            native = native_of(device, dtype);
        else if (array != NULL)
            native = Py_NewRef(PyArray_DESCR((PyArrayObject *)array));
        else if (self->value < 0 || PyFloat_CheckExact(value))
            native = native_or_default(device, Py_None);
        else if (PyLong_CheckExact(value))
            native = (PyObject *)PyArray_DescrFromType(NPY_INT64);
    }
    if (native != NULL)
        made = PyArray_NewFromDescr(&PyArray_Type, (PyArray_Descr *)Py_NewRef(native), count, dims, NULL, NULL, 0, NULL);
    if (made != NULL && self->fills && (PyArray_SIZE((PyArrayObject *)made) > SMALL_SIZE || !fill_array((PyArrayObject *)made, value)))
        Py_CLEAR(made);
    *result = made == NULL ? NULL : wrap(made, keys, device);
    Py_XDECREF(native);
    Py_XDECREF(keys);
    Py_XDECREF(array);
    Py_DECREF(device);
    return *result == NULL ? decline_after_error() : DONE;
}

/* factory_kernel(function, *, fills, number, ...): whether it fills, and with what number. Places of arguments: the tensor that it is
 * like, size, value, dtype and device; -1 where there is no such argument. */
static PyObject *make_factory_kernel(PyObject *module, PyObject *args, PyObject *named)
{
    static char *names[] = {"", "fills", "number", "like", "size", "value", "dtype", "device", NULL};
    PyObject *function, *number = Py_None;
    int fills = 0, like = -1, size = -1, value = -1, dtype = -1, device = -1;
    if (!PyArg_ParseTupleAndKeywords(args, named, "O|$pOiiiii", names, &function, &fills, &number, &like, &size, &value, &dtype, &device))
        return NULL;
    FactoryKernel *made = (FactoryKernel *)new_face(&FactoryKernelType, function, kernel_vectorcall, factory_run);
    if (made == NULL)
        return NULL;
    made->number = or_null(number);
    made->fills = fills;
    made->like = like;
    made->size = size;
    made->value = value;
    made->dtype = dtype;
    made->device = device;
    return finished(made);
}

/* ---- FillKernel */

typedef struct {
    Face face;
    PyObject *number; /* what it writes, or NULL: the second argument */
} FillKernel;

static Outcome fill_run(Face *face, PyObject *ks, PyObject *const *args, Py_ssize_t n, PyObject **result)
{
    PyObject *value = ((FillKernel *)face)->number;
    PyObject *array = n > 0 ? numpy_of(args[0]) : NULL;
    if (value == NULL && n == 2)
        value = args[1];
    if (array == NULL || value == NULL)
        return DECLINED;
    PyArrayObject *target = (PyArrayObject *)Py_NewRef(array); /* the device's backend may be asked by Python */
    PyObject *device = SLOT(args[0], AT_DEVICE);
    if (device != NULL && is_plain_maker(device) && SLOT(args[0], AT_ARRAY) == array && PyArray_ISWRITEABLE(target)
        && (is_plain(target) || is_line(target)) && PyArray_SIZE(target) <= SMALL_SIZE && fill_array(target, value))
        *result = Py_NewRef(args[0]);
    Py_DECREF(target);
    return *result == NULL ? decline_after_error() : DONE;
}

/* (function, the number that it writes, or None) */
static PyObject *make_fill_kernel(PyObject *module, PyObject *args)
{
    PyObject *function, *number;
    if (!PyArg_ParseTuple(args, "OO", &function, &number))
        return NULL;
    FillKernel *made = (FillKernel *)new_face(&FillKernelType, function, kernel_vectorcall, fill_run);
    if (made == NULL)
        return NULL;
    made->number = or_null(number);
    return finished(made);
}
