"""Reductions: one work-item per result reads all its elements. A few results of many elements are computed in pieces.

The last piece of a result joins all of them where work-groups see what others have written; elsewhere a second kernel does.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

from turnout.dtypes import bool_, float32, float64
from turnout_aten.kernels.rows import Row
from turnout_aten.shapes.extents import NO_DIMS, contiguous_strides, degrees_of_freedom, dims_of
from turnout_opencl.arrays import ClArray, memory_of, new_array
from turnout_opencl.backend import contiguous, copy, fill
from turnout_opencl.grids import DIMS, merged, packed
from turnout_opencl.pointwise import as_bool, dense, run_map
from turnout_opencl.programs import REDUCTIONS, TYPES, sweep_program
from turnout_opencl.queues import COUNTS

if TYPE_CHECKING:
    from turnout_opencl.devices import ClDevice

Ints = tuple[int, ...]

(
    TOTAL, PRODUCT, LARGEST, SMALLEST, SOME, EVERY, DEVIATION, SIZES, SQUARES, POWERS, NONZERO, LARGEST_SIZE, SMALLEST_SIZE,
) = REDUCTIONS.values()  # fmt: skip
# What combines the partial results of those that look at an element in their own way.
_SECOND = {
    DEVIATION: TOTAL, SIZES: TOTAL, SQUARES: TOTAL, POWERS: TOTAL, NONZERO: TOTAL, LARGEST_SIZE: LARGEST, SMALLEST_SIZE: SMALLEST,
}  # fmt: skip
_CHUNK = 4096  # elements per work-item of the first stage, or a multiple of it
_SHARES = 32  # work-items for each core: the last one to end is late by a 32nd of a core's time at most
_MOST = 256  # work-items that suffice for any device
_MANY = 1 << 16  # elements from which a reduction gets a program of its own
_LINE = 1024  # results of a work-item across lines, as in the template `sweep`
_SHORT = 32  # results below which walking along them does not pay
_ITEMS = 16  # work-items that keep a device busy
_ROWS = 64  # rows that a work-item has at least


class Split:
    """An array's dims, those that stay and those that are reduced.

    count    the reduced elements of a result
    results  how many there are
    walk     how a kernel goes through the reduced elements: their dims, and steps in its output, in the array and in an operand
    line     the one stride of the reduced elements, or None where they do not merge into one dim
    """

    def __init__(self, shape: Ints, strides: Ints, dims: Ints) -> None:
        kept = [d for d in range(len(shape)) if d not in dims]
        self.kept = tuple(shape[d] for d in kept)
        self.kept_strides = tuple(strides[d] for d in kept)
        self.inner = tuple(shape[d] for d in dims)
        self.inner_strides = tuple(strides[d] for d in dims)
        nowhere = (0,) * len(self.inner)
        self.walk = self.inner, (nowhere, self.inner_strides, nowhere)
        self.count, self.results = prod(self.inner), prod(self.kept)
        _, merged_dims, _, steps = merged(self.inner, (self.inner_strides,))
        self.line = steps[0] if merged_dims == 1 else None


_split = lru_cache(maxsize=4096)(Split)


def split_of(array: ClArray, dims: Ints) -> Split:
    """The split of an array. A reduction is asked for again and again, by a host whose caches the one before has swept."""
    return _split(array.shape, array.strides, dims)


def dense_strides(out: ClArray, kept: Ints) -> Ints:
    """The strides of a result over the kept dims only: dims of length 1 that were kept in place drop out."""
    found = [s for n, s in zip(out.shape, out.strides, strict=True) if n != 1]
    steps = iter(found)
    return tuple(next(steps) if n != 1 else 0 for n in kept)


def reduce(
    op: int, self: ClArray, dims: Ints, out: ClArray, *, divisor: float | None = None, root: bool = False,
    centre: ClArray | None = None, power: float | None = None,
) -> None:  # fmt: skip
    """Queue a reduction of arrays of one dtype.

    `power` is that of POWERS; `divisor` and `root` finish a mean or a deviation, around `centre`.

    `centre` is contiguous, with the kept dims of `self`.
    """
    split = split_of(self, dims)
    large = self.size >= _MANY
    # Of a small array, partial sums have its dtype, and those of two-byte floats may be too large for it where the result is not.
    cut = split.count >= 2 * _CHUNK and split.results <= COUNTS and (large or not TYPES[self.dtype].half)
    line = split.line if cut else None
    if line is not None and not large:
        self = _partials(op, self, split, line, centre, power)
        op, centre = _SECOND.get(op, op), None
        split = split_of(self, (len(self.shape) - 1,))
    place = self.place
    kept = split.kept
    finishing = (int(divisor is not None), int(root))
    bits = tuple([0 if number is None else TYPES[out.dtype].bits(number, place.double) for number in (divisor, power)])
    strides = (dense_strides(out, kept), split.kept_strides, (0,) * len(kept) if centre is None else contiguous_strides(kept))
    if line is not None and large:
        _along(op, self, kept, strides, (split.count, line), out, centre, bits, finishing, _piece(place, split))
        return
    if large and _sweep(op, self, split, out, centre, strides, bits, finishing):
        return
    bases, buffers = memory_of(out, self, centre)
    call, count = packed(op, kept, strides, bases, split.walk, bits, finishing)
    place.start("reduce", out.dtype, "reduce", call, buffers, count)


def _sweep(
    op: int, self: ClArray, split: Split, out: ClArray, centre: ClArray | None, strides: tuple[Ints, ...], bits: Ints,
    finishing: Ints,
) -> bool:  # fmt: skip
    """Queue a reduction of a large array whose elements stand in lines; False for others."""
    _, inner_dims, inner_sizes, inner_steps = merged(split.inner, (split.inner_strides,))
    if inner_dims != 1:
        return False
    rows, step = inner_sizes[0], inner_steps[0]
    if step == 1:
        _along(op, self, split.kept, strides, (rows, step), out, centre, bits, finishing)
        return True
    _, dims, sizes, steps = merged(split.kept, strides)
    along = [steps[k * DIMS : k * DIMS + dims] for k in range(3)]
    if along[0][-1] != 1 or along[1][-1] != 1 or along[2][-1] not in (0, 1) or sizes[dims - 1] < _SHORT:
        return False
    length = sizes[dims - 1]
    items = split.results // length * -(-length // _LINE)
    chunks = max(1, min(_ITEMS // items, rows // _ROWS)) if dims == 1 and not TYPES[out.dtype].half else 1
    outer = (sizes[: dims - 1], tuple(each[:-1] for each in along))
    if chunks == 1:
        _across(op, self, outer, length, (rows, step), out, centre, bits, (*finishing, rows))
        return True
    chunk = -(-rows // chunks)
    made = new_array(self.place, (-(-rows // chunk), length), out.dtype)
    _across(op, self, outer, length, (rows, step), made, centre, bits, (0, 0, chunk))
    joined, count = _SECOND.get(op, op), made.shape[0]
    _across(joined, made, outer, length, (count, length), out, None, bits, (*finishing, count))
    return True


def _along(
    op: int, self: ClArray, kept: Ints, strides: tuple[Ints, ...], line: Ints, out: ClArray, centre: ClArray | None, bits: Ints,
    finishing: Ints, piece: int = 0,
) -> None:  # fmt: skip
    """Queue a reduction of lines of (elements, step), whole ones or in pieces."""
    length, step = line
    bases, buffers = memory_of(out, self, centre)
    inner = ((length,), ((0,), (step,), (0,)))
    pieces = -(-length // piece) if piece else 1
    call, count = packed(op, kept, strides, bases, inner, bits, (*finishing, piece or length, pieces))
    _in_pieces(self, sweep_program(op), "along", call, buffers, count, pieces, 1)


def _in_pieces(
    self: ClArray, program: str, kernel: str, call: bytes, buffers: tuple[Any, ...], count: int, pieces: int, left: int
) -> None:
    """Queue a kernel over the pieces of `count` results, which leave `left` numbers of up to 8 bytes each, and what joins them.

    One kernel is better than two: while it has all cores, the thread that would start the second one waits for a core.
    """
    place, group = self.place, _group(count * pieces)
    kept = [place.allocate(8 * count * pieces) if pieces > 1 else None for _ in range(left)]
    counts = place.counts() if pieces > 1 else None
    buffers = (*buffers, *kept, counts)
    place.start_grid(program, self.dtype, kernel, call, buffers, (-(-count * pieces // group) * group,), (group,))
    if pieces > 1 and counts is None:
        place.start(program, self.dtype, f"{kernel}_joined", call, buffers, count)


def _across(
    op: int, self: ClArray, outer: tuple[Ints, tuple[Ints, ...]], length: int, rows: Ints, out: ClArray, centre: ClArray | None,
    bits: Ints, finishing: Ints,
) -> None:  # fmt: skip
    """Queue a reduction across lines of `length` results, of (rows, step). `finishing` ends with the rows of a chunk."""
    *finished, chunk = finishing
    pieces, chunks = -(-length // _LINE), -(-rows[0] // chunk)
    bases, buffers = memory_of(out, self, centre)
    inner = ((rows[0],), ((0,), (rows[1],), (0,)))
    call, count = packed(op, *outer, bases, inner, (*bits, chunk, chunks), (*finished, length, pieces))
    self.place.start_grid(sweep_program(op), out.dtype, "across", call, buffers, (count * pieces * chunks,), (1,))


def _group(count: int) -> int:
    """The work-items of a group: one, where there are few in all, so that all cores get some."""
    return 8 if count > _MOST else 1


def _piece(place: ClDevice, split: Split) -> int:
    """The elements of a piece: no fewer than `_CHUNK`, and more where all cores are busy even so.

    A work-item ends by joining its vectors, which takes as long as some hundreds of elements, and where the next one begins, a
    core has fetched nothing ahead.
    """
    return -(-split.count * split.results // (min(_SHARES * place.units, _MOST) * _CHUNK)) * _CHUNK


def _partials(op: int, self: ClArray, split: Split, line: int, centre: ClArray | None, power: float | None) -> ClArray:
    """Partial results, (*kept, pieces), of a small array whose reduced elements are `line` apart."""
    pieces, rest = divmod(split.count, _CHUNK)
    made = new_array(self.place, (*split.kept, pieces + (1 if rest else 0)), self.dtype)
    for count, size, column in ((pieces, _CHUNK, 0), (1, rest, pieces)):
        if size:
            strides = (*split.kept_strides, _CHUNK * line, line)
            part = self.view((*split.kept, count, size), strides, column * _CHUNK * line)
            _partial(op, part, made.view((*split.kept, count), made.strides, column), centre, power)
    return made


def _partial(op: int, part: ClArray, out: ClArray, centre: ClArray | None, power: float | None) -> None:
    """Reduce the last dim of `part`, (*kept, chunks, elements), into `out`."""
    lengths = part.shape[:-1]
    bits = (0, TYPES[part.dtype].bits(power or 0, part.place.double))
    centre_strides = (0,) * len(lengths) if centre is None else (*contiguous_strides(lengths[:-1]), 0)
    strides = (out.strides, part.strides[:-1], centre_strides)
    bases, buffers = memory_of(out, part, centre)
    call, count = packed(op, lengths, strides, bases, ((part.shape[-1],), ((0,), part.strides[-1:], (0,))), bits)
    part.place.start("reduce", part.dtype, "reduce", call, buffers, count)


# ---- sums, products, means


def sum_all(self: ClArray, dtype: Any, out: ClArray) -> None:
    """The sum of all elements."""
    reduce(TOTAL, self, dims_of(len(self.shape), None), out)


def sum_dims(self: ClArray, dim: Any, keepdim: bool, dtype: Any, out: ClArray) -> None:
    """Sum over some dims; None and [] mean all."""
    reduce(TOTAL, self, dims_of(len(self.shape), dim), out)


def mean_all(self: ClArray, dtype: Any, out: ClArray) -> None:
    """The mean of all elements."""
    mean_dims(self, None, False, dtype, out)


def mean_dims(self: ClArray, dim: Any, keepdim: bool, dtype: Any, out: ClArray) -> None:
    """The mean over some dims: the sum divided by the count."""
    dims = dims_of(len(self.shape), dim)
    reduce(TOTAL, self, dims, out, divisor=float(split_of(self, dims).count))


def prod_all(self: ClArray, dtype: Any, out: ClArray) -> None:
    """The product of all elements."""
    reduce(PRODUCT, self, dims_of(len(self.shape), None), out)


def prod_dim(self: ClArray, dim: int, keepdim: bool, dtype: Any, out: ClArray) -> None:
    """The product along one dim."""
    reduce(PRODUCT, self, dims_of(len(self.shape), dim), out)


def lines(place: Any, template: str, kernel: str, op: int, arrays: tuple[ClArray, ...], dim: int) -> None:
    """Queue a kernel whose work-items walk along `dim` of arrays of one shape."""
    arrays = tuple([a.at_least_1d() for a in arrays])
    shape = arrays[0].shape
    dim %= len(shape)
    kept = (*shape[:dim], *shape[dim + 1 :])
    strides = tuple((*a.strides[:dim], *a.strides[dim + 1 :]) for a in arrays)
    inner = ((shape[dim],), tuple((a.strides[dim],) for a in arrays))
    call, count = packed(op, kept, strides, tuple(a.offset for a in arrays), inner)
    place.start(template, arrays[0].dtype, kernel, call, tuple(a.buffer for a in arrays), count)


# ---- largest and smallest


def extreme_dims(op: int) -> Any:
    def kernel(self: ClArray, dim: Any, keepdim: bool, out: ClArray) -> None:
        reduce(op, self, dims_of(len(self.shape), dim), out)

    return kernel


def extreme_all(op: int) -> Any:
    def kernel(self: ClArray, out: ClArray) -> None:
        reduce(op, self, dims_of(len(self.shape), None), out)

    return kernel


def find(op: int, self: ClArray, dims: Ints, indices: ClArray, values: ClArray | None) -> None:
    """Queue where the largest (0) or smallest (1) elements are, counted within the dims in row-major order."""
    split = split_of(self, dims)
    if self.size >= _MANY and split.line == 1:
        _find_along(op, self, split, indices, values)
        return
    kept = split.kept
    found = (0,) * len(kept) if values is None else dense_strides(values, kept)
    targets = (dense_strides(indices, kept), split.kept_strides, found)
    bases, buffers = memory_of(indices, self, values)
    call, count = packed(op, kept, targets, bases, split.walk)
    self.place.start("reduce", self.dtype, "find", call, buffers, count)


def _find_along(op: int, self: ClArray, split: Split, indices: ClArray, values: ClArray | None) -> None:
    """The same for large arrays whose reduced elements stand next to each other: few lines are cut into pieces."""
    kept = split.kept
    piece = _piece(self.place, split) if split.results <= COUNTS else split.count
    pieces = -(-split.count // piece)
    found = (0,) * len(kept) if values is None else dense_strides(values, kept)
    steps = (dense_strides(indices, kept), split.kept_strides, found)
    bases, buffers = memory_of(indices, self, values)
    call, count = packed(0, kept, steps, bases, split.walk, extra=(piece, pieces))
    _in_pieces(self, sweep_program((LARGEST, SMALLEST)[op]), "find", call, buffers, count, pieces, 2)


def extreme_where(op: int) -> Any:
    def kernel(self: ClArray, dim: Any, keepdim: bool, out: ClArray) -> None:
        find(op, self, dims_of(len(self.shape), dim), out, None)

    return kernel


def extreme_both(op: int) -> Any:
    def kernel(self: ClArray, dim: int, keepdim: bool, values: ClArray, indices: ClArray) -> None:
        find(op, self, dims_of(len(self.shape), dim), indices, values)

    return kernel


def both_extremes(self: ClArray, dim: Any, keepdim: bool, smallest: ClArray, largest: ClArray) -> None:
    """The smallest and the largest element."""
    dims = dims_of(len(self.shape), dim)
    reduce(SMALLEST, self, dims, smallest)
    reduce(LARGEST, self, dims, largest)


# ---- truths: of no elements, False and True


def truth(op: int) -> Any:
    def kernel(self: ClArray, dim: Any, keepdim: bool, out: ClArray) -> None:
        given = as_bool(self)
        if dim in NO_DIMS:
            copy(out, given)
            return
        # The output is bool, or uint8 for uint8 inputs: bytes of 0 and 1 either way.
        made = out if out.dtype is bool_ else new_array(out.place, out.shape, bool_)
        reduce(op, given, dims_of(len(given.shape), dim), made)
        copy(out, made)

    return kernel


def truth_all(op: int) -> Any:
    over = truth(op)

    def kernel(self: ClArray, out: ClArray) -> None:
        over(self, None, False, out)

    return kernel


# ---- moments


def variance(root: bool) -> Any:
    """The variance in two passes."""

    def kernel(self: ClArray, dim: Any, correction: Any, keepdim: bool, out: ClArray) -> None:
        dims = dims_of(len(self.shape), dim)
        split = split_of(self, dims)
        mean = new_array(self.place, split.kept, self.dtype)
        if not split.count:
            fill(out, float("nan"))
            return
        reduce(TOTAL, self, dims, mean, divisor=float(split.count))
        freedom = max(degrees_of_freedom(split.count, correction), 0)
        reduce(DEVIATION, self, dims, out, divisor=float(freedom), root=root, centre=mean)

    return kernel


# ---- norms


def vector_norm(self: ClArray, ord: Any, dim: Any, keepdim: bool, dtype: Any, out: ClArray) -> None:
    """(sum of |x| ** ord) ** (1 / ord); the largest or smallest |x| for the infinities, the number of nonzeros for 0."""
    given, dims = dense(self, out.dtype), dims_of(len(self.shape), dim)
    simple = {0: NONZERO, 1: SIZES, 2: SQUARES, float("inf"): LARGEST_SIZE, -float("inf"): SMALLEST_SIZE}
    if ord in simple:
        reduce(simple[ord], given, dims, out, root=ord == 2)
        return
    # In double precision where there is one: two-byte floats have no room for powers.
    wide = float64 if out.place.double else float32
    powers = new_array(out.place, out.shape, wide)
    reduce(POWERS, contiguous(given, wide), dims, powers, power=float(ord))
    copy(out, run_map("pow", powers, powers, 1 / ord))


# fmt: off
KERNELS = {
    "linalg_vector_norm.out": Row(vector_norm),
    "sum.out":         Row(sum_all),
    "sum.IntList_out": Row(sum_dims),
    "mean.dtype_out":  Row(mean_all),
    "mean.out":        Row(mean_dims),
    "prod.out":        Row(prod_all),
    "prod.int_out":    Row(prod_dim),
    "amax.out":        Row(extreme_dims(LARGEST)),
    "amin.out":        Row(extreme_dims(SMALLEST)),
    "aminmax.out":     Row(both_extremes),
    "max.unary_out":   Row(extreme_all(LARGEST)),
    "min.unary_out":   Row(extreme_all(SMALLEST)),
    "max.dim_max":     Row(extreme_both(0)),
    "min.dim_min":     Row(extreme_both(1)),
    "argmax.out":      Row(extreme_where(0)),
    "argmin.out":      Row(extreme_where(1)),
    "any.all_out":     Row(truth_all(SOME)),
    "any.out":         Row(truth(SOME)),
    "any.dims_out":    Row(truth(SOME)),
    "all.all_out":     Row(truth_all(EVERY)),
    "all.out":         Row(truth(EVERY)),
    "all.dims_out":    Row(truth(EVERY)),
    "var.correction_out": Row(variance(root=False)),
    "std.correction_out": Row(variance(root=True)),
}
# fmt: on
