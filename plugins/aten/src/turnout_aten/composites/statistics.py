"""Medians of all elements, differences, integrals, covariances."""

from __future__ import annotations

from typing import Any

from turnout.dtypes import BOOL, COMPLEX, FLOAT, INT, bool_
from turnout.errors import ArgumentError, DTypeError, ShapeError
from turnout_aten import operators as aten
from turnout_aten.composites.assertions import holds, is_checked
from turnout_aten.dtypes import int_range
from turnout_aten.errors import arguments as texts
from turnout_aten.shapes.extents import wrap_dim
from turnout_aten.tensor.tensor import Tensor


def _flat(self: Tensor) -> Tensor:
    return aten.reshape(self, (-1,))


def median(self: Tensor) -> Tensor:
    """The median of all elements, the lower of two; nan if any element is nan or there are none."""
    return _median_of_all(self, aten.median__dim)


def nanmedian(self: Tensor) -> Tensor:
    """median of the elements that are not nan."""
    return _median_of_all(self, aten.nanmedian__dim)


def _median_of_all(self: Tensor, find: Any) -> Tensor:
    if not self.numel():
        return aten.new_full(self, (), float("nan") if self.dtype.category >= FLOAT else int_range(self.dtype)[0])
    return find(_flat(self), 0)[0]


def diff(self: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None) -> Tensor:
    """The n-th differences of neighbours along a dim. For bools: whether neighbours differ."""
    if not self.ndim:
        raise ShapeError(texts.needs_dim_of("diff", "self"))
    if n < 0:
        raise ArgumentError(texts.negative("diff", "n", n))
    d = wrap_dim(dim, self.ndim)
    for name, other in (("prepend", prepend), ("append", append)):
        _check_joined(self, other, name, d)
    if not n:
        return aten.clone(self)
    joined = [t for t in (prepend, self, append) if t is not None]
    made = aten.cat(joined, d) if len(joined) > 1 else self
    for _ in range(min(n, made.shape[d])):
        later, earlier = aten.slice__Tensor(made, d, 1), aten.slice__Tensor(made, d, 0, made.shape[d] - 1)
        made = (aten.logical_xor if made.dtype.category == BOOL else aten.sub__Tensor)(later, earlier)
    return made


def _check_joined(self: Tensor, other: Tensor | None, name: str, d: int) -> None:
    if other is None:
        return
    own = self.shape
    if other.ndim != self.ndim or any(i != d and n != own[i] for i, n in enumerate(other.shape)):
        raise ShapeError(f"diff: '{name}' of shape {list(other.shape)} must have shape {list(own)} except in dim {d}")


# ---- integrals


def _refuse_bools(name: str, *tensors: Tensor) -> None:
    if any(t.dtype.category == BOOL for t in tensors):
        raise DTypeError(texts.undefined_for(name, bool_))


def _both(y: Tensor, d: int) -> Tensor:
    """The sums of neighbours along a dim."""
    return aten.add__Tensor(aten.slice__Tensor(y, d, 1), aten.slice__Tensor(y, d, 0, y.shape[d] - 1))


def _steps(y: Tensor, x: Tensor, d: int, name: str) -> Tensor:
    """The distances of neighbours in x, shaped to broadcast along dim `d` of y."""
    _refuse_bools(name, y, x)
    if x.ndim == 1:
        if x.shape[0] != y.shape[d]:
            raise ShapeError(f"{name}: x must have as many points as y has along dim {d}, got {x.shape[0]} and {y.shape[d]}")
        x = aten.reshape(x, (*(1,) * d, -1, *(1,) * (y.ndim - d - 1)))
    elif x.ndim < y.ndim:
        x = aten.reshape(x, (*(1,) * (y.ndim - x.ndim), *x.shape))
    return diff(x, 1, d)


def trapezoid(y: Tensor, x: Tensor, *, dim: int = -1) -> Tensor:
    """The integral of y over the points x along a dim, by the trapezoidal rule."""
    d = wrap_dim(dim, y.ndim)
    if not y.shape[d]:
        return aten.new_zeros(y, (*y.shape[:d], *y.shape[d + 1 :]))
    areas = aten.mul__Tensor(_both(y, d), _steps(y, x, d, "trapezoid"))
    return aten.div__Scalar(aten.sum__dim_IntList(areas, (d,)), 2.0)


def trapezoid_dx(y: Tensor, *, dx: Any = 1, dim: int = -1) -> Tensor:
    """trapezoid for points at equal distances."""
    _refuse_bools("trapezoid", y)
    d = wrap_dim(dim, y.ndim)
    if not y.shape[d]:
        return aten.new_zeros(y, (*y.shape[:d], *y.shape[d + 1 :]))
    ends = aten.mul__Scalar(aten.add__Tensor(aten.select__int(y, d, 0), aten.select__int(y, d, -1)), 0.5)
    return aten.mul__Scalar(aten.sub__Tensor(aten.sum__dim_IntList(y, (d,)), ends), dx)


def cumulative_trapezoid(y: Tensor, x: Tensor, *, dim: int = -1) -> Tensor:
    """The integrals up to each point."""
    d = wrap_dim(dim, y.ndim)
    areas = aten.mul__Tensor(_both(y, d), _steps(y, x, d, "cumulative_trapezoid"))
    return aten.div__Scalar(aten.cumsum(areas, d), 2.0)


def cumulative_trapezoid_dx(y: Tensor, *, dx: Any = 1, dim: int = -1) -> Tensor:
    """cumulative_trapezoid for points at equal distances."""
    _refuse_bools("cumulative_trapezoid", y)
    d = wrap_dim(dim, y.ndim)
    return aten.mul__Scalar(aten.cumsum(_both(y, d), d), dx / 2)


# ---- covariances


def _weights(name: str, given: Tensor | None, observations: int, category: int) -> Tensor | None:
    if given is None:
        return None
    if given.ndim > 1:
        raise ShapeError(f"cov: {name} must have at most one dimension, got shape {list(given.shape)}")
    if given.numel() != observations:
        raise ShapeError(f"cov: {name} must have one element for each of {observations} observations, got {given.numel()}")
    if given.dtype.category != category:
        raise DTypeError(f"cov: {name} must be {'integers' if category == INT else 'floats'}, got {given.dtype.name}")
    if is_checked(given) and not holds(aten.logical_not(aten.lt__Scalar(given, 0))):
        raise ArgumentError(f"cov: {name} must not be negative")
    return _flat(given)


def cov(self: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None) -> Tensor:
    """The covariances of the rows of [variables, observations], or the variance of [observations]."""
    if self.ndim > 2:
        raise ShapeError(f"cov: 'self' must have at most 2 dimensions, got shape {list(self.shape)}")
    if self.dtype.category == BOOL:
        raise DTypeError(texts.undefined_for("cov", bool_))
    rows = self if self.ndim == 2 else aten.reshape(self, (1, -1))
    observations = rows.shape[1]
    times = _weights("fweights", fweights, observations, INT)
    weights = _weights("aweights", aweights, observations, FLOAT)
    total = weights if times is None else times if weights is None else aten.mul__Tensor(times, weights)
    weighted = rows if total is None else aten.mul__Tensor(rows, total)
    count = observations if total is None else aten.sum(total)
    mean = _divided(aten.sum__dim_IntList(weighted, (1,), True), count)
    centred = aten.sub__Tensor(rows, mean)
    scaled = centred if total is None else aten.mul__Tensor(centred, total)
    made: Tensor = aten.mm(centred, _conj(aten.t(aten.to__dtype(scaled, centred.dtype))))
    if total is None:
        made = aten.div__Scalar(made, max(observations - correction, 0))
    else:
        lost: Any = correction
        if weights is not None and correction:
            lost = aten.mul__Scalar(aten.div__Tensor(aten.sum(aten.mul__Tensor(total, weights)), count), correction)
        freedom = aten.sub__Tensor(count, lost) if lost is not correction else aten.sub__Scalar(count, correction)
        made = aten.div__Tensor(made, aten.clamp(freedom, 0))
    return aten.squeeze(made)


def _divided(x: Tensor, by: Any) -> Tensor:
    return aten.div__Tensor(x, by) if isinstance(by, Tensor) else aten.div__Scalar(x, by)


def _conj(x: Tensor) -> Tensor:
    return aten.conj(x) if x.dtype.category == COMPLEX else x


def corrcoef(self: Tensor) -> Tensor:
    """The correlations of the rows of [variables, observations]."""
    if self.ndim > 2:
        raise ShapeError(f"corrcoef: 'self' must have at most 2 dimensions, got shape {list(self.shape)}")
    made: Any = cov(self)
    if not made.ndim:
        return aten.div__Tensor(made, made)
    variances = aten.diagonal(made)
    if made.dtype.category == COMPLEX:
        variances = aten.real(variances)
    spread = aten.sqrt(variances)
    made = aten.div__Tensor(aten.div__Tensor(made, aten.unsqueeze(spread, 1)), aten.unsqueeze(spread, 0))
    return made if made.dtype.category == COMPLEX else aten.clamp(made, -1, 1)
