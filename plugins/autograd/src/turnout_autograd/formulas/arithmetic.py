"""Gradients of pointwise operators of several tensors."""

from __future__ import annotations

import cmath
from typing import Any

from turnout.dtypes import bool_
from turnout_aten import operators as aten
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd.formulas.complex import conj
from turnout_autograd.formulas.constants import scalar_log
from turnout_autograd.formulas.masking import masked, where


def scaled(x: Any, factor: Any) -> Any:
    """x * conj(factor), without the multiplication if the factor is 1 or -1."""
    if factor == 1:
        return x
    return -x if factor == -1 else x * conj(factor)


def over_square(part: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """part / (x^2 + y^2); 0 at 0."""
    size = x * x + y * y
    return part / where(size == 0, 1, size)


def pow_grad(grad: Tensor, self: Tensor, exponent: Any) -> Tensor:
    """For a number as exponent; 0 for exponent 0, also where self is 0."""
    if exponent == 0:
        return aten.zeros_like(grad)
    return grad * conj((self if exponent == 2 else self.pow(exponent - 1)) * exponent)


def pow_grad_self(grad: Tensor, self: Tensor, exponent: Tensor) -> Tensor:
    """0 where both are 0. Where the exponent alone is 0, the product is, and its derivative by the exponent is 1 / self."""
    # differs from torch: second derivatives of `b ** e` are those of the power at `e == 0` and at `b == 0`. In PyTorch the
    # mixed one is 0 at `e == 0`, which is not symmetric, and at `b == 0` all are NaN.
    exponent = exponent.to(dtype=self.dtype) if exponent.dtype is bool_ else exponent
    hole = (exponent == 0).logical_and((self.abs() > 0).logical_not())  # 0, or NaN
    return grad * masked(conj(exponent * where(hole, 1, self).pow(exponent - 1)), hole)


def pow_grad_exponent(grad: Tensor, self: Tensor, exponent: Tensor, result: Tensor) -> Tensor:
    """result * log(self); 0 where self is 0 and the exponent is not negative, the limit from above."""
    zero = (self == 0).logical_and(aten.real(exponent) >= 0)
    return grad * masked(conj(result * where(zero, 1, self.to(dtype=result.dtype)).log()), zero)


def pow_grad_exponent_scalar(grad: Tensor, self: Any, exponent: Tensor, result: Tensor) -> Tensor:
    """The same for a number as base."""
    if self == 0:
        limit = aten.real(exponent) >= 0
        return grad * masked(conj(masked(result, limit)) * float("-inf"), limit)
    if isinstance(self, complex) or result.is_complex():
        return grad * conj(result * cmath.log(self))
    if self < 0:
        return grad * (conj(result) * float("nan"))
    return grad * (conj(result) * scalar_log(self))


def extremum_grad(grad: Tensor, self: Tensor, other: Tensor, lost: Tensor) -> Tensor:
    """maximum and minimum: half of the gradient where both are equal, 0 where the other one was taken."""
    return masked(where(self == other, grad / 2, grad), lost)


def clamp_grad(grad: Tensor, self: Tensor, low: Any, high: Any) -> Tensor:
    """The gradient where self is inside, the limits included."""
    if low is not None and high is not None:
        return where((self >= low).logical_and(self <= high), grad, 0)
    if low is not None:
        return where(self >= low, grad, 0)
    return grad if high is None else where(self <= high, grad, 0)


def clamp_grad_min(grad: Tensor, self: Tensor, low: Tensor, high: Tensor | None) -> Tensor:
    """The gradient where the lower limit was taken; the upper one wins where they cross."""
    taken = self < low
    return where(taken if high is None else taken.logical_and(low < high), grad, 0)


def clamp_grad_max(grad: Tensor, self: Tensor, low: Tensor | None, high: Tensor) -> Tensor:
    """The gradient where the upper limit was taken."""
    taken = self > high
    return where(taken if low is None else taken.logical_or(high < low), grad, 0)


def copysign_grad(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    """1 or -1 as the sign was kept or changed; 0 at 0."""
    zero = self == 0
    return grad * masked(result / where(zero, 1, self), zero)
