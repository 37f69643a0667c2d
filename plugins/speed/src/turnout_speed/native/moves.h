/* What a kernel does that only moves, finds or orders elements: arguments and outputs as it gets them. 0: the kernel is called. */
enum { MOVES_NOT, JOINS, PICKS, PUTS, SELECTS, GATHERS, FLIPS, IS_LOWER, IS_UPPER, ADDS_UP, FINDS_LARGEST, FINDS_SMALLEST,
       IS_LARGEST, IS_SMALLEST, SORTS, ORDERS_FIRST, IS_ANY, ARE_ALL, LOSES, SLOPES };
enum { MOST_ORDERED = 32 }; /* elements of a line that is ordered here */

static const char *const MOVES[] = {"", "join", "pick", "put", "select", "gather", "flip", "lower", "upper", "add up", "find largest",
                                    "find smallest", "largest", "smallest", "sort", "order first", "any", "all", "class loss", "class slope", NULL};

/* A plain array among the arguments, or NULL. */
static PyArrayObject *plain_array(PyObject *value)
{
    return PyArray_CheckExact(value) && is_plain((PyArrayObject *)value) ? (PyArrayObject *)value : NULL;
}

/* Row-major memory as lines: how many, how long, and how many elements lie between two of a line. 0 without such a dim. */
static int as_lines(PyArrayObject *array, PyObject *dim, int *at, npy_intp *outer, npy_intp *length, npy_intp *inner)
{
    int n = PyArray_NDIM(array), overflow = 0;
    long d = PyLong_CheckExact(dim) ? PyLong_AsLongAndOverflow(dim, &overflow) : n;
    d += d < 0 ? n : 0;
    if (overflow || d < 0 || d >= n)
        return 0;
    *outer = *inner = 1;
    for (int i = 0; i < n; i++)
        if (i < d)
            *outer *= PyArray_DIM(array, i);
        else if (i > d)
            *inner *= PyArray_DIM(array, i);
    *length = PyArray_DIM(array, (int)d);
    *at = (int)d;
    return 1;
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

/* Pieces along a dim by their numbers: (array, dim, index, out). */
static int select_lines(PyObject *const *given)
{
    PyArrayObject *self = plain_array(given[0]), *index = plain_array(given[2]), *out = (PyArrayObject *)given[3];
    npy_intp outer, length, inner;
    int at;
    if (self == NULL || index == NULL || PyArray_TYPE(index) != NPY_INT64 || PyArray_DESCR(self) != PyArray_DESCR(out)
        || !as_lines(self, given[1], &at, &outer, &length, &inner))
        return 0;
    npy_intp count = PyArray_SIZE(index), bytes = inner * PyArray_ITEMSIZE(self);
    const npy_int64 *numbers = (const npy_int64 *)PyArray_DATA(index);
    for (npy_intp k = 0; k < count; k++)
        if (numbers[k] < 0 || numbers[k] >= length)
            return 0;
    if (PyArray_NBYTES(out) != outer * count * bytes)
        return 0;
    char *to = PyArray_BYTES(out);
    for (npy_intp o = 0; o < outer; o++)
        for (npy_intp k = 0; k < count; k++, to += bytes)
            memcpy(to, PyArray_BYTES(self) + (o * length + numbers[k]) * bytes, bytes);
    return 1;
}

/* Elements along a dim by their numbers: (array, dim, index, sparse_grad, out), with the shape of the index. */
static int gather(PyObject *const *given)
{
    PyArrayObject *self = plain_array(given[0]), *index = plain_array(given[2]), *out = (PyArrayObject *)given[4];
    npy_intp outer, length, inner, steps[PLACES], at[PLACES] = {0};
    int dim, n = self == NULL ? 0 : PyArray_NDIM(self);
    if (self == NULL || index == NULL || PyArray_TYPE(index) != NPY_INT64 || PyArray_DESCR(self) != PyArray_DESCR(out) || n > PLACES
        || PyArray_NDIM(index) != n || !as_lines(self, given[1], &dim, &outer, &length, &inner)
        || PyArray_NDIM(out) != n || !PyArray_CompareLists(PyArray_DIMS(out), PyArray_DIMS(index), n))
        return 0;
    npy_intp item = PyArray_ITEMSIZE(self), size = PyArray_SIZE(index);
    for (int d = 0; d < n; d++) {
        steps[d] = PyArray_STRIDE(self, d);
        if (d != dim && PyArray_DIM(index, d) > PyArray_DIM(self, d))
            return 0;
    }
    const npy_int64 *numbers = (const npy_int64 *)PyArray_DATA(index);
    for (npy_intp k = 0; k < size; k++)
        if (numbers[k] < 0 || numbers[k] >= length)
            return 0;
    for (npy_intp k = 0; k < size; k++) {
        const char *from = PyArray_BYTES(self) + numbers[k] * steps[dim];
        for (int d = 0; d < n; d++)
            from += d == dim ? 0 : at[d] * steps[d];
        memcpy(PyArray_BYTES(out) + k * item, from, item);
        for (int d = n - 1; d >= 0 && ++at[d] == PyArray_DIM(index, d); d--)
            at[d] = 0;
    }
    return 1;
}

/* The other way round along one dim: (array, dims, out). */
static int flip(PyObject *const *given)
{
    PyArrayObject *self = plain_array(given[0]), *out = (PyArrayObject *)given[2];
    npy_intp outer, length, inner;
    int at;
    if (self == NULL || !PyTuple_CheckExact(given[1]) || PyTuple_GET_SIZE(given[1]) != 1 || PyArray_DESCR(self) != PyArray_DESCR(out)
        || PyArray_NBYTES(self) != PyArray_NBYTES(out) || !as_lines(self, PyTuple_GET_ITEM(given[1], 0), &at, &outer, &length, &inner))
        return 0;
    npy_intp bytes = inner * PyArray_ITEMSIZE(self);
    for (npy_intp o = 0; o < outer; o++)
        for (npy_intp k = 0; k < length; k++)
            memcpy(PyArray_BYTES(out) + (o * length + k) * bytes, PyArray_BYTES(self) + (o * length + length - 1 - k) * bytes, bytes);
    return 1;
}

/* The part of matrices on one side of a diagonal, and zeros: (array, diagonal, out). */
static int triangle(PyObject *const *given, int upper)
{
    PyArrayObject *self = plain_array(given[0]), *out = (PyArrayObject *)given[2];
    int n = self == NULL ? 0 : PyArray_NDIM(self), overflow = 0;
    long diagonal = PyLong_CheckExact(given[1]) ? PyLong_AsLongAndOverflow(given[1], &overflow) : LONG_MAX;
    if (self == NULL || n < 2 || overflow || diagonal > SMALL_SIZE || diagonal < -SMALL_SIZE
        || PyArray_DESCR(self) != PyArray_DESCR(out) || PyArray_NBYTES(self) != PyArray_NBYTES(out))
        return 0;
    npy_intp rows = PyArray_DIM(self, n - 2), columns = PyArray_DIM(self, n - 1), item = PyArray_ITEMSIZE(self);
    npy_intp lines = columns == 0 ? 0 : PyArray_SIZE(self) / columns;
    memset(PyArray_DATA(out), 0, PyArray_NBYTES(out));
    for (npy_intp i = 0; i < lines; i++) {
        npy_intp first = i % rows + diagonal + !upper, from, to; /* lower: up to the diagonal; upper: from it on */
        first = first < 0 ? 0 : first > columns ? columns : first;
        from = upper ? first : 0;
        to = upper ? columns : first;
        memcpy(PyArray_BYTES(out) + (i * columns + from) * item, PyArray_BYTES(self) + (i * columns + from) * item, (to - from) * item);
    }
    return 1;
}

/* Running sums along a dim: (array, dim, dtype, out). Floats are added in double precision. */
#define ADD_UP(TYPE, WIDE)                                                                            \
    for (npy_intp o = 0; o < outer; o++)                                                              \
        for (npy_intp i = 0; i < inner; i++) {                                                        \
            const TYPE *from = (const TYPE *)PyArray_DATA(self) + o * length * inner + i;              \
            TYPE *to = (TYPE *)PyArray_DATA(out) + o * length * inner + i;                             \
            WIDE sum = (WIDE)from[0];                                                                  \
            to[0] = (TYPE)sum;                                                                         \
            for (npy_intp k = 1; k < length; k++) {                                                    \
                sum = sum + (WIDE)from[k * inner];                                                     \
                to[k * inner] = (TYPE)sum;                                                             \
            }                                                                                          \
        }
static int add_up(PyObject *const *given)
{
    PyArrayObject *self = plain_array(given[0]), *out = (PyArrayObject *)given[3];
    npy_intp outer, length, inner;
    int at;
    if (self == NULL || PyArray_DESCR(self) != PyArray_DESCR(out) || PyArray_NBYTES(self) != PyArray_NBYTES(out)
        || !as_lines(self, given[1], &at, &outer, &length, &inner) || length < 1)
        return 0;
    switch (PyArray_TYPE(self)) {
    case NPY_FLOAT:
        ADD_UP(float, double)
        return 1;
    case NPY_DOUBLE:
        ADD_UP(double, double)
        return 1;
    case NPY_INT64:
        ADD_UP(npy_int64, npy_uint64)
        return 1;
    }
    return 0;
}

/* Whether one element comes before another: nan is the largest. */
static inline int is_before(int type, const char *a, const char *b, int descending)
{
    if (descending) {
        const char *other = a;
        a = b;
        b = other;
    }
    switch (type) {
    case NPY_FLOAT:
        return *(const float *)a < *(const float *)b || (*(const float *)b != *(const float *)b && *(const float *)a == *(const float *)a);
    case NPY_DOUBLE:
        return *(const double *)a < *(const double *)b
               || (*(const double *)b != *(const double *)b && *(const double *)a == *(const double *)a);
    case NPY_INT32:
        return *(const npy_int32 *)a < *(const npy_int32 *)b;
    default:
        return *(const npy_int64 *)a < *(const npy_int64 *)b;
    }
}

static int is_ordered_type(int type) { return type == NPY_FLOAT || type == NPY_DOUBLE || type == NPY_INT32 || type == NPY_INT64; }

/* The first extreme of each line, and its number: (array, dim, keepdim, [values,] numbers). nan counts as every extreme. */
static int find_extremes(PyObject *const *given, int smallest, int gives_values)
{
    PyArrayObject *self = plain_array(given[0]), *values = (PyArrayObject *)given[3], *numbers = (PyArrayObject *)given[3 + gives_values];
    npy_intp outer = 1, length, inner = 1;
    int at;
    if (self == NULL || !is_ordered_type(PyArray_TYPE(self)) || PyArray_TYPE(numbers) != NPY_INT64
        || (gives_values && PyArray_DESCR(values) != PyArray_DESCR(self)))
        return 0;
    length = PyArray_SIZE(self);
    if (!(given[1] == Py_None && !gives_values) && !as_lines(self, given[1], &at, &outer, &length, &inner))
        return 0;
    if (length < 1 || PyArray_SIZE(numbers) != outer * inner || (gives_values && PyArray_SIZE(values) != outer * inner))
        return 0;
    npy_intp item = PyArray_ITEMSIZE(self);
    int type = PyArray_TYPE(self);
    for (npy_intp o = 0; o < outer; o++)
        for (npy_intp i = 0; i < inner; i++) {
            const char *line = PyArray_BYTES(self) + (o * length * inner + i) * item, *best = line;
            npy_intp found = 0;
            for (npy_intp k = 0; k < length; k++) {
                const char *one = line + k * inner * item;
                int is_nan = (type == NPY_FLOAT && *(const float *)one != *(const float *)one)
                             || (type == NPY_DOUBLE && *(const double *)one != *(const double *)one);
                if (is_nan || (k > 0 && is_before(type, one, best, !smallest))) {
                    best = one;
                    found = k;
                }
                if (is_nan)
                    break;
            }
            ((npy_int64 *)PyArray_DATA(numbers))[o * inner + i] = found;
            if (gives_values)
                memcpy(PyArray_BYTES(values) + (o * inner + i) * item, best, item);
        }
    return 1;
}

/* Each line in order, or its first `count` elements, and their numbers. Equal elements keep their order. */
static int order_lines(PyArrayObject *self, PyObject *dim, int descending, npy_intp count, PyArrayObject *values, PyArrayObject *numbers)
{
    npy_intp outer, length, inner;
    int at, type = PyArray_TYPE(self);
    if (!is_ordered_type(type) || !as_lines(self, dim, &at, &outer, &length, &inner) || length > MOST_ORDERED || count > length
        || PyArray_DESCR(values) != PyArray_DESCR(self) || PyArray_TYPE(numbers) != NPY_INT64
        || PyArray_SIZE(values) != outer * count * inner || PyArray_SIZE(numbers) != outer * count * inner)
        return 0;
    npy_intp item = PyArray_ITEMSIZE(self);
    for (npy_intp o = 0; o < outer; o++)
        for (npy_intp i = 0; i < inner; i++) {
            const char *line = PyArray_BYTES(self) + (o * length * inner + i) * item;
            npy_intp order[MOST_ORDERED];
            for (npy_intp k = 0; k < length; k++) {
                npy_intp to = k;
                for (; to > 0 && is_before(type, line + k * inner * item, line + order[to - 1] * inner * item, descending); to--)
                    order[to] = order[to - 1];
                order[to] = k;
            }
            for (npy_intp k = 0; k < count; k++) {
                npy_intp to = (o * count + k) * inner + i;
                ((npy_int64 *)PyArray_DATA(numbers))[to] = order[k];
                memcpy(PyArray_BYTES(values) + to * item, line + order[k] * inner * item, item);
            }
        }
    return 1;
}

/* (array, stable, dim, descending, values, numbers). The kernel sorts numbers of eight bytes in an order of its own. */
static int sort_lines(PyObject *const *given)
{
    PyArrayObject *self = plain_array(given[0]);
    int overflow = 0;
    long n = self == NULL ? 0 : PyArray_NDIM(self), d = PyLong_CheckExact(given[2]) ? PyLong_AsLongAndOverflow(given[2], &overflow) : n;
    d += d < 0 ? n : 0;
    if (self == NULL || overflow || d < 0 || d >= n || (PyArray_ITEMSIZE(self) > 4 && given[1] != Py_True))
        return 0;
    return order_lines(self, given[2], given[3] == Py_True, PyArray_DIM(self, (int)d), (PyArrayObject *)given[4], (PyArrayObject *)given[5]);
}

/* (array, k, dim, largest, sorted, values, numbers). Few of many are found by the kernel in an order of its own. */
static int order_first(PyObject *const *given)
{
    PyArrayObject *self = plain_array(given[0]);
    npy_intp count = PyLong_CheckExact(given[1]) ? PyLong_AsSsize_t(given[1]) : -1, outer, length, inner;
    int at;
    return self != NULL && count >= 0 && as_lines(self, given[2], &at, &outer, &length, &inner)
           && (count == 0 || count >= length / 4)
           && order_lines(self, given[2], given[3] == Py_True, count, (PyArrayObject *)given[5], (PyArrayObject *)given[6]);
}

/* Whether any is true, or all are: (array, out), or (array, dim, keepdim, out). */
static int is_true_along(PyObject *const *given, Py_ssize_t count, int all)
{
    PyArrayObject *self = plain_array(given[0]), *out = (PyArrayObject *)given[count - 1];
    npy_intp outer = 1, length, inner = 1;
    int at;
    if (self == NULL || PyArray_TYPE(self) != NPY_BOOL || PyArray_TYPE(out) != NPY_BOOL)
        return 0;
    length = PyArray_SIZE(self);
    if ((count == 4 && !as_lines(self, given[1], &at, &outer, &length, &inner)) || PyArray_SIZE(out) != outer * inner)
        return 0;
    for (npy_intp o = 0; o < outer; o++)
        for (npy_intp i = 0; i < inner; i++) {
            const npy_bool *line = (const npy_bool *)PyArray_DATA(self) + o * length * inner + i;
            npy_intp k = 0;
            while (k < length && (line[k * inner] != 0) == all)
                k++;
            ((npy_bool *)PyArray_DATA(out))[o * inner + i] = all ? k == length : k < length;
        }
    return 1;
}

