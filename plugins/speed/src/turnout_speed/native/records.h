/* RecordKernel: the call below, and a node that says how it was made; or the call below alone, where no level records. */
enum { SAVE_TENSOR, SAVE_VALUE, SAVE_SHAPE, SAVE_DTYPE, SAVE_DEVICE, SAVE_GEOMETRY, SAVE_RESULT };
enum { FITS_NOT, FITS_PAIR, FITS_DTYPE, FITS_ALL };

typedef struct {
    int kind, argument;
    unsigned need;            /* bits of the differentiable arguments; it is saved if one of them is tracked */
    Py_ssize_t at, version_at;
} Save;

typedef struct {
    Face face;
    PyObject *cache, *below, *tracked_bit, *next_seq, *metas, *unlike, *kept;
    PyTypeObject *node;
    Py_ssize_t at_edges, at_seq, at_extra, at_metas;
    int arguments, differentiable, argument[MOST], saves, fits, dtype_argument;
    Save save[2 * MOST];
} RecordKernel;

static PyObject *shape_of(PyObject *tensor)
{
    PyObject *array = Py_XNewRef(SLOT(tensor, AT_ARRAY)), *shape = NULL;
    if (array != NULL && PyArray_CheckExact(array))
        shape = tuple_of(PyArray_DIMS((PyArrayObject *)array), PyArray_NDIM((PyArrayObject *)array));
    else if (array != NULL)
        shape = PyObject_GetAttrString(array, "shape");
    Py_XDECREF(array);
    return shape;
}

/* (shape, strides and offset in elements) */
static PyObject *saved_geometry(PyObject *tensor)
{
    PyArrayObject *array = (PyArrayObject *)SLOT(tensor, AT_ARRAY);
    npy_intp strides[DIMS], item;
    PyObject *offset = SLOT(tensor, AT_STORAGE) == Py_None ? ZERO : SLOT(tensor, AT_OFFSET);
    if (array == NULL || !PyArray_CheckExact(array) || offset == NULL)
        return NULL;
    Py_INCREF(array); /* both may be replaced by what a collection finalises */
    Py_INCREF(offset);
    item = PyArray_ITEMSIZE(array);
    for (int d = 0; d < PyArray_NDIM(array); d++)
        strides[d] = PyArray_STRIDE(array, d) / item;
    PyObject *shape = tuple_of(PyArray_DIMS(array), PyArray_NDIM(array)), *steps = tuple_of(strides, PyArray_NDIM(array));
    PyObject *made = shape == NULL || steps == NULL ? NULL : PyTuple_Pack(3, shape, steps, offset);
    Py_XDECREF(shape);
    Py_XDECREF(steps);
    Py_DECREF(array);
    Py_DECREF(offset);
    return made;
}

/* The edges of a node, to those that are tracked. Whether one of them is no leaf is said in `inner`. NULL with an error. */
static PyObject *edges_to(RecordKernel *self, PyObject *const *args, unsigned tracks, int *inner)
{
    PyObject *edges = PyTuple_New(self->differentiable);
    for (int k = 0; edges != NULL && k < self->differentiable; k++) {
        PyObject *tensor = args[self->argument[k]], *edge = Py_None;
        if (tracks & 1u << k) {
            PyObject *before = SLOT(tensor, AT_NODE);
            edge = before != Py_None ? before : tensor;
            *inner |= before != Py_None;
        }
        PyTuple_SET_ITEM(edges, k, Py_NewRef(edge));
    }
    return edges;
}

/* The version of a tensor that is saved. A new reference, or NULL with or without an error. */
static PyObject *version_of(PyObject *tensor)
{
    PyObject *storage = Py_XNewRef(SLOT(tensor, AT_STORAGE));
    PyObject *version = storage == Py_None ? Py_XNewRef(SLOT(tensor, AT_VER)) : storage == NULL ? NULL : version_in(storage);
    Py_XDECREF(storage);
    return version;
}

/* What a node saves for one of its slots. A new reference, or NULL with or without an error. */
static PyObject *saved_value(RecordKernel *self, const Save *save, PyObject *const *args, PyObject *result, PyObject *tracked)
{
    switch (save->kind) {
    case SAVE_SHAPE:
        return shape_of(args[save->argument]);
    case SAVE_DTYPE:
        return PyObject_GetAttrString(args[save->argument], "dtype");
    case SAVE_DEVICE:
        return Py_XNewRef(SLOT(args[save->argument], AT_DEVICE));
    case SAVE_GEOMETRY:
        return saved_geometry(args[save->argument]);
    case SAVE_RESULT:
        return PyObject_CallFunctionObjArgs(self->kept, result, tracked, NULL);
    default: /* SAVE_TENSOR, SAVE_VALUE */
        return Py_NewRef(args[save->argument]);
    }
}

/* Whether the gradient of a result fits the arguments that it goes to, so that nothing has to be known of them. */
static int fits_arguments(RecordKernel *self, PyObject *const *args, PyObject *result)
{
    PyObject *one = args[self->argument[0]], *other = self->fits == FITS_PAIR ? args[self->argument[1]] : result;
    PyArrayObject *a = (PyArrayObject *)SLOT(one, AT_ARRAY), *b = (PyArrayObject *)SLOT(other, AT_ARRAY);
    return self->fits != FITS_ALL && PyArray_CheckExact(a) && PyArray_CheckExact(b) && PyArray_DESCR(a) == PyArray_DESCR(b)
           && SLOT(one, AT_DEVICE) == SLOT(other, AT_DEVICE)
           && (self->fits != FITS_PAIR
               || (PyArray_NDIM(a) == PyArray_NDIM(b) && PyArray_CompareLists(PyArray_DIMS(a), PyArray_DIMS(b), PyArray_NDIM(a))));
}

/* What a node keeps of the arguments where gradients may have to be fitted. A new reference, or NULL with an error. */
static PyObject *metas_of(RecordKernel *self, PyObject *const *args, PyObject *result, int inner)
{
    int all = self->fits == FITS_ALL;
    if (!(all || inner) || fits_arguments(self, args, result))
        return Py_NewRef(Py_None);
    PyObject *passed[MOST + 1] = {result};
    for (int k = 0; k < self->differentiable; k++)
        passed[k + 1] = args[self->argument[k]];
    return PyObject_Vectorcall(all ? self->unlike : self->metas, passed + !all, self->differentiable + all, NULL);
}

/* 1: the node is filled; 0 with or without an error. */
static int fill_node(RecordKernel *self, PyObject *node, PyObject *const *args, PyObject *result, PyObject *tracked, unsigned tracks)
{
    int inner = 0;
    if ((SLOT(node, self->at_seq) = PyObject_CallNoArgs(self->next_seq)) == NULL
        || (SLOT(node, self->at_edges) = edges_to(self, args, tracks, &inner)) == NULL)
        return 0;
    SLOT(node, self->at_extra) = Py_NewRef(Py_None);
    for (int i = 0; i < self->saves; i++) {
        const Save *save = &self->save[i];
        if ((save->need & tracks)
            && ((save->kind == SAVE_TENSOR && (SLOT(node, save->version_at) = version_of(args[save->argument])) == NULL)
                || (SLOT(node, save->at) = saved_value(self, save, args, result, tracked)) == NULL))
            return 0;
    }
    return self->fits == FITS_NOT || (SLOT(node, self->at_metas) = metas_of(self, args, result, inner)) != NULL;
}

/* The gradient levels that record now: a new reference, or NULL with or without an error. */
static PyObject *levels_enabled(void)
{
    PyObject *levels = NULL;
    if (PyContextVar_Get(GRAD, NULL, &levels) < 0 || levels == NULL)
        return NULL;
    PyObject *first = PySequence_GetItem(levels, 0);
    Py_DECREF(levels);
    return first;
}

/* Whether a tensor is no view, or one whose base was not written since it was seen. 0 with or without an error. */
static int is_up_to_date(PyObject *tensor)
{
    PyObject *view = SLOT(tensor, AT_VIEW_OF), *storage = SLOT(tensor, AT_STORAGE);
    if (view == Py_None)
        return 1;
    if (view == NULL || !Py_IS_TYPE(view, View) || SLOT(view, AT_SEEN) == NULL || storage == NULL || !has_version(storage))
        return 0;
    return PyObject_RichCompareBool(SLOT(view, AT_SEEN), SLOT(storage, AT_STORAGE_VER), Py_EQ) == 1;
}

static Outcome record_run(Face *face, PyObject *ks, PyObject *const *args, Py_ssize_t n, PyObject **result)
{
    RecordKernel *self = (RecordKernel *)face;
    if (n != self->arguments)
        return DECLINED;
    PyObject *first = levels_enabled();
    long long enabled, tracked = 0;
    unsigned tracks = 0;
    int overflow = 0;
    if (first == NULL || !PyLong_CheckExact(first)) {
        Py_XDECREF(first);
        return decline_after_error();
    }
    enabled = PyLong_AsLongLongAndOverflow(first, &overflow);
    Py_DECREF(first);
    if (overflow || (enabled && self->node == NULL))
        return DECLINED;
    for (int k = 0; enabled && k < self->differentiable; k++) {
        PyObject *tensor = args[self->argument[k]];
        if (!Py_IS_TYPE(tensor, Tensor) || !is_up_to_date(tensor) || SLOT(tensor, AT_GMASK) == NULL)
            return decline_after_error();
        long long mask = PyLong_AsLongLongAndOverflow(SLOT(tensor, AT_GMASK), &overflow);
        if (overflow)
            return DECLINED;
        if (mask & enabled)
            tracks |= 1u << k;
        tracked |= mask & enabled;
    }
    /* Where a dtype is asked for, the result may be of whole numbers. */
    if (tracked && self->dtype_argument >= 0 && args[self->dtype_argument] != Py_None)
        return DECLINED;
    PyObject *below = PyNumber_And(ks, self->below);
    if (below == NULL)
        return decline_after_error();
    Outcome outcome = run_cached(self->cache, below, args, n, result);
    Py_DECREF(below);
    if (outcome != DONE || !tracked)
        return outcome;
    PyObject *made = *result;
    for (int k = 0; k < self->differentiable; k++)
        if (made == args[self->argument[k]])
            return DONE; /* it has its history */
    PyObject *node = NULL, *mask = NULL, *keys = NULL;
    *result = NULL;
    if (Py_IS_TYPE(made, Tensor) && SLOT(made, AT_NODE) == Py_None && (mask = PyLong_FromLongLong(tracked)) != NULL
        && (keys = PyNumber_Or(SLOT(made, AT_KEYS), self->tracked_bit)) != NULL
        && (node = PyType_GenericAlloc(self->node, 0)) != NULL && fill_node(self, node, args, made, mask, tracks)) {
        Py_SETREF(SLOT(made, AT_GMASK), mask);
        Py_SETREF(SLOT(made, AT_KEYS), keys);
        Py_SETREF(SLOT(made, AT_NODE), node);
        *result = made;
        return DONE;
    }
    Py_XDECREF(node);
    Py_XDECREF(mask);
    Py_XDECREF(keys);
    Py_DECREF(made);
    return decline_after_error();
}

static const char *const SAVED[] = {
    [SAVE_TENSOR] = "tensor", [SAVE_VALUE] = "value", [SAVE_SHAPE] = "shape", [SAVE_DTYPE] = "dtype", [SAVE_DEVICE] = "device",
    [SAVE_GEOMETRY] = "geometry", [SAVE_RESULT] = "result", NULL,
};
static const char *const FITS[] = {[FITS_NOT] = "", [FITS_PAIR] = "pair", [FITS_DTYPE] = "dtype", [FITS_ALL] = "all", NULL};

/* (kind, slot, argument, need). 0, or -1 with or without an error. */
static int read_save(RecordKernel *made, Save *save, PyObject *row)
{
    const char *kind, *slot;
    if (!PyArg_ParseTuple(row, "ssiI", &kind, &slot, &save->argument, &save->need) || (save->kind = index_of(SAVED, kind)) < 0
        || (save->at = slot_of(made->node, slot)) < 0 || save->argument >= made->arguments
        || (save->argument < 0 && save->kind != SAVE_RESULT))
        return -1;
    if (save->kind != SAVE_TENSOR)
        return 0;
    PyObject *version = PyUnicode_FromFormat("%s_version", slot);
    save->version_at = version == NULL ? -1 : slot_of(made->node, PyUnicode_AsUTF8(version));
    Py_XDECREF(version);
    return save->version_at < 0 ? -1 : 0;
}

/* record_kernel(function, cache, below, arguments, *, ...): the fields of RecordKernel by their names. Without `node`, only Python
 * makes its records; with it, all others are given. */
static PyObject *make_record_kernel(PyObject *module, PyObject *args, PyObject *named)
{
    static char *names[] = {"", "", "", "", "tracked", "next_seq", "metas", "unlike", "kept", "node", "differentiable", "saves", "fits",
                            "dtype_argument", NULL};
    PyObject *function, *cache, *below, *tracked = NULL, *next_seq = NULL, *metas = NULL, *unlike = NULL, *kept = NULL, *node = NULL,
             *differentiable = NULL, *saves = NULL;
    const char *fits = "";
    int arguments, dtype_argument = -1;
    if (!PyArg_ParseTupleAndKeywords(args, named, "OO!Oi|$OOOOOO!O!O!si", names, &function, &PyDict_Type, &cache, &below, &arguments,
                                     &tracked, &next_seq, &metas, &unlike, &kept, &PyType_Type, &node, &PyTuple_Type, &differentiable,
                                     &PyTuple_Type, &saves, &fits, &dtype_argument))
        return NULL;
    int wanted = index_of(FITS, fits);
    if (wanted < 0)
        return NULL;
    int whole = tracked != NULL && next_seq != NULL && metas != NULL && unlike != NULL && kept != NULL && differentiable != NULL
                && saves != NULL;
    if (arguments > MOST || (node != NULL && !whole)
        || (node != NULL && (PyTuple_GET_SIZE(differentiable) > MOST || PyTuple_GET_SIZE(saves) > 2 * MOST
            || (wanted == FITS_PAIR && PyTuple_GET_SIZE(differentiable) != 2) || PyTuple_GET_SIZE(differentiable) == 0))) {
        return wrong_count();
    }
    RecordKernel *made = (RecordKernel *)new_face(&RecordKernelType, function, kernel_vectorcall, record_run);
    if (made == NULL)
        return NULL;
    made->cache = Py_NewRef(cache);
    made->below = Py_NewRef(below);
    made->arguments = arguments;
    if (node == NULL)
        return finished(made);
    made->tracked_bit = Py_NewRef(tracked);
    made->next_seq = Py_NewRef(next_seq);
    made->metas = Py_NewRef(metas);
    made->unlike = Py_NewRef(unlike);
    made->kept = Py_NewRef(kept);
    made->node = (PyTypeObject *)Py_NewRef(node);
    made->dtype_argument = dtype_argument;
    made->fits = wanted;
    if ((made->at_edges = slot_of(made->node, "edges")) < 0 || (made->at_seq = slot_of(made->node, "seq")) < 0
        || (made->at_extra = slot_of(made->node, "extra")) < 0
        || (made->at_metas = wanted == FITS_NOT ? 0 : slot_of(made->node, "metas")) < 0)
        goto failed;
    for (int k = 0; k < PyTuple_GET_SIZE(differentiable); k++) {
        made->argument[k] = (int)PyLong_AsLong(PyTuple_GET_ITEM(differentiable, k));
        if (PyErr_Occurred() || made->argument[k] < 0 || made->argument[k] >= arguments)
            goto failed;
        made->differentiable = k + 1;
    }
    for (int i = 0; i < PyTuple_GET_SIZE(saves); i++, made->saves++)
        if (read_save(made, &made->save[i], PyTuple_GET_ITEM(saves, i)) < 0)
            goto failed;
    return finished(made);
failed:
    return refuse(made);
}
