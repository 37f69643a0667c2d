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

/* The result of a program for these arguments, with arrays in place of tensors: that of the row's kernel, bit by bit. NULL without
 * an error: the program does not serve them. Reads and writes only elements of row-major arrays and of its own memory. */
static PyObject *run_program(const Program *program, PyObject *const *args, int arguments)
{
    npy_intp shape[PLACES], size = 1; /* of all tensors together */
    int n = 0, type = -1, from = 0, to = 0;
    PyArrayObject *factors[2] = {NULL, NULL};
    if (program->steps[0].multiplies) {
        for (int k = 0; k < 2; k++)
            if (!PyArray_CheckExact(args[program->steps[0].operand[k]]))
                return NULL;
            else
                factors[k] = (PyArrayObject *)args[program->steps[0].operand[k]];
        n = product_shape(program, factors[0], factors[1], shape);
        type = PyArray_TYPE(factors[0]);
        if (n == 0 || type >= TYPES || PyArray_SIZE(factors[1]) > program->limit_of_factors)
            return NULL;
    }
    for (int i = 0; i < arguments; i++) {
        if (!PyArray_CheckExact(args[i]) || args[i] == (PyObject *)factors[0] || args[i] == (PyObject *)factors[1])
            continue;
        PyArrayObject *array = (PyArrayObject *)args[i];
        int dims = PyArray_NDIM(array);
        if (!is_plain(array) || dims > PLACES || PyArray_TYPE(array) >= TYPES || (type >= 0 && type != PyArray_TYPE(array)))
            return NULL;
        type = PyArray_TYPE(array);
        if (factors[0] != NULL)
            continue; /* it is spread over the product, or does not fit */
        if (dims > n) {
            for (int d = n - 1; d >= 0; d--)
                shape[d + dims - n] = shape[d];
            for (int d = 0; d < dims - n; d++)
                shape[d] = 1;
            n = dims;
        }
        for (int d = 0; d < dims; d++)
            if (shape[n - dims + d] == 1)
                shape[n - dims + d] = PyArray_DIM(array, d);
    }
    for (int d = 0; d < n; d++)
        if ((size *= shape[d]) < 1 || size > program->limit)
            return NULL;
    if (type < 0 || program->steps[program->count - 1].loops[type].run == NULL || size > program->limit
        || (program->reduces && !reduced_dims(program, args, n, &from, &to)))
        return NULL;
    if (PyTypeNum_ISINTEGER(type))
        feclearexcept(FE_ALL_EXCEPT);
    double space[MANY_STEPS_SIZE * 2], numbers[2];
    char *free_space = (char *)space, *end = free_space + sizeof space;
    Operand results[STEPS];
    PyArrayObject *made = NULL;
    for (int s = 0; s < program->count; s++) {
        const Step *step = &program->steps[s];
        const Loop *loop = &step->loops[type];
        Operand operands[3];
        int places = 0, reduced = step->reduces;
        npy_intp full[PLACES];
        memcpy(full, shape, sizeof full);
        if (reduced)
            places = 1; /* the result comes first, too */
        for (int k = 0; k < step->operands && !step->multiplies; k++) {
            Operand *operand = &operands[places + k];
            int of = step->operand[k];
            memset(operand->strides, 0, sizeof operand->strides);
            operand->data = (char *)&numbers[k];
            if (of >= FROM_STEP && of < FROM_CONSTANT)
                *operand = results[of - FROM_STEP];
            else if (of >= FROM_CONSTANT) {
                double number = of >= COUNT ? 1 : program->constants[of - FROM_CONSTANT];
                for (int d = from; of >= COUNT && d < to; d++)
                    number *= (double)shape[d];
                if (of == FREEDOM && !less_correction(args[program->correction], &number))
                    return NULL;
                if (type == NPY_FLOAT)
                    *(float *)operand->data = (float)number;
                else if (type == NPY_DOUBLE)
                    *(double *)operand->data = number;
                else
                    return NULL;
            } else if (PyArray_CheckExact(args[of])) {
                if (!spread_over((PyArrayObject *)args[of], n, shape, operand))
                    return NULL;
            } else if (number_as(args[of], type, operand->data) == NULL)
                return NULL;
        }
        Operand *result = &results[s];
        PyArray_Descr *descr = PyArray_DescrFromType(loop->to);
        npy_intp itemsize = PyDataType_ELSIZE(descr);
        set_strides(result, n, shape, itemsize, step->is_reduced ? from : n, step->is_reduced ? to : n);
        npy_intp elements = size;
        for (int d = from; step->is_reduced && d < to; d++) {
            elements /= shape[d];
            full[d] = reduced ? shape[d] : 1;
        }
        if (s == program->count - 1) {
            int keepdim = program->keepdim >= 0 && args[program->keepdim] == Py_True, dims = 0;
            npy_intp kept[PLACES];
            for (int d = 0; d < n; d++)
                if (!step->is_reduced || d < from || d >= to)
                    kept[dims++] = shape[d];
                else if (keepdim)
                    kept[dims++] = 1;
            made = (PyArrayObject *)PyArray_NewFromDescr(&PyArray_Type, descr, dims, kept, NULL, NULL, 0, NULL);
            if (made == NULL)
                return NULL;
            result->data = PyArray_BYTES(made);
        } else {
            Py_DECREF(descr);
            result->data = free_space;
            free_space += (elements * itemsize + 15) / 16 * 16;
            if (free_space > end)
                return NULL;
        }
        if (step->multiplies) {
            run_product(loop, factors[0], factors[1], n, shape, result);
            continue;
        }
        if (!reduced) {
            operands[step->operands] = *result;
            run_loop(loop, n, full, step->operands + 1, operands);
            continue;
        }
        operands[0] = operands[2] = *result;
        if (!step->first) {
            memset(result->data, 0, elements * itemsize);
            run_loop(loop, n, full, 3, operands);
            continue;
        }
        /* The reduced dims of row-major memory are one: what lies before them, they, and what lies behind. */
        npy_intp three[3] = {1, 1, 1};
        for (int d = 0; d < n; d++)
            three[d < from ? 0 : d < to ? 1 : 2] *= shape[d];
        npy_intp line = three[2] * itemsize;
        char *data = operands[1].data;
        for (npy_intp i = 0; i < three[0]; i++)
            memcpy(result->data + i * line, data + i * three[1] * line, line);
        if (--three[1] > 0) {
            Operand flat[3] = {{result->data, {line, 0, itemsize}}, {data + line, {(three[1] + 1) * line, line, itemsize}},
                               {result->data, {line, 0, itemsize}}};
            run_loop(loop, 3, three, 3, flat);
        }
    }
    if (PyErr_Occurred() || (PyTypeNum_ISINTEGER(type) && fetestexcept(FE_DIVBYZERO | FE_OVERFLOW | FE_INVALID)))
        Py_CLEAR(made); /* whole numbers divided by zero: the kernel says it */
    return (PyObject *)made;
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

/* (steps, limit, dim, keepdim, correction, spreads), each step (ufunc, operand, ...) with operands as numbered above, and floats. 0, or -1 with an error. */
static int read_program(Program *program, PyObject *row)
{
    PyObject *steps;
    int constants = 0;
    if (!PyArg_ParseTuple(row, "O!niiip", &PyTuple_Type, &steps, &program->limit, &program->dim, &program->keepdim,
                          &program->correction, &program->spreads))
        return -1;
    Py_ssize_t count = PyTuple_GET_SIZE(steps);
    if (count > STEPS)
        goto wrong;
    program->limit_of_factors = program->limit;
    if (program->limit > (count > 1 ? MANY_STEPS_SIZE : SMALL_SIZE))
        program->limit = count > 1 ? MANY_STEPS_SIZE : SMALL_SIZE;
    for (Py_ssize_t s = 0; s < count; s++) {
        PyObject *one = PyTuple_GET_ITEM(steps, s);
        Step *step = &program->steps[s];
        if (!PyTuple_CheckExact(one) || PyTuple_GET_SIZE(one) < 2 || PyTuple_GET_SIZE(one) > 3
            || !PyObject_TypeCheck(PyTuple_GET_ITEM(one, 0), &PyUFunc_Type))
            goto wrong;
        PyUFuncObject *ufunc = (PyUFuncObject *)PyTuple_GET_ITEM(one, 0);
        step->operands = (int)PyTuple_GET_SIZE(one) - 1;
        step->reduces = ufunc->nin == 2 && step->operands == 1;
        step->multiplies = s == 0 && ufunc->core_enabled && ufunc->core_signature != NULL
                           && strcmp(ufunc->core_signature, "(n?,k),(k,m?)->(n?,m?)") == 0;
        if (ufunc->nout != 1 || (ufunc->core_enabled && !step->multiplies) || !(ufunc->nin == step->operands || step->reduces))
            goto wrong;
        if (step->reduces) {
            PyObject *identity = PyObject_GetAttrString((PyObject *)ufunc, "identity");
            if (identity == NULL)
                return -1;
            int zero = PyLong_CheckExact(identity) && PyObject_Not(identity) == 1;
            step->first = identity == Py_None || (PyLong_CheckExact(identity) && PyLong_AsLong(identity) == 1);
            Py_DECREF(identity);
            if (!step->first && !zero)
                goto wrong;
        }
        program->reduces |= step->reduces;
        step->is_reduced = program->reduces;
        for (int k = 0; k < step->operands; k++) {
            PyObject *operand = PyTuple_GET_ITEM(one, k + 1);
            if (PyFloat_CheckExact(operand)) {
                if (constants >= CONSTANTS)
                    goto wrong;
                program->constants[constants] = PyFloat_AS_DOUBLE(operand);
                step->operand[k] = FROM_CONSTANT + constants++;
                continue;
            }
            long at = PyLong_AsLong(operand);
            if (PyErr_Occurred())
                return -1;
            if (!((at >= 0 && at < MOST) || at == COUNT || (at == FREEDOM && program->correction >= 0) || (at >= FROM_STEP && at < FROM_STEP + s)))
                goto wrong;
            step->operand[k] = (int)at;
            program->used |= at < MOST ? 1u << at : 0;
            if (step->multiplies && at >= FROM_STEP)
                goto wrong;
            if (!step->reduces && (at < FROM_STEP || (at < COUNT && !program->steps[at - FROM_STEP].is_reduced)))
                step->is_reduced = 0;
        }
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
            if (type != NPY_FLOAT && type != NPY_DOUBLE && (count > 1 || program->reduces || type > NPY_ULONGLONG))
                step->loops[type].run = NULL;
        }
    }
    program->count = (int)count;
    return 0;
wrong:
    PyErr_SetString(PyExc_ValueError, "a wrong step");
    return -1;
}
