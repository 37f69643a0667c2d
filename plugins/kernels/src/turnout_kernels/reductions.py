"""Rows of reductions: over any dims, of floats of any dtype and layout.

The kernels reduce runs of memory (`reduce_runs`), or whole rows of a matrix into one (`reduce_columns`). What lies otherwise is
copied first. Sums are kept in double between runs of 2,048 elements, or between 32 rows.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from turnout.config.tuples import NamedTuple
from turnout_aten.kernels.rows import Row, Sizes
from turnout_aten.shapes.extents import degrees_of_freedom, listed
from turnout_aten.shapes.losses import MEAN, NONE
from turnout_kernels.few import compiled
from turnout_kernels.layouts import deliver, packed, width_of
from turnout_kernels.native import FEW, FLOATS, code, plain, run, whole
from turnout_kernels.pointwise import apply

# Elements that are reduced by one part, where all elements are.
RUN = 1 << 14
# Columns from which on rows of a matrix are reduced as they are.
_WIDE = 16
# As in native/reductions.h.
(
    SUM, LARGEST, SMALLEST, SQUARES, NORM, LOG_OF_POWERS, DIFFERENCES, PRODUCT, SIZES, LARGEST_SIZE, SMALLEST_SIZE, VARIANCE,
    DEVIATION, DISTANCES,
) = range(14)  # fmt: skip


class Arranged(NamedTuple):
    """Elements as contiguous float32 or float64 [outer, length, inner], of which `length` are reduced to one."""

    array: Any
    length: int
    inner: int
    shape: tuple[int, ...]  # of the result, without the reduced dims
    kept: tuple[int, ...]  # the same with them


def arranged(self: Any, dim: Any, few: int = FEW) -> Arranged | None:
    """An array as the kernels take it, for a dim, several, or None or none for all. None where they do not serve it, or for up to
    `few` elements."""
    if self.size <= few or self.dtype.char not in FLOATS:
        return None
    ndim = self.ndim
    one = dim[0] if dim.__class__ is tuple and len(dim) == 1 else dim
    if one.__class__ is int and -ndim <= one < ndim and plain(self):  # the usual call: 2 us less
        shape, at = self.shape, one % ndim
        left, inner = shape[:at], prod(shape[at + 1 :])
        if inner == 1 or inner >= _WIDE:
            return Arranged(self, shape[at], inner, (*left, *shape[at + 1 :]), (*left, 1, *shape[at + 1 :]))
    dims = listed(dim, ndim)
    reduced = sorted({d % ndim for d in dims if -ndim <= d < ndim})
    if not ndim or len(reduced) < len(dims):
        return None
    others = [d for d in range(ndim) if d not in reduced]
    length, shape = prod([self.shape[d] for d in reduced]), tuple([self.shape[d] for d in others])
    kept = tuple([1 if d in reduced else n for d, n in enumerate(self.shape)])
    if plain(self):
        inner = prod(self.shape[reduced[-1] + 1 :])
        if reduced == list(range(reduced[0], reduced[-1] + 1)) and (inner == 1 or inner >= _WIDE):
            return Arranged(self, length, inner, shape, kept)
    # The order in which elements are reduced is that of the memory.
    order = sorted(reduced, key=lambda d: -abs(self.strides[d]))
    moved = self.transpose([*others, *order])
    if others and not (whole(moved) or moved.strides[-1] == self.itemsize):
        columns = self.transpose([*order, *others])
        if columns.strides[-1] == self.itemsize and prod(shape) >= _WIDE:
            return Arranged(packed(columns, width_of(self)), length, prod(shape), shape, kept)
    return Arranged(packed(moved, width_of(self)), length, 1, shape, kept)


def reduce(what: int, work: Arranged, out: Any, factor: float = 1.0, other: Any = None) -> None:
    """Reduce into a contiguous array of the dtype of the elements. `other` is the second array of differences."""
    array, length = work.array, work.length
    inputs = (array,) if other is None else (array, other)
    if work.inner > 1:
        run("reduce_columns", (out,), inputs, (code(array), what, length, work.inner), (factor,))
        return
    if length <= 2 * RUN or array.size != length:
        run("reduce_runs", (out,), inputs, (code(array), what, length), (factor, 0.0))
        return
    partial = np.empty(-(-length // RUN), array.dtype)
    middle = 0.0
    if what in (VARIANCE, DEVIATION):
        run("reduce_runs", (partial,), inputs, (code(array), SUM, RUN), (1.0, 0.0))
        middle = float(np.sum(partial, dtype=np.float64)) / length
    first, then = {
        SQUARES: (SQUARES, SUM), NORM: (SQUARES, SUM), DIFFERENCES: (DIFFERENCES, SUM), SIZES: (SIZES, SUM),
        VARIANCE: (DISTANCES, SUM), DEVIATION: (DISTANCES, SUM),
    }.get(what, (what, what))  # fmt: skip
    run("reduce_runs", (partial,), inputs, (code(array), first, RUN), (1.0, middle))
    if what in (NORM, DEVIATION):
        out.fill((float(np.sum(partial, dtype=np.float64)) * factor) ** 0.5)
    else:
        run("reduce_runs", (out,), (partial,), (code(array), then, partial.size), (factor, 0.0))


def reduced(what: int, self: Any, dim: Any, keepdim: bool, out: Any, factor: float = 1.0, *, mean: bool = False) -> Any:
    """The reduction of an array, written into `out` or a new array of its dtype. NotImplemented where it is not served."""
    if out is not None and out.dtype.char not in FLOATS:
        return NotImplemented
    work = arranged(self, dim)
    if work is None or (out is not None and out.dtype.itemsize > work.array.itemsize):
        return NotImplemented
    if out is None:
        out = np.empty(work.kept if keepdim else work.shape, self.dtype)
    made = out if plain(out) and out.dtype is work.array.dtype else np.empty(out.shape, work.array.dtype)
    reduce(what, work, made, factor / work.length if mean else factor)
    return deliver(made, out)


def over_dims(what: int, *, mean: bool = False) -> Row:
    """A reduction over dims."""

    def kernel(self: Any, dim: Any, keepdim: bool = False, dtype: Any = None, out: Any = None) -> Any:
        if dtype is not None and dtype.name != self.dtype.name:
            return NotImplemented
        return reduced(what, self, dim, keepdim, out, mean=mean)

    return Row(kernel, sizes=Sizes(FEW))


def over_all(what: int, *, mean: bool = False) -> Row:
    """A reduction of all elements."""

    def kernel(self: Any, dtype: Any = None, out: Any = None) -> Any:
        if dtype is not None and dtype.name != self.dtype.name:
            return NotImplemented
        return reduced(what, self, None, False, out, mean=mean)

    return Row(kernel, sizes=Sizes(FEW))


def extreme_over_dims(what: int) -> Row:
    """amax or amin."""

    def kernel(self: Any, dim: Any = (), keepdim: bool = False, out: Any = None) -> Any:
        return reduced(what, self, dim, keepdim, out)

    return Row(kernel, sizes=Sizes(FEW))


def extreme_of_all(what: int) -> Row:
    """max or min of all elements."""

    def kernel(self: Any, out: Any = None) -> Any:
        return reduced(what, self, None, False, out)

    return Row(kernel, sizes=Sizes(FEW))


def spread(what: int) -> Row:
    """var or std."""

    def kernel(self: Any, dim: Any, correction: Any, keepdim: bool, out: Any) -> Any:
        ndim = self.ndim
        dims = listed(dim, ndim)
        length = prod([self.shape[d] for d in {d % ndim for d in dims}]) if ndim else 0
        freedom = degrees_of_freedom(length, correction)
        return reduced(what, self, dim, keepdim, out, 1 / freedom) if freedom > 0 else NotImplemented

    return Row(kernel, sizes=Sizes(FEW))


_ORDERS = {2: NORM, 1: SIZES, float("inf"): LARGEST_SIZE, float("-inf"): SMALLEST_SIZE}


def linalg_vector_norm(self: Any, ord: Any, dim: Any, keepdim: bool, dtype: Any, out: Any) -> Any:
    if ord not in _ORDERS or (dtype is not None and dtype.name != self.dtype.name):
        return NotImplemented
    return reduced(_ORDERS[ord], self, dim, keepdim, out)


def logsumexp(self: Any, dim: Any, keepdim: bool) -> Any:
    work = arranged(self, dim, 0)  # fewer than a call of each of nine operators cost
    if work is None or work.length == self.size:
        return NotImplemented
    made = np.empty(work.kept if keepdim else work.shape, work.array.dtype)
    reduce(LOG_OF_POWERS, work, made)
    return deliver(made, made if self.dtype is made.dtype else np.empty(made.shape, self.dtype))


def mse_loss(self: Any, target: Any, reduction: int, out: Any) -> Any:
    if reduction == NONE or self.size <= FEW or self.shape != target.shape or out.dtype is not self.dtype:
        return NotImplemented
    if plain(self, target):
        work = Arranged(self, self.size, 1, (), ())
        made = np.empty((), self.dtype)
        reduce(DIFFERENCES, work, made, 1 / self.size if reduction == MEAN else 1.0, target)
        return deliver(made, out)
    made = _total("mse", self, target, reduction)
    return made if made is NotImplemented else deliver(made, out)


def _total(name: str, self: Any, target: Any, reduction: int, numbers: tuple[float, ...] = ()) -> Any:
    """The sum or the mean of an element-wise operator of arrays of one shape, which lie anyhow, in their dtype."""
    each = np.empty_like(self, width_of(self, target))
    if apply(name, (self, target), each, numbers) is NotImplemented:
        return NotImplemented
    made = np.empty((), each.dtype)
    reduce(SUM, Arranged(each.ravel("K"), each.size, 1, (), ()), made, 1 / each.size if reduction == MEAN else 1.0)
    return deliver(made, np.empty((), self.dtype))


def _loss(name: str, self: Any, target: Any, reduction: int, numbers: tuple[float, ...] = ()) -> Any:
    if self.size <= FEW or self.shape != target.shape or self.dtype is not target.dtype or self.dtype.char not in FLOATS:
        return NotImplemented
    if reduction == NONE:
        return apply(name, (self, target), None, numbers)
    return _total(name, self, target, reduction, numbers)


def l1_loss(self: Any, target: Any, reduction: int) -> Any:
    return _loss("distance", self, target, reduction)


def smooth_l1_loss(self: Any, target: Any, reduction: int, beta: float) -> Any:
    return _loss("bent", self, target, reduction, (float(beta), 1 / beta)) if beta > 0 else NotImplemented


def huber_loss(self: Any, target: Any, reduction: int, delta: float) -> Any:
    return _loss("bent", self, target, reduction, (float(delta), 1.0)) if delta > 0 else NotImplemented


# ---- places of extremes


def _located(self: Any, dim: Any, sign: int, values: Any, indices: Any) -> Any:
    """Write extremes and their places into outputs; `values` may be None."""
    # NumPy is quick where the elements of float32 lie in a row.
    if values is None and self.dtype.char in "fd" and whole(self) and dim in (None, -1, self.ndim - 1):
        return NotImplemented
    work = arranged(self, None if dim is None and whole(self) else dim)
    # Among equal elements the first one counts: where all are reduced, their order has to be that of the tensor.
    if work is None or indices.dtype != np.int64 or work.length >= 1 << 31 or (dim is None and not whole(self)):
        return NotImplemented
    found = np.empty(work.shape, work.array.dtype)
    places = np.empty(work.shape, np.int64)
    run("locate", (found, places), (work.array,), (code(work.array), work.length, work.inner, sign))
    indices[...] = places.reshape(indices.shape)
    if values is not None:
        deliver(found.reshape(values.shape), values)
    return indices


def place_of(sign: int, of_few: str) -> Row:
    """argmax or argmin."""

    def kernel(self: Any, dim: Any, keepdim: bool, out: Any) -> Any:
        return _located(self, dim, sign, None, out)

    return Row(kernel, sizes=Sizes(FEW), program=compiled(of_few))


def extreme_at(sign: int, of_few: str) -> Row:
    """max or min along a dim, with indices."""

    def kernel(self: Any, dim: int, keepdim: bool, values: Any, indices: Any) -> Any:
        return NotImplemented if _located(self, dim, sign, values, indices) is NotImplemented else None

    return Row(kernel, sizes=Sizes(FEW), program=compiled(of_few))


# fmt: off
KERNELS: dict[str, Any] = {
    "sum.IntList_out":        over_dims(SUM),
    "sum.out":                over_all(SUM),
    "mean.out":               over_dims(SUM, mean=True),
    "mean.dtype_out":         over_all(SUM, mean=True),
    "prod.int_out":           over_dims(PRODUCT),
    "prod.out":               over_all(PRODUCT),
    "amax.out":               extreme_over_dims(LARGEST),
    "amin.out":               extreme_over_dims(SMALLEST),
    "max.unary_out":          extreme_of_all(LARGEST),
    "min.unary_out":          extreme_of_all(SMALLEST),
    "var.correction_out":     spread(VARIANCE),
    "std.correction_out":     spread(DEVIATION),
    "linalg_vector_norm.out": Row(linalg_vector_norm, sizes=Sizes(FEW)),
    "logsumexp":              Row(logsumexp),
    "mse_loss.out":           Row(mse_loss, sizes=Sizes(FEW)),
    "l1_loss":                Row(l1_loss, sizes=Sizes(FEW)),
    "smooth_l1_loss":         Row(smooth_l1_loss, sizes=Sizes(FEW)),
    "huber_loss":             Row(huber_loss, sizes=Sizes(FEW)),
    "argmax.out":             place_of(1, "find largest"),
    "argmin.out":             place_of(-1, "find smallest"),
    "max.dim_max":            extreme_at(1, "largest"),
    "min.dim_min":            extreme_at(-1, "smallest"),
}
# fmt: on
