"""Gradients of pointwise operators of one tensor."""

from __future__ import annotations

from math import pi

from turnout.dtypes import COMPLEX
from turnout_aten import operators as aten
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd.formulas.complex import conj
from turnout_autograd.formulas.masking import where


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


def ldexp_of(exponent: Tensor) -> Tensor:
    """2 ** exponent."""
    return aten.pow__Scalar(2.0, exponent)
