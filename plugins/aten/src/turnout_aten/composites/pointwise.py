"""Pointwise operators composed of others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnout.dtypes import COMPLEX, FLOAT, bool_, int64
from turnout.errors import ArgumentError, DTypeError
from turnout_aten import operators as aten
from turnout_aten.composites.out_variants import into_out

if TYPE_CHECKING:
    from turnout_aten.tensor.tensor import Tensor


def max_other(self: Tensor, other: Tensor) -> Tensor:
    """max(x, y) is maximum(x, y)."""
    made: Tensor = aten.maximum(self, other)
    return made


def min_other(self: Tensor, other: Tensor) -> Tensor:
    """min(x, y) is minimum(x, y)."""
    made: Tensor = aten.minimum(self, other)
    return made


def positive(self: Tensor) -> Tensor:
    """Returns self. Raises DTypeError for bools, which have no sign."""
    if self.dtype is bool_:
        raise DTypeError("positive is not defined for bool tensors")
    return self


def isfinite(self: Tensor) -> Tensor:
    """Whether each element is neither NaN nor infinite; always true for integers."""
    if self.dtype.category < FLOAT:
        made: Tensor = aten.ones_like(self, dtype=bool_)
    else:
        made = aten.logical_not(aten.logical_or(aten.isnan(self), aten.isinf(self)))
    return made


def isreal(self: Tensor) -> Tensor:
    """Whether the imaginary part is 0."""
    if self.dtype.category == COMPLEX:
        made: Tensor = aten.eq__Scalar(aten.imag(self), 0)
    else:
        made = aten.ones_like(self, dtype=bool_)
    return made


def isclose(self: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Whether |self - other| <= atol + rtol |other|, or both are equal, for each element."""
    if self.dtype is not other.dtype:
        raise DTypeError(f"isclose: self and other must have one dtype, got {self.dtype.name} and {other.dtype.name}")
    if rtol < 0 or atol < 0:
        raise ArgumentError(f"isclose: rtol and atol must not be negative, got {rtol} and {atol}")
    close: Tensor = aten.eq__Tensor(self, other)
    category = self.dtype.category
    if equal_nan and category >= FLOAT:
        close = aten.logical_or(close, aten.logical_and(aten.isnan(self), aten.isnan(other)))
    if rtol == 0 == atol:
        return close
    if category == bool_.category:
        self, other = aten.to__dtype(self, int64), aten.to__dtype(other, int64)
    distance = aten.abs(aten.sub__Tensor(self, other))
    allowed = aten.add__Scalar(aten.abs(aten.mul__Scalar(other, rtol)), atol)
    within = aten.logical_and(isfinite(distance), aten.le__Tensor(distance, allowed))
    made: Tensor = aten.logical_or(close, within)
    return made


def allclose(self: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether `isclose` is true for all elements."""
    return bool(aten.all(aten.isclose(self, other, rtol, atol, equal_nan)))


def equal(self: Tensor, other: Tensor) -> bool:
    """Whether both have the same shape and elements; they must have one dtype."""
    if self.dtype is not other.dtype:
        raise DTypeError(f"equal: self and other must have one dtype, got {self.dtype.name} and {other.dtype.name}")
    return self.shape == other.shape and bool(aten.all(aten.eq__Tensor(self, other)))


def ldexp_Tensor(self: Tensor, other: Tensor) -> Tensor:
    """self * 2 ** other."""
    made: Tensor = aten.mul__Tensor(self, aten.pow__Scalar(2.0, other))
    return made


def ldexp_(self: Tensor, other: Tensor) -> Tensor:
    """In place."""
    made: Tensor = aten.mul___Tensor(self, aten.pow__Scalar(2.0, other))
    return made


ldexp_out = into_out(ldexp_Tensor, "ldexp.out")


def _xlogy_of_number(self: float, other: Tensor) -> Tensor:
    made: Tensor = aten.xlogy__Scalar_Self(self, other)
    return made


def _xlogy_by_number(self: Tensor, other: float) -> Tensor:
    made: Tensor = aten.xlogy__Scalar_Other(self, other)
    return made


xlogy_OutScalar_Self = into_out(_xlogy_of_number, "xlogy.OutScalar_Self")
xlogy_OutScalar_Other = into_out(_xlogy_by_number, "xlogy.OutScalar_Other")
