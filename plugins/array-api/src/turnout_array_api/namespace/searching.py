"""Functions that search, select and sort, and sets of distinct elements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnout.config.tuples import NamedTuple
from turnout.dtypes import bool_, int64, uint8
from turnout.errors import ArgumentError, ShapeError
from turnout_array_api.namespace.promotion import as_array, axes_of, common, pair
from turnout_aten.functions import reductions
from turnout_aten.functions.docstrings import describe
from turnout_aten.generated import functions as fn
from turnout_aten.shapes.extents import wrap_dim
from turnout_aten.shapes.sorting import check_side
from turnout_aten.tensor.tensor import Tensor

if TYPE_CHECKING:
    from turnout_array_api.namespace.promotion import Axis, Number


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
    """The index of the largest element (the first of equals), along an axis or in x flattened.

    Example:
        >>> turnout.array_api.argmax(turnout.tensor([3, 9, 5]))
        tensor(1)
    """
    return fn.argmax(_ordered(x), axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The index of the smallest element (the first of equals), along an axis or in x flattened.

    Example:
        >>> turnout.array_api.argmin(turnout.tensor([3, 1, 5]))
        tensor(1)
    """
    return fn.argmin(_ordered(x), axis, keepdims)


def _ordered(x: Tensor) -> Tensor:
    """Bools as integers, because the operators do not compare bools."""
    return x.to(uint8) if x.dtype is bool_ else x


def count_nonzero(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The number of nonzero elements, as int64.

    Example:
        >>> turnout.array_api.count_nonzero(turnout.tensor([0, 3, 4]))
        tensor(2)
    """
    axes = axes_of("count_nonzero", x, axis)
    found = x != 0
    return fn.sum(found, axes, keepdims) if axes else found.to(int64)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """The indices of the nonzero elements, one vector per axis. Raises ShapeError for a 0-dim array.

    Example:
        >>> turnout.array_api.nonzero(turnout.tensor([0, 3, 4]))
        (tensor([1, 2]),)
    """
    if x.ndim == 0:
        raise ShapeError("nonzero: needs an array with at least one dimension, got a 0-dim array")
    return tuple(reductions.nonzero(x, as_tuple=True))


def searchsorted(x1: Tensor, x2: Tensor | Number, /, *, side: str = "left", sorter: Tensor | None = None) -> Tensor:
    """The indices at which to insert the elements of x2 into the sorted vector x1, before ("left") or after ("right") equals.

    sorter  the indices that sort x1, if x1 is not sorted

    Arguments:
        x1: the sorted vector
        x2: the values to insert
        side: "left" or "right"
        sorter: the indices that sort x1, if it is not sorted

    Example:
        >>> turnout.array_api.searchsorted(turnout.tensor([1, 3, 5]), turnout.tensor([3, 6]))
        tensor([1, 3])
    """
    check_side("searchsorted", side)
    sequence, values = pair("searchsorted", x1, x2)
    return fn.searchsorted(sequence, values, side=side, sorter=sorter if sorter is None else sorter.to(int64))


def where(condition: Tensor, x1: Tensor | Number, x2: Tensor | Number, /) -> Tensor:
    """The elements of x1 where `condition` is true, else of x2. A number takes the dtype of the other array.

    Arguments:
        condition: a bool array
        x1: the elements where it is true
        x2: the elements elsewhere

    Example:
        >>> turnout.array_api.where(turnout.tensor([True, False]), turnout.tensor([1, 2]), turnout.tensor([3, 4]))
        tensor([1, 4])
    """
    if isinstance(x1, Tensor) or isinstance(x2, Tensor):
        return fn.where(condition, *pair("where", x1, x2))
    # Two numbers take the default dtype of their kinds and the device of the condition.
    dtype = common("where", fn.full((), x1), fn.full((), x2))
    return fn.where(condition, as_array(x1, dtype, condition), as_array(x2, dtype, condition))


def isin(x1: Tensor | Number, x2: Tensor | Number, /, *, invert: bool = False) -> Tensor:
    """For each element of x1, whether it is among those of x2.

    Arguments:
        x1: the elements to look for
        x2: the elements to look among
        invert: whether the answers are exchanged

    Example:
        >>> turnout.array_api.isin(turnout.tensor([1, 2, 3]), turnout.tensor([3, 1]))
        tensor([ True, False,  True])
    """
    elements, test_elements = pair("isin", x1, x2)
    return fn.isin(elements, test_elements, invert=invert)


# ---- selecting


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """The slices at the given indices along an axis; only a vector needs no `axis`. Negative indices count from the end.

    Arguments:
        indices: the indices, a vector

    Example:
        >>> turnout.array_api.take(turnout.tensor([1, 2, 3]), turnout.tensor([2, 0]))
        tensor([3, 1])
    """
    if axis is None:
        if x.ndim != 1:
            raise ArgumentError(f"take: axis is needed for an array of {x.ndim} dimensions")
        axis = 0
    return x[(slice(None),) * wrap_dim(axis, x.ndim) + (indices.to(int64),)]


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """The elements at indices along an axis, separate for each slice; the other axes broadcast.

    Arguments:
        indices: the indices

    Example:
        >>> turnout.array_api.take_along_axis(turnout.tensor([[3, 1], [2, 4]]), turnout.tensor([[1], [0]]))
        tensor([[1],
                [2]])
    """
    dim = wrap_dim(axis, x.ndim)
    places = indices.to(int64)
    return fn.take_along_dim(x, fn.where(places < 0, places + x.shape[dim], places), dim)


# ---- sorting


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The elements in order along an axis.

    Example:
        >>> turnout.array_api.sort(turnout.tensor([3, 1, 2]))
        tensor([1, 2, 3])
    """
    return fn.sort(x, stable=stable, dim=axis, descending=descending)[0]


def argsort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The indices that sort x along an axis. With `stable`, equal elements keep their order, also when descending.

    Example:
        >>> turnout.array_api.argsort(turnout.tensor([3, 1, 2]))
        tensor([1, 2, 0])
    """
    return fn.sort(x, stable=stable, dim=axis, descending=descending)[1]


# ---- sets; every NaN is distinct


def unique_values(x: Tensor, /) -> Tensor:
    """The distinct elements, in order.

    Example:
        >>> turnout.array_api.unique_values(turnout.tensor([3, 1, 3]))
        tensor([1, 3])
    """
    return reductions.unique(x)


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """The distinct elements, and the number of times that each occurs.

    Example:
        >>> turnout.array_api.unique_counts(turnout.tensor([3, 1, 3])).counts
        tensor([1, 2])
    """
    return UniqueCounts(*reductions.unique(x, return_counts=True))


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """The distinct elements, and for each element of x its index among them.

    Example:
        >>> turnout.array_api.unique_inverse(turnout.tensor([3, 1, 3])).inverse_indices
        tensor([1, 0, 1])
    """
    return UniqueInverse(*reductions.unique(x, return_inverse=True))


def unique_all(x: Tensor, /) -> UniqueAll:
    """The distinct elements, their first indices in x flattened, for each element of x its index among them, and the counts.

    Example:
        >>> turnout.array_api.unique_all(turnout.tensor([3, 1, 3])).indices
        tensor([1, 0])
    """
    values, inverse, counts = reductions.unique(x, return_inverse=True, return_counts=True)
    order = fn.sort(fn.flatten(inverse), stable=True, dim=0)[1]
    return UniqueAll(values, order[fn.cumsum(counts, 0) - counts], inverse, counts)


describe(
    globals(),
    x="an array",
    axis="the axis",
    keepdims="whether a reduced axis stays, with length 1",
    descending="whether the largest element comes first",
    stable="whether equal elements keep their order",
)
