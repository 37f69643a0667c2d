"""Tangents of pointwise operators."""

from __future__ import annotations

from typing import Any

from turnout.dtypes import COMPLEX
from turnout_aten import operators as aten
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd.formulas.complex import over_square_of_modulus
from turnout_autograd.formulas.masking import masked


def times(x: Tensor, factor: Any) -> Tensor:
    """x * factor, without the multiplication if the factor is 1 or -1."""
    if factor == 1:
        return x
    return -x if factor == -1 else x * factor


def angle_tangent(self_t: Tensor, self: Tensor) -> Tensor:
    """(x dy - y dx) / (x^2 + y^2) of x + iy; 0 for real numbers and at 0."""
    if self.dtype.category != COMPLEX:
        return aten.zeros_like(self_t)
    x, y, zero = over_square_of_modulus(self)
    return aten.imag(self_t) * masked(x, zero) - aten.real(self_t) * masked(y, zero)


def glu_tangent(self_t: Tensor, self: Tensor, dim: int) -> Tensor:
    """da s(b) + a s(b) (1 - s(b)) db of the halves a and b, where s is the sigmoid."""
    a, b = self.chunk(2, dim)
    da, db = self_t.chunk(2, dim)
    gate = b.sigmoid()
    return gate * (da + a * (1 - gate) * db)
