// Rows in order, by a bitonic sort (K. E. Batcher, "Sorting networks and their applications", 1968) of (value, place) in shared
// memory. Equal elements keep their order, because places differ. nan is above all numbers.

#define MOST_SORTED 2048

struct Sorted {
    accum value;
    int place;
};

// Whether the first comes before the second. What fills a row up, from place `length` on, comes last.
__device__ inline bool comes_first(Sorted a, Sorted b, int length, whole descending) {
    if (a.place >= length || b.place >= length) return a.place < b.place;
    bool nan = a.value != a.value;
    if (nan != (b.value != b.value)) return nan == (descending != 0);
    if (nan || a.value == b.value) return a.place < b.place;
    return descending ? a.value > b.value : a.value < b.value;
}

// Puts two places in order, or the other way round.
__device__ inline void exchange(accum* keys, int* from, int i, int j, bool forwards, int end, whole descending) {
    Sorted a = {keys[i], from[i]}, b = {keys[j], from[j]};
    if (comes_first(b, a, end, descending) != forwards) return;
    keys[i] = b.value;
    from[i] = b.place;
    keys[j] = a.value;
    from[j] = a.place;
}

// A block has a row, which is filled up to `padded` elements, a power of two. The first `count` elements are written. Parts of
// `keep` elements, a power of two that is no less, are sorted in turns forwards and backwards. Then of each two that lie beside
// each other the elements that come first are kept, in the place of the first part, and sorted again, until one is left.
extern "C" __global__ void sort_rows(
    const scalar* x, scalar* values, whole* places, whole length, whole padded, whole keep, whole count, whole descending
) {
    __shared__ accum keys[MOST_SORTED];
    __shared__ int from[MOST_SORTED];
    whole row = blockIdx.x;
    int end = (int)length, left = (int)padded, part = (int)keep, spread = 1;
    for (int i = threadIdx.x; i < left; i += blockDim.x) {
        keys[i] = i < end ? load(x[row * length + i]) : accum(0);
        from[i] = i;
    }
    for (int size = 2; size <= part; size *= 2) {
        for (int reach = size / 2; reach; reach /= 2) {
            __syncthreads();
            for (int pair = threadIdx.x; pair < left / 2; pair += blockDim.x) {
                int i = 2 * pair - (pair & (reach - 1));
                exchange(keys, from, i, i + reach, (i & size) == 0, end, descending);
            }
        }
    }
    while (left > part) {
        __syncthreads();
        left /= 2;
        for (int i = threadIdx.x; i < left; i += blockDim.x) {
            int first = (i & -part) * 2 * spread + (i & (part - 1));
            exchange(keys, from, first, first + part * spread, true, end, descending);
        }
        spread *= 2;
        for (int reach = part / 2; reach; reach /= 2) {
            __syncthreads();
            for (int pair = threadIdx.x; pair < left / 2; pair += blockDim.x) {
                int i = 2 * pair - (pair & (reach - 1)), at = (i & -part) * spread + (i & (part - 1));
                exchange(keys, from, at, at + reach, (i & part) == 0, end, descending);
            }
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        put(values + row * count + i, keys[i]);
        places[row * count + i] = from[i];
    }
}
