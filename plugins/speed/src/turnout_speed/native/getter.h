/* Getter: x[index], for ints, slices and an index tensor. */
typedef struct {
    Face face;
    PyObject *select, *slice, *index; /* the operators */
} Getter;

static int is_bound(PyObject *value) { return value == Py_None || PyLong_CheckExact(value); }

/* A view by one item after the other, ints and slices. */
static Outcome get_views(Getter *self, PyObject *tensor, PyObject *const *items, Py_ssize_t n, PyObject **result)
{
    PyObject *viewed = Py_NewRef(tensor), *dim = Py_NewRef(ZERO), *one = NULL;
    Outcome outcome = DONE;
    long at = 0;
    for (Py_ssize_t i = 0; i < n && outcome == DONE; i++) {
        PyObject *made = NULL, *item = items[i];
        if (PyLong_CheckExact(item))
            outcome = call_operator(self->select, (PyObject *[]){viewed, dim, item}, 3, NULL, &made);
        else {
            PySliceObject *cut = PySlice_Check(item) ? (PySliceObject *)item : NULL;
            if (cut == NULL || !is_bound(cut->start) || !is_bound(cut->stop) || !is_bound(cut->step)) {
                outcome = DECLINED;
                break;
            }
            if (cut->start != Py_None || cut->stop != Py_None || cut->step != Py_None) {
                if (cut->step == Py_None && one == NULL)
                    one = PyLong_FromLong(1);
                PyObject *step = cut->step == Py_None ? one : cut->step;
                outcome = step == NULL ? DECLINED
                          : call_operator(self->slice, (PyObject *[]){viewed, dim, cut->start, cut->stop, step}, 5, NULL, &made);
            }
            Py_SETREF(dim, PyLong_FromLong(++at));
            if (dim == NULL)
                outcome = DECLINED;
        }
        if (made != NULL)
            Py_SETREF(viewed, made);
    }
    Py_XDECREF(dim);
    Py_XDECREF(one);
    if (outcome == DONE && viewed == tensor)
        outcome = DECLINED;
    if (outcome == DONE)
        *result = viewed;
    else
        Py_DECREF(viewed);
    return outcome;
}

static PyObject *getter_vectorcall(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Getter *getter = (Getter *)self;
    PyObject *array, *result = NULL;
    if (kwnames == NULL && PyVectorcall_NARGS(nargsf) == 2 && !is_traced() && Py_IS_TYPE(args[0], Tensor)
        && (array = SLOT(args[0], AT_ARRAY)) != NULL && PyArray_CheckExact(array)) {
        PyObject *index = args[1];
        int dims = PyArray_NDIM((PyArrayObject *)array);
        Outcome outcome = DECLINED;
        if (PyLong_CheckExact(index))
            outcome = call_operator(getter->select, (PyObject *[]){args[0], ZERO, index}, 3, NULL, &result);
        else if (PyTuple_CheckExact(index) && PyTuple_GET_SIZE(index) <= dims)
            outcome = get_views(getter, args[0], ((PyTupleObject *)index)->ob_item, PyTuple_GET_SIZE(index), &result);
        else if (PySlice_Check(index) && dims > 0)
            outcome = get_views(getter, args[0], &index, 1, &result);
        else if (Py_IS_TYPE(index, Tensor) && (array = SLOT(index, AT_ARRAY)) != NULL && PyArray_CheckExact(array)) {
            PyArrayObject *places = (PyArrayObject *)array;
            PyObject *list = NULL;
            int taken = PyArray_TYPE(places) == NPY_BOOL ? PyArray_NDIM(places) : 1;
            if (PyArray_NDIM(places) > 0 && taken <= dims && PyArray_TYPE(places) != NPY_UBYTE && (list = PyList_New(1)) != NULL) {
                PyList_SET_ITEM(list, 0, Py_NewRef(index));
                outcome = call_operator(getter->index, (PyObject *[]){args[0], list}, 2, NULL, &result);
                Py_DECREF(list);
            }
        }
        if (outcome == DECLINED)
            outcome = decline_after_error();
        if (outcome != DECLINED)
            return outcome == DONE ? result : NULL;
    }
    return PyObject_Vectorcall(getter->face.function, args, nargsf, kwnames);
}

/* (function, select.int, slice.Tensor, index.Tensor) */
static PyObject *make_getter(PyObject *module, PyObject *args)
{
    PyObject *function, *select, *slice, *index;
    if (!PyArg_ParseTuple(args, "OOOO", &function, &select, &slice, &index))
        return NULL;
    Getter *made = (Getter *)new_face(&GetterType, function, getter_vectorcall, NULL);
    if (made == NULL)
        return NULL;
    made->select = Py_NewRef(select);
    made->slice = Py_NewRef(slice);
    made->index = Py_NewRef(index);
    PyObject_GC_Track(made);
    return (PyObject *)made;
}
