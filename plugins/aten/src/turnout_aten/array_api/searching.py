"""Functions that search, select and sort, and sets of distinct elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from turnout.dtypes import bool_, int64, uint8
from turnout.errors import ArgumentError, ShapeError
from turnout_aten.array_api.promotion import as_array, axes_of, common, pair
from turnout_aten.functions import reductions
from turnout_aten.generated import functions as fn
from turnout_aten.shapes.extents import wrap_dim
from turnout_aten.tensor.tensor import Tensor

if TYPE_CHECKING:
    from turnout_aten.array_api.promotion import Axis, Number


class UniqueAll(NamedTuple):
    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    values: Tensor
    inverse_indices: Tensor


# ---- searching


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Where the largest element stands, the first of equals: along an axis, or in x flattened."""
    return fn.argmax(_ordered(x), axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Where the smallest element stands, the first of equals: along an axis, or in x flattened."""
    return fn.argmin(_ordered(x), axis, keepdims)


def _ordered(x: Tensor) -> Tensor:
    """Operators choose the largest of numbers, not of bools."""
    return x.to(uint8) if x.dtype is bool_ else x


def count_nonzero(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """How many elements differ from 0, as int64."""
    axes = axes_of("count_nonzero", x, axis)
    found = x != 0
    return fn.sum(found, axes, keepdims) if axes else found.to(int64)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """The places of the elements that differ from 0, one vector per axis. Raises ShapeError for a 0-dim array."""
    if x.ndim == 0:
        raise ShapeError("nonzero: a 0-dim array has no axes to count along")
    return tuple(reductions.nonzero(x, as_tuple=True))


def searchsorted(x1: Tensor, x2: Tensor | Number, /, *, side: str = "left", sorter: Tensor | None = None) -> Tensor:
    """Where the elements of x2 belong in the sorted vector x1, before ("left") or behind ("right") equal ones.

    sorter  the order that sorts x1, where it is not sorted itself
    """
    if side not in ("left", "right"):
        raise ArgumentError(f"searchsorted: side must be 'left' or 'right', got {side!r}")
    sequence, values = pair("searchsorted", x1, x2)
    return fn.searchsorted(sequence, values, side=side, sorter=sorter if sorter is None else sorter.to(int64))


def where(condition: Tensor, x1: Tensor | Number, x2: Tensor | Number, /) -> Tensor:
    """The elements of x1 where `condition` holds, those of x2 elsewhere; numbers in the dtype of the array beside them."""
    if isinstance(x1, Tensor) or isinstance(x2, Tensor):
        return fn.where(condition, *pair("where", x1, x2))
    # Two numbers take the default dtype of their kinds, on the device of the condition.
    dtype = common("where", fn.full((), x1), fn.full((), x2))
    return fn.where(condition, as_array(x1, dtype, condition), as_array(x2, dtype, condition))


# ---- selecting


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """The slices at some places along an axis, which only a vector may leave out; negative places count from the end."""
    if axis is None:
        if x.ndim != 1:
            raise ArgumentError(f"take: axis is needed for an array of {x.ndim} dimensions")
        axis = 0
    return x[(slice(None),) * wrap_dim(axis, x.ndim) + (indices.to(int64),)]


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """The elements at some places along an axis, for each slice its own; the other axes broadcast."""
    dim = wrap_dim(axis, x.ndim)
    places = indices.to(int64)
    return fn.take_along_dim(x, fn.where(places < 0, places + x.shape[dim], places), dim)


# ---- sorting


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The elements in order along an axis."""
    return fn.sort(x, stable=stable, dim=axis, descending=descending)[0]


def argsort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The places of the elements in order along an axis; with `stable` equal ones keep theirs, descending or not."""
    return fn.sort(x, stable=stable, dim=axis, descending=descending)[1]


# ---- sets; every NaN is an element of its own


def unique_values(x: Tensor, /) -> Tensor:
    """The distinct elements, in order."""
    found: Tensor = reductions.unique(x)
    return found


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """The distinct elements and how often each occurs."""
    return UniqueCounts(*reductions.unique(x, return_counts=True))


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """The distinct elements, and the place of each element of x among them."""
    return UniqueInverse(*reductions.unique(x, return_inverse=True))


def unique_all(x: Tensor, /) -> UniqueAll:
    """The distinct elements, where each occurs first in x flattened, the place of each element among them, the counts."""
    values, inverse, counts = reductions.unique(x, return_inverse=True, return_counts=True)
    order = fn.sort(fn.flatten(inverse), stable=True, dim=0)[1]
    return UniqueAll(values, order[fn.cumsum(counts, 0) - counts], inverse, counts)
