"""Pointwise operators composed of others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.dtypes import COMPLEX, FLOAT, bool_, float64, int64
from turnout.errors import ArgumentError, DTypeError
from turnout_aten import operators as aten
from turnout_aten.composites.endings import shortcut
from turnout_aten.composites.out_variants import into_out
from turnout_aten.dtypes import can_cast
from turnout_aten.errors import arguments as texts
from turnout_aten.shapes.promotion import float_dtype, result_type
from turnout_aten.tensor.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

# Up to this many elements, Python numbers compare sooner than arrays.
_FEW = 64


def max_other(self: Tensor, other: Tensor) -> Tensor:
    """max(x, y) is maximum(x, y)."""
    return aten.maximum(self, other)


def min_other(self: Tensor, other: Tensor) -> Tensor:
    """min(x, y) is minimum(x, y)."""
    return aten.minimum(self, other)


def positive(self: Tensor) -> Tensor:
    """Returns self. Raises DTypeError for bools, which have no sign."""
    if self.dtype is bool_:
        raise DTypeError(texts.undefined_for("positive", bool_))
    return self


def isfinite(self: Tensor) -> Tensor:
    """Whether each element is neither NaN nor infinite; always true for integers."""
    if self.dtype.category < FLOAT:
        return aten.ones_like(self, dtype=bool_)
    return aten.logical_not(aten.logical_or(aten.isnan(self), aten.isinf(self)))


def isreal(self: Tensor) -> Tensor:
    """Whether the imaginary part is 0."""
    if self.dtype.category == COMPLEX:
        return aten.eq__Scalar(aten.imag(self), 0)
    return aten.ones_like(self, dtype=bool_)


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
    return aten.logical_or(close, within)


def allclose(self: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether `isclose` is true for all elements."""
    return bool(aten.all(aten.isclose(self, other, rtol, atol, equal_nan)))


def _equal_at_once(call: Callable[..., Any]) -> Callable[..., Any]:
    """Whether few elements are equal, as Python numbers: of one dtype, they compare as the elements do."""

    def equal(ks: int, self: Tensor, other: Tensor) -> Any:
        if self.__class__ is Tensor and other.__class__ is Tensor and self.device is other.device:
            mine, theirs, backend = self.array, other.array, self.device.backend
            ours = mine.__class__ is backend.array_type is theirs.__class__ and backend.read_number is not None
            if ours and mine.shape == theirs.shape and mine.dtype is theirs.dtype and mine.size <= _FEW:
                numbers = backend.tolist(mine)
                if numbers is not None:
                    return numbers == backend.tolist(theirs)
        return call(ks, self, other)

    return equal


@shortcut(_equal_at_once)
def equal(self: Tensor, other: Tensor) -> bool:
    """Whether both have the same shape and, in their promoted dtype, the same elements."""
    if self.array.shape != other.array.shape:
        return False
    return aten._local_scalar_dense(aten.all(aten.eq__Tensor(self, other)))


def ldexp_Tensor(self: Tensor, other: Tensor) -> Tensor:
    """self * 2 ** other, rounded once: in the promoted dtype, integers in the default one."""
    dtype = float_dtype(result_type(self, other))
    if dtype.category == COMPLEX or other.dtype.category == COMPLEX:
        return aten.mul__Tensor(self, aten.pow__Scalar(2.0, other))
    # 2 ** other may lie outside the dtype where the product does not. In double precision no factor does: beyond 400, or 2,200
    # for float64, in three steps, the product is 0 or infinite anyway.
    limit = 2200 if dtype is float64 else 400
    power = aten.clamp(aten._to_copy(other, dtype=float64), -limit, limit)
    made = aten._to_copy(self, dtype=float64)
    if dtype is float64:
        third = aten.floor(aten.div__Scalar(power, 3))
        factor = aten.pow__Scalar(2.0, third)
        made = aten.mul__Tensor(aten.mul__Tensor(made, factor), factor)
        power = aten.sub__Tensor(power, aten.mul__Scalar(third, 2))
    made = aten.mul__Tensor(made, aten.pow__Scalar(2.0, power))
    return made if dtype is float64 else aten._to_copy(made, dtype=dtype)


def ldexp_(self: Tensor, other: Tensor) -> Tensor:
    """In place. Raises DTypeError where self has a lower category than the result."""
    made = ldexp_Tensor(self, other)
    if not can_cast(made.dtype, self.dtype):
        raise DTypeError(texts.unwritable_result("ldexp_", made.dtype, self.dtype))
    return aten.copy_(self, made)


ldexp_out = into_out(ldexp_Tensor, "ldexp.out")


def _xlogy_of_number(self: float, other: Tensor) -> Tensor:
    return aten.xlogy__Scalar_Self(self, other)


def _xlogy_by_number(self: Tensor, other: float) -> Tensor:
    return aten.xlogy__Scalar_Other(self, other)


xlogy_OutScalar_Self = into_out(_xlogy_of_number, "xlogy.OutScalar_Self")
xlogy_OutScalar_Other = into_out(_xlogy_by_number, "xlogy.OutScalar_Other")
