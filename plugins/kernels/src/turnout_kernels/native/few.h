/* Kernels for few elements of row-major arrays, in one table that a compiled call path reads: see `compiled_functions.h`. For so few, what
   a call costs is what it passes on its way, so they are compiled once and use no threads. Results have NumPy's bits. */
#include "compiled_functions.h"

#define FEW_DIMS 6
#define MOST_ORDERED 32 /* elements of a line that is ordered here */
#define MOST_CHOSEN 1024
#define MOST_NORMAL 2048

typedef const turnout_value *given_values;

/* Memory as lines along a dim: how many, how long, and how many elements lie between two of a line. 0 without such a dim. */
static int as_lines(const turnout_value *array, const turnout_value *dim, int64_t *outer, int64_t *length, int64_t *inner)
{
    int64_t n = array->ndim, d = dim->is == TURNOUT_NUMBER ? dim->number : n;
    d += d < 0 ? n : 0;
    if (d < 0 || d >= n)
        return 0;
    *outer = *inner = 1;
    for (int64_t i = 0; i < n; i++)
        if (i < d)
            *outer *= array->shape[i];
        else if (i > d)
            *inner *= array->shape[i];
    *length = array->shape[d];
    return 1;
}

static int are_inside(const turnout_value *index, int64_t length)
{
    const int64_t *numbers = (const int64_t *)index->data;
    for (int64_t k = 0; k < index->size; k++)
        if (numbers[k] < 0 || numbers[k] >= length)
            return 0; /* the kernel says it */
    return 1;
}

/* ---- what moves elements */

/* Pieces along a dim by their numbers: (array, dim, index, out). */
static int select_lines(given_values given, int count, const turnout_loops *loops)
{
    const turnout_value *self = &given[0], *index = &given[2], *out = &given[3];
    int64_t outer, length, inner;
    (void)count, (void)loops;
    if (index->type != TURNOUT_INT64 || self->type != out->type || !as_lines(self, &given[1], &outer, &length, &inner)
        || out->size != outer * index->size * inner || !are_inside(index, length))
        return 0;
    int64_t bytes = inner * self->bytes;
    const int64_t *numbers = (const int64_t *)index->data;
    char *to = out->data;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t k = 0; k < index->size; k++, to += bytes)
            memcpy(to, self->data + (o * length + numbers[k]) * bytes, bytes);
    return 1;
}

/* Elements along a dim by their numbers: (array, dim, index, sparse_grad, out), with the shape of the index. */
static int gather_few(given_values given, int count, const turnout_loops *loops)
{
    const turnout_value *self = &given[0], *index = &given[2], *out = &given[4];
    int64_t outer, length, inner, steps[FEW_DIMS], at[FEW_DIMS] = {0};
    int n = self->ndim;
    (void)count, (void)loops;
    if (index->type != TURNOUT_INT64 || self->type != out->type || n > FEW_DIMS || index->ndim != n || out->ndim != n
        || !as_lines(self, &given[1], &outer, &length, &inner) || !are_inside(index, length))
        return 0;
    int64_t step = self->bytes, dim = given[1].number < 0 ? given[1].number + n : given[1].number;
    for (int d = n - 1; d >= 0; d--) {
        steps[d] = step;
        step *= self->shape[d];
        if (out->shape[d] != index->shape[d] || (d != dim && index->shape[d] > self->shape[d]))
            return 0;
    }
    for (int64_t k = 0; k < index->size; k++) {
        const char *from = self->data + ((const int64_t *)index->data)[k] * steps[dim];
        for (int d = 0; d < n; d++)
            from += d == dim ? 0 : at[d] * steps[d];
        memcpy(out->data + k * self->bytes, from, self->bytes);
        for (int d = n - 1; d >= 0 && ++at[d] == index->shape[d]; d--)
            at[d] = 0;
    }
    return 1;
}

/* The other way round along one dim: (array, dims, out). */
static int flip_few(given_values given, int count, const turnout_loops *loops)
{
    const turnout_value *self = &given[0], *out = &given[2];
    int64_t outer, length, inner;
    (void)count, (void)loops;
    if (self->type != out->type || self->size != out->size || !as_lines(self, &given[1], &outer, &length, &inner))
        return 0;
    int64_t bytes = inner * self->bytes;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t k = 0; k < length; k++)
            memcpy(out->data + (o * length + k) * bytes, self->data + (o * length + length - 1 - k) * bytes, bytes);
    return 1;
}

/* The part of matrices on one side of a diagonal, and zeros: (array, diagonal, out). */
static int triangle_few(given_values given, int upper)
{
    const turnout_value *self = &given[0], *out = &given[2];
    int64_t n = self->ndim, diagonal = given[1].number;
    if (n < 2 || diagonal > self->size || diagonal < -self->size || self->type != out->type || self->size != out->size)
        return 0;
    int64_t rows = self->shape[n - 2], columns = self->shape[n - 1], item = self->bytes, lines = columns == 0 ? 0 : self->size / columns;
    memset(out->data, 0, out->size * item);
    for (int64_t i = 0; i < lines; i++) {
        int64_t first = i % rows + diagonal + !upper; /* lower: up to the diagonal; upper: from it on */
        first = first < 0 ? 0 : first > columns ? columns : first;
        int64_t from = (i * columns + (upper ? first : 0)) * item, bytes = (upper ? columns - first : first) * item;
        memcpy(out->data + from, self->data + from, bytes);
    }
    return 1;
}

static int lower_few(given_values given, int count, const turnout_loops *loops) { (void)count, (void)loops; return triangle_few(given, 0); }
static int upper_few(given_values given, int count, const turnout_loops *loops) { (void)count, (void)loops; return triangle_few(given, 1); }

/* ---- along a dim */

/* Running sums: (array, dim, dtype, out). Floats are added in double precision. */
#define ADD_UP(TYPE, WIDE)                                                                            \
    for (int64_t o = 0; o < outer; o++)                                                               \
        for (int64_t i = 0; i < inner; i++) {                                                         \
            const TYPE *from = (const TYPE *)self->data + o * length * inner + i;                     \
            TYPE *to = (TYPE *)out->data + o * length * inner + i;                                    \
            WIDE sum = (WIDE)from[0];                                                                 \
            to[0] = (TYPE)sum;                                                                        \
            for (int64_t k = 1; k < length; k++) {                                                    \
                sum = sum + (WIDE)from[k * inner];                                                    \
                to[k * inner] = (TYPE)sum;                                                            \
            }                                                                                         \
        }
static int add_up(given_values given, int count, const turnout_loops *loops)
{
    const turnout_value *self = &given[0], *out = &given[3];
    int64_t outer, length, inner;
    (void)count, (void)loops;
    if (self->type != out->type || self->size != out->size || !as_lines(self, &given[1], &outer, &length, &inner) || length < 1)
        return 0;
    if (self->type == TURNOUT_FLOAT)
        ADD_UP(float, double)
    else if (self->type == TURNOUT_DOUBLE)
        ADD_UP(double, double)
    else
        ADD_UP(int64_t, uint64_t)
    return 1;
}

#define IS_LESS(TYPE) (*(const TYPE *)a < *(const TYPE *)b)
#define IS_NAN(TYPE, one) (*(const TYPE *)(one) != *(const TYPE *)(one))

/* Whether one element comes before another: nan is the largest. */
static inline int is_before(int type, const char *a, const char *b, int descending)
{
    if (descending) {
        const char *other = a;
        a = b;
        b = other;
    }
    switch (type) {
    case TURNOUT_FLOAT:
        return IS_LESS(float) || (IS_NAN(float, b) && !IS_NAN(float, a));
    case TURNOUT_DOUBLE:
        return IS_LESS(double) || (IS_NAN(double, b) && !IS_NAN(double, a));
    case TURNOUT_INT32:
        return IS_LESS(int32_t);
    default:
        return IS_LESS(int64_t);
    }
}

/* The place of the first extreme of a line whose elements are `step` bytes apart. nan counts as every extreme. */
static int64_t find_extreme(int type, const char *line, int64_t length, int64_t step, int smallest)
{
    int64_t found = 0;
    for (int64_t k = 0; k < length; k++) {
        const char *one = line + k * step;
        if ((type == TURNOUT_FLOAT && IS_NAN(float, one)) || (type == TURNOUT_DOUBLE && IS_NAN(double, one)))
            return k;
        if (k > 0 && is_before(type, one, line + found * step, !smallest))
            found = k;
    }
    return found;
}

/* The first extreme of each line, and its number: (array, dim, keepdim, [values,] numbers). */
static int find_extremes(given_values given, int smallest, const turnout_value *values, const turnout_value *numbers)
{
    const turnout_value *self = &given[0];
    int64_t outer = 1, length = self->size, inner = 1;
    if (numbers->type != TURNOUT_INT64 || (values != NULL && values->type != self->type)
        || ((given[1].is != TURNOUT_NONE || values != NULL) && !as_lines(self, &given[1], &outer, &length, &inner)) || length < 1
        || numbers->size != outer * inner || (values != NULL && values->size != outer * inner))
        return 0;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++) {
            const char *line = self->data + (o * length * inner + i) * self->bytes;
            int64_t found = find_extreme(self->type, line, length, inner * self->bytes, smallest);
            ((int64_t *)numbers->data)[o * inner + i] = found;
            if (values != NULL)
                memcpy(values->data + (o * inner + i) * self->bytes, line + found * inner * self->bytes, self->bytes);
        }
    return 1;
}

#define FINDS(NAME, SMALLEST, VALUES, NUMBERS)                                                  \
    static int NAME(given_values given, int count, const turnout_loops *loops)                  \
    {                                                                                           \
        (void)count, (void)loops;                                                               \
        return find_extremes(given, SMALLEST, VALUES, NUMBERS);                                 \
    }
FINDS(find_largest, 0, NULL, &given[3])
FINDS(find_smallest, 1, NULL, &given[3])
FINDS(largest, 0, &given[3], &given[4])
FINDS(smallest, 1, &given[3], &given[4])

/* The numbers of a short line's elements in order. Equal elements keep theirs. */
static void order_line(int type, const char *line, int64_t length, int64_t step, int descending, int64_t *order)
{
    for (int64_t k = 0; k < length; k++) {
        int64_t to = k;
        for (; to > 0 && is_before(type, line + k * step, line + order[to - 1] * step, descending); to--)
            order[to] = order[to - 1];
        order[to] = k;
    }
}

/* Each line in order, or its first `first` elements, and their numbers. */
static int order_lines(const turnout_value *self, const turnout_value *dim, int descending, int64_t first, const turnout_value *values,
                       const turnout_value *numbers)
{
    int64_t outer, length, inner, order[MOST_ORDERED];
    if (!as_lines(self, dim, &outer, &length, &inner))
        return 0;
    first = first < 0 ? length : first;
    if (length > MOST_ORDERED || first > length || values->type != self->type || numbers->type != TURNOUT_INT64
        || values->size != outer * first * inner || numbers->size != outer * first * inner)
        return 0;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++) {
            const char *line = self->data + (o * length * inner + i) * self->bytes;
            order_line(self->type, line, length, inner * self->bytes, descending, order);
            for (int64_t k = 0; k < first; k++) {
                int64_t to = (o * first + k) * inner + i;
                ((int64_t *)numbers->data)[to] = order[k];
                memcpy(values->data + to * self->bytes, line + order[k] * inner * self->bytes, self->bytes);
            }
        }
    return 1;
}

/* (array, stable, dim, descending, values, numbers). turnout-cpu sorts numbers of eight bytes in an order of its own. */
static int sort_few(given_values given, int count, const turnout_loops *loops)
{
    (void)count, (void)loops;
    return (given[0].bytes <= 4 || given[1].is == TURNOUT_TRUE)
           && order_lines(&given[0], &given[2], given[3].is == TURNOUT_TRUE, -1, &given[4], &given[5]);
}

/* (array, k, dim, largest, sorted, values, numbers). turnout-cpu finds few of many in an order of its own. */
static int topk_few(given_values given, int count, const turnout_loops *loops)
{
    int64_t outer, length, inner, first = given[1].number;
    (void)count, (void)loops;
    return first >= 0 && as_lines(&given[0], &given[2], &outer, &length, &inner) && (first == 0 || first >= length / 4)
           && order_lines(&given[0], &given[2], given[3].is == TURNOUT_TRUE, first, &given[5], &given[6]);
}

/* Whether any is true, or all are, of each line, or without a dim of all elements. */
static int is_true_along(const turnout_value *self, const turnout_value *dim, const turnout_value *out, int all)
{
    int64_t outer = 1, length = self->size, inner = 1;
    if ((dim != NULL && !as_lines(self, dim, &outer, &length, &inner)) || out->type != TURNOUT_BOOL || out->size != outer * inner)
        return 0;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++) {
            const char *line = self->data + o * length * inner + i;
            int64_t k = 0;
            while (k < length && (line[k * inner] != 0) == all)
                k++;
            out->data[o * inner + i] = (char)(all ? k == length : k < length);
        }
    return 1;
}

#define IS_TRUE(NAME, DIM, OUT, ALL)                                                            \
    static int NAME(given_values given, int count, const turnout_loops *loops)                  \
    {                                                                                           \
        (void)count, (void)loops;                                                               \
        return is_true_along(&given[0], DIM, OUT, ALL);                                         \
    }
IS_TRUE(any_few, NULL, &given[1], 0)
IS_TRUE(all_few, NULL, &given[1], 1)
IS_TRUE(any_along, &given[1], &given[3], 0)
IS_TRUE(all_along, &given[1], &given[3], 1)

/* ---- losses over classes */

/* What a loss makes of those of its elements, as in shapes/losses.py of turnout-aten. */
enum { OF_EACH = 0, BY_MEAN = 1, BY_SUM = 2 };

/* Lines of log-probabilities with one class each: how many and how long they are; 0 where one is left out or weighs otherwise. */
static int64_t read_classes(const turnout_value *self, const turnout_value *target, const turnout_value *weight,
                            const turnout_value *ignored, int64_t *classes)
{
    if (weight->is != TURNOUT_NONE || self->ndim != 2 || target->ndim != 1 || target->type != TURNOUT_INT64
        || target->size > MOST_CHOSEN || self->shape[0] != target->size)
        return 0;
    *classes = self->shape[1];
    if ((ignored->number >= 0 && ignored->number < *classes) || !are_inside(target, *classes))
        return 0;
    return target->size;
}

#define CHOOSE(TYPE)                                                                               \
    {                                                                                              \
        TYPE *chosen = (TYPE *)space, total = 0;                                                   \
        for (intptr_t k = 0; k < lines; k++)                                                       \
            chosen[k] = ((const TYPE *)self->data)[k * classes + numbers[k]];                      \
        char *data[3] = {(char *)&total, (char *)chosen, (char *)&total};                          \
        intptr_t steps[3] = {0, sizeof(TYPE), 0};                                                  \
        loops->add.run(data, &lines, steps, loops->add.given);                                     \
        *(TYPE *)out->data = reduction == BY_MEAN ? -total / (TYPE)lines : -total;                 \
        *(TYPE *)weights->data = (TYPE)lines;                                                      \
    }

/* The mean or the sum: (self, target, weight, reduction, ignore_index, output, total_weight). */
static int class_loss(given_values given, int count, const turnout_loops *loops)
{
    const turnout_value *self = &given[0], *target = &given[1], *out = &given[5], *weights = &given[6];
    double space[MOST_CHOSEN];
    int64_t classes = 0, reduction = given[3].number;
    (void)count;
    if ((reduction != BY_MEAN && reduction != BY_SUM) || out->type != self->type || out->size != 1 || weights->type != self->type
        || weights->size != 1 || loops->add.run == NULL)
        return 0;
    intptr_t lines = (intptr_t)read_classes(self, target, &given[2], &given[4], &classes);
    if (lines == 0)
        return 0;
    const int64_t *numbers = (const int64_t *)target->data;
    if (self->type == TURNOUT_FLOAT)
        CHOOSE(float)
    else
        CHOOSE(double)
    return 1;
}

#define SPREAD(TYPE)                                                                               \
    {                                                                                              \
        TYPE slope = *(const TYPE *)grad->data;                                                    \
        if (reduction == BY_MEAN)                                                                  \
            slope = slope / *(const TYPE *)weights->data;                                          \
        for (int64_t k = 0; k < lines; k++)                                                        \
            ((TYPE *)out->data)[k * classes + numbers[k]] = -slope;                                \
    }

/* Its gradient: (grad_output, self, target, weight, reduction, ignore_index, total_weight, out). */
static int class_slope(given_values given, int count, const turnout_loops *loops)
{
    const turnout_value *grad = &given[0], *self = &given[1], *target = &given[2], *weights = &given[6], *out = &given[7];
    int64_t classes = 0, reduction = given[4].number, lines;
    (void)count, (void)loops;
    if ((reduction != BY_MEAN && reduction != BY_SUM) || grad->type != self->type || grad->size != 1 || weights->type != self->type
        || weights->size != 1 || out->type != self->type || out->size != self->size
        || (lines = read_classes(self, target, &given[3], &given[5], &classes)) == 0)
        return 0;
    const int64_t *numbers = (const int64_t *)target->data;
    memset(out->data, 0, out->size * out->bytes);
    if (self->type == TURNOUT_FLOAT)
        SPREAD(float)
    else
        SPREAD(double)
    return 1;
}

/* ---- random numbers */

/* Uniform numbers in [0, 1), multiples of 2^-24 or 2^-53, from the words of a key from an offset on. */
static void draw_uniform(void *to, int type, int64_t count, uint64_t key, uint64_t offset)
{
    uint64_t start = start_of(key, offset);
    for (int64_t k = 0; k < count; k++)
        if (type == TURNOUT_FLOAT)
            ((float *)to)[k] = (float)(int32_t)(word_at((uint64_t)k, start, key) & 0xffffff) * 0x1p-24f;
        else
            ((double *)to)[k] = (double)(int64_t)(word_at((uint64_t)k, start, key) & 0x1fffffffffffff) * 0x1p-53;
}

static void call_loop(const turnout_loop *loop, void *from, void *to, intptr_t count, intptr_t item)
{
    char *data[2] = {(char *)from, (char *)to};
    intptr_t steps[2] = {item, item};
    loop->run(data, &count, steps, loop->given);
}

/* (seed, offset, out) */
static int uniform_few(given_values given, int count, const turnout_loops *loops)
{
    (void)count, (void)loops;
    draw_uniform(given[2].data, given[2].type, given[2].size, key_of((uint64_t)given[0].number), (uint64_t)given[1].number);
    return 1;
}

/* sqrt(-2 ln(1 - u)) cos(2 pi v) of two lists of uniform numbers, in memory of its own for each step. */
#define NORMAL(TYPE)                                                                  \
    {                                                                                 \
        TYPE *u = (TYPE *)space[0], *v = (TYPE *)space[1], *other = (TYPE *)space[2]; \
        for (int64_t k = 0; k < size; k++) {                                          \
            u[k] = (TYPE)1 - u[k];                                                    \
            v[k] = v[k] * (TYPE)(2 * 3.141592653589793);                              \
        }                                                                             \
        call_loop(&loops->log, u, other, size, sizeof(TYPE));                         \
        for (int64_t k = 0; k < size; k++)                                            \
            other[k] = other[k] * (TYPE)-2;                                           \
        call_loop(&loops->sqrt, other, u, size, sizeof(TYPE));                        \
        call_loop(&loops->cos, v, other, size, sizeof(TYPE));                         \
        for (int64_t k = 0; k < size; k++)                                            \
            ((TYPE *)out->data)[k] = u[k] * other[k];                                 \
    }

/* (seed, the offset of the words of u, that of v, out) */
static int normal_few(given_values given, int count, const turnout_loops *loops)
{
    const turnout_value *out = &given[3];
    double space[3][MOST_NORMAL];
    int64_t size = out->size;
    uint64_t key = key_of((uint64_t)given[0].number);
    (void)count;
    if (loops->log.run == NULL || loops->sqrt.run == NULL || loops->cos.run == NULL)
        return 0;
    draw_uniform(space[0], out->type, size, key, (uint64_t)given[1].number);
    draw_uniform(space[1], out->type, size, key, (uint64_t)given[2].number);
    if (out->type == TURNOUT_FLOAT)
        NORMAL(float)
    else
        NORMAL(double)
    return 1;
}

/* ---- the table */

#define FEW_ELEMENTS 8192 /* above, a call of NumPy costs as little */
#define FLOATS "f4f8"
#define ORDERED "f4f8i4i8"

static const turnout_compiled COMPILED[] = {
    {"select", "anao", "", FEW_ELEMENTS, select_lines},
    {"gather", "anabo", "", FEW_ELEMENTS, gather_few},
    {"flip", "ado", "", FEW_ELEMENTS, flip_few},
    {"lower", "ano", "", FEW_ELEMENTS, lower_few},
    {"upper", "ano", "", FEW_ELEMENTS, upper_few},
    {"add up", "an.o", "f4f8i8", FEW_ELEMENTS, add_up},
    {"find largest", "ambo", ORDERED, FEW_ELEMENTS, find_largest},
    {"find smallest", "ambo", ORDERED, FEW_ELEMENTS, find_smallest},
    {"largest", "anboo", ORDERED, FEW_ELEMENTS, largest},
    {"smallest", "anboo", ORDERED, FEW_ELEMENTS, smallest},
    {"sort", "a.nboo", ORDERED, FEW_ELEMENTS, sort_few},
    {"order first", "annbboo", ORDERED, FEW_ELEMENTS, topk_few},
    {"any", "ao", "b1", FEW_ELEMENTS, any_few},
    {"all", "ao", "b1", FEW_ELEMENTS, all_few},
    {"any along", "anbo", "b1", FEW_ELEMENTS, any_along},
    {"all along", "anbo", "b1", FEW_ELEMENTS, all_along},
    {"class loss", "aa.nnoo", FLOATS, FEW_ELEMENTS, class_loss},
    {"class slope", "aaa.nnao", FLOATS, FEW_ELEMENTS, class_slope},
    {"uniform", "wwo", FLOATS, FEW_ELEMENTS, uniform_few},
    {"normal", "wwwo", FLOATS, MOST_NORMAL, normal_few},
};
static const turnout_functions FUNCTIONS = {TURNOUT_FUNCTIONS_VERSION, sizeof COMPILED / sizeof *COMPILED, COMPILED};
