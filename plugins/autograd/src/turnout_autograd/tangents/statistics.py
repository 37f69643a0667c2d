"""Tangents of deviations, of cumulative operators and of sums by bins."""

from __future__ import annotations

from turnout.dtypes import COMPLEX
from turnout_aten.operators import zeros_like
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd.formulas.broadcasting import count
from turnout_autograd.formulas.recorded_calls import is_recorded
from turnout_autograd.formulas.reductions import may_hold_zero
from turnout_autograd.formulas.statistics import by_sign, log_size, products_without, shares


def std_tangent(var_t: Tensor, result: Tensor) -> Tensor:
    """By that of the variance; 0 where the deviation is 0."""
    zero = result == 0
    return (var_t / (result * 2).masked_fill(zero, 1)).masked_fill(zero, 0)


def cumprod_tangent(self_t: Tensor, self: Tensor, result: Tensor, dim: int) -> Tensor:
    """result * cumsum(dx / x); where an element is 0, from the products without each one."""
    if not self.shape or not count(self.shape):
        return self_t
    if not may_hold_zero(self):
        return result * (self_t / self).cumsum(dim)
    without = products_without(self, dim)
    return (without * self_t.transpose(dim, -1).unsqueeze(-1)).sum(-2).transpose(dim, -1)


def logcumsumexp_tangent(self_t: Tensor, self: Tensor, result: Tensor, dim: int) -> Tensor:
    """The sum of exp(self - result[k]) * dx up to each element k.

    Positive and negative tangents apart, as logarithms, so that nothing overflows. From an n x n table where numbers are complex,
    or where this is recorded: logarithms have no derivative with respect to a tangent of 0.
    """
    if not self.shape:
        return self_t
    if self.dtype.category == COMPLEX or is_recorded(self_t, self):
        return (shares(self, result, dim) * self_t.transpose(dim, -1).unsqueeze(-1)).sum(-2).transpose(dim, -1)
    over, under = [(p.logcumsumexp(dim) - result).exp() for p in by_sign(self_t, log_size(self_t) + self)]
    return over - under


def summed_by(bins: Tensor, weights_t: Tensor, result: Tensor) -> Tensor:
    """The tangents of weights summed for each bin. `bincount` of them would have a shape that depends on values."""
    return zeros_like(result).index_add(0, bins, weights_t.to(dtype=result.dtype))
