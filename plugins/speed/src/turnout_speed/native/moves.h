/* What only moves elements and needs memory or lists of its own: joins, picks and puts. All else that computes is a function of another
 * package (`compiled.h`). */
enum { MOVES_NOT, JOINS, PICKS, PUTS };

static const char *const MOVES[] = {[MOVES_NOT] = "", [JOINS] = "join", [PICKS] = "pick", [PUTS] = "put", NULL};

/* A plain array among the arguments, or NULL. */
static PyArrayObject *plain_array(PyObject *value)
{
    return PyArray_CheckExact(value) && is_plain((PyArrayObject *)value) ? (PyArrayObject *)value : NULL;
}

/* Arrays one behind the other along a dim: (arrays, dim, out). */
static int join(PyObject *const *given)
{
    PyArrayObject *out = (PyArrayObject *)given[2];
    int n = PyArray_NDIM(out);
    long dim = PyLong_CheckExact(given[1]) ? PyLong_AsLong(given[1]) : n;
    dim += dim < 0 ? n : 0;
    if (!PyList_CheckExact(given[0]) || dim < 0 || dim >= n)
        return 0;
    npy_intp outer = 1, inner = PyArray_ITEMSIZE(out), length = 0;
    for (int d = 0; d < n; d++)
        if (d < dim)
            outer *= PyArray_DIM(out, d);
        else if (d > dim)
            inner *= PyArray_DIM(out, d);
    for (Py_ssize_t k = 0; k < PyList_GET_SIZE(given[0]); k++) {
        PyObject *one = PyList_GET_ITEM(given[0], k);
        PyArrayObject *array = (PyArrayObject *)one;
        if (!PyArray_CheckExact(one) || !is_plain(array) || PyArray_DESCR(array) != PyArray_DESCR(out) || PyArray_NDIM(array) != n)
            return 0;
        for (int d = 0; d < n; d++)
            if (d != dim && PyArray_DIM(array, d) != PyArray_DIM(out, d))
                return 0;
        length += PyArray_DIM(array, (int)dim);
    }
    if (length != PyArray_DIM(out, (int)dim))
        return 0;
    char *line = PyArray_BYTES(out);
    for (Py_ssize_t k = 0; k < PyList_GET_SIZE(given[0]); k++) {
        PyArrayObject *array = (PyArrayObject *)PyList_GET_ITEM(given[0], k);
        npy_intp bytes = PyArray_DIM(array, (int)dim) * inner;
        for (npy_intp o = 0; o < outer; o++)
            memcpy(line + o * length * inner, PyArray_BYTES(array) + o * bytes, bytes);
        line += bytes;
    }
    return 1;
}

/* Which elements a list of indices selects: whole dims first, then numbers for some dims, or one mask. */
typedef struct {
    int lead, taken;    /* dims that are kept whole, and those that are chosen from */
    npy_intp outer, count, inner; /* of row-major memory; `inner` in bytes */
    npy_intp steps[PLACES], lengths[PLACES];
    PyArrayObject *index[PLACES];
    const npy_bool *mask;
    npy_intp masked;    /* elements of the mask */
} Selection;

static int read_selection(PyArrayObject *self, PyObject *list, Selection *chosen)
{
    int n = PyArray_NDIM(self), k = 0;
    Py_ssize_t size = PyList_CheckExact(list) ? PyList_GET_SIZE(list) : 0;
    chosen->taken = 0;
    chosen->count = chosen->masked = 0;
    chosen->mask = NULL;
    while (k < size && PyList_GET_ITEM(list, k) == Py_None)
        k++;
    chosen->lead = k;
    for (; k < size && PyList_GET_ITEM(list, k) != Py_None; k++) {
        PyArrayObject *index = plain_array(PyList_GET_ITEM(list, k));
        if (index == NULL || chosen->taken >= PLACES)
            return 0;
        if (PyArray_TYPE(index) == NPY_BOOL && size == 1 && PyArray_NDIM(index) > 0 && PyArray_NDIM(index) <= n
            && PyArray_CompareLists(PyArray_DIMS(index), PyArray_DIMS(self), PyArray_NDIM(index))) {
            chosen->mask = (const npy_bool *)PyArray_DATA(index);
            chosen->masked = PyArray_SIZE(index);
            for (npy_intp i = 0; i < chosen->masked; i++)
                chosen->count += chosen->mask[i] != 0;
            chosen->taken = PyArray_NDIM(index);
            k++;
            break;
        }
        if (PyArray_TYPE(index) != NPY_INT64 || chosen->lead + chosen->taken >= n
            || (chosen->taken > 0 && (PyArray_NDIM(index) != PyArray_NDIM(chosen->index[0])
                || !PyArray_CompareLists(PyArray_DIMS(index), PyArray_DIMS(chosen->index[0]), PyArray_NDIM(index)))))
            return 0;
        chosen->lengths[chosen->taken] = PyArray_DIM(self, chosen->lead + chosen->taken);
        chosen->index[chosen->taken++] = index;
        chosen->count = PyArray_SIZE(index);
    }
    if (k != size || chosen->taken == 0 || PyArray_SIZE(self) == 0)
        return 0;
    chosen->outer = 1;
    chosen->inner = PyArray_ITEMSIZE(self);
    for (int d = 0; d < chosen->lead; d++)
        chosen->outer *= PyArray_DIM(self, d);
    for (int d = chosen->lead + chosen->taken; d < n; d++)
        chosen->inner *= PyArray_DIM(self, d);
    npy_intp step = chosen->inner;
    for (int i = chosen->taken - 1; i >= 0 && chosen->mask == NULL; i--) {
        chosen->steps[i] = step;
        step *= chosen->lengths[i];
    }
    return 1;
}

/* Where the selected pieces lie behind the begin of each outer one: byte offsets; 0 if a number is out of range. */
static int places_of(const Selection *chosen, npy_intp *places)
{
    if (chosen->mask != NULL) {
        for (npy_intp i = 0, k = 0; i < chosen->masked; i++)
            if (chosen->mask[i])
                places[k++] = i * chosen->inner;
        return 1;
    }
    for (npy_intp k = 0; k < chosen->count; k++) {
        places[k] = 0;
        for (int i = 0; i < chosen->taken; i++) {
            npy_intp at = ((const npy_int64 *)PyArray_DATA(chosen->index[i]))[k];
            at += at < 0 ? chosen->lengths[i] : 0;
            if (at < 0 || at >= chosen->lengths[i])
                return 0; /* the kernel says it */
            places[k] += at * chosen->steps[i];
        }
    }
    return 1;
}

#define MOST_PLACES 1024

/* Elements by a list of indices: (array, [indices], out). Without an output, by a mask: a new array. */
static PyObject *pick(PyObject *const *given, PyArrayObject *out)
{
    PyArrayObject *self = plain_array(given[0]);
    npy_intp places[MOST_PLACES], dims[DIMS];
    Selection chosen;
    if (self == NULL || !read_selection(self, given[1], &chosen) || chosen.count > MOST_PLACES || (out == NULL) != (chosen.mask != NULL)
        || (out != NULL && (PyArray_DESCR(out) != PyArray_DESCR(self) || PyArray_NBYTES(out) != chosen.outer * chosen.count * chosen.inner))
        || !places_of(&chosen, places))
        return NULL;
    PyObject *made = Py_XNewRef(out);
    if (out == NULL) {
        int n = 0;
        dims[n++] = chosen.count;
        for (int d = chosen.taken; d < PyArray_NDIM(self); d++)
            dims[n++] = PyArray_DIM(self, d);
        PyArray_Descr *descr = PyArray_DESCR(self);
        Py_INCREF(descr);
        made = PyArray_NewFromDescr(&PyArray_Type, descr, n, dims, NULL, NULL, 0, NULL);
    }
    if (made == NULL)
        return NULL;
    npy_intp whole = PyArray_NBYTES(self) / chosen.outer;
    char *to = PyArray_BYTES((PyArrayObject *)made);
    for (npy_intp o = 0; o < chosen.outer; o++)
        for (npy_intp k = 0; k < chosen.count; k++, to += chosen.inner)
            memcpy(to, PyArray_BYTES(self) + o * whole + places[k], chosen.inner);
    return made;
}

/* A copy in which the selected elements are others: (array, [indices], values, accumulate). */
static PyObject *put(PyObject *const *given)
{
    PyArrayObject *self = plain_array(given[0]), *values = plain_array(given[2]);
    npy_intp places[MOST_PLACES];
    Selection chosen;
    if (self == NULL || values == NULL || given[3] != Py_False || PyArray_DESCR(self) != PyArray_DESCR(values)
        || !read_selection(self, given[1], &chosen) || chosen.count < 1 || chosen.count > MOST_PLACES || !places_of(&chosen, places))
        return NULL;
    int one = PyArray_SIZE(values) == 1 && PyArray_NDIM(values) == 0, inside = PyArray_NDIM(self) - chosen.lead - chosen.taken;
    npy_intp item = PyArray_ITEMSIZE(self), whole = PyArray_NBYTES(self) / chosen.outer;
    if (!one && (chosen.lead != 0 || PyArray_NDIM(values) != 1 + inside || PyArray_DIM(values, 0) != chosen.count
                 || !PyArray_CompareLists(PyArray_DIMS(values) + 1, PyArray_DIMS(self) + chosen.taken, inside)
                 || (chosen.mask == NULL && PyArray_NDIM(chosen.index[0]) != 1)))
        return NULL;
    PyArrayObject *made = (PyArrayObject *)PyArray_NewCopy(self, NPY_CORDER);
    if (made == NULL)
        return NULL;
    const char *from = PyArray_BYTES(values);
    for (npy_intp o = 0; o < chosen.outer; o++)
        for (npy_intp k = 0; k < chosen.count; k++) {
            char *to = PyArray_BYTES(made) + o * whole + places[k];
            for (npy_intp i = 0; one && i < chosen.inner; i += item)
                memcpy(to + i, from, item);
            if (!one)
                memcpy(to, from + k * chosen.inner, chosen.inner);
        }
    return (PyObject *)made;
}

/* Whether a kernel that moves elements did so here: its arguments and its output, as it gets them. */
static int move_elements(int moves, PyObject *const *given, Py_ssize_t count)
{
    if ((moves != JOINS && moves != PICKS) || count != 3 || PyArray_SIZE((PyArrayObject *)given[2]) > SMALL_SIZE
        || (PyArray_CheckExact(given[0]) && PyArray_SIZE((PyArrayObject *)given[0]) > SMALL_SIZE))
        return 0;
    if (moves == JOINS)
        return join(given);
    PyObject *picked = pick(given, (PyArrayObject *)given[2]);
    Py_XDECREF(picked);
    return picked != NULL;
}

/* What needs no answer of the shape function: a new array, or NULL with or without an error. */
static PyObject *make_moved(int moves, PyObject *const *given, int count)
{
    if (!PyArray_CheckExact(given[0]) || PyArray_SIZE((PyArrayObject *)given[0]) > SMALL_SIZE)
        return NULL;
    int masks = moves == PICKS && count == 2 && PyList_CheckExact(given[1]) && PyList_GET_SIZE(given[1]) == 1
                && PyArray_CheckExact(PyList_GET_ITEM(given[1], 0))
                && PyArray_TYPE((PyArrayObject *)PyList_GET_ITEM(given[1], 0)) == NPY_BOOL;
    return masks ? pick(given, NULL) : moves == PUTS && count == 4 ? put(given) : NULL;
}
