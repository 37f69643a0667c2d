/* Programs: steps that are calls of NumPy's own loops. */
#define STEPS 8
#define CONSTANTS 4
#define PLACES 6           /* dims of an array that a program serves */
#define SMALL_SIZE 8192    /* elements; above, a call of NumPy costs as little */
#define MANY_STEPS_SIZE 256 /* elements where a program has several steps */
#define PRODUCT_SIZE (1 << 16) /* products of numbers in a matrix product */
#define TYPES (NPY_CDOUBLE + 1)

enum { FROM_STEP = 16, FROM_CONSTANT = 32, COUNT = 48, FREEDOM = 49 }; /* operands; below FROM_STEP: arguments of the call */

typedef struct {
    PyUFuncGenericFunction run; /* NULL: there is none for this type */
    void *data;
    int to;
} Loop;

typedef struct {
    int operands, operand[2], reduces; /* a function of two that reduces is given one */
    int multiplies;                    /* a product of matrices, or of batches of them: the first step of a program */
    int is_reduced;                    /* whether the result has length 1 in the reduced dims */
    int first;                         /* a reduction starts with the first element rather than with 0 */
    Loop loops[TYPES];                 /* by the type of the tensors */
} Step;

typedef struct {
    int count;                 /* 0: no program */
    Step steps[STEPS];
    double constants[CONSTANTS];
    npy_intp limit;            /* elements of the result */
    npy_intp limit_of_factors; /* of a second factor */
    int dim, keepdim, correction, reduces; /* arguments, or -1; whether a step reduces */
    unsigned used;             /* bits of the arguments that are operands */
    int spreads;               /* whether a product repeats batches of length 1, and has any number of them */
} Program;

/* What a step reads or writes: a place, and how far the next element is in each dim. */
typedef struct {
    char *data;
    npy_intp strides[PLACES];
} Operand;

/* Call a loop over `n` dims. Dims that are one line for every operand are one call. */
static void run_loop(const Loop *loop, int n, const npy_intp *shape, int count, const Operand *operands)
{
    npy_intp lengths[PLACES], steps[PLACES][3], at[PLACES] = {0};
    char *data[3];
    int dims = 0;
    for (int d = 0; d < n; d++) {
        if (shape[d] == 1)
            continue;
        int joins = dims > 0;
        for (int k = 0; joins && k < count; k++)
            joins = steps[dims - 1][k] == operands[k].strides[d] * shape[d];
        dims += !joins;
        lengths[dims - 1] = joins ? lengths[dims - 1] * shape[d] : shape[d];
        for (int k = 0; k < count; k++)
            steps[dims - 1][k] = operands[k].strides[d];
    }
    for (int k = 0; k < count; k++)
        data[k] = operands[k].data;
    if (dims == 0) {
        dims = 1;
        lengths[0] = 1;
        for (int k = 0; k < count; k++)
            steps[0][k] = 0;
    }
    for (;;) {
        char *passed[3] = {data[0], data[1], count > 2 ? data[2] : NULL};
        loop->run(passed, &lengths[dims - 1], steps[dims - 1], loop->data);
        int d = dims - 2;
        for (; d >= 0; d--) {
            at[d]++;
            for (int k = 0; k < count; k++)
                data[k] += steps[d][k];
            if (at[d] < lengths[d])
                break;
            for (int k = 0; k < count; k++)
                data[k] -= steps[d][k] * lengths[d];
            at[d] = 0;
        }
        if (d < 0)
            return;
    }
}

static void set_strides(Operand *operand, int n, const npy_intp *shape, npy_intp itemsize, int reduced_from, int reduced_to)
{
    for (int d = n - 1; d >= 0; d--) {
        int reduced = d >= reduced_from && d < reduced_to;
        operand->strides[d] = reduced ? 0 : itemsize;
        itemsize *= reduced ? 1 : shape[d];
    }
}

/* The dims that are reduced: [from, to) of n; 0 if they are no run of dims, or are written wrongly. */
static int reduced_dims(const Program *program, PyObject *const *args, int n, int *from, int *to)
{
    PyObject *dim = program->dim < 0 ? Py_None : args[program->dim];
    Py_ssize_t count = PyTuple_CheckExact(dim) ? PyTuple_GET_SIZE(dim) : 1;
    unsigned found = 0;
    *from = 0;
    *to = n;
    if (dim == Py_None || count == 0)
        return 1;
    if (n == 0)
        return 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *one = PyTuple_CheckExact(dim) ? PyTuple_GET_ITEM(dim, i) : dim;
        int overflow;
        long at = PyLong_CheckExact(one) ? PyLong_AsLongAndOverflow(one, &overflow) : n;
        at += at < 0 ? n : 0;
        if (at < 0 || at >= n || found & 1u << at)
            return 0;
        found |= 1u << at;
    }
    for (*from = 0; !(found & 1u << *from);)
        ++*from;
    for (*to = *from; *to < n && found & 1u << *to;)
        ++*to;
    return found >> *to == 0;
}

static inline int is_plain(PyArrayObject *array)
{
    return PyArray_CHKFLAGS(array, NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED) && PyArray_ISNOTSWAPPED(array);
}

/* A number as an element of a type: its place, or NULL where the array library would convert or refuse it in another way. */
static char *number_as(PyObject *value, int type, char *place)
{
    double number;
    if (PyFloat_CheckExact(value))
        number = PyFloat_AS_DOUBLE(value);
    else if (PyLong_CheckExact(value)) {
        int overflow;
        long long whole = PyLong_AsLongLongAndOverflow(value, &overflow);
        if (overflow || whole < -(1LL << 24) || whole > 1LL << 24)
            return NULL;
        number = (double)whole;
    } else
        return NULL;
    if (type == NPY_DOUBLE)
        memcpy(place, &number, sizeof number);
    else if (type == NPY_FLOAT && !(isfinite(number) && fabs(number) > FLT_MAX)) { /* NumPy warns of it */
        float single = (float)number;
        memcpy(place, &single, sizeof single);
    } else
        return NULL;
    return place;
}

/* The strides of an array of fewer or shorter dims, repeated over `shape`; 0 if it does not fit. */
static int spread_over(PyArrayObject *array, int n, const npy_intp *shape, Operand *operand)
{
    int behind = n - PyArray_NDIM(array);
    if (behind < 0)
        return 0;
    for (int d = 0; d < n; d++) {
        npy_intp length = d < behind ? 1 : PyArray_DIM(array, d - behind);
        if (length != shape[d] && length != 1)
            return 0;
        operand->strides[d] = length == 1 ? 0 : PyArray_STRIDE(array, d - behind);
    }
    operand->data = PyArray_BYTES(array);
    return 1;
}

/* How far the next matrix of a batch is in dim `d` of `n`: 0 where it is the same one. */
static npy_intp batch_stride(PyArrayObject *array, int d, int n)
{
    int own = d - n + PyArray_NDIM(array);
    return own < 0 || PyArray_DIM(array, own) == 1 ? 0 : PyArray_STRIDE(array, own);
}

/* What a product of matrices needs: the dims of its result. Their number; 0 where the array library does more than one call. */
static int product_shape(const Program *program, PyArrayObject *a, PyArrayObject *b, npy_intp *shape)
{
    int na = PyArray_NDIM(a), nb = PyArray_NDIM(b), n = na > nb ? na : nb;
    if (na < 2 || nb < 2 || n > (program->spreads ? PLACES : 3) || PyArray_DESCR(a) != PyArray_DESCR(b)
        || PyArray_DIM(a, na - 1) != PyArray_DIM(b, nb - 2) || !PyArray_ISALIGNED(a) || !PyArray_ISALIGNED(b)
        || !PyArray_ISNOTSWAPPED(a) || !PyArray_ISNOTSWAPPED(b))
        return 0;
    if (program->spreads ? na > 2 && nb == 2 : na != nb) /* the rows of a batch beside one matrix are one large product */
        return 0;
    for (int d = 0; d < n - 2; d++) {
        npy_intp of_a = d < n - na ? 1 : PyArray_DIM(a, d - n + na), of_b = d < n - nb ? 1 : PyArray_DIM(b, d - n + nb);
        if (of_a != of_b && !(program->spreads && (of_a == 1 || of_b == 1)))
            return 0;
        shape[d] = of_a == 1 ? of_b : of_a;
    }
    shape[n - 2] = PyArray_DIM(a, na - 2);
    shape[n - 1] = PyArray_DIM(b, nb - 1);
    npy_intp work = PyArray_DIM(a, na - 1);
    for (int d = 0; d < n; d++)
        if (shape[d] < 1 || work < 1 || shape[d] > PRODUCT_SIZE || (work *= shape[d]) > PRODUCT_SIZE)
            return 0;
    return n;
}

/* The loop takes the last dim of the batches, or none; the dims before it are gone through here. */
static void run_product(const Loop *loop, PyArrayObject *a, PyArrayObject *b, int n, const npy_intp *shape, const Operand *result)
{
    int na = PyArray_NDIM(a), nb = PyArray_NDIM(b), last = n - 3;
    npy_intp lengths[4] = {last >= 0 ? shape[last] : 1, shape[n - 2], PyArray_DIM(a, na - 1), shape[n - 1]};
    npy_intp at[PLACES] = {0}, steps[9] = {
        0, 0, 0, PyArray_STRIDE(a, na - 2), PyArray_STRIDE(a, na - 1), PyArray_STRIDE(b, nb - 2), PyArray_STRIDE(b, nb - 1),
        result->strides[n - 2], result->strides[n - 1],
    };
    npy_intp strides[3][PLACES];
    for (int d = 0; d <= last; d++) {
        strides[0][d] = batch_stride(a, d, n);
        strides[1][d] = batch_stride(b, d, n);
        strides[2][d] = result->strides[d];
        for (int k = 0; k < 3; k++)
            steps[k] = strides[k][d];
    }
    char *data[3] = {PyArray_BYTES(a), PyArray_BYTES(b), result->data};
    for (;;) {
        char *passed[3] = {data[0], data[1], data[2]};
        loop->run(passed, lengths, steps, loop->data);
        int d = last - 1;
        for (; d >= 0; d--) {
            for (int k = 0; k < 3; k++)
                data[k] += strides[k][d];
            if (++at[d] < shape[d])
                break;
            for (int k = 0; k < 3; k++)
                data[k] -= strides[k][d] * shape[d];
            at[d] = 0;
        }
        if (d < 0)
            return;
    }
}

/* A count less the correction of a variance: 1 if there is none. 0: the kernel says it. */
static int less_correction(PyObject *correction, double *count)
{
    double less = 1;
    if (PyLong_CheckExact(correction))
        less = PyLong_AsDouble(correction);
    else if (PyFloat_CheckExact(correction))
        less = PyFloat_AS_DOUBLE(correction);
    else if (correction != Py_None)
        return 0;
    *count = *count - less > 0 ? *count - less : 0;
    return !PyErr_Occurred();
}

/* A program at work: what its tensors have in common, and memory for the results of its steps. */
typedef struct {
    const Program *program;
    PyObject *const *args;
    int n, type, from, to;           /* dims and type of all tensors together; the dims that are reduced */
    npy_intp shape[PLACES], size;
    PyArrayObject *factors[2], *made; /* of a product; the result */
    char *free_space, *end;
    double numbers[2];               /* operands that are numbers */
    Operand results[STEPS];
    double space[MANY_STEPS_SIZE * 2];
} Work;

/* The shape of a product is the shape of everything. 0: the array library does more than one call. */
static int look_at_factors(Work *work)
{
    const Step *product = &work->program->steps[0];
    for (int k = 0; k < 2; k++) {
        PyObject *factor = work->args[product->operand[k]];
        if (!PyArray_CheckExact(factor))
            return 0;
        work->factors[k] = (PyArrayObject *)factor;
    }
    work->n = product_shape(work->program, work->factors[0], work->factors[1], work->shape);
    work->type = PyArray_TYPE(work->factors[0]);
    return work->n > 0 && work->type < TYPES && PyArray_SIZE(work->factors[1]) <= work->program->limit_of_factors;
}

/* Spread the shape of all tensors over one more. 0: it is not plain, or of another type. */
static int look_at_array(Work *work, PyArrayObject *array)
{
    int dims = PyArray_NDIM(array), more = dims - work->n;
    if (!is_plain(array) || dims > PLACES || PyArray_TYPE(array) >= TYPES || (work->type >= 0 && work->type != PyArray_TYPE(array)))
        return 0;
    work->type = PyArray_TYPE(array);
    if (work->factors[0] != NULL) /* it is spread over the product, or does not fit */
        return 1;
    if (more > 0) {
        for (int d = work->n - 1; d >= 0; d--)
            work->shape[d + more] = work->shape[d];
        for (int d = 0; d < more; d++)
            work->shape[d] = 1;
        work->n = dims;
    }
    npy_intp *own = work->shape + work->n - dims;
    for (int d = 0; d < dims; d++)
        if (own[d] == 1)
            own[d] = PyArray_DIM(array, d);
    return 1;
}

/* Whether a program serves these arrays; nothing is called. */
static int look_at_tensors(Work *work, int arguments)
{
    const Program *program = work->program;
    work->n = work->from = work->to = 0;
    work->type = -1;
    work->size = 1;
    work->factors[0] = work->factors[1] = work->made = NULL;
    if (program->steps[0].multiplies && !look_at_factors(work))
        return 0;
    for (int i = 0; i < arguments; i++) {
        PyObject *one = work->args[i];
        if (PyArray_CheckExact(one) && one != (PyObject *)work->factors[0] && one != (PyObject *)work->factors[1]
            && !look_at_array(work, (PyArrayObject *)one))
            return 0;
    }
    for (int d = 0; d < work->n; d++)
        if ((work->size *= work->shape[d]) < 1 || work->size > program->limit)
            return 0;
    return work->type >= 0 && program->steps[program->count - 1].loops[work->type].run != NULL && work->size <= program->limit
           && (!program->reduces || reduced_dims(program, work->args, work->n, &work->from, &work->to));
}

/* A constant, a count, or the degrees of freedom, as an element. 0: the kernel says it. */
static int read_constant(const Work *work, int of, char *place)
{
    double number = of >= COUNT ? 1 : work->program->constants[of - FROM_CONSTANT];
    for (int d = work->from; of >= COUNT && d < work->to; d++)
        number *= (double)work->shape[d];
    if (of == FREEDOM && !less_correction(work->args[work->program->correction], &number))
        return 0;
    if (work->type == NPY_FLOAT)
        *(float *)place = (float)number;
    else
        *(double *)place = number;
    return work->type == NPY_FLOAT || work->type == NPY_DOUBLE;
}

/* What a step reads as its operand `k`. */
static int read_operand(Work *work, const Step *step, int k, Operand *operand)
{
    int of = step->operand[k];
    if (of >= FROM_STEP && of < FROM_CONSTANT) {
        *operand = work->results[of - FROM_STEP];
        return 1;
    }
    if (of < FROM_STEP && PyArray_CheckExact(work->args[of]))
        return spread_over((PyArrayObject *)work->args[of], work->n, work->shape, operand);
    memset(operand->strides, 0, sizeof operand->strides);
    operand->data = (char *)&work->numbers[k];
    return of >= FROM_CONSTANT ? read_constant(work, of, operand->data) : number_as(work->args[of], work->type, operand->data) != NULL;
}

/* The array that the last step writes; NULL with an error. Takes the reference of its dtype. */
static PyArrayObject *new_result(const Work *work, const Step *step, PyArray_Descr *descr)
{
    int keepdim = work->program->keepdim >= 0 && work->args[work->program->keepdim] == Py_True, dims = 0;
    npy_intp kept[PLACES];
    for (int d = 0; d < work->n; d++)
        if (!step->is_reduced || d < work->from || d >= work->to)
            kept[dims++] = work->shape[d];
        else if (keepdim)
            kept[dims++] = 1;
    return (PyArrayObject *)PyArray_NewFromDescr(&PyArray_Type, descr, dims, kept, NULL, NULL, 0, NULL);
}

/* Memory for the result of a step of so many elements. Bytes of an element; 0 with or without an error: there is none. */
static npy_intp place_result(Work *work, int s, npy_intp elements)
{
    const Step *step = &work->program->steps[s];
    Operand *result = &work->results[s];
    PyArray_Descr *descr = PyArray_DescrFromType(step->loops[work->type].to);
    npy_intp itemsize = PyDataType_ELSIZE(descr);
    set_strides(result, work->n, work->shape, itemsize, step->is_reduced ? work->from : work->n, step->is_reduced ? work->to : work->n);
    if (s == work->program->count - 1) {
        work->made = new_result(work, step, descr);
        result->data = work->made == NULL ? NULL : PyArray_BYTES(work->made);
        return work->made == NULL ? 0 : itemsize;
    }
    Py_DECREF(descr);
    result->data = work->free_space;
    work->free_space += (elements * itemsize + 15) / 16 * 16;
    return work->free_space > work->end ? 0 : itemsize;
}

/* A reduction that starts with the first element. The reduced dims of row-major memory are one: what lies before them, they, and what
 * lies behind. */
static void reduce_from_first(const Work *work, const Loop *loop, char *from, char *to, npy_intp itemsize)
{
    npy_intp three[3] = {1, 1, 1};
    for (int d = 0; d < work->n; d++)
        three[d < work->from ? 0 : d < work->to ? 1 : 2] *= work->shape[d];
    npy_intp line = three[2] * itemsize;
    for (npy_intp i = 0; i < three[0]; i++)
        memcpy(to + i * line, from + i * three[1] * line, line);
    if (--three[1] > 0) {
        Operand flat[3] = {{to, {line, 0, itemsize}}, {from + line, {(three[1] + 1) * line, line, itemsize}},
                           {to, {line, 0, itemsize}}};
        run_loop(loop, 3, three, 3, flat);
    }
}

/* 0 with or without an error: the program does not serve the call after all. */
static int run_step(Work *work, int s)
{
    const Step *step = &work->program->steps[s];
    const Loop *loop = &step->loops[work->type];
    Operand operands[3], *result = &work->results[s];
    npy_intp full[PLACES], elements = work->size, itemsize;
    memcpy(full, work->shape, sizeof full);
    for (int d = work->from; step->is_reduced && d < work->to; d++) {
        elements /= work->shape[d];
        full[d] = step->reduces ? work->shape[d] : 1;
    }
    for (int k = 0; k < step->operands && !step->multiplies; k++)
        if (!read_operand(work, step, k, &operands[step->reduces + k])) /* of a reduction, the result comes first, too */
            return 0;
    if ((itemsize = place_result(work, s, elements)) == 0)
        return 0;
    if (step->multiplies)
        run_product(loop, work->factors[0], work->factors[1], work->n, work->shape, result);
    else if (step->reduces && step->first)
        reduce_from_first(work, loop, operands[1].data, result->data, itemsize);
    else if (step->reduces) {
        operands[0] = operands[2] = *result;
        memset(result->data, 0, elements * itemsize);
        run_loop(loop, work->n, full, 3, operands);
    } else {
        operands[step->operands] = *result;
        run_loop(loop, work->n, full, step->operands + 1, operands);
    }
    return 1;
}

/* The result of a program for these arguments, with arrays in place of tensors: that of the row's kernel, bit by bit. NULL without
 * an error: the program does not serve them. Reads and writes only elements of row-major arrays and of its own memory. */
static PyObject *run_program(const Program *program, PyObject *const *args, int arguments)
{
    Work work;
    work.program = program;
    work.args = args;
    if (!look_at_tensors(&work, arguments))
        return NULL;
    work.free_space = (char *)work.space;
    work.end = work.free_space + sizeof work.space;
    if (PyTypeNum_ISINTEGER(work.type))
        feclearexcept(FE_ALL_EXCEPT);
    for (int s = 0; s < program->count; s++)
        if (!run_step(&work, s)) {
            Py_XDECREF(work.made);
            return NULL;
        }
    if (PyErr_Occurred() || (PyTypeNum_ISINTEGER(work.type) && fetestexcept(FE_DIVBYZERO | FE_OVERFLOW | FE_INVALID)))
        Py_CLEAR(work.made); /* whole numbers divided by zero: the kernel says it */
    return (PyObject *)work.made;
}

/* Whether a program serves a call: all arguments that it does not read have their defaults, and those without one are False. */
static int serves_call(const Program *program, PyObject *const *args, int n, PyObject *const *standard, const int *ignored)
{
    for (int i = 0; program->count && i < n; i++)
        if (i != program->dim && i != program->keepdim && i != program->correction && !(program->used & 1u << i)
            && ((standard[i] != NULL && args[i] != standard[i]) || (ignored[i] && args[i] != Py_False)))
            return 0;
    return program->count > 0;
}

/* The loop of a function for operands of one type. */
static Loop loop_of(PyUFuncObject *ufunc, int type)
{
    Loop found = {NULL, NULL, -1};
    for (int i = 0; i < ufunc->ntypes; i++) {
        const char *types = ufunc->types + i * ufunc->nargs;
        int fits = types[ufunc->nin] < TYPES && types[ufunc->nin] != NPY_OBJECT;
        for (int k = 0; k < ufunc->nin; k++)
            fits = fits && types[k] == type;
        if (fits && ufunc->functions[i] != NULL) {
            found.run = ufunc->functions[i];
            found.data = ufunc->data == NULL ? NULL : ufunc->data[i];
            found.to = types[ufunc->nin];
            break;
        }
    }
    return found;
}

/* How a step reduces, from the function's identity. 0: in no way that is done here, or with an error. */
static int read_reduction(Step *step, PyUFuncObject *ufunc)
{
    PyObject *identity = PyObject_GetAttrString((PyObject *)ufunc, "identity");
    if (identity == NULL)
        return 0;
    int zero = PyLong_CheckExact(identity) && PyObject_Not(identity) == 1;
    step->first = identity == Py_None || (PyLong_CheckExact(identity) && PyLong_AsLong(identity) == 1);
    Py_DECREF(identity);
    return step->first || zero;
}

/* An operand of step `s`: a float, or a number of those above. 0 with or without an error. */
static int name_operand(Program *program, int s, int k, PyObject *operand, int *constants)
{
    Step *step = &program->steps[s];
    if (PyFloat_CheckExact(operand)) {
        if (*constants >= CONSTANTS)
            return 0;
        program->constants[*constants] = PyFloat_AS_DOUBLE(operand);
        step->operand[k] = FROM_CONSTANT + (*constants)++;
        return 1;
    }
    long at = PyLong_AsLong(operand);
    if (PyErr_Occurred() || (step->multiplies && at >= FROM_STEP)
        || !((at >= 0 && at < MOST) || at == COUNT || (at == FREEDOM && program->correction >= 0) || (at >= FROM_STEP && at < FROM_STEP + s)))
        return 0;
    step->operand[k] = (int)at;
    program->used |= at < MOST ? 1u << at : 0;
    if (!step->reduces && (at < FROM_STEP || (at < COUNT && !program->steps[at - FROM_STEP].is_reduced)))
        step->is_reduced = 0;
    return 1;
}

/* The loops of a step, by the type of the tensors: operands that are results of steps must be of it, too. */
static void find_loops(const Program *program, Step *step, PyUFuncObject *ufunc, int is_one_of_many)
{
    for (int type = 0; type < TYPES; type++) {
        int own = type;
        for (int k = 0; k < step->operands; k++)
            if (step->operand[k] >= FROM_STEP && step->operand[k] < FROM_CONSTANT) {
                const Loop *before = &program->steps[step->operand[k] - FROM_STEP].loops[type];
                own = before->run == NULL ? -1 : before->to;
            }
        step->loops[type] = own == type ? loop_of(ufunc, type) : (Loop){NULL, NULL, -1};
        if (step->reduces && step->loops[type].to != type)
            step->loops[type].run = NULL;
        if (type != NPY_FLOAT && type != NPY_DOUBLE && (is_one_of_many || program->reduces || type > NPY_ULONGLONG))
            step->loops[type].run = NULL;
    }
}

/* (ufunc, operand, ...). 0 with or without an error: it is no step. */
static int read_step(Program *program, int s, PyObject *row, int is_one_of_many, int *constants)
{
    Step *step = &program->steps[s];
    if (!PyTuple_CheckExact(row) || PyTuple_GET_SIZE(row) < 2 || PyTuple_GET_SIZE(row) > 3
        || !PyObject_TypeCheck(PyTuple_GET_ITEM(row, 0), &PyUFunc_Type))
        return 0;
    PyUFuncObject *ufunc = (PyUFuncObject *)PyTuple_GET_ITEM(row, 0);
    step->operands = (int)PyTuple_GET_SIZE(row) - 1;
    step->reduces = ufunc->nin == 2 && step->operands == 1;
    step->multiplies = s == 0 && ufunc->core_enabled && ufunc->core_signature != NULL
                       && strcmp(ufunc->core_signature, "(n?,k),(k,m?)->(n?,m?)") == 0;
    if (ufunc->nout != 1 || (ufunc->core_enabled && !step->multiplies) || !(ufunc->nin == step->operands || step->reduces)
        || (step->reduces && !read_reduction(step, ufunc)))
        return 0;
    program->reduces |= step->reduces;
    step->is_reduced = program->reduces;
    for (int k = 0; k < step->operands; k++)
        if (!name_operand(program, s, k, PyTuple_GET_ITEM(row, k + 1), constants))
            return 0;
    find_loops(program, step, ufunc, is_one_of_many);
    return 1;
}

/* (steps, limit, dim, keepdim, correction, spreads), each step (ufunc, operand, ...) with operands as numbered above, and floats. 0, or
 * -1 with an error. */
static int read_program(Program *program, PyObject *row)
{
    PyObject *steps;
    int constants = 0;
    if (!PyArg_ParseTuple(row, "O!niiip", &PyTuple_Type, &steps, &program->limit, &program->dim, &program->keepdim,
                          &program->correction, &program->spreads))
        return -1;
    Py_ssize_t count = PyTuple_GET_SIZE(steps), most = count > 1 ? MANY_STEPS_SIZE : SMALL_SIZE;
    int fits = count <= STEPS;
    program->limit_of_factors = program->limit;
    if (program->limit > most)
        program->limit = most;
    for (int s = 0; fits && s < count; s++)
        fits = read_step(program, s, PyTuple_GET_ITEM(steps, s), count > 1, &constants);
    if (fits)
        program->count = (int)count;
    else if (!PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, "a wrong step");
    return fits ? 0 : -1;
}
