"""Sums and other statistics over axes, `all` and `any`, and running sums."""

from __future__ import annotations

from turnout.dtypes import bool_
from turnout.errors import ArgumentError
from turnout_array_api.namespace.promotion import axes_of, promote, widened
from turnout_aten.functions.docstrings import describe
from turnout_aten.generated import functions as fn
from turnout_aten.shapes.extents import wrap_dim

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from turnout.dtypes import DType
    from turnout_array_api.namespace.promotion import Axis
    from turnout_aten.tensor.tensor import Tensor


def _reduced(name: str, reduce: Callable[..., Tensor], x: Tensor, axis: Axis, keepdims: bool, **options: Any) -> Tensor:
    """A reduction over axes. For no axes, each element is reduced along a new axis, which is always removed."""
    axes = axes_of(name, x, axis)
    return reduce(x, axes, keepdim=keepdims, **options) if axes else reduce(fn.unsqueeze(x, -1), (-1,), **options)


def sum(x: Tensor, /, *, axis: Axis = None, dtype: DType | None = None, keepdims: bool = False) -> Tensor:
    """Sums, of integers as int64 or uint64 unless `dtype` says another.

    Example:
        >>> turnout.array_api.sum(turnout.tensor([1, 2]))
        tensor(3)
    """
    return _reduced("sum", fn.sum, x, axis, keepdims, dtype=dtype or widened(x.dtype))


def prod(x: Tensor, /, *, axis: Axis = None, dtype: DType | None = None, keepdims: bool = False) -> Tensor:
    """Products, of integers as int64 or uint64 unless `dtype` says another.

    Example:
        >>> turnout.array_api.prod(turnout.tensor([2, 3]))
        tensor(6)
    """
    found = x.to(dtype=dtype or widened(x.dtype))
    for each in sorted(axes_of("prod", x, axis), reverse=True):
        found = fn.prod(found, each, keepdims, dtype=found.dtype)
    return found if found is not x else fn.clone(x)


def mean(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The arithmetic means of the elements.

    Example:
        >>> turnout.array_api.mean(turnout.tensor([1.0, 2.0]))
        tensor(1.5000)
    """
    return _reduced("mean", fn.mean, x, axis, keepdims)


def var(x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """Variances: sums of squares over the number of elements less `correction`.

    Example:
        >>> turnout.array_api.var(turnout.tensor([1.0, 3.0]))
        tensor(1.)
    """
    return _reduced("var", fn.var, x, axis, keepdims, correction=correction)


def std(x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """Standard deviations, the roots of `var`.

    Example:
        >>> turnout.array_api.std(turnout.tensor([1.0, 3.0]))
        tensor(1.)
    """
    return _reduced("std", fn.std, x, axis, keepdims, correction=correction)


def max(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The largest elements; NaN if any element is NaN. Raises ShapeError for an empty reduction.

    Example:
        >>> turnout.array_api.max(turnout.tensor([1, 3]))
        tensor(3)
    """
    return _reduced("max", fn.amax, x, axis, keepdims)


def min(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The smallest elements; NaN if any element is NaN. Raises ShapeError for an empty reduction.

    Example:
        >>> turnout.array_api.min(turnout.tensor([1, 3]))
        tensor(1)
    """
    return _reduced("min", fn.amin, x, axis, keepdims)


def all(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Whether all elements differ from 0, as bool.

    Example:
        >>> turnout.array_api.all(turnout.tensor([1, 0]))
        tensor(False)
    """
    return _reduced("all", fn.all, x, axis, keepdims).to(bool_)


def any(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Whether any element differs from 0, as bool.

    Example:
        >>> turnout.array_api.any(turnout.tensor([1, 0]))
        tensor(True)
    """
    return _reduced("any", fn.any, x, axis, keepdims).to(bool_)


def cumulative_sum(x: Tensor, /, *, axis: int | None = None, dtype: DType | None = None, include_initial: bool = False) -> Tensor:
    """Running sums along an axis, which only a vector may leave out; `include_initial` puts a 0 before them.

    Example:
        >>> turnout.array_api.cumulative_sum(turnout.tensor([1, 2, 3]))
        tensor([1, 3, 6])
    """
    return _running("cumulative_sum", fn.cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(
    x: Tensor, /, *, axis: int | None = None, dtype: DType | None = None, include_initial: bool = False
) -> Tensor:
    """Running products along an axis, which only a vector may leave out; `include_initial` puts a 1 before them.

    Example:
        >>> turnout.array_api.cumulative_prod(turnout.tensor([1, 2, 3]))
        tensor([1, 2, 6])
    """
    return _running("cumulative_prod", fn.cumprod, 1, x, axis, dtype, include_initial)


def _running(
    name: str,
    operator: Callable[..., Tensor],
    neutral: int,
    x: Tensor,
    axis: int | None,
    dtype: DType | None,
    include_initial: bool,
) -> Tensor:
    if x.ndim == 0 or (axis is None and x.ndim > 1):
        raise ArgumentError(f"{name}: an array of {x.ndim} dimensions has no one axis to run along; give axis")
    dim = 0 if axis is None else wrap_dim(axis, x.ndim)
    found = operator(x, dim, dtype=dtype or widened(x.dtype))
    if not include_initial:
        return found
    shape = x.shape[:dim] + (1,) + x.shape[dim + 1 :]
    return fn.cat([fn.full(shape, neutral, dtype=found.dtype, device=x.device), found], dim)


def diff(x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Tensor | None = None, append: Tensor | None = None) -> Tensor:
    """The n-th differences of neighbours along an axis. `prepend` and `append` are joined to x first.

    Arguments:
        axis: the axis
        n: how many times differences are taken
        prepend: elements put in front
        append: elements put behind

    Example:
        >>> turnout.array_api.diff(turnout.tensor([1, 4, 9]))
        tensor([3, 5])
    """
    dtype = x.dtype
    for each in (prepend, append):
        dtype = dtype if each is None else promote(dtype, each.dtype)
    before, behind = [each if each is None else each.to(dtype) for each in (prepend, append)]
    return fn.diff(x.to(dtype), n, axis, before, behind)


describe(
    globals(),
    x="an array",
    axis="the axis, or the axes; None means all",
    dtype="the dtype of the result",
    keepdims="whether a reduced axis stays, with length 1",
    correction="what is subtracted from the number of elements",
    include_initial="whether the result begins with the neutral element",
)
