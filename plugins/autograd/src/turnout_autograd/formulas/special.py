"""Gradients of special functions."""

from __future__ import annotations

from math import log1p, pi, sqrt
from typing import Any

from turnout_aten import operators as aten
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd.formulas.constants import INF, NAN, SQRT_2_PI
from turnout_autograd.formulas.masking import masked, where


def erf_grad(grad: Tensor, self: Tensor) -> Tensor:
    """2/sqrt(pi) exp(-x^2)."""
    return grad * (2 / sqrt(pi) * (-(self * self)).exp())


def xlogy_grad(grad: Tensor, self: Tensor, log: Any, outside: Any) -> Tensor:
    """log(y), or log(1 + y); 0 where self is 0 and y is `outside` of what has a finite logarithm."""
    if isinstance(log, Tensor):
        return grad * masked(log, (self == 0).logical_and(outside))
    return grad * (masked(grad.new_full(self.shape, log), self == 0) if outside else log)


def log1p_of(x: Any) -> float:
    """log(1 + x) of a number."""
    return log1p(x) if x > -1 else NAN if x < -1 or x != x else -INF


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
