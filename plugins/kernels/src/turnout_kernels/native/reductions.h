/* Runs of memory, each reduced to one element. i[0] is the type. What is made of a run is numbered as in rows.h. */

/* The sum over k of what a loop makes of each element, CHUNK elements at a time */
#define SUM_OF(value)                                                                                                             \
    for (int64_t at = 0; at < m; at += CHUNK) {                                                                                   \
        int64_t here = LEAST(CHUNK, m - at);                                                                                      \
        for (int64_t k = 0; k < here; k++)                                                                                        \
            e[k] = value;                                                                                                         \
        made += V(sum)(e, here);                                                                                                  \
    }

/* i: type, what, length. f: a factor of the result; the middle, for distances. a: results, input; for differences, a second
   input. The last run may be shorter. */
static void V(reduce_runs)(const job *j, int64_t part)
{
    int64_t n = j->i[2], size = j->a[1].size, first, last;
    share((size + n - 1) / n, 1, j, part, &first, &last);
    for (int64_t r = first; r < last; r++) {
        const T *x = (const T *)j->a[1].p + r * n, *y = j->i[1] == DIFFERENCES ? (const T *)j->a[2].p + r * n : x;
        int64_t m = LEAST(n, size - r * n), k = 0;
        double made = 0;
        T e[CHUNK], most;
        switch (j->i[1]) {
        case SUM: made = V(sum)(x, m); break;
        case LARGEST: made = V(outermost)(x, m, 1); break;
        case SMALLEST: made = V(outermost)(x, m, -1); break;
        case SQUARES: made = V(sum_of_products)(x, 0, x, 0, m); break;
        case NORM: made = sqrt(V(sum_of_products)(x, 0, x, 0, m)); break;
        case LOG_OF_POWERS:
            most = V(outermost)(x, m, 1);
            most = most - most == 0 ? most : 0;
            SUM_OF(V(expo)(x[at + k] - most))
            made = log(made) + most;
            break;
        case DIFFERENCES: SUM_OF((x[at + k] - y[at + k]) * (x[at + k] - y[at + k])) break;
        case PRODUCT: {
            double lanes[8] = {1, 1, 1, 1, 1, 1, 1, 1};
            for (; k + 8 <= m; k += 8)
                for (int q = 0; q < 8; q++)
                    lanes[q] *= x[k + q];
            for (; k < m; k++)
                lanes[0] *= x[k];
            made = ((lanes[0] * lanes[1]) * (lanes[2] * lanes[3])) * ((lanes[4] * lanes[5]) * (lanes[6] * lanes[7]));
            break;
        }
        case SIZES: SUM_OF(x[at + k] < 0 ? -x[at + k] : x[at + k]) break;
        case LARGEST_SIZE: made = V(outermost_size)(x, m, 1); break;
        case SMALLEST_SIZE: made = V(outermost_size)(x, m, 0); break;
        case DISTANCES: made = V(sum_of_products)(x, (T)j->f[1], x, (T)j->f[1], m); break;
        default:
            most = (T)(V(sum)(x, m) / (double)m);
            made = V(sum_of_products)(x, most, x, most, m);
        }
        made *= j->f[0];
        ((T *)j->a[0].p)[r] = (T)(j->i[1] == DEVIATION ? sqrt(made) : made);
    }
}
#undef SUM_OF
