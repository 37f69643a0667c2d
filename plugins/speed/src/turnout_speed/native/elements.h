/* ElementKernel: an array in another tensor, and few elements that are copied, read, counted, spaced. */

/* A copy into the first argument: (self, src, non_blocking). Both arrays are held: the device's backend may be asked by Python, and
 * other threads run while NumPy converts. */
static Outcome copy_into_run(Face *face, PyObject *ks, PyObject *const *args, Py_ssize_t n, PyObject **result)
{
    PyObject *to = n == 3 ? numpy_of(args[0]) : NULL, *from = to == NULL ? NULL : numpy_of(args[1]);
    PyObject *device = from == NULL ? NULL : SLOT(args[0], AT_DEVICE), *made = NULL;
    if (device == NULL || device != SLOT(args[1], AT_DEVICE))
        return DECLINED;
    PyArrayObject *target = (PyArrayObject *)Py_NewRef(to), *source = (PyArrayObject *)Py_NewRef(from);
    if (is_plain(target) && PyArray_ISWRITEABLE(target) && PyArray_SIZE(target) <= SMALL_SIZE && is_plain(source)
        && PyArray_NDIM(source) == PyArray_NDIM(target)
        && PyArray_CompareLists(PyArray_DIMS(source), PyArray_DIMS(target), PyArray_NDIM(target)) && is_plain_maker(device))
        made = converted(source, (PyObject *)PyArray_DESCR(target));
    if (made != NULL && SLOT(args[0], AT_ARRAY) == to) {
        memmove(PyArray_DATA(target), PyArray_DATA((PyArrayObject *)made), PyArray_NBYTES(target));
        *result = Py_NewRef(args[0]);
    }
    Py_XDECREF(made);
    Py_DECREF(target);
    Py_DECREF(source);
    return *result == NULL ? decline_after_error() : DONE;
}

/* The number in an array of one element. */
static Outcome number_run(Face *face, PyObject *ks, PyObject *const *args, Py_ssize_t n, PyObject **result)
{
    PyObject *array = n == 1 ? numpy_of(args[0]) : NULL;
    PyObject *device = array == NULL ? NULL : SLOT(args[0], AT_DEVICE);
    if (device == NULL || PyArray_SIZE((PyArrayObject *)array) != 1 || PyArray_TYPE((PyArrayObject *)array) >= TYPES)
        return DECLINED;
    Py_INCREF(array); /* the device's backend may be asked by Python */
    if (is_plain_maker(device))
        *result = PyArray_GETITEM((PyArrayObject *)array, PyArray_BYTES((PyArrayObject *)array));
    Py_DECREF(array);
    return *result == NULL ? decline_after_error() : DONE;
}

/* Ints from a start to an end: ([start,] end[, step], dtype, layout, device, pin_memory). */
static Outcome count_run(Face *face, PyObject *ks, PyObject *const *args, Py_ssize_t n, PyObject **result)
{
    npy_intp numbers[3], size, given = n - 4;
    if (given < 1 || given > 3 || args[given + 1] != Py_None || args[given + 3] != Py_None
        || (PyObject *)Py_TYPE(args[given + 2]) != DEVICE)
        return DECLINED;
    for (npy_intp i = 0; i < given; i++) {
        int overflow;
        numbers[i] = PyLong_CheckExact(args[i]) ? PyLong_AsLongLongAndOverflow(args[i], &overflow) : 0;
        if (!PyLong_CheckExact(args[i]) || overflow || numbers[i] > 1LL << 31 || numbers[i] < -(1LL << 31))
            return DECLINED;
    }
    npy_intp start = given == 1 ? 0 : numbers[0], end = numbers[given == 1 ? 0 : 1], step = given == 3 ? numbers[2] : 1;
    if (step == 0 || (end - start != 0 && (end > start) != (step > 0)))
        return DECLINED;
    size = (end - start) / step + ((end - start) % step != 0);
    if (size > SMALL_SIZE)
        return DECLINED;
    PyObject *device = args[given + 2], *native = NULL, *made = NULL, *keys = keys_of_factories(device);
    if (keys != NULL && args[given] != Py_None)
        native = native_of(device, args[given]);
    if (keys != NULL && (args[given] == Py_None || (native != NULL && ((PyArray_Descr *)native)->type_num == NPY_INT64)))
        made = PyArray_SimpleNew(1, &size, NPY_INT64);
    for (npy_intp k = 0; made != NULL && k < size; k++)
        ((npy_int64 *)PyArray_DATA((PyArrayObject *)made))[k] = start + k * step;
    *result = made == NULL ? NULL : wrap(made, keys, device);
    Py_XDECREF(native);
    Py_XDECREF(keys);
    return *result == NULL ? decline_after_error() : DONE;
}

/* What (dtype, layout, device, pin_memory) give: the key set of a new tensor and its dtype, both new references. 0 with or without
 * an error: they are not plain. */
static int read_options(PyObject *const *options, PyObject **keys, PyObject **native)
{
    if (options[1] != Py_None || (options[3] != Py_None && options[3] != Py_False) || (PyObject *)Py_TYPE(options[2]) != DEVICE
        || (*keys = keys_of_factories(options[2])) == NULL)
        return 0;
    if ((*native = native_or_default(options[2], options[0])) != NULL)
        return 1;
    Py_CLEAR(*keys);
    return 0;
}

/* A new tensor around what was made, and the end of the options. */
static Outcome wrap_new(PyObject *made, PyObject *keys, PyObject *native, PyObject *device, PyObject **result)
{
    *result = made == NULL ? NULL : wrap(made, keys, device);
    Py_XDECREF(keys);
    Py_XDECREF(native);
    return *result == NULL ? decline_after_error() : DONE;
}

/* The numbers from a first to a last one, each counted from the nearer end. */
#define SPACE(TYPE)                                                                                             \
    {                                                                                                           \
        TYPE *to = (TYPE *)PyArray_DATA((PyArrayObject *)made), first = (TYPE)start, last = (TYPE)end;          \
        TYPE step = (last - first) / (TYPE)(steps - 1);                                                         \
        for (npy_intp k = 0; k < steps; k++)                                                                    \
            to[k] = k < steps / 2 ? (TYPE)k * step + first : last - ((TYPE)(steps - 1) - (TYPE)k) * step;       \
    }

/* Floats at equal distances: (start, end, steps, dtype, layout, device, pin_memory). */
static Outcome space_run(Face *face, PyObject *ks, PyObject *const *args, Py_ssize_t n, PyObject **result)
{
    PyObject *keys = NULL, *native = NULL, *made = NULL;
    if (n != 7 || !is_int(args[2]) || !(PyLong_CheckExact(args[0]) || PyFloat_CheckExact(args[0]))
        || !(PyLong_CheckExact(args[1]) || PyFloat_CheckExact(args[1])))
        return DECLINED;
    npy_intp steps = PyLong_AsSsize_t(args[2]);
    double start = PyFloat_AsDouble(args[0]), end = PyFloat_AsDouble(args[1]);
    if (PyErr_Occurred() || steps < 2 || steps > SMALL_SIZE || !(fabs(start) <= FLT_MAX / 2) || !(fabs(end) <= FLT_MAX / 2)
        || !read_options(args + 3, &keys, &native))
        return decline_after_error();
    int type = ((PyArray_Descr *)native)->type_num;
    if ((type == NPY_FLOAT || type == NPY_DOUBLE) && (made = PyArray_SimpleNew(1, &steps, type)) != NULL) {
        if (type == NPY_FLOAT)
            SPACE(float)
        else
            SPACE(double)
    }
    return wrap_new(made, keys, native, args[5], result);
}

/* Ones on the diagonal: (n, [m,] dtype, layout, device, pin_memory). */
static Outcome identity_run(Face *face, PyObject *ks, PyObject *const *args, Py_ssize_t n, PyObject **result)
{
    if (n != 5 && n != 6)
        return DECLINED;
    PyObject *keys = NULL, *native = NULL, *made = NULL, *one = PyLong_FromLong(1);
    npy_intp dims[2];
    char number[2 * sizeof(double)];
    for (int d = 0; d < 2; d++) {
        PyObject *length = n == 6 ? args[d] : args[0];
        dims[d] = is_int(length) ? PyLong_AsSsize_t(length) : -1;
    }
    if (one == NULL || dims[0] < 0 || dims[1] < 0 || dims[0] > SMALL_SIZE || dims[0] * dims[1] > SMALL_SIZE
        || !read_options(args + n - 4, &keys, &native)) {
        Py_XDECREF(one);
        return decline_after_error();
    }
    if (element_of(one, ((PyArray_Descr *)native)->type_num, number)
        && (made = PyArray_NewFromDescr(&PyArray_Type, (PyArray_Descr *)Py_NewRef(native), 2, dims, NULL, NULL, 0, NULL)) != NULL) {
        npy_intp item = PyArray_ITEMSIZE((PyArrayObject *)made);
        memset(PyArray_DATA((PyArrayObject *)made), 0, PyArray_NBYTES((PyArrayObject *)made));
        for (npy_intp k = 0; k < dims[0] && k < dims[1]; k++)
            memcpy(PyArray_BYTES((PyArrayObject *)made) + k * (dims[1] + 1) * item, number, item);
    }
    Py_DECREF(one);
    return wrap_new(made, keys, native, args[n - 2], result);
}

/* ---- DrawKernel: random numbers of the device's own generator */

typedef struct {
    Face face;
    PyObject *functions;
    const turnout_compiled *compiled;
    int draws; /* words of an element */
} DrawKernel;

/* The words of a generator, reserved, and numbers made of them. 0 with or without an error: numbers may be gone. */
static int draw(const DrawKernel *self, PyObject *device, PyObject *made)
{
    npy_intp count = PyArray_SIZE((PyArrayObject *)made);
    PyObject *source = PyObject_CallOneArg(DEFAULT_GENERATOR, device), *given[MOST_TAKEN] = {NULL};
    PyObject *words = source == NULL ? NULL : PyObject_CallMethod(source, "reserve", "n", count * self->draws);
    int done = 0;
    Py_XDECREF(source);
    if (words != NULL && PyTuple_CheckExact(words) && PyTuple_GET_SIZE(words) == 2) {
        npy_uint64 offset = PyLong_AsUnsignedLongLongMask(PyTuple_GET_ITEM(words, 1));
        given[0] = Py_NewRef(PyTuple_GET_ITEM(words, 0));
        for (int k = 0; k < self->draws; k++)
            given[1 + k] = PyLong_FromUnsignedLongLong(offset + (npy_uint64)k * (npy_uint64)count);
        given[1 + self->draws] = Py_NewRef(made);
        done = !PyErr_Occurred() && call_compiled(self->compiled, given, 2 + self->draws);
        for (int k = 0; k < 2 + self->draws; k++)
            Py_XDECREF(given[k]);
    }
    Py_XDECREF(words);
    return done;
}

/* (size, dtype, layout, device, pin_memory). What the generator gives is given once: all that can decline comes first. */
static Outcome draw_run(Face *face, PyObject *ks, PyObject *const *args, Py_ssize_t n, PyObject **result)
{
    DrawKernel *self = (DrawKernel *)face;
    PyObject *keys = NULL, *native = NULL, *made = NULL;
    npy_intp dims[DIMS], count = 1;
    int rank = n == 5 ? numbers_of(args[0], dims, DIMS) : -1;
    for (int d = 0; d < rank; d++)
        if (dims[d] < 0 || dims[d] > SMALL_SIZE || (count *= dims[d]) > self->compiled->most)
            return DECLINED;
    if (rank < 0 || count < 1 || !read_options(args + 1, &keys, &native))
        return decline_after_error();
    PyArray_Descr *descr = (PyArray_Descr *)native;
    if (has_type(self->compiled->types, TURNOUT_TYPE(descr->kind, (int)PyDataType_ELSIZE(descr))))
        made = PyArray_SimpleNew(rank, dims, descr->type_num);
    if (made != NULL && !draw(self, args[3], made))
        Py_CLEAR(made);
    return wrap_new(made, keys, native, args[3], result);
}

/* (function, a table of functions, the name of one): the function itself where the table is of another version. */
static PyObject *make_draw_kernel(PyObject *module, PyObject *args)
{
    PyObject *function, *functions;
    const char *name;
    if (!PyArg_ParseTuple(args, "OOs", &function, &functions, &name))
        return NULL;
    const turnout_compiled *compiled = find_compiled(functions, name);
    if (compiled == NULL)
        return PyErr_Occurred() ? NULL : Py_NewRef(function);
    size_t words = strspn(compiled->takes, "w");
    if (words < 2 || strcmp(compiled->takes + words, "o") != 0)
        return refuse(NULL);
    DrawKernel *made = (DrawKernel *)new_face(&DrawKernelType, function, kernel_vectorcall, draw_run);
    if (made == NULL)
        return NULL;
    made->functions = Py_NewRef(functions);
    made->compiled = compiled;
    made->draws = (int)words - 1;
    return finished(made);
}

/* ---- of tensors */

/* The row-major array of a plain tensor of few elements on a device that makes arrays as NumPy does, or NULL. */
static PyArrayObject *few_of(PyObject *tensor)
{
    PyObject *array = numpy_of(tensor);
    if (array == NULL || SLOT(tensor, AT_DEVICE) == NULL || !is_row_major((PyArrayObject *)array)
        || PyArray_SIZE((PyArrayObject *)array) > SMALL_SIZE || PyArray_NDIM((PyArrayObject *)array) >= DIMS)
        return NULL;
    return (PyArrayObject *)array;
}

static int are_alike(PyArrayObject *a, PyArrayObject *b)
{
    return PyArray_NDIM(a) == PyArray_NDIM(b) && PyArray_CompareLists(PyArray_DIMS(a), PyArray_DIMS(b), PyArray_NDIM(a));
}

/* A number where a mask is true: (self, mask, value). All that the tensors have is held, as in copy_into_run. */
static Outcome fill_where_run(Face *face, PyObject *ks, PyObject *const *args, Py_ssize_t n, PyObject **result)
{
    PyArrayObject *self = n == 3 ? few_of(args[0]) : NULL, *mask = self == NULL ? NULL : few_of(args[1]);
    char number[2 * sizeof(double)];
    if (mask == NULL || PyArray_TYPE(mask) != NPY_BOOL || !are_alike(self, mask) || SLOT(args[0], AT_DEVICE) != SLOT(args[1], AT_DEVICE)
        || !element_of(args[2], PyArray_TYPE(self), number))
        return decline_after_error();
    PyObject *device = Py_NewRef(SLOT(args[0], AT_DEVICE));
    Py_INCREF(self);
    Py_INCREF(mask);
    PyObject *keys = is_plain_maker(device) ? keys_of_views(device) : NULL;
    PyObject *made = keys == NULL ? NULL : PyArray_NewCopy(self, NPY_CORDER);
    npy_intp item = PyArray_ITEMSIZE(self), size = PyArray_SIZE(self);
    for (npy_intp k = 0; made != NULL && k < size; k++)
        if (((const npy_bool *)PyArray_DATA(mask))[k])
            memcpy(PyArray_BYTES((PyArrayObject *)made) + k * item, number, item);
    Outcome outcome = wrap_new(made, keys, NULL, device, result);
    Py_DECREF(device);
    Py_DECREF(self);
    Py_DECREF(mask);
    return outcome;
}

/* Another handle on the same array, in the same storage. Both are held, for Python makes the storage. */
static Outcome alias_run(Face *face, PyObject *ks, PyObject *const *args, Py_ssize_t n, PyObject **result)
{
    PyObject *array = n == 1 ? Py_XNewRef(numpy_of(args[0])) : NULL;
    PyObject *device = array == NULL ? NULL : Py_XNewRef(SLOT(args[0], AT_DEVICE));
    PyObject *keys = device == NULL ? NULL : keys_of_views(device), *storage = keys == NULL ? NULL : storage_of(args[0]);
    PyObject *offset = storage == NULL ? NULL : Py_XNewRef(SLOT(args[0], AT_OFFSET));
    if (offset != NULL && SLOT(args[0], AT_ARRAY) == array && (*result = wrap(Py_NewRef(array), keys, device)) != NULL) {
        Py_SETREF(SLOT(*result, AT_STORAGE), Py_NewRef(storage));
        SLOT(*result, AT_OFFSET) = Py_NewRef(offset);
    }
    Py_XDECREF(array);
    Py_XDECREF(device);
    Py_XDECREF(keys);
    Py_XDECREF(storage);
    Py_XDECREF(offset);
    return *result == NULL ? decline_after_error() : DONE;
}

enum { ALIASES, COPIES, READS, COUNTS, SPACES, IDENTITIES, FILLS_WHERE };

static const char *const ELEMENTS[] = {
    [ALIASES] = "alias", [COPIES] = "copy", [READS] = "read", [COUNTS] = "count", [SPACES] = "space", [IDENTITIES] = "identity",
    [FILLS_WHERE] = "fill where", NULL,
};

/* (function, what it does: a word of those above) */
static PyObject *make_element_kernel(PyObject *module, PyObject *args)
{
    static const Run runs[] = {
        [ALIASES] = alias_run, [COPIES] = copy_into_run, [READS] = number_run, [COUNTS] = count_run, [SPACES] = space_run,
        [IDENTITIES] = identity_run, [FILLS_WHERE] = fill_where_run,
    };
    PyObject *function;
    const char *word;
    if (!PyArg_ParseTuple(args, "Os", &function, &word))
        return NULL;
    int does = index_of(ELEMENTS, word);
    return does < 0 ? NULL : finished(new_face(&ElementKernelType, function, kernel_vectorcall, runs[does]));
}
