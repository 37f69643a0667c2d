"""Shapes of elementary functions: trigonometric, exponential, parts of floating point and complex numbers, divisors."""

from __future__ import annotations

from turnout.dtypes import BOOL, COMPLEX, FLOAT, INT, float32, float64, int32
from turnout.errors import DTypeError, ShapeError
from turnout_aten.shapes.extents import broadcast
from turnout_aten.shapes.layouts import as_operands
from turnout_aten.shapes.pointwise import (
    exact_truth,
    floating,
    floating_only,
    floating_real,
    one_tensor,
    ordered,
    paired,
    refuse,
    rounds_number,
    two_floating,
    two_floats,
    two_operands,
)
from turnout_aten.shapes.promotion import float_dtype
from turnout_aten.shapes.specs import Out, Result, as_result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from turnout_aten.shapes.specs import ShapeTable
    from turnout_aten.tensor.tensor import Tensor


def unchanged(self: Tensor, *rest: Any) -> Out | Result:
    """Any dtype, which the result has too."""
    dtype = self.dtype
    return one_tensor(self, dtype, dtype)


def angle(self: Tensor) -> Out | Result:
    """The argument of a number, real."""
    dtype = self.dtype
    computed = float_dtype(dtype)
    answer = one_tensor(self, computed, dtype, computed.to_real())
    if dtype.category == COMPLEX:
        as_result(answer).outs[0].strides = None
    return answer


def frexp(self: Tensor) -> tuple[Out, Out]:
    """Mantissas, and int32 exponents."""
    dtype = self.dtype
    refuse(dtype, "frexp", BOOL, INT, COMPLEX)
    shape = self.array.shape
    strides = as_operands(shape, self)
    return Out(shape, dtype, strides, exact=True), Out(shape, int32, strides, exact=True)


def real_truth(name: str) -> Callable[..., Out]:
    """A bool for each element of a real dtype."""

    def shape(self: Tensor) -> Out:
        refuse(self.dtype, name, COMPLEX)
        return exact_truth(self)

    return shape


def two_integers(name: str) -> Callable[..., Out | Result]:
    """Integers only."""
    return paired(name, BOOL, FLOAT, COMPLEX)


def complex_from(names: tuple[str, str]) -> Callable[..., Out]:
    """Two real tensors of one dtype, float32 or float64."""

    def shape(first: Tensor, second: Tensor) -> Out:
        dtype = first.dtype
        if dtype not in (float32, float64):
            # differs from torch: `complex` and `polar` do not take float16, because there is no dtype `complex32`.
            raise DTypeError(f"{names[0]} must be a float32 or float64 tensor, got {dtype.name}")
        if second.dtype is not dtype:
            raise DTypeError(f"{names[1]} must have the dtype of {names[0]}, {dtype.name}, got {second.dtype.name}")
        made = broadcast(first.array.shape, second.array.shape)
        return Out(made, dtype.to_complex(), as_operands(made, first, second))

    return shape


def heaviside(self: Tensor, values: Tensor) -> Out | Result:
    """Real operands of one dtype: nothing is promoted."""
    if self.dtype is not values.dtype:
        raise DTypeError(f"heaviside: self and values must have one dtype, got {self.dtype.name} and {values.dtype.name}")
    refuse(self.dtype, "heaviside", COMPLEX)
    result = as_result(two_operands(self, values, self.dtype, names=("self", "values")))
    result.outs[0].exact = (result.outs[0].dtype,)
    return result


def view_as_real(self: Tensor) -> Out:
    """A last dim of length 2: real and imaginary part."""
    if self.dtype.category != COMPLEX:
        raise DTypeError(f"view_as_real is defined for complex tensors, this one is {self.dtype.name}")
    return Out((*self.array.shape, 2), self.dtype.to_real())


def view_as_complex(self: Tensor) -> Out:
    """Without the last dim, which has length 2."""
    dtype = self.dtype
    if dtype not in (float32, float64):
        raise DTypeError(f"view_as_complex is defined for float32 and float64 tensors, this one is {dtype.name}")
    shape = self.array.shape
    if not shape or shape[-1] != 2:
        raise ShapeError(f"view_as_complex: the last dim must have length 2, got shape {list(shape)}")
    return Out(shape[:-1], dtype.to_complex())


# fmt: off
SHAPES: ShapeTable = {
    "acos.out": floating,
    "acosh.out": floating,
    "asin.out": floating,
    "asinh.out": floating,
    "atan.out": floating,
    "atanh.out": floating,
    "cosh.out": floating,
    "sinh.out": floating,
    "tan.out": floating,
    "exp2.out": floating,
    "log2.out": floating,
    "log10.out": floating,
    "sinc.out": floating,
    "deg2rad.out": floating_real("deg2rad"),
    "rad2deg.out": floating_real("rad2deg"),
    "logit.out": rounds_number("eps", floating_real("logit")),
    "frac.out": floating_only("frac"),
    "round.decimals_out": floating_only("round to decimals"),
    "signbit.out": real_truth("signbit"),
    "isposinf.out": real_truth("isposinf"),
    "isneginf.out": real_truth("isneginf"),
    "isinf.out": exact_truth,
    "nan_to_num.out": unchanged,
    "sgn.out": unchanged,
    "conj_physical.out": unchanged,
    "angle.out": angle,
    "frexp.Tensor_out": frexp,
    "atan2.out": two_floating("atan2"),
    "copysign.out": two_floating("copysign"),
    "xlogy.OutTensor": two_floating("xlogy"),
    "fmax.out": ordered,
    "fmin.out": ordered,
    "hypot.out": two_floats("hypot", COMPLEX),
    "nextafter.out": two_floats("nextafter", COMPLEX),
    "logaddexp2.out": two_floats("logaddexp2", COMPLEX),
    "logaddexp.out": two_floats("logaddexp"),
    "gcd.out": two_integers("gcd"),
    "lcm.out": two_integers("lcm"),
    "bitwise_left_shift.Tensor_out": two_integers("bitwise_left_shift"),
    "bitwise_right_shift.Tensor_out": two_integers("bitwise_right_shift"),
    "heaviside.out": heaviside,
    "view_as_real_copy.out": view_as_real,
    "view_as_complex_copy.out": view_as_complex,
    "complex.out": complex_from(("real", "imag")),
    "polar.out": complex_from(("abs", "angle")),
}
# fmt: on
