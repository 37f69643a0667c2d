/* Getter and Setter: x[index] and x[index] = value, for ints, slices, None, `...` and index tensors. */
typedef struct {
    Face face;
    PyObject *select, *slice, *unsqueeze, *index; /* the operators */
    PyObject *put, *copy, *fill, *full;           /* of a Setter */
} Getter;

static int is_bound(PyObject *value) { return value == Py_None || PyLong_CheckExact(value); }

static int is_whole(PySliceObject *cut) { return cut->start == Py_None && cut->stop == Py_None && cut->step == Py_None; }

/* Whether a step is not negative: backwards, a slice is a copy. */
static int is_forward(PyObject *step)
{
    int overflow = 0;
    return step == Py_None || (PyLong_CheckExact(step) && PyLong_AsLongLongAndOverflow(step, &overflow) >= 0 && overflow >= 0);
}

/* An int, None, `...` or a slice between such numbers. */
static int is_view_item(PyObject *item)
{
    if (!PySlice_Check(item))
        return PyLong_CheckExact(item) || item == Py_None || item == Py_Ellipsis;
    PySliceObject *cut = (PySliceObject *)item;
    return is_bound(cut->start) && is_bound(cut->stop) && is_forward(cut->step);
}

/* A view by one item after the other; the tensor itself where nothing is cut. No view is made where an item is of another kind. */
static Outcome get_views(Getter *self, PyObject *tensor, PyObject *const *items, Py_ssize_t n, PyObject **result)
{
    PyObject *array = SLOT(tensor, AT_ARRAY), *viewed = Py_NewRef(tensor);
    Outcome outcome = DONE;
    long at = 0, left = PyArray_NDIM((PyArrayObject *)array), rest = 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        left -= PyLong_CheckExact(items[i]) || PySlice_Check(items[i]);
        rest += items[i] == Py_Ellipsis;
        if (!is_view_item(items[i]))
            outcome = DECLINED;
    }
    if (left < 0 || rest > 1)
        outcome = DECLINED;
    for (Py_ssize_t i = 0; i < n && outcome == DONE; i++) {
        PyObject *made = NULL, *item = items[i], *dim = PyLong_FromLong(at);
        if (dim == NULL)
            outcome = DECLINED;
        else if (PyLong_CheckExact(item))
            outcome = call_operator(self->select, (PyObject *[]){viewed, dim, item}, 3, NULL, &made);
        else if (item == Py_None) {
            outcome = call_operator(self->unsqueeze, (PyObject *[]){viewed, dim}, 2, NULL, &made);
            at++;
        } else if (item == Py_Ellipsis)
            at += left;
        else {
            PySliceObject *cut = (PySliceObject *)item;
            if (!is_whole(cut)) {
                PyObject *step = cut->step == Py_None ? PyLong_FromLong(1) : Py_NewRef(cut->step);
                outcome = step == NULL ? DECLINED
                          : call_operator(self->slice, (PyObject *[]){viewed, dim, cut->start, cut->stop, step}, 5, NULL, &made);
                Py_XDECREF(step);
            }
            at++;
        }
        Py_XDECREF(dim);
        if (made != NULL)
            Py_SETREF(viewed, made);
    }
    if (outcome == DONE)
        *result = viewed;
    else
        Py_DECREF(viewed);
    return outcome;
}

/* The list of index tensors of items that are such tensors and whole slices; NULL with or without an error. */
static PyObject *index_list(PyObject *tensor, PyObject *const *items, Py_ssize_t n)
{
    long taken = 0, dims = PyArray_NDIM((PyArrayObject *)SLOT(tensor, AT_ARRAY));
    int tensors = 0;
    PyObject *list = n == 1 ? PyList_New(1) : PyList_New(0), *alone = n == 1 ? SLOT(items[0], AT_ARRAY) : NULL;
    if (list != NULL && n == 1) { /* the usual index that copies */
        int serves = alone != NULL && PyArray_CheckExact(alone) && PyArray_NDIM((PyArrayObject *)alone) > 0
                     && PyArray_TYPE((PyArrayObject *)alone) != NPY_UBYTE
                     && (PyArray_TYPE((PyArrayObject *)alone) == NPY_BOOL ? PyArray_NDIM((PyArrayObject *)alone) : 1) <= dims;
        if (serves)
            PyList_SET_ITEM(list, 0, Py_NewRef(items[0]));
        else
            Py_CLEAR(list);
        return list;
    }
    for (Py_ssize_t i = 0; list != NULL && i < n; i++) {
        PyObject *item = items[i], *array = numpy_of(item);
        int whole = PySlice_Check(item) && is_whole((PySliceObject *)item);
        if (whole && tensors == 0)
            item = Py_None; /* behind the tensors, it is left out */
        else if (!whole && (array == NULL || PyArray_NDIM((PyArrayObject *)array) == 0
                            || PyArray_TYPE((PyArrayObject *)array) == NPY_UBYTE || (tensors && PySlice_Check(items[i - 1])))) {
            Py_CLEAR(list);
            break;
        }
        taken += !whole && PyArray_TYPE((PyArrayObject *)array) == NPY_BOOL ? PyArray_NDIM((PyArrayObject *)array) : 1;
        tensors += !whole;
        if ((!whole || item == Py_None) && PyList_Append(list, item) < 0)
            Py_CLEAR(list);
    }
    if (list != NULL && (tensors == 0 || taken > dims))
        Py_CLEAR(list);
    return list;
}

/* The items of an index, and whether it is a plain tensor with an array of NumPy's. */
static int read_index(PyObject *tensor, PyObject *const *index, PyObject *const **items, Py_ssize_t *n)
{
    int is_tuple = PyTuple_CheckExact(*index);
    *items = is_tuple ? ((PyTupleObject *)*index)->ob_item : index;
    *n = is_tuple ? PyTuple_GET_SIZE(*index) : 1;
    return numpy_of(tensor) != NULL;
}

static int has_tensors(PyObject *const *items, Py_ssize_t n)
{
    for (Py_ssize_t i = 0; i < n; i++)
        if (Py_IS_TYPE(items[i], Tensor))
            return 1;
    return 0;
}

static PyObject *getter_vectorcall(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Getter *getter = (Getter *)self;
    PyObject *const *items;
    PyObject *result = NULL;
    Py_ssize_t n;
    if (kwnames == NULL && PyVectorcall_NARGS(nargsf) == 2 && !is_traced() && read_index(args[0], args + 1, &items, &n)) {
        Outcome outcome = DECLINED;
        if (!has_tensors(items, n)) {
            outcome = get_views(getter, args[0], items, n, &result);
            if (outcome == DONE && result == args[0]) { /* an alias */
                Py_CLEAR(result);
                outcome = DECLINED;
            }
        } else {
            PyObject *list = index_list(args[0], items, n);
            if (list != NULL)
                outcome = call_operator(getter->index, (PyObject *[]){args[0], list}, 2, NULL, &result);
            Py_XDECREF(list);
        }
        if (outcome == DECLINED)
            outcome = decline_after_error();
        if (outcome != DECLINED)
            return outcome == DONE ? result : NULL;
    }
    return PyObject_Vectorcall(getter->face.function, args, nargsf, kwnames);
}

/* A number as a tensor of 0 dims like another one, as the text makes it: by the operator `full`. */
static Outcome number_like(Getter *self, PyObject *tensor, PyObject *value, PyObject **made)
{
    PyObject *size = PyTuple_New(0), *dtype = PyObject_GetAttr(tensor, S_DTYPE), *device = Py_XNewRef(SLOT(tensor, AT_DEVICE));
    Outcome outcome = DECLINED;
    REPEATABLE++; /* the text makes it again where the write is declined */
    if (size != NULL && dtype != NULL && device != NULL)
        outcome = call_operator(self->full, (PyObject *[]){size, value, dtype, device}, 4, FULL_OPTIONS, made);
    REPEATABLE--;
    Py_XDECREF(size);
    Py_XDECREF(dtype);
    Py_XDECREF(device);
    return outcome;
}

static Outcome set_items(Getter *self, PyObject *tensor, PyObject *const *items, Py_ssize_t n, PyObject *value)
{
    PyObject *array = numpy_of(value), *made = NULL, *viewed = NULL;
    int number = PyFloat_CheckExact(value) || PyLong_CheckExact(value);
    Outcome outcome = DECLINED;
    /* A value that has too many dims loses some first. */
    if (!number && (array == NULL || SLOT(value, AT_DEVICE) != SLOT(tensor, AT_DEVICE)
                    || (PyArray_NDIM((PyArrayObject *)array) > 0 && PyArray_DIM((PyArrayObject *)array, 0) == 1)))
        return DECLINED;
    if (has_tensors(items, n)) {
        PyObject *list = index_list(tensor, items, n), *given = number ? NULL : Py_NewRef(value);
        if (list != NULL && (!number || number_like(self, tensor, value, &given) == DONE))
            outcome = call_operator(self->put, (PyObject *[]){tensor, list, given}, 3, NULL, &made);
        Py_XDECREF(list);
        Py_XDECREF(given);
    } else if ((outcome = get_views(self, tensor, items, n, &viewed)) == DONE)
        outcome = call_operator(number ? self->fill : self->copy, (PyObject *[]){viewed, value}, 2, NULL, &made);
    Py_XDECREF(viewed);
    Py_XDECREF(made);
    return outcome;
}

static PyObject *setter_vectorcall(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    PyObject *const *items;
    Py_ssize_t n;
    if (kwnames == NULL && PyVectorcall_NARGS(nargsf) == 3 && !is_traced() && read_index(args[0], args + 1, &items, &n)) {
        Outcome outcome = set_items((Getter *)self, args[0], items, n, args[2]);
        if (outcome == DECLINED)
            outcome = decline_after_error();
        if (outcome != DECLINED)
            return outcome == DONE ? Py_NewRef(Py_None) : NULL;
    }
    return PyObject_Vectorcall(((Getter *)self)->face.function, args, nargsf, kwnames);
}

/* getter(function, *, select, slice, ...): operators by the names of the fields. A setter has all of them, a getter the first four. */
static PyObject *make_getter(PyObject *module, PyObject *args, PyObject *named)
{
    static char *names[] = {"", "select", "slice", "unsqueeze", "index", "put", "copy", "fill", "full", NULL};
    PyObject *function, *ops[8] = {NULL};
    if (!PyArg_ParseTupleAndKeywords(args, named, "O|$OOOOOOOO", names, &function, ops, ops + 1, ops + 2, ops + 3, ops + 4, ops + 5,
                                     ops + 6, ops + 7))
        return NULL;
    int read = 0, written = 0;
    for (int i = 0; i < 4; i++) {
        read += ops[i] != NULL;
        written += ops[4 + i] != NULL;
    }
    if (read < 4 || (written > 0 && written < 4)) {
        PyErr_SetString(PyExc_TypeError, "a getter has four operators, and a setter eight");
        return NULL;
    }
    Getter *made = (Getter *)new_face(&GetterType, function, ops[7] == NULL ? getter_vectorcall : setter_vectorcall, NULL);
    if (made == NULL)
        return NULL;
    for (int i = 0; i < 8; i++)
        (&made->select)[i] = Py_XNewRef(ops[i]);
    return finished(made);
}
