"""quantile and nanquantile: positions among the sorted elements, and interpolation between two of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnout.dtypes import FLOAT, int64
from turnout.errors import ArgumentError, DTypeError, ShapeError
from turnout.keys import KEYS
from turnout_aten import operators as aten
from turnout_aten.composites.assertions import holds, is_checked
from turnout_aten.errors import arguments as texts
from turnout_aten.shapes.extents import wrap_dim

if TYPE_CHECKING:
    from turnout_aten.tensor.tensor import Tensor

_BATCHED = KEYS.bit("Batched")  # inside vmap a value differs between examples

INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def quantile(self: Tensor, q: Tensor, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear") -> Tensor:
    """The q-quantiles along a dim, or of all elements. A one-dimensional `q` adds a first dim. Any nan gives nan."""
    _check_numbers("quantile", q)
    return _quantiles("quantile", self, q, dim, keepdim, interpolation, ignore_nan=False)


def nanquantile(
    self: Tensor, q: Tensor, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:
    """quantile of the elements that are not nan."""
    _check_numbers("nanquantile", q)
    return _quantiles("nanquantile", self, q, dim, keepdim, interpolation, ignore_nan=True)


def quantile_scalar(
    self: Tensor, q: float, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:
    """quantile for one number."""
    return _quantiles("quantile", self, _number("quantile", self, q), dim, keepdim, interpolation, ignore_nan=False)


def nanquantile_scalar(
    self: Tensor, q: float, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:
    """nanquantile for one number."""
    return _quantiles("nanquantile", self, _number("nanquantile", self, q), dim, keepdim, interpolation, ignore_nan=True)


def _number(name: str, self: Tensor, q: float) -> Tensor:
    if not 0 <= q <= 1:
        raise ArgumentError(texts.no_probability(name, "q", q))
    return aten.new_full(self, (), q)


def _check_numbers(name: str, q: Tensor) -> None:
    if q.keys & _BATCHED or not is_checked(q):
        return
    if not holds(aten.logical_and(aten.ge__Scalar(q, 0), aten.le__Scalar(q, 1))):
        raise ArgumentError(f"{name}: every q must lie between 0 and 1")


def _check(name: str, self: Tensor, q: Tensor, interpolation: str) -> None:
    if not self.numel():
        raise ShapeError(f"{name}: 'self' must not be empty")
    if q.ndim > 1:
        raise ShapeError(f"{name}: q must be a number or have one dimension, got shape {list(q.shape)}")
    if self.dtype.category != FLOAT or self.dtype.itemsize < 4:
        raise DTypeError(f"{name}: 'self' must be float32 or float64, got {self.dtype.name}")
    if self.dtype is not q.dtype:
        raise DTypeError(f"{name}: q must have dtype {self.dtype.name}, got {q.dtype.name}")
    if interpolation not in INTERPOLATIONS:
        raise ArgumentError(texts.not_one_of(name, "interpolation", INTERPOLATIONS, interpolation))


def _quantiles(
    name: str, self: Tensor, q: Tensor, dim: int | None, keepdim: bool, interpolation: str, *, ignore_nan: bool
) -> Tensor:
    _check(name, self, q, interpolation)
    ndim = self.ndim
    if dim is None or not ndim:
        wrap_dim(dim or 0, ndim)
        last, kept = aten.reshape(self, (-1,)), (1,) * ndim
    else:
        d = wrap_dim(dim, ndim)
        last, kept = aten.movedim__int(self, d, -1), self.shape[:d] + (1,) + self.shape[d + 1 :]
    ordered = aten.sort(last)[0]
    found = _between(ordered, _ranks(ordered, aten.reshape(q, (-1,)), ignore_nan), interpolation)
    if q.ndim:
        found = aten.movedim__int(found, -1, 0)
        shape = (q.shape[0], *kept) if keepdim else found.shape
    else:
        found = aten.squeeze__dim(found, -1)
        shape = kept if keepdim else found.shape
    return aten.reshape(found, shape)


def _ranks(ordered: Tensor, q: Tensor, ignore_nan: bool) -> Tensor:
    """Positions [..., Q] among the sorted elements [..., N]; nan sorts last."""
    length = ordered.shape[-1]
    missing = aten.isnan(ordered)
    if ignore_nan:
        numbers = aten.sum__dim_IntList(aten.logical_not(missing), (-1,), True)
        ranks: Tensor = aten.mul__Tensor(q, aten.sub__Scalar(aten.to__dtype(numbers, ordered.dtype), 1))
        return aten.clamp(ranks, 0)
    ranks = aten.expand(aten.mul__Scalar(q, length - 1), (*ordered.shape[:-1], q.shape[0]))
    return aten.masked_fill__Scalar(ranks, aten.any__dim(missing, -1, True), length - 1)


def _between(ordered: Tensor, ranks: Tensor, interpolation: str) -> Tensor:
    rounding = {"higher": aten.ceil, "nearest": aten.round}.get(interpolation, aten.floor)
    below = rounding(ranks)
    made: Tensor = aten.gather(ordered, -1, aten.to__dtype(below, int64))
    if interpolation not in ("linear", "midpoint"):
        return made
    above = aten.gather(ordered, -1, aten.to__dtype(aten.ceil(ranks), int64))
    difference = aten.sub__Tensor(above, made)
    if interpolation == "midpoint":
        return aten.add__Tensor(made, aten.mul__Scalar(difference, 0.5))
    part = aten.sub__Tensor(ranks, below)
    # Start from the nearer end, so that a fraction of 1 gives the upper value exactly.
    low = aten.add__Tensor(made, aten.mul__Tensor(difference, part))
    high = aten.sub__Tensor(above, aten.mul__Tensor(difference, aten.rsub__Scalar(part, 1)))
    return aten.where__self(aten.lt__Scalar(part, 0.5), low, high)
