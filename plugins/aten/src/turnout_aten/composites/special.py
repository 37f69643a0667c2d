"""Special functions composed of others."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from turnout.dtypes import FLOAT, get_default_dtype
from turnout.errors import ArgumentError, DTypeError
from turnout_aten import operators as aten
from turnout_aten.composites.layouts import lying
from turnout_aten.composites.out_variants import into_out
from turnout_aten.errors.arguments import unwritable_result
from turnout_aten.shapes.promotion import rounded

if TYPE_CHECKING:
    from turnout_aten.tensor.tensor import Tensor


def polygamma_(self: Tensor, n: int) -> Tensor:
    """polygamma, written into self."""
    return _written("polygamma_", self, aten.polygamma(n, aten.clone(self)))


# Each takes two calls of operators: a larger p would take minutes, and one without bound never ends.
_LARGEST_P = 1_000_000


def mvlgamma(self: Tensor, p: int) -> Tensor:
    """The log of the multivariate gamma function of dimension p >= 1. self must be greater than (p - 1) / 2."""
    if p < 1:
        raise ArgumentError(f"mvlgamma: p must be at least 1, got {p}")
    # differs from torch: `mvlgamma` takes `p` up to 1,000,000. In PyTorch only memory limits it.
    if p > _LARGEST_P:
        raise ArgumentError(f"mvlgamma: p must be at most {_LARGEST_P}, got {p}")
    x = self if self.dtype.category >= FLOAT else aten.to__dtype(self, get_default_dtype())
    total: Tensor = aten.lgamma(x)
    for i in range(1, p):
        total = aten.add__Tensor(total, aten.lgamma(aten.sub__Scalar(x, i / 2)))
    return lying(aten.add__Scalar(total, p * (p - 1) / 4 * math.log(math.pi)))


def mvlgamma_(self: Tensor, p: int) -> Tensor:
    """In place."""
    return _written("mvlgamma_", self, aten.mvlgamma(aten.clone(self), p))


def _written(name: str, self: Tensor, value: Tensor) -> Tensor:
    """Copy `value` into self. Raises DTypeError for an integer self."""
    if self.dtype.category < FLOAT:
        raise DTypeError(unwritable_result(f"aten::{name}", value.dtype, self.dtype))
    return aten.copy_(self, value)


mvlgamma_out = into_out(mvlgamma, "mvlgamma.out")


def special_ndtr(self: Tensor) -> Tensor:
    """The distribution function of the normal distribution. erfc keeps its precision for very negative arguments."""
    return aten.mul__Scalar(aten.erfc(aten.mul__Scalar(self, -math.sqrt(0.5))), 0.5)


special_ndtr_out = into_out(special_ndtr, "special_ndtr.out")


def logit_backward(grad_output: Tensor, self: Tensor, eps: float | None = None) -> Tensor:
    """grad / (x (1 - x)): NaN outside [0, 1]; with eps, 0 outside [eps, 1 - eps]."""
    eps = rounded(eps, self.dtype)
    low, high, other = (0.0, 1.0, math.nan) if eps is None else (eps, 1.0 - eps, 0.0)
    inside = aten.logical_and(aten.ge__Scalar(self, low), aten.le__Scalar(self, high))
    x = aten.where__ScalarOther(inside, self, 0.5)  # avoids infinite quotients, whose derivatives would be NaN
    slope = aten.reciprocal(aten.mul__Tensor(x, aten.rsub__Scalar(x, 1)))
    return aten.mul__Tensor(grad_output, aten.where__ScalarOther(inside, slope, other))


logit_backward_grad_input = into_out(logit_backward, "logit_backward.grad_input")
