/* ViewKernel and WriteKernel: an array over the same memory and the record of the view; the count of a write. */
/* ---- ViewKernel */

typedef struct {
    Face face;
    PyObject *op, *cache, *below, *attach;
    PyObject *kernel, *remembered; /* the kernel that was found last, and its geometries; NULL if it is not one by geometry */
    int is_as_strided, is_list;    /* whether it gives a list of views */
    Memo memo;                     /* of them */
} ViewKernel;

/* An array over the memory of a row-major root, from (shape, strides and start in bytes, ...). NULL with or without an error:
 * not of this kind, or it would reach outside that memory. */
static PyObject *array_over(PyObject *root, PyObject *geometry)
{
    npy_intp shape[DIMS], strides[DIMS];
    if (!PyArray_CheckExact(root) || !PyArray_CHKFLAGS((PyArrayObject *)root, NPY_ARRAY_C_CONTIGUOUS))
        return NULL;
    PyArrayObject *whole = (PyArrayObject *)root;
    npy_intp bytes = PyArray_NBYTES(whole), start = PyLong_AsSsize_t(PyTuple_GET_ITEM(geometry, 2)), low = start, high = start;
    if (start == -1 && PyErr_Occurred())
        return NULL;
    int n = numbers_of(PyTuple_GET_ITEM(geometry, 0), shape, DIMS);
    if (n < 0 || numbers_of(PyTuple_GET_ITEM(geometry, 1), strides, DIMS) != n || start < 0 || start > bytes)
        return NULL;
    for (int d = 0; d < n; d++) {
        npy_intp step = strides[d] < 0 ? -strides[d] : strides[d];
        if (shape[d] < 1 || step < 0 || (step > 0 && shape[d] - 1 > bytes / step))
            return NULL;
        if (strides[d] < 0)
            low -= (shape[d] - 1) * step;
        else
            high += (shape[d] - 1) * step;
    }
    if (low < 0 || high > bytes - PyArray_ITEMSIZE(whole))
        return NULL;
    PyArray_Descr *descr = PyArray_DESCR(whole);
    Py_INCREF(descr);
    PyObject *made = PyArray_NewFromDescr(&PyArray_Type, descr, n, shape, strides, PyArray_BYTES(whole) + start,
                                          PyArray_FLAGS(whole) & NPY_ARRAY_WRITEABLE, NULL);
    if (made == NULL)
        return NULL;
    PyArray_UpdateFlags((PyArrayObject *)made, NPY_ARRAY_UPDATE_ALL);
    if (PyArray_SetBaseObject((PyArrayObject *)made, Py_NewRef(root)) < 0)
        Py_CLEAR(made);
    return made;
}

static int is_geometry(PyObject *found) { return PyTuple_CheckExact(found) && PyTuple_GET_SIZE(found) == 4; }

/* What a view operator remembers of an array and a start in elements: see geometry_of. */
static PyObject *remembered_of(ViewKernel *self, PyObject *remembered, PyArrayObject *array, PyObject *offset, PyObject *const *args,
                               Py_ssize_t n)
{
    PyObject *passed[MOST + 4], *found = NULL;
    Look look;
    look.count = look.holds = 0;
    int known = self->remembered == remembered && look_at(&look, args[0]) != NULL && look_at_value(&look, offset);
    for (Py_ssize_t i = 1; i < n && known; i++)
        known = look_at_value(&look, args[i]);
    if (known && (found = find_kept(&self->memo, &look)) != NULL)
        return Py_NewRef(found);
    passed[0] = tuple_of(PyArray_DIMS(array), PyArray_NDIM(array));
    passed[1] = tuple_of(PyArray_STRIDES(array), PyArray_NDIM(array));
    passed[2] = PyLong_FromSsize_t(PyArray_ITEMSIZE(array));
    passed[3] = offset;
    for (Py_ssize_t i = 1; i < n; i++)
        passed[3 + i] = args[i];
    if (passed[0] != NULL && passed[1] != NULL && passed[2] != NULL)
        found = PyObject_Vectorcall(remembered, passed, 3 + n, NULL);
    Py_XDECREF(passed[0]);
    Py_XDECREF(passed[1]);
    Py_XDECREF(passed[2]);
    int right = found != NULL && (self->is_list ? PyTuple_CheckExact(found) : is_geometry(found));
    for (Py_ssize_t i = 0; right && self->is_list && i < PyTuple_GET_SIZE(found); i++)
        right = is_geometry(PyTuple_GET_ITEM(found, i));
    if (!right)
        Py_CLEAR(found);
    if (found != NULL && known && self->remembered == remembered && keep(&self->memo, &look, found) < 0)
        Py_CLEAR(found);
    return found;
}

/* What a view operator remembers of a call: (shape, strides and start in bytes, start in elements), or a tuple of those. A new
 * reference; NULL with or without an error. Nothing is changed: a tensor that shares its memory with no other one has no storage yet.
 * Array and start are held meanwhile, for a collection may run finalisers that give the tensor others; then it is declined. `remembered`
 * is held by the caller, for a call for another device may exchange the kernel's. */
static PyObject *geometry_of(ViewKernel *self, PyObject *remembered, PyObject *const *args, Py_ssize_t n)
{
    PyObject *tensor = args[0], *array = Py_XNewRef(SLOT(tensor, AT_ARRAY)), *found = NULL;
    PyObject *offset = Py_XNewRef(SLOT(tensor, AT_STORAGE) == Py_None ? ZERO : SLOT(tensor, AT_OFFSET));
    if (offset != NULL && array != NULL && PyArray_CheckExact(array))
        found = remembered_of(self, remembered, (PyArrayObject *)array, offset, args, n);
    if (SLOT(tensor, AT_ARRAY) != array)
        Py_CLEAR(found);
    Py_XDECREF(array);
    Py_XDECREF(offset);
    return found;
}

/* The key set of a tensor that NumPy's own constructor may make for a view on this device; NULL with or without an error. */
static PyObject *keys_of_views(PyObject *device)
{
    PyObject *backend = backend_of(device);
    PyObject *maker = backend == NULL ? NULL : PyObject_GetAttr(backend, S_VIEW_ARRAY);
    PyObject *keys = maker != (PyObject *)&PyArray_Type ? NULL : PyObject_GetAttr(backend, S_KEYS);
    Py_XDECREF(backend);
    Py_XDECREF(maker);
    return keys;
}

/* Whether a backend makes, fills and duplicates arrays as NumPy does. 0 with or without an error. */
static int is_plain_maker(PyObject *device)
{
    PyObject *backend = backend_of(device);
    PyObject *maker = backend == NULL ? NULL : PyObject_GetAttr(backend, S_NEW_ARRAY);
    Py_XDECREF(backend);
    Py_XDECREF(maker);
    return maker != NULL && maker == EMPTY;
}

/* The storage of a tensor, made if it has none yet: a new reference. NULL with or without an error. */
static PyObject *storage_of(PyObject *tensor)
{
    PyObject *storage = Py_XNewRef(SLOT(tensor, AT_STORAGE));
    if (storage == Py_None)
        Py_SETREF(storage, PyObject_CallMethodNoArgs(tensor, S_SHARED_STORAGE));
    if (storage != NULL && !has_version(storage))
        Py_CLEAR(storage);
    return storage;
}

/* The tensor of a geometry over the memory of `storage`, without its record. NULL with or without an error. */
static PyObject *viewed_by(PyObject *geometry, PyObject *keys, PyObject *device, PyObject *storage)
{
    PyObject *root = Py_XNewRef(SLOT(storage, AT_ROOT)), *over = root == NULL ? NULL : array_over(root, geometry);
    PyObject *made = over == NULL ? NULL : wrap(over, keys, device);
    Py_XDECREF(root);
    if (made != NULL) {
        Py_SETREF(SLOT(made, AT_STORAGE), Py_NewRef(storage));
        SLOT(made, AT_OFFSET) = Py_NewRef(PyTuple_GET_ITEM(geometry, 3));
    }
    return made;
}

static int has_record(PyObject *view)
{
    return SLOT(view, AT_BASE) != NULL && SLOT(view, AT_CHAIN) != NULL && PyTuple_CheckExact(SLOT(view, AT_CHAIN))
           && SLOT(view, AT_MULTI) != NULL && SLOT(view, AT_NO_GRAD) != NULL && SLOT(view, AT_MAKER) != NULL;
}

/* How a view comes from its base: the links of what is viewed, or none, and one more. `index` is its place among several, or None. */
static PyObject *chain_of(PyObject *old, PyObject *op, PyObject *rest, PyObject *index)
{
    PyObject *before = old == Py_None ? NULL : Py_NewRef(SLOT(old, AT_CHAIN)), *link = Py_BuildValue("((OOO))", op, rest, index);
    if (link != NULL && before != NULL)
        Py_SETREF(link, PySequence_Concat(before, link));
    Py_XDECREF(before);
    return link;
}

enum { PRUNE_AT = 32 }; /* from this length on, Python looks for dead entries in a list of views */

/* Say of a new tensor that it is a view; 0, or -1 with an error. */
static int record_view(ViewKernel *self, PyObject *made, PyObject *const *args, Py_ssize_t n, PyObject *storage, PyObject *index)
{
    PyObject *rest = PyTuple_New(n - 1), *chain = NULL, *enabled = NULL, *view = NULL, *ref = NULL;
    int failed = -1;
    if (rest == NULL)
        return -1;
    for (Py_ssize_t i = 1; i < n; i++)
        PyTuple_SET_ITEM(rest, i - 1, Py_NewRef(args[i]));
    /* Held: what is allocated below may start a collection, whose finalisers may give the tensor another record. */
    PyObject *old = Py_XNewRef(SLOT(args[0], AT_VIEW_OF)), *views = Py_XNewRef(SLOT(storage, AT_VIEWS));
    if (old == NULL || (old != Py_None && (self->is_as_strided || !Py_IS_TYPE(old, View) || !has_record(old))) || views == NULL
        || !PyList_CheckExact(views) || PyList_GET_SIZE(views) >= PRUNE_AT) {
        PyObject *none = PyObject_CallFunctionObjArgs(self->attach, made, args[0], self->op, rest, index, NULL);
        failed = none == NULL ? -1 : 0;
        Py_XDECREF(none);
        goto end;
    }
    int on = (enabled = levels_enabled()) == NULL ? -1 : PyObject_IsTrue(enabled);
    if (on >= 0 && (chain = chain_of(old, self->op, rest, index)) != NULL && (view = PyType_GenericAlloc(View, 0)) != NULL
        && (ref = PyWeakref_NewRef(made, NULL)) != NULL && SLOT(storage, AT_STORAGE_VER) != NULL && (old == Py_None || has_record(old))) {
        int is_base = old == Py_None;
        SLOT(view, AT_BASE) = Py_NewRef(is_base ? args[0] : SLOT(old, AT_BASE));
        SLOT(view, AT_CHAIN) = Py_NewRef(chain);
        SLOT(view, AT_SEEN) = Py_NewRef(SLOT(storage, AT_STORAGE_VER));
        SLOT(view, AT_MULTI) = Py_NewRef(index != Py_None ? Py_True : is_base ? Py_False : SLOT(old, AT_MULTI));
        SLOT(view, AT_NO_GRAD) = Py_NewRef(!on ? Py_True : is_base ? Py_False : SLOT(old, AT_NO_GRAD));
        SLOT(view, AT_MAKER) = Py_NewRef(is_base ? NO_TEXT : SLOT(old, AT_MAKER));
        Py_SETREF(SLOT(made, AT_VIEW_OF), Py_NewRef(view));
        failed = PyList_Append(views, ref);
    }
end:
    Py_DECREF(rest);
    Py_XDECREF(old);
    Py_XDECREF(views);
    Py_XDECREF(enabled);
    Py_XDECREF(chain);
    Py_XDECREF(view);
    Py_XDECREF(ref);
    return failed;
}

/* The tensors of several geometries, with their records; NULL with or without an error. */
static PyObject *views_by(ViewKernel *self, PyObject *found, PyObject *keys, PyObject *device, PyObject *storage, PyObject *const *args,
                          Py_ssize_t n)
{
    PyObject *list = PyList_New(PyTuple_GET_SIZE(found));
    for (Py_ssize_t i = 0; list != NULL && i < PyTuple_GET_SIZE(found); i++) {
        PyObject *made = viewed_by(PyTuple_GET_ITEM(found, i), keys, device, storage), *index = PyLong_FromSsize_t(i);
        if (made == NULL || index == NULL || record_view(self, made, args, n, storage, index) < 0)
            Py_CLEAR(made);
        Py_XDECREF(index);
        if (made == NULL)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, i, made);
    }
    return list;
}

static Outcome view_run(Face *face, PyObject *ks, PyObject *const *args, Py_ssize_t n, PyObject **result)
{
    ViewKernel *self = (ViewKernel *)face;
    if (n < 1 || n > MOST || numpy_of(args[0]) == NULL)
        return DECLINED;
    PyObject *below = PyNumber_And(ks, self->below);
    PyObject *kernel = below == NULL ? NULL : PyDict_GetItemWithError(self->cache, below);
    Py_XDECREF(below);
    if (kernel == NULL)
        return decline_after_error();
    if (kernel != self->kernel) {
        PyObject *variables = PyFunction_Check(kernel) ? ((PyFunctionObject *)kernel)->func_dict : NULL;
        PyObject *remembered = variables == NULL ? NULL : PyDict_GetItemWithError(variables, S_REMEMBERED);
        Py_INCREF(kernel);
        Py_XSETREF(self->remembered, Py_XNewRef(remembered));
        clear_memo(&self->memo);
        Py_XSETREF(self->kernel, kernel);
    }
    PyObject *storage = SLOT(args[0], AT_STORAGE), *device = SLOT(args[0], AT_DEVICE), *made = NULL;
    if (self->remembered == NULL || storage == NULL || device == NULL)
        return DECLINED;
    PyObject *remembered = Py_NewRef(self->remembered); /* all stay, whatever the calls of Python do */
    Py_INCREF(device);
    PyObject *keys = keys_of_views(device), *geometry = keys == NULL ? NULL : geometry_of(self, remembered, args, n);
    storage = geometry == NULL ? NULL : storage_of(args[0]);
    if (storage != NULL && self->is_list)
        made = views_by(self, geometry, keys, device, storage, args, n);
    else if (storage != NULL)
        made = viewed_by(geometry, keys, device, storage);
    if (made != NULL && !self->is_list && record_view(self, made, args, n, storage, Py_None) < 0)
        Py_CLEAR(made);
    Py_XDECREF(storage);
    Py_XDECREF(geometry);
    Py_XDECREF(keys);
    Py_DECREF(device);
    Py_DECREF(remembered);
    *result = made;
    return made == NULL ? decline_after_error() : DONE;
}

/* view_kernel(function, op, cache, below, attach, *, is_as_strided, is_list): whether it may leave the memory of what is viewed, and
 * whether it gives a list */
static PyObject *make_view_kernel(PyObject *module, PyObject *args, PyObject *named)
{
    static char *names[] = {"", "", "", "", "", "is_as_strided", "is_list", NULL};
    PyObject *function, *op, *cache, *below, *attach;
    int is_as_strided = 0, is_list = 0;
    if (!PyArg_ParseTupleAndKeywords(args, named, "OOO!OO|$pp", names, &function, &op, &PyDict_Type, &cache, &below, &attach,
                                     &is_as_strided, &is_list))
        return NULL;
    ViewKernel *made = (ViewKernel *)new_face(&ViewKernelType, function, kernel_vectorcall, view_run);
    if (made == NULL)
        return NULL;
    made->op = Py_NewRef(op);
    made->cache = Py_NewRef(cache);
    made->below = Py_NewRef(below);
    made->attach = Py_NewRef(attach);
    made->is_as_strided = is_as_strided;
    made->is_list = is_list;
    return finished(made);
}

/* ---- WriteKernel */

typedef struct {
    Face face;
    PyObject *cache, *below;
    int at; /* the argument that is written */
} WriteKernel;

/* Count a write of a tensor; -1 with an error. Nothing here runs anything else, but what has written may have given it another storage. */
static int count_write(PyObject *tensor)
{
    PyObject *storage = SLOT(tensor, AT_STORAGE);
    PyObject **counter = storage == Py_None ? &SLOT(tensor, AT_VER) : has_version(storage) ? &SLOT(storage, AT_STORAGE_VER) : NULL;
    PyObject *one = counter == NULL || *counter == NULL ? NULL : PyLong_FromLong(1), *next = one == NULL ? NULL : PyNumber_Add(*counter, one);
    Py_XDECREF(one);
    if (next != NULL)
        Py_SETREF(*counter, next);
    else if (!PyErr_Occurred()) /* the storage that it has now was not written */
        return 0;
    return next == NULL ? -1 : 0;
}

static Outcome write_run(Face *face, PyObject *ks, PyObject *const *args, Py_ssize_t n, PyObject **result)
{
    WriteKernel *self = (WriteKernel *)face;
    if (n <= self->at || !Py_IS_TYPE(args[self->at], Tensor))
        return DECLINED;
    PyObject *written = args[self->at], *storage = SLOT(written, AT_STORAGE), *view = SLOT(written, AT_VIEW_OF);
    if (storage == NULL || !(storage == Py_None || has_version(storage))
        || SLOT(written, AT_VER) == NULL || view == NULL
        || !(view == Py_None || (Py_IS_TYPE(view, View) && SLOT(view, AT_NO_GRAD) == Py_False)))
        return DECLINED;
    PyObject *below = PyNumber_And(ks, self->below);
    if (below == NULL)
        return decline_after_error();
    Outcome outcome = run_cached(self->cache, below, args, n, result);
    Py_DECREF(below);
    if (outcome == DONE && count_write(written) < 0) {
        Py_CLEAR(*result);
        return FAILED; /* it is written: not once more */
    }
    return outcome;
}

/* (function, cache, below, the argument that is written) */
static PyObject *make_write_kernel(PyObject *module, PyObject *args)
{
    PyObject *function, *cache, *below;
    int at;
    if (!PyArg_ParseTuple(args, "OO!Oi", &function, &PyDict_Type, &cache, &below, &at))
        return NULL;
    WriteKernel *made = (WriteKernel *)new_face(&WriteKernelType, function, kernel_vectorcall, write_run);
    if (made == NULL)
        return NULL;
    made->cache = Py_NewRef(cache);
    made->below = Py_NewRef(below);
    made->at = at;
    return finished(made);
}
