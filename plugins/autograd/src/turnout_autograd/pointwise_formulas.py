"""What formulas of pointwise operators call, as `formulas` says."""

from __future__ import annotations

import cmath
import math
from math import log1p, pi, sqrt
from typing import Any

from turnout.dtypes import COMPLEX, bool_
from turnout_aten.generated import operators as aten
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd.formulas import conj, where

INF = math.inf
NAN = math.nan
LOG_2 = math.log(2)
LOG_10 = math.log(10)
DEGREE = pi / 180
HALF_SQRT_PI = sqrt(pi) / 2
SQRT_2_PI = sqrt(2 * pi)
scalar_log = math.log


def erf_grad(grad: Tensor, self: Tensor) -> Tensor:
    """2/sqrt(pi) exp(-x^2)."""
    return grad * (2 / sqrt(pi) * (-(self * self)).exp())


def over_square(part: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """part / (x^2 + y^2); 0 at 0."""
    size = x * x + y * y
    return part / where(size == 0, 1, size)


def pow_grad(grad: Tensor, self: Tensor, exponent: Any) -> Tensor:
    """For a number as exponent; 0 for exponent 0, also where self is 0."""
    return aten.zeros_like(grad) if exponent == 0 else grad * conj(self.pow(exponent - 1) * exponent)


def pow_grad_self(grad: Tensor, self: Tensor, exponent: Tensor) -> Tensor:
    """0 where the exponent is 0, also where self is."""
    exponent = exponent.to(dtype=self.dtype) if exponent.dtype is bool_ else exponent
    return grad * _masked(conj(exponent * self.pow(exponent - 1)), exponent == 0)


def pow_grad_exponent(grad: Tensor, self: Tensor, exponent: Tensor, result: Tensor) -> Tensor:
    """result * log(self); 0 where self is 0 and the exponent is not negative, the limit from above."""
    zero = (self == 0).logical_and(aten.real(exponent) >= 0)
    return grad * _masked(conj(result * self.to(dtype=result.dtype).log()), zero)


def pow_grad_exponent_scalar(grad: Tensor, self: Any, exponent: Tensor, result: Tensor) -> Tensor:
    """The same for a number as base."""
    if self == 0:
        return grad * where(aten.real(exponent) >= 0, 0, conj(result) * float("-inf"))
    if isinstance(self, complex) or result.is_complex():
        return grad * conj(result * cmath.log(self))
    if self < 0:
        return grad * (conj(result) * float("nan"))
    return grad * (conj(result) * scalar_log(self))


def _masked(x: Tensor, mask: Tensor) -> Tensor:
    """0 where `mask`, which may have a larger shape.

    What is masked for being infinite or NaN is a factor of the gradient, not the product: that would have no derivative with
    respect to the gradient.
    """
    return aten.where__ScalarSelf(mask, 0, x)


def extremum_grad(grad: Tensor, self: Tensor, other: Tensor, lost: Tensor) -> Tensor:
    """maximum and minimum: half where both are equal, nothing where the other one was taken."""
    return _masked(where(self == other, grad / 2, grad), lost)


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


def gelu_second_grad(grad: Tensor, grad_output: Tensor, self: Tensor, approximate: str) -> Tensor:
    """The second derivative of gelu.

    none: f' = Phi(x) + x phi(x), f'' = phi(x) (2 - x^2). tanh: u = a (x + b x^3), f'' = (1 - t^2) (u' + x u''/2 - x t u'^2).
    """
    x = self
    if approximate == "none":
        second = (x * x * -0.5).exp() * (1 / sqrt(2 * pi)) * (2 - x * x)
    else:
        a, b = sqrt(2 / pi), 0.044715
        t = ((x + x * x * x * b) * a).tanh()
        first = (x * x * (3 * b) + 1) * a
        second = (1 - t * t) * (first + x * x * (3 * a * b) - x * t * first * first)
    return grad * grad_output * second


# ---- elementary functions


def acosh_grad(grad: Tensor, self: Tensor) -> Tensor:
    """1 / sqrt(x^2 - 1): for complex numbers by two roots, which have the branches of acosh."""
    if self.dtype.category == COMPLEX:
        return grad * conj((self - 1).rsqrt() * (self + 1).rsqrt())
    return grad * (self * self - 1).rsqrt()


def sinc_grad(grad: Tensor, self: Tensor) -> Tensor:
    """(cos(pi x) - sinc(x)) / x; its series near 0, where rounding would be all that is left of the difference."""
    near = self.abs() < 0.01
    a = where(near, self, 0) * pi
    square = a * a
    series = pi * a * (square * (square * (square / 45360 - 1 / 840) + 1 / 30) - 1 / 3)
    away = where(near, 1, self)
    angle = away * pi
    return grad * conj(where(near, series, (angle.cos() - angle.sin() / angle) / away))


def copysign_grad(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    """1 or -1 as the sign was kept or changed; 0 at 0."""
    return grad * _masked(result / self, self == 0)


def ldexp_of(exponent: Tensor) -> Tensor:
    """2 ** exponent."""
    return aten.pow__Scalar(2.0, exponent)


def xlogy_grad(grad: Tensor, self: Tensor, log: Any, outside: Any) -> Tensor:
    """log(y), or log(1 + y); 0 where self is 0 and y is `outside` of what has a finite logarithm."""
    if isinstance(log, Tensor):
        return grad * _masked(log, (self == 0).logical_and(outside))
    return grad * (_masked(grad.new_full(self.shape, log), self == 0) if outside else log)


def log1p_of(x: Any) -> float:
    """log(1 + x) of a number."""
    return log1p(x) if x > -1 else NAN if x < -1 or x != x else -INF


def angle_grad(grad: Tensor, self: Tensor) -> Tensor:
    """grad * (-y, x) / (x^2 + y^2) of x + iy; 0 for real numbers and at 0."""
    if self.dtype.category != COMPLEX:
        return aten.zeros_like(grad)
    x, y = aten.real(self), aten.imag(self)
    size = x * x + y * y
    zero = size == 0
    size = where(zero, 1, size)
    return aten.view_as_complex(aten.stack([_masked(grad * (-y / size), zero), _masked(grad * (x / size), zero)], -1))


def polar_unit(angle: Tensor) -> Tensor:
    """exp(-i angle)."""
    return aten.complex(angle.cos(), -angle.sin())


def sgn_grad(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    """(grad - s^2 conj(grad)) / (2 |x|), the part across the sign s; 0 at 0 and for real numbers."""
    if self.dtype.category != COMPLEX:
        return aten.zeros_like(grad)
    size = self.abs()
    turned = (grad - conj(grad) * result * result) / (where(size == 0, 1, size) * 2)
    return _masked(turned, size == 0)


# ---- special functions


def igamma_grad(grad: Tensor, self: Tensor, other: Tensor) -> Tensor:
    """x^(a - 1) exp(-x) / gamma(a), for the second argument x."""
    return grad * ((self - 1) * other.log() - other - self.lgamma()).exp()


def entr_slope(self: Tensor) -> Tensor:
    """-log(x) - 1: infinite at 0, NaN below."""
    return where(self >= 0, -self.log() - 1, NAN)


def log_ndtr_grad(grad: Tensor, self: Tensor) -> Tensor:
    """phi(x) / Phi(x); left of 0 by erfcx, which does not vanish there as both of them do."""
    below = self < 0
    x = where(below, 0, self)
    right = (x * x * -0.5).exp() / (SQRT_2_PI * aten.special_ndtr(x))
    left = sqrt(2 / pi) / aten.special_erfcx(where(below, self, 0) * -sqrt(0.5))
    return grad * where(below, left, right)


def i1_grad(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    """i0(x) - i1(x) / x; 1/2 at 0."""
    zero = self == 0
    return grad * where(zero, 0.5, self.i0() - result / where(zero, 1, self))


def i1e_grad(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    """i0e(x) - i1e(x) (sgn(x) + 1 / x); 1/2 at 0."""
    zero = self == 0
    safe = where(zero, 1, self)
    return grad * where(zero, 0.5, aten.special_i0e(self) - result * (self.sgn() + safe.reciprocal()))
