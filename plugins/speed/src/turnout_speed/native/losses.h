/* The loss over classes, its gradient, and which function serves a word of `MOVES`. */
static Loop ADD[TYPES]; /* NumPy's */

enum { MOST_CHOSEN = 1024 };

/* Lines of log-probabilities with one class each: how many and how long they are; 0 where one is left out or weighs otherwise. */
static npy_intp read_classes(PyArrayObject *self, PyArrayObject *target, PyObject *weight, PyObject *ignored, npy_intp *classes)
{
    if (self == NULL || target == NULL || weight != Py_None || PyArray_NDIM(self) != 2 || PyArray_NDIM(target) != 1
        || (PyArray_TYPE(self) != NPY_FLOAT && PyArray_TYPE(self) != NPY_DOUBLE) || PyArray_TYPE(target) != NPY_INT64
        || !PyLong_CheckExact(ignored))
        return 0;
    npy_intp count = PyArray_SIZE(target), left_out = PyLong_AsSsize_t(ignored);
    *classes = PyArray_DIM(self, 1);
    if (PyErr_Occurred() || count > MOST_CHOSEN || PyArray_DIM(self, 0) != count || (left_out >= 0 && left_out < *classes))
        return 0;
    for (npy_intp k = 0; k < count; k++) {
        npy_int64 at = ((const npy_int64 *)PyArray_DATA(target))[k];
        if (at < 0 || at >= *classes)
            return 0; /* the kernel says it */
    }
    return count;
}

#define CHOOSE(TYPE)                                                                                       \
    {                                                                                                      \
        TYPE *chosen = (TYPE *)space, total = 0;                                                           \
        for (npy_intp k = 0; k < count; k++)                                                               \
            chosen[k] = ((const TYPE *)PyArray_DATA(self))[k * classes + numbers[k]];                      \
        char *data[3] = {(char *)&total, (char *)chosen, (char *)&total};                                  \
        npy_intp steps[3] = {0, sizeof(TYPE), 0};                                                          \
        loop->run(data, &count, steps, loop->data);                                                        \
        *(TYPE *)PyArray_DATA(out) = reduction == 1 ? -total / (TYPE)count : -total;                       \
        *(TYPE *)PyArray_DATA(weights) = (TYPE)count;                                                      \
    }

/* The mean or the sum: (self, target, weight, reduction, ignore_index, output, total_weight). */
static int class_loss(PyObject *const *given)
{
    PyArrayObject *self = plain_array(given[0]), *target = plain_array(given[1]), *out = (PyArrayObject *)given[5];
    PyArrayObject *weights = (PyArrayObject *)given[6];
    double space[MOST_CHOSEN];
    npy_intp classes = 0, count = read_classes(self, target, given[2], given[4], &classes);
    long reduction = PyLong_CheckExact(given[3]) ? PyLong_AsLong(given[3]) : 0;
    if (count == 0 || (reduction != 1 && reduction != 2) || PyArray_DESCR(out) != PyArray_DESCR(self) || PyArray_SIZE(out) != 1
        || PyArray_DESCR(weights) != PyArray_DESCR(self) || PyArray_SIZE(weights) != 1)
        return 0;
    const npy_int64 *numbers = (const npy_int64 *)PyArray_DATA(target);
    const Loop *loop = &ADD[PyArray_TYPE(self)];
    if (loop->run == NULL)
        return 0;
    if (PyArray_TYPE(self) == NPY_FLOAT)
        CHOOSE(float)
    else
        CHOOSE(double)
    return 1;
}

#define SPREAD(TYPE)                                                                                           \
    {                                                                                                          \
        TYPE slope = *(const TYPE *)PyArray_DATA(grad);                                                        \
        if (reduction == 1)                                                                                    \
            slope = slope / *(const TYPE *)PyArray_DATA(weights);                                              \
        for (npy_intp k = 0; k < count; k++)                                                                   \
            ((TYPE *)PyArray_DATA(out))[k * classes + numbers[k]] = -slope;                                    \
    }

/* Its gradient: (grad_output, self, target, weight, reduction, ignore_index, total_weight, out). */
static int class_slope(PyObject *const *given)
{
    PyArrayObject *grad = plain_array(given[0]), *self = plain_array(given[1]), *target = plain_array(given[2]);
    PyArrayObject *weights = plain_array(given[6]), *out = (PyArrayObject *)given[7];
    npy_intp classes = 0, count = read_classes(self, target, given[3], given[5], &classes);
    long reduction = PyLong_CheckExact(given[4]) ? PyLong_AsLong(given[4]) : 0;
    if (count == 0 || grad == NULL || weights == NULL || (reduction != 1 && reduction != 2) || PyArray_DESCR(out) != PyArray_DESCR(self)
        || PyArray_DESCR(grad) != PyArray_DESCR(self) || PyArray_SIZE(grad) != 1 || PyArray_DESCR(weights) != PyArray_DESCR(self)
        || PyArray_SIZE(weights) != 1 || PyArray_NBYTES(out) != PyArray_NBYTES(self))
        return 0;
    const npy_int64 *numbers = (const npy_int64 *)PyArray_DATA(target);
    memset(PyArray_DATA(out), 0, PyArray_NBYTES(out));
    if (PyArray_TYPE(self) == NPY_FLOAT)
        SPREAD(float)
    else
        SPREAD(double)
    return 1;
}

static int move_elements(int moves, PyObject *const *given, Py_ssize_t count)
{
    static const int counts[] = {0, 3, 3, 5, 4, 5, 3, 3, 3, 4, 4, 4, 5, 5, 6, 7, 0, 0, 7, 8}; /* what each is given */
    PyObject *picked;
    if (moves == MOVES_NOT || (counts[moves] && count != counts[moves]) || PyArray_SIZE((PyArrayObject *)given[count - 1]) > SMALL_SIZE
        || (PyArray_CheckExact(given[0]) && PyArray_SIZE((PyArrayObject *)given[0]) > SMALL_SIZE))
        return 0;
    switch (moves) {
    case JOINS:
        return join(given);
    case PICKS:
        picked = pick(given, (PyArrayObject *)given[2]);
        Py_XDECREF(picked);
        return picked != NULL;
    case SELECTS:
        return select_lines(given);
    case GATHERS:
        return gather(given);
    case FLIPS:
        return flip(given);
    case IS_LOWER:
    case IS_UPPER:
        return triangle(given, moves == IS_UPPER);
    case ADDS_UP:
        return add_up(given);
    case FINDS_LARGEST:
    case FINDS_SMALLEST:
        return find_extremes(given, moves == FINDS_SMALLEST, 0);
    case IS_LARGEST:
    case IS_SMALLEST:
        return find_extremes(given, moves == IS_SMALLEST, 1);
    case SORTS:
        return sort_lines(given);
    case ORDERS_FIRST:
        return order_first(given);
    case IS_ANY:
    case ARE_ALL:
        return (count == 2 || count == 4) && is_true_along(given, count, moves == ARE_ALL);
    case LOSES:
        return class_loss(given);
    case SLOPES:
        return class_slope(given);
    }
    return 0;
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
