/* The sweep of a backward pass, as far as it needs no Python: nodes whose formulas are data, between plain tensors.
 *
 * A node is taken if all that it does can be finished here. Else it is left as it was, and the sweep's own text goes on with it. */
enum { READ_TENSOR, READ_VALUE, READ_RESULT };
enum {
    STEP_CONJ, STEP_EXPAND, STEP_SCALED, STEP_SCALED_BACK, STEP_SUM_TO, STEP_TURNED, STEP_MM_SELF, STEP_MM_MAT2, STEP_METHOD, STEP_OPERATOR,
};

#define REGISTERS 24
#define OPERANDS 6
#define AT_ONCE 100   /* nodes; then the text runs one, so that signals and other threads are served */
#define SPREADS 4096  /* elements that `expand` of the formulas writes rather than views */
#define SUMMED 65536  /* bytes of a gradient that is added to another one here; the text adds larger ones in place */

typedef struct {
    int kind;
    unsigned need;    /* bits of the edges whose gradients read it */
    Py_ssize_t at, version_at;
    PyObject *name;
} Read;

typedef struct {
    int what, operands, operand[OPERANDS];
    unsigned need;
    PyObject *call;   /* the name of a method, or a stub */
} GradientStep;

/* Registers: the gradient, what is read, constants, what steps make. */
typedef struct {
    int edges, reads, constants, steps, result[MOST];
    Py_ssize_t at_edges, at_extra, at_metas; /* the last is -1 where gradients fit */
    Read read[REGISTERS];
    PyObject *constant[REGISTERS];
    GradientStep step[REGISTERS];
} Formula;

static PyObject *FORMULAS; /* class of nodes -> capsule */
static PyObject *ONE;
static Py_ssize_t SWEPT;   /* nodes that were finished here */

/* Said once by the engine's module: what every node has, and what stands for values that were freed. */
static PyTypeObject *Node;
static Py_ssize_t AT_SEQ;
static PyObject *FREED, *FREED_OUTPUT, *HEAPPUSH, *HEAPPOP;

static Outcome call_here(PyObject *callable, PyObject *const *args, Py_ssize_t n, PyObject **result)
{
    if (callable == NULL || !Py_IS_TYPE(callable, &CallType.type) || ((Call *)callable)->named != NULL)
        return DECLINED;
    REPEATABLE++; /* a kernel of the user would run again where a later step is declined */
    Outcome outcome = run_call((Call *)callable, NULL, args, n, NULL, result);
    REPEATABLE--;
    return outcome == FAILED ? decline_after_error() : outcome;
}

static Outcome call_method_here(PyObject *name, PyObject *const *args, Py_ssize_t n, PyObject **result)
{
    PyObject *method = PyObject_GetAttr((PyObject *)Tensor, name);
    Outcome outcome = method == NULL ? decline_after_error() : call_here(method, args, n, result);
    Py_XDECREF(method);
    return outcome;
}

/* What `expand` of the formulas does for few elements: memory of its own. */
static Outcome spread(PyObject *grad, PyObject *shape, PyObject **result)
{
    PyObject *array = SLOT(grad, AT_ARRAY), *device = SLOT(grad, AT_DEVICE), *keys = NULL, *backend = NULL, *made = NULL;
    npy_intp count = 1;
    if (array == NULL || device == NULL || SLOT(grad, AT_KEYS) == NULL || !PyArray_CheckExact(array) || !PyTuple_CheckExact(shape))
        return DECLINED;
    for (Py_ssize_t d = 0; d < PyTuple_GET_SIZE(shape); d++) {
        Py_ssize_t length = PyLong_CheckExact(PyTuple_GET_ITEM(shape, d)) ? PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, d)) : -1;
        if (length < 0 || length > SPREADS || (count *= length) > SPREADS)
            return decline_after_error();
    }
    PyObject *state = dispatch_state();
    Py_XDECREF(state);
    Py_INCREF(array); /* both stay, whatever the calls of Python do */
    Py_INCREF(device);
    if (state == FRESH && (backend = backend_of(device)) != NULL
        && (keys = PyObject_GetAttr(backend, S_KEYS)) != NULL && PyObject_RichCompareBool(keys, SLOT(grad, AT_KEYS), Py_EQ) == 1)
        made = PyObject_CallMethodObjArgs(backend, S_SPREAD, array, shape, NULL);
    if (made != NULL && made != Py_None)
        *result = wrap(Py_NewRef(made), keys, device);
    Py_XDECREF(made);
    Py_XDECREF(keys);
    Py_XDECREF(backend);
    Py_DECREF(array);
    Py_DECREF(device);
    return *result == NULL ? decline_after_error() : DONE;
}

/* What `sum_to` of the formulas does. `sum` is the operator. The shape is read before anything is called. */
static Outcome sum_to(PyObject *grad, PyObject *shape, PyObject *sum, PyObject **result)
{
    PyArrayObject *array = array_of(grad);
    npy_intp wanted[DIMS], lengths[DIMS];
    int n = PyTuple_CheckExact(shape) ? numbers_of(shape, wanted, DIMS) : -1, leading;
    if (array == NULL || n < 0 || (leading = PyArray_NDIM(array) - n) < 0)
        return decline_after_error();
    memcpy(lengths, PyArray_DIMS(array), PyArray_NDIM(array) * sizeof *lengths);
    *result = Py_NewRef(grad);
    for (int keeps = 0; keeps < 2; keeps++) { /* dims that `shape` has not, then those in which it has 1 */
        npy_intp over[DIMS];
        int dims = 0;
        for (int d = 0; d < (keeps ? n : leading); d++)
            if (!keeps || (wanted[d] == 1 && lengths[leading + d] != 1))
                over[dims++] = d;
        if (dims == 0)
            continue;
        PyObject *passed[3] = {*result, tuple_of(over, dims), keeps ? Py_True : Py_False}, *made = NULL;
        Outcome outcome = passed[1] == NULL ? decline_after_error() : call_here(sum, passed, 2 + keeps, &made);
        Py_XDECREF(passed[1]);
        if (outcome != DONE) {
            Py_CLEAR(*result);
            return outcome;
        }
        Py_SETREF(*result, made);
    }
    return DONE;
}

/* Whether a call on a tensor would go straight to its backend's kernel, but for recording. */
static int goes_straight(PyObject *tensor, PyObject *keys)
{
    PyObject *own = PyNumber_Or(SLOT(tensor, AT_KEYS), TRACKED), *plain = own == NULL ? NULL : PyNumber_Or(keys, TRACKED);
    int same = plain != NULL && PyObject_RichCompareBool(own, plain, Py_EQ) == 1;
    Py_XDECREF(own);
    Py_XDECREF(plain);
    return same;
}

/* A matrix transposed, for a product or in place of the matrix itself: it says nothing about whose memory it is over. NULL with or
 * without an error. */
static PyObject *transposed(PyObject *tensor)
{
    PyArrayObject *array = array_of(tensor);
    PyObject *device, *keys, *made = NULL, *state = dispatch_state();
    Py_XDECREF(state);
    if (state != FRESH || array == NULL || PyArray_NDIM(array) != 2)
        return NULL;
    Py_INCREF(array); /* both stay, whatever the calls of Python do */
    device = Py_NewRef(SLOT(tensor, AT_DEVICE));
    keys = is_plain_maker(device) ? keys_of_views(device) : NULL;
    if (keys != NULL && goes_straight(tensor, keys) && (made = PyArray_Transpose(array, NULL)) != NULL)
        made = wrap(made, keys, device);
    Py_XDECREF(keys);
    Py_DECREF(device);
    Py_DECREF(array);
    return made;
}

/* What `turned` of the formulas does for a matrix that nobody else can reach: the result owns its memory, too. */
static Outcome turned(PyObject *tensor, PyObject **result)
{
    if (Py_REFCNT(tensor) == 1 && SLOT(tensor, AT_STORAGE) == Py_None && SLOT(tensor, AT_VIEW_OF) == Py_None)
        *result = transposed(tensor);
    return *result == NULL ? decline_after_error() : DONE;
}

/* What `mm_self_grad` and `mm_mat2_grad` of the formulas do, for real numbers. */
static Outcome product_gradient(PyObject *grad, PyObject *other, PyObject *geometry, int is_self, PyObject **result)
{
    PyArrayObject *array = array_of(other);
    PyObject *shape, *strides, *offset, *flat = NULL, *made = NULL, *across;
    npy_intp lengths[2], steps[2];
    if (array == NULL || PyArray_DESCR(array)->kind != 'f' || !PyArg_ParseTuple(geometry, "OOO", &shape, &strides, &offset)
        || numbers_of(shape, lengths, 2) != 2 || numbers_of(strides, steps, 2) != 2)
        return decline_after_error();
    int by_columns = steps[0] == 1 && steps[1] == lengths[0] && lengths[1] > 1;
    across = by_columns ? grad : other; /* the matrix that is turned first */
    Outcome outcome = (flat = transposed(across)) == NULL ? decline_after_error() : DONE;
    if (outcome == DONE) {
        PyObject *kept = by_columns ? other : grad, *passed[2] = {is_self ? kept : flat, is_self ? flat : kept};
        outcome = call_method_here(S_MM, passed, 2, &made);
    }
    Py_XDECREF(flat);
    if (outcome == DONE && by_columns)
        outcome = turned(made, result);
    else if (outcome == DONE)
        *result = Py_NewRef(made);
    Py_XDECREF(made);
    return outcome;
}

static Outcome run_gradient_step(const GradientStep *step, PyObject *const *registers, PyObject **result)
{
    PyObject *passed[OPERANDS], *one;
    for (int i = 0; i < step->operands; i++)
        if ((passed[i] = registers[step->operand[i]]) == NULL)
            return DECLINED;
    one = passed[0];
    switch (step->what) {
    case STEP_CONJ:
        if (Py_IS_TYPE(one, Tensor)) {
            PyObject *array = SLOT(one, AT_ARRAY);
            if (array == NULL || !PyArray_CheckExact(array) || PyArray_DESCR((PyArrayObject *)array)->kind != 'f')
                return DECLINED;
        } else if (!PyFloat_CheckExact(one) && !PyLong_CheckExact(one))
            return DECLINED;
        *result = Py_NewRef(one);
        return DONE;
    case STEP_EXPAND:
        return Py_IS_TYPE(one, Tensor) ? spread(one, passed[1], result) : DECLINED;
    case STEP_SCALED:
    case STEP_SCALED_BACK: {
        if (!PyLong_CheckExact(passed[1]))
            return DECLINED;
        int overflow;
        long factor = PyLong_AsLongAndOverflow(passed[1], &overflow);
        if (overflow || (factor != 1 && factor != -1))
            return DECLINED;
        if (factor == (step->what == STEP_SCALED ? -1 : 1))
            return call_method_here(S_NEG, passed, 1, result);
        *result = Py_NewRef(one);
        return DONE;
    }
    case STEP_SUM_TO:
        return Py_IS_TYPE(one, Tensor) ? sum_to(one, passed[1], step->call, result) : DECLINED;
    case STEP_TURNED:
        return Py_IS_TYPE(one, Tensor) ? turned(one, result) : DECLINED;
    case STEP_MM_SELF:
    case STEP_MM_MAT2:
        return Py_IS_TYPE(one, Tensor) && Py_IS_TYPE(passed[1], Tensor) && PyTuple_CheckExact(passed[2])
                   ? product_gradient(one, passed[1], passed[2], step->what == STEP_MM_SELF, result) : DECLINED;
    case STEP_METHOD:
        return Py_IS_TYPE(one, Tensor) ? call_method_here(step->call, passed, step->operands, result) : DECLINED;
    default:
        return call_here(step->call, passed, step->operands, result);
    }
}

/* A value that a node saved, if it may still be used; a new reference, or NULL with or without an error. */
static PyObject *read_saved(const Read *read, PyObject *node)
{
    PyObject *value = Py_XNewRef(SLOT(node, read->at)); /* all are held, whatever the calls of Python do */
    if (value == NULL)
        return NULL;
    if (read->kind == READ_RESULT) {
        Py_SETREF(value, PyObject_CallMethodObjArgs(value, S_TENSOR, node, read->name, NULL));
        if (value != NULL && !Py_IS_TYPE(value, Tensor))
            Py_CLEAR(value);
    } else if (read->kind == READ_TENSOR) {
        PyObject *saved = Py_XNewRef(SLOT(node, read->version_at)), *version = NULL;
        PyObject *storage = Py_IS_TYPE(value, Tensor) ? Py_XNewRef(SLOT(value, AT_STORAGE)) : NULL;
        if (storage != NULL)
            version = storage == Py_None ? Py_XNewRef(SLOT(value, AT_VER)) : version_in(storage);
        if (version == NULL || saved == NULL || PyObject_RichCompareBool(version, saved, Py_EQ) != 1)
            Py_CLEAR(value);
        Py_XDECREF(saved);
        Py_XDECREF(version);
        Py_XDECREF(storage);
    }
    return value;
}

/* The gradients for the edges that want one, new references; the others stay NULL. */
static Outcome evaluate(const Formula *formula, PyObject *node, PyObject *grad, PyObject *edges, PyObject **results)
{
    PyObject *registers[REGISTERS] = {grad};
    unsigned wanted = 0;
    int count = 1;
    Outcome outcome = DECLINED;
    if (PyTuple_GET_SIZE(edges) != formula->edges || (formula->at_metas >= 0 && SLOT(node, formula->at_metas) != Py_None))
        return DECLINED;
    for (int k = 0; k < formula->edges; k++)
        wanted |= (unsigned)(PyTuple_GET_ITEM(edges, k) != Py_None) << k;
    for (int i = 0; i < formula->reads; i++, count++)
        if ((formula->read[i].need & wanted) && (registers[count] = read_saved(&formula->read[i], node)) == NULL)
            goto end;
    for (int i = 0; i < formula->constants; i++)
        registers[count++] = Py_NewRef(formula->constant[i]);
    for (int i = 0; i < formula->steps; i++, count++)
        if ((formula->step[i].need & wanted)
            && (outcome = run_gradient_step(&formula->step[i], registers, &registers[count])) != DONE)
            goto end;
    outcome = DONE;
    for (int k = 0; k < formula->edges; k++)
        if (wanted & 1u << k) {
            results[k] = Py_NewRef(registers[formula->result[k]]);
            if (!Py_IS_TYPE(results[k], Tensor))
                outcome = DECLINED;
        }
end:
    for (int i = 1; i < REGISTERS; i++)
        Py_XDECREF(registers[i]);
    return outcome;
}

/* Whether a gradient has the shape, dtype and device of its leaf. */
static int fits_leaf(PyObject *grad, PyObject *leaf)
{
    PyArrayObject *a = (PyArrayObject *)SLOT(grad, AT_ARRAY), *b = (PyArrayObject *)SLOT(leaf, AT_ARRAY);
    return a != NULL && b != NULL && PyArray_CheckExact(a) && PyArray_CheckExact(b) && PyArray_DESCR(a) == PyArray_DESCR(b)
           && SLOT(grad, AT_DEVICE) == SLOT(leaf, AT_DEVICE) && PyArray_NDIM(a) == PyArray_NDIM(b)
           && PyArray_CompareLists(PyArray_DIMS(a), PyArray_DIMS(b), PyArray_NDIM(a));
}

/* The sum of what has arrived somewhere and a gradient. Takes the reference of `value`. */
static Outcome add_gradient(PyObject *have, PyObject **value)
{
    PyObject *passed[2] = {Py_NewRef(have), *value}, *sum = NULL;
    Outcome outcome = Py_IS_TYPE(have, Tensor) ? call_method_here(S_ADD, passed, 2, &sum) : DECLINED;
    Py_DECREF(have);
    if (outcome == DONE)
        Py_SETREF(*value, sum);
    return outcome;
}

typedef struct {
    PyObject *target, *value, *sink; /* the last two are held; the sink of a leaf that has one */
    int is_node;
} Arrival;

/* What arrives where: sums with what is there. Nothing is changed yet. */
static Outcome gather_gradients(PyObject *edges, PyObject **results, PyObject *pending, PyObject *sinks, Arrival *arrivals, int *count)
{
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(edges); k++) {
        PyObject *target = PyTuple_GET_ITEM(edges, k);
        Outcome outcome = DONE;
        int i = 0;
        if (results[k] == NULL)
            continue;
        while (i < *count && arrivals[i].target != target)
            i++;
        Arrival *arrival = &arrivals[i];
        if (i < *count) {
            outcome = (arrival->is_node || fits_leaf(results[k], target)) ? add_gradient(arrival->value, &results[k]) : DECLINED;
            if (outcome != DONE)
                return outcome;
            Py_SETREF(arrival->value, results[k]);
            results[k] = NULL;
            continue;
        }
        PyObject *have = NULL;
        *arrival = (Arrival){.target = target, .is_node = PyObject_TypeCheck(target, Node)};
        if (arrival->is_node)
            have = PyDict_GetItemWithError(pending, target);
        else if (Py_IS_TYPE(target, Tensor) && fits_leaf(results[k], target)) {
            PyObject *key = PyLong_FromVoidPtr(target), *sink = key == NULL ? NULL : PyDict_GetItemWithError(sinks, key);
            Py_XDECREF(key);
            if (sink != NULL && (!PyList_CheckExact(sink) || PyList_GET_SIZE(sink) != 2))
                return DECLINED;
            have = sink == NULL ? NULL : PyList_GET_ITEM(sink, 1);
            arrival->sink = Py_XNewRef(sink);
        } else
            return DECLINED;
        ++*count; /* what it holds is let go of with the others */
        if (PyErr_Occurred())
            return FAILED;
        if (have != NULL && (outcome = add_gradient(have, &results[k])) != DONE)
            return outcome;
        arrival->value = results[k];
        results[k] = NULL;
    }
    return DONE;
}

/* Drop what a node saved, as its `release` does. */
static void release_saved(const Formula *formula, PyObject *node)
{
    for (int i = 0; i < formula->reads; i++)
        if (formula->read[i].kind != READ_VALUE) {
            PyObject *before = SLOT(node, formula->read[i].at);
            SLOT(node, formula->read[i].at) = Py_NewRef(formula->read[i].kind == READ_TENSOR ? FREED : FREED_OUTPUT);
            Py_XDECREF(before);
        }
}

static int push(PyObject *heap, PyObject *pending, PyObject *node, PyObject *grad)
{
    int known = PyDict_Contains(pending, node);
    if (known < 0 || PyDict_SetItem(pending, node, grad) < 0)
        return -1;
    if (known)
        return 0;
    PyObject *seq = PyNumber_Negative(SLOT(node, AT_SEQ)), *item = seq == NULL ? NULL : PyTuple_Pack(2, seq, node);
    PyObject *none = item == NULL ? NULL : PyObject_CallFunctionObjArgs(HEAPPUSH, heap, item, NULL);
    Py_XDECREF(seq);
    Py_XDECREF(item);
    Py_XDECREF(none);
    return none == NULL ? -1 : 0;
}

/* The pending node that comes next, and its gradient; new references. 0, or -1 with an error. */
static int pop(PyObject *heap, PyObject *pending, PyObject **node, PyObject **grad)
{
    PyObject *item = PyObject_CallOneArg(HEAPPOP, heap);
    if (item == NULL)
        return -1;
    *node = Py_NewRef(PyTuple_GET_ITEM(item, 1));
    Py_DECREF(item);
    *grad = Py_XNewRef(PyDict_GetItemWithError(pending, *node));
    return *grad == NULL || PyDict_DelItem(pending, *node) < 0 ? -1 : 0;
}

/* A gradient that has arrived at a leaf: a new sink. -1 with an error. */
static int add_sink(PyObject *sinks, const Arrival *arrival)
{
    PyObject *key = PyLong_FromVoidPtr(arrival->target), *sink = PyList_New(2);
    int stored = -1;
    if (key != NULL && sink != NULL) {
        PyList_SET_ITEM(sink, 0, Py_NewRef(arrival->target));
        PyList_SET_ITEM(sink, 1, Py_NewRef(arrival->value));
        stored = PyDict_SetItem(sinks, key, sink);
    }
    Py_XDECREF(key);
    Py_XDECREF(sink);
    return stored;
}

/* Bring gradients to where they arrive. The only node needs no queue: it is next. -1 with an error. */
static int bring(const Arrival *arrivals, int count, PyObject **node, PyObject **grad, PyObject *pending, PyObject *heap, PyObject *sinks)
{
    int nodes = 0, failed = 0;
    for (int i = 0; i < count; i++)
        nodes += arrivals[i].is_node;
    for (int i = 0; i < count && !failed; i++) {
        const Arrival *arrival = &arrivals[i];
        if (arrival->is_node && nodes == 1 && PyList_GET_SIZE(heap) == 0) {
            *node = Py_NewRef(arrival->target);
            *grad = Py_NewRef(arrival->value);
        } else if (arrival->is_node)
            failed = push(heap, pending, arrival->target, arrival->value) < 0;
        else
            failed = (arrival->sink != NULL ? PyList_SetItem(arrival->sink, 1, Py_NewRef(arrival->value)) : add_sink(sinks, arrival)) < 0;
    }
    return failed ? -1 : 0;
}

/* Whether large gradients add up at an edge: two of this node, or one with what has arrived there. */
static int adds_many(PyObject *edges, PyObject *grad, PyObject *pending, PyObject *sinks)
{
    PyArrayObject *array = array_of(grad);
    Py_ssize_t n = PyTuple_GET_SIZE(edges);
    if (array == NULL || PyArray_NBYTES(array) <= SUMMED)
        return 0;
    for (Py_ssize_t k = 0; k < n; k++) {
        PyObject *target = PyTuple_GET_ITEM(edges, k);
        if (target == Py_None)
            continue;
        for (Py_ssize_t i = 0; i < k; i++)
            if (PyTuple_GET_ITEM(edges, i) == target)
                return 1;
        PyObject *key = PyObject_TypeCheck(target, Node) ? Py_NewRef(target) : PyLong_FromVoidPtr(target);
        int known = key == NULL ? -1 : PyDict_Contains(PyObject_TypeCheck(target, Node) ? pending : sinks, key);
        Py_XDECREF(key);
        if (known != 0)
            return 1; /* or an error, which declines too */
    }
    return 0;
}

/* One node's turn: `node` and `grad` become those that are next, or NULL. */
static Outcome take_turn(PyObject **node, PyObject **grad, PyObject *pending, PyObject *heap, PyObject *sinks, int retain)
{
    PyObject *results[MOST] = {NULL}, *capsule = PyDict_GetItemWithError(FORMULAS, (PyObject *)Py_TYPE(*node)), *edges = NULL;
    Arrival arrivals[MOST];
    int count = 0;
    Outcome outcome = DECLINED;
    Formula *formula = capsule == NULL ? NULL : PyCapsule_GetPointer(capsule, NULL);
    if (formula == NULL || SLOT(*node, formula->at_extra) != Py_None || !Py_IS_TYPE(*grad, Tensor))
        return decline_after_error();
    edges = Py_XNewRef(SLOT(*node, formula->at_edges));
    if (edges != NULL && PyTuple_CheckExact(edges) && !adds_many(edges, *grad, pending, sinks))
        outcome = evaluate(formula, *node, *grad, edges, results);
    if (outcome == DONE)
        outcome = gather_gradients(edges, results, pending, sinks, arrivals, &count);
    if (outcome == DONE) {
        if (!retain)
            release_saved(formula, *node);
        SWEPT++;
        Py_CLEAR(*node);
        Py_CLEAR(*grad);
        outcome = bring(arrivals, count, node, grad, pending, heap, sinks) < 0 ? FAILED : DONE;
    } else if (outcome == DECLINED)
        outcome = decline_after_error();
    Py_XDECREF(edges);
    for (int k = 0; k < MOST; k++)
        Py_XDECREF(results[k]);
    for (int i = 0; i < count; i++) {
        Py_XDECREF(arrivals[i].value);
        Py_XDECREF(arrivals[i].sink);
    }
    return outcome;
}

/* (node, grad, pending, heap, sinks, retain): the node at which the sweep's text goes on, with its gradient; or two times None. */
static PyObject *run_ahead(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    if (n != 6 || !PyDict_CheckExact(args[2]) || !PyList_CheckExact(args[3]) || !PyDict_CheckExact(args[4])) {
        PyErr_SetString(PyExc_TypeError, "(node, grad, pending, heap, sinks, retain)");
        return NULL;
    }
    PyObject *node = args[0] == Py_None ? NULL : Py_NewRef(args[0]), *grad = args[1] == Py_None ? NULL : Py_NewRef(args[1]);
    PyObject *pending = args[2], *heap = args[3], *sinks = args[4], *enabled = is_traced() ? NULL : levels_enabled();
    int retain = PyObject_IsTrue(args[5]), plain = enabled != NULL && PyObject_RichCompareBool(enabled, ZERO, Py_EQ) == 1;
    Outcome outcome = plain ? DONE : decline_after_error();
    Py_XDECREF(enabled);
    for (int i = 0; outcome == DONE && i < AT_ONCE; i++) {
        if (node == NULL) {
            if (PyList_GET_SIZE(heap) == 0)
                break;
            if (pop(heap, pending, &node, &grad) < 0) {
                outcome = FAILED;
                break;
            }
        }
        outcome = take_turn(&node, &grad, pending, heap, sinks, retain);
    }
    PyObject *made = outcome == FAILED ? NULL : PyTuple_Pack(2, node == NULL ? Py_None : node, grad == NULL ? Py_None : grad);
    Py_XDECREF(node);
    Py_XDECREF(grad);
    return made;
}

static PyMethodDef run_ahead_method = {"run_ahead", (PyCFunction)(void (*)(void))run_ahead, METH_FASTCALL,
                                       "run_ahead(node, grad, pending, heap, sinks, retain)\n--\n\nTake nodes that need no Python."};

/* (Node, FREED, FREED_OUTPUT, heappush, heappop) */
static PyObject *make_sweep(PyObject *module, PyObject *args)
{
    PyObject *node, *freed, *freed_output, *heappush, *heappop;
    if (!PyArg_ParseTuple(args, "O!OOOO", &PyType_Type, &node, &freed, &freed_output, &heappush, &heappop)
        || (AT_SEQ = slot_of((PyTypeObject *)node, "seq")) < 0)
        return NULL;
    Py_XSETREF(Node, (PyTypeObject *)Py_NewRef(node));
    Py_XSETREF(FREED, Py_NewRef(freed));
    Py_XSETREF(FREED_OUTPUT, Py_NewRef(freed_output));
    Py_XSETREF(HEAPPUSH, Py_NewRef(heappush));
    Py_XSETREF(HEAPPOP, Py_NewRef(heappop));
    return PyCFunction_New(&run_ahead_method, NULL);
}

static const char *const SAVED_AS[] = {[READ_TENSOR] = "tensor", [READ_VALUE] = "value", [READ_RESULT] = "result", NULL};
static const int OPERANDS_OF[] = {
    [STEP_CONJ] = 1, [STEP_EXPAND] = 2, [STEP_SCALED] = 2, [STEP_SCALED_BACK] = 2, [STEP_SUM_TO] = 2, [STEP_TURNED] = 1,
    [STEP_MM_SELF] = 3, [STEP_MM_MAT2] = 3, [STEP_METHOD] = 1, [STEP_OPERATOR] = 1,
};
static const char *const STEP_WORDS[] = {
    [STEP_CONJ] = "conj", [STEP_EXPAND] = "expand", [STEP_SCALED] = "scaled", [STEP_SCALED_BACK] = "scaled back",
    [STEP_SUM_TO] = "sum_to", [STEP_TURNED] = "turned", [STEP_MM_SELF] = "mm_self_grad", [STEP_MM_MAT2] = "mm_mat2_grad",
    [STEP_METHOD] = "method", [STEP_OPERATOR] = "operator", NULL,
};

/* The words for functions, which stand before those for methods and operators; a new reference, or NULL with an error. */
static PyObject *function_words(void)
{
    PyObject *made = PyList_New(0);
    for (int i = 0; made != NULL && i < STEP_METHOD; i++) {
        PyObject *word = PyUnicode_InternFromString(STEP_WORDS[i]);
        if (word == NULL || PyList_Append(made, word) < 0)
            Py_CLEAR(made);
        Py_XDECREF(word);
    }
    PyObject *words = made == NULL ? NULL : PyList_AsTuple(made);
    Py_XDECREF(made);
    return words;
}

/* What a maker has stored in a formula goes with it. */
static void free_formula(Formula *formula)
{
    for (int i = 0; i < REGISTERS; i++) {
        Py_XDECREF(formula->read[i].name);
        Py_XDECREF(formula->constant[i]);
        Py_XDECREF(formula->step[i].call);
    }
    PyMem_Free(formula);
}

/* Registers before `end`. 0 with or without an error. */
static int name_registers(int *to, PyObject *given, int end)
{
    for (int k = 0; k < PyTuple_GET_SIZE(given); k++) {
        to[k] = (int)PyLong_AsLong(PyTuple_GET_ITEM(given, k));
        if (PyErr_Occurred() || to[k] < 0 || to[k] >= end)
            return 0;
    }
    return 1;
}

/* (kind, slot, need). 0 with or without an error. */
static int name_read(Read *read, PyTypeObject *type, PyObject *row)
{
    const char *kind;
    PyObject *slot;
    if (!PyArg_ParseTuple(row, "sUI", &kind, &slot, &read->need) || (read->kind = index_of(SAVED_AS, kind)) < 0
        || (read->at = slot_of(type, PyUnicode_AsUTF8(slot))) < 0)
        return 0;
    read->name = Py_NewRef(slot);
    if (read->kind != READ_TENSOR)
        return 1;
    PyObject *version = PyUnicode_FromFormat("%U_version", slot);
    read->version_at = version == NULL ? -1 : slot_of(type, PyUnicode_AsUTF8(version));
    Py_XDECREF(version);
    return read->version_at >= 0;
}

/* (word, call, need, operands), which are registers before `end`. 0 with or without an error. */
static int name_step(GradientStep *step, PyObject *row, int end)
{
    const char *word;
    PyObject *call, *operands;
    if (!PyArg_ParseTuple(row, "sOIO!", &word, &call, &step->need, &PyTuple_Type, &operands)
        || (step->what = index_of(STEP_WORDS, word)) < 0 || PyTuple_GET_SIZE(operands) > OPERANDS || PyTuple_GET_SIZE(operands) == 0)
        return 0;
    step->call = Py_NewRef(call);
    step->operands = (int)PyTuple_GET_SIZE(operands);
    return step->operands >= OPERANDS_OF[step->what] && name_registers(step->operand, operands, end);
}

/* (node class, reads (kind, slot, need), constants, steps (word, call, need, operands), registers of the results, whether it fits) */
static PyObject *add_formula(PyObject *module, PyObject *args)
{
    PyObject *node, *reads, *constants, *steps, *results, *capsule;
    int fits;
    if (!PyArg_ParseTuple(args, "O!O!O!O!O!p", &PyType_Type, &node, &PyTuple_Type, &reads, &PyTuple_Type, &constants, &PyTuple_Type,
                          &steps, &PyTuple_Type, &results, &fits))
        return NULL;
    if (PyDict_Contains(FORMULAS, node))
        Py_RETURN_NONE;
    Formula *made = PyMem_Calloc(1, sizeof(Formula));
    if (made == NULL)
        return PyErr_NoMemory();
    PyTypeObject *type = (PyTypeObject *)node;
    Py_ssize_t all = 1 + PyTuple_GET_SIZE(reads) + PyTuple_GET_SIZE(constants) + PyTuple_GET_SIZE(steps);
    if (all > REGISTERS || PyTuple_GET_SIZE(results) > MOST || (made->at_edges = slot_of(type, "edges")) < 0
        || (made->at_extra = slot_of(type, "extra")) < 0)
        goto failed;
    made->at_metas = fits ? slot_of(type, "metas") : -1;
    if (fits && made->at_metas < 0)
        goto failed;
    for (; made->reads < PyTuple_GET_SIZE(reads); made->reads++)
        if (!name_read(&made->read[made->reads], type, PyTuple_GET_ITEM(reads, made->reads)))
            goto failed;
    for (; made->constants < PyTuple_GET_SIZE(constants); made->constants++)
        made->constant[made->constants] = Py_NewRef(PyTuple_GET_ITEM(constants, made->constants));
    for (; made->steps < PyTuple_GET_SIZE(steps); made->steps++)
        if (!name_step(&made->step[made->steps], PyTuple_GET_ITEM(steps, made->steps), made->reads + made->constants + made->steps + 1))
            goto failed;
    made->edges = (int)PyTuple_GET_SIZE(results);
    if (!name_registers(made->result, results, (int)all))
        goto failed;
    capsule = PyCapsule_New(made, NULL, NULL);
    if (capsule == NULL || PyDict_SetItem(FORMULAS, node, capsule) < 0) {
        Py_XDECREF(capsule);
        goto failed;
    }
    Py_DECREF(capsule);
    Py_RETURN_NONE;
failed:
    free_formula(made);
    return refuse(NULL);
}

/* (tensor, levels): where a backward pass begins and the 1 that it begins with; None where only Python knows. */
static PyObject *plain_root(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    PyObject *tensor = n == 2 ? args[0] : Py_None;
    PyArrayObject *array = array_of(tensor), *one;
    PyObject *device, *keys, *made = NULL, *root = NULL, *edge;
    int overflow;
    if (array == NULL || PyArray_SIZE(array) != 1 || PyArray_DESCR(array)->kind != 'f'
        || SLOT(tensor, AT_VIEW_OF) != Py_None || SLOT(tensor, AT_NODE) == NULL || SLOT(tensor, AT_GMASK) == NULL
        || !PyLong_CheckExact(args[1]) || !(PyLong_AsLongLongAndOverflow(SLOT(tensor, AT_GMASK), &overflow) & PyLong_AsLongLong(args[1])))
        Py_RETURN_NONE;
    Py_INCREF(array); /* all stay, whatever the calls of Python do */
    device = Py_NewRef(SLOT(tensor, AT_DEVICE));
    edge = Py_NewRef(SLOT(tensor, AT_NODE) == Py_None ? tensor : SLOT(tensor, AT_NODE));
    keys = is_plain_maker(device) ? keys_of_views(device) : NULL;
    PyArray_Descr *descr = PyArray_DESCR(array);
    Py_INCREF(descr);
    one = keys == NULL ? NULL : (PyArrayObject *)PyArray_Empty(PyArray_NDIM(array), PyArray_DIMS(array), descr, 0);
    if (keys == NULL)
        Py_DECREF(descr);
    if (one != NULL && fill_array(one, ONE) && (made = wrap(Py_NewRef((PyObject *)one), keys, device)) != NULL)
        root = PyTuple_Pack(2, edge, made);
    Py_XDECREF(one);
    Py_XDECREF(made);
    Py_XDECREF(keys);
    Py_DECREF(array);
    Py_DECREF(device);
    Py_DECREF(edge);
    if (root == NULL && decline_after_error() == DECLINED)
        root = Py_NewRef(Py_None);
    return root;
}

/* Whether a gradient that only its sink holds can be `.grad` as it is: memory of its own, laid out as the leaf's. */
static int can_be_kept(PyObject *grad, PyObject *leaf)
{
    PyArrayObject *a = (PyArrayObject *)SLOT(grad, AT_ARRAY), *b = (PyArrayObject *)SLOT(leaf, AT_ARRAY);
    PyObject *mask = SLOT(grad, AT_GMASK);
    return Py_REFCNT(grad) == 1 && mask == ZERO && SLOT(grad, AT_STORAGE) == Py_None
           && fits_leaf(grad, leaf) && PyArray_CompareLists(PyArray_STRIDES(a), PyArray_STRIDES(b), PyArray_NDIM(a));
}

/* (leaf, sink): whether the gradient of the sink became the first one of the leaf. `lock` is held for that. */
static PyObject *keep_first(PyObject *lock, PyObject *const *args, Py_ssize_t n)
{
    PyObject *leaf = n == 2 ? args[0] : Py_None, *sink = n == 2 ? args[1] : Py_None;
    if (!Py_IS_TYPE(leaf, Tensor) || !PyList_CheckExact(sink) || PyList_GET_SIZE(sink) != 2 || SLOT(leaf, AT_EXTRA) == NULL
        || !Py_IS_TYPE(PyList_GET_ITEM(sink, 1), Tensor) || is_traced())
        Py_RETURN_FALSE;
    PyObject *none = PyObject_CallMethodNoArgs(lock, S_ACQUIRE);
    if (none == NULL)
        return NULL;
    Py_DECREF(none);
    PyObject *extra = Py_XNewRef(SLOT(leaf, AT_EXTRA)), *made = extra == Py_None ? PyDict_New() : NULL; /* before the gradient is looked at */
    PyObject *grad = PyList_GET_SIZE(sink) == 2 ? PyList_GET_ITEM(sink, 1) : Py_None;
    int kept = extra == Py_None && made == NULL ? -1 : 0;
    if (kept == 0 && Py_IS_TYPE(grad, Tensor) && SLOT(leaf, AT_EXTRA) == extra && can_be_kept(grad, leaf)) {
        PyObject *into = made != NULL ? made : extra, *have = NULL;
        Py_INCREF(grad);
        if (into != NULL && PyDict_CheckExact(into) && ((have = PyDict_GetItemWithError(into, S_GRAD)) == NULL || have == Py_None))
            kept = PyErr_Occurred() || PyDict_SetItem(into, S_GRAD, grad) < 0 ? -1 : 1;
        if (kept == 1 && made != NULL)
            Py_SETREF(SLOT(leaf, AT_EXTRA), Py_NewRef(made));
        Py_DECREF(grad);
    }
    Py_XDECREF(made);
    Py_XDECREF(extra);
    PyObject *type, *error, *traceback;
    PyErr_Fetch(&type, &error, &traceback);
    none = PyObject_CallMethodNoArgs(lock, S_RELEASE);
    Py_XDECREF(none);
    if (none != NULL)
        PyErr_Restore(type, error, traceback);
    return none == NULL || kept < 0 ? NULL : PyBool_FromLong(kept);
}

static PyMethodDef keep_first_method = {"keep_first", (PyCFunction)(void (*)(void))keep_first, METH_FASTCALL,
                                        "keep_first(leaf, sink)\n--\n\nWhether the gradient became the first one of the leaf."};

static PyObject *make_keeper(PyObject *module, PyObject *lock) { return PyCFunction_New(&keep_first_method, lock); }
