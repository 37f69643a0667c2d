/* A recurrent layer along its whole sequence: for each step the products of the state with its weights, and the gates. */

#define GATE_BYTES 64
typedef T V(gate_lanes) __attribute__((vector_size(GATE_BYTES)));
typedef T V(gate_memory) __attribute__((vector_size(GATE_BYTES), aligned(sizeof(T)), may_alias));
#define LANES ((int64_t)(GATE_BYTES / sizeof(T)))
#define ROWS 4
#define MOST_COLUMNS 4

/* sums[r] = bias + state[r] weights, for `rows` rows and `columns` times LANES of the `width` columns: rows share each load of
   the weights, and there are enough sums that none waits for the one before. */
static inline __attribute__((always_inline)) void V(state_tile)(
    T *sums, const T *state, const T *weights, const T *bias, int64_t rows, int64_t columns, int64_t hidden, int64_t width)
{
    V(gate_lanes) sum[ROWS][MOST_COLUMNS];
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            sum[r][c] = ((const V(gate_memory) *)bias)[c];
    for (int64_t k = 0; k < hidden; k++)
        for (int64_t c = 0; c < columns; c++) {
            V(gate_lanes) w = ((const V(gate_memory) *)(weights + k * width))[c];
            for (int64_t r = 0; r < rows; r++)
                sum[r][c] += w * state[r * hidden + k];
        }
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            ((V(gate_memory) *)(sums + r * width))[c] = sum[r][c];
}

static inline __attribute__((always_inline)) void V(state_products)(
    T *sums, const T *state, const T *weights, const T *bias, int64_t rows, int64_t columns, int64_t hidden, int64_t width)
{
    int64_t g = 0;
    for (; g + columns * LANES <= width; g += columns * LANES)
        V(state_tile)(sums + g, state, weights + g, bias + g, rows, columns, hidden, width);
    for (; g < width; g += LANES)
        V(state_tile)(sums + g, state, weights + g, bias + g, rows, 1, hidden, width);
}

/* The gates are in, forget, cell, out. */
static void V(lstm_gates)(T *restrict o, T *restrict h, T *restrict c, const T *restrict x, const T *restrict s, int64_t n)
{
    for (int64_t k = 0; k < n; k++) {
        T in = V(sigmoid)(x[k] + s[k]), forget = V(sigmoid)(x[n + k] + s[n + k]);
        T new = V(tanh)(x[2 * n + k] + s[2 * n + k]), out = V(sigmoid)(x[3 * n + k] + s[3 * n + k]);
        T kept = forget * c[k] + in * new;
        c[k] = kept;
        o[k] = h[k] = out * V(tanh)(kept);
    }
}

/* The gates are reset, update, new. */
static void V(gru_gates)(T *restrict o, T *restrict h, const T *restrict x, const T *restrict s, int64_t n)
{
    for (int64_t k = 0; k < n; k++) {
        T reset = V(sigmoid)(x[k] + s[k]), update = V(sigmoid)(x[n + k] + s[n + k]);
        T new = V(tanh)(x[2 * n + k] + reset * s[2 * n + k]);
        o[k] = h[k] = new + update * (h[k] - new);
    }
}

/* i: type, whether it is an LSTM. a: output [T, N, hidden], hidden state and cell state [N, hidden], which hold the first state and
   then the last one, sums [parts, 4, width], gates of the inputs [T, N, gates], weights [hidden, width], biases [width]. The first two
   dims of the output and of the gates may have any strides, so that a sequence is read from its end; the others are contiguous.
   `width` is the number of gates, rounded up to 64 bytes. Each part has its own rows of the batch, for all steps. */
static void V(recurrent)(const job *j, int64_t part)
{
    const array *out = &j->a[0], *gates = &j->a[4];
    int64_t steps = out->shape[0], hidden = out->shape[2], width = j->a[5].shape[1], first, last;
    T *sums = (T *)j->a[3].p + part * ROWS * width;
    const T *weights = (const T *)j->a[5].p, *bias = (const T *)j->a[6].p;
    share(out->shape[1], ROWS, j, part, &first, &last);
    for (int64_t n = first; n < last; n += ROWS) {
        int64_t rows = LEAST(ROWS, last - n);
        T *h = (T *)j->a[1].p + n * hidden, *c = (T *)j->a[2].p + n * hidden;
        for (int64_t t = 0; t < steps; t++) {
            switch (rows) {
            case 1: V(state_products)(sums, h, weights, bias, 1, 4, hidden, width); break;
            case 2: V(state_products)(sums, h, weights, bias, 2, 4, hidden, width); break;
            case 3: V(state_products)(sums, h, weights, bias, 3, 2, hidden, width); break;
            default: V(state_products)(sums, h, weights, bias, ROWS, 2, hidden, width);
            }
            for (int64_t r = 0; r < rows; r++) {
                T *o = (T *)(out->p + t * out->stride[0] + (n + r) * out->stride[1]);
                const T *x = (const T *)(gates->p + t * gates->stride[0] + (n + r) * gates->stride[1]);
                if (j->i[1])
                    V(lstm_gates)(o, h + r * hidden, c + r * hidden, x, sums + r * width, hidden);
                else
                    V(gru_gates)(o, h + r * hidden, x, sums + r * width, hidden);
            }
        }
    }
}
#undef LANES
#undef ROWS
#undef MOST_COLUMNS
