"""Gradients of variances and of cumulative operators."""

from __future__ import annotations

from math import inf
from typing import Any

from turnout.dtypes import COMPLEX
from turnout_aten import operators as aten
from turnout_aten.shapes.extents import degrees_of_freedom, dims_of
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd.formulas.broadcasting import Ints, blank, count
from turnout_autograd.formulas.complex import conj
from turnout_autograd.formulas.recorded_calls import is_recorded
from turnout_autograd.formulas.reductions import count_of, may_hold_zero, restored


def var_grad(grad: Tensor, self: Tensor, dim: Any, correction: Any, keepdim: bool) -> Tensor:
    """2 (x - mean) / (n - correction)."""
    shape = self.shape
    degrees = degrees_of_freedom(count_of(shape, dim), correction)
    factor = 2 / degrees if degrees else float("inf")
    centred = self - self.mean(dims_of(len(shape), dim), True) if shape else self - self
    return restored(grad, shape, dim, keepdim) * (centred * factor)


def std_grad(grad: Tensor, self: Tensor, result: Tensor, dim: Any, correction: Any, keepdim: bool) -> Tensor:
    """By the variance; 0 where the deviation is 0."""
    zero = result == 0
    return var_grad((grad / (result * 2).masked_fill(zero, 1)).masked_fill(zero, 0), self, dim, correction, keepdim)


def cumsum_grad(grad: Tensor, dim: int) -> Tensor:
    """The sum from the other end."""
    return grad if not grad.shape else grad.flip((dim,)).cumsum(dim).flip((dim,))


def products_without(self: Tensor, dim: int) -> Tensor:
    """The product of all elements up to k but i, at [i, k] of the last two dims; 0 for k before i."""
    n = self.shape[dim]
    last = self.transpose(dim, -1)
    one = aten.eye(n, dtype=self.dtype, device=self.device) == 1
    return last.unsqueeze(-2).expand((*last.shape, n)).masked_fill(one, 1).cumprod(-1).triu()


def cumprod_grad(grad: Tensor, self: Tensor, result: Tensor, dim: int) -> Tensor:
    """The sum from the other end of grad * result, divided by self.

    With a zero among the elements the products without each one are taken from an n x n table: exact, and differentiable again.
    """
    if not self.shape or not count(self.shape):
        return grad
    if not may_hold_zero(self):
        return cumsum_grad(grad * result, dim) / self
    without = products_without(self, dim)
    return (without * grad.transpose(dim, -1).unsqueeze(-2)).sum(-1).transpose(dim, -1)


def logcumsumexp_grad(grad: Tensor, self: Tensor, result: Tensor, dim: int) -> Tensor:
    """The sum of grad[k] * exp(self - result[k]) from each element on.

    Positive and negative gradients apart, as logarithms, so that nothing overflows. From an n x n table where numbers are
    complex, or where this is recorded: logarithms have no derivative with respect to a gradient of 0.
    """
    if not grad.shape:
        return grad
    if self.dtype.category == COMPLEX or is_recorded(grad, self):
        return (conj(shares(self, result, dim)) * grad.transpose(dim, -1).unsqueeze(-2)).sum(-1).transpose(dim, -1)
    parts = by_sign(grad, log_size(grad) - result)
    over, under = [(p.flip((dim,)).logcumsumexp(dim).flip((dim,)) + self).exp() for p in parts]
    return over - under


def shares(self: Tensor, result: Tensor, dim: int) -> Tensor:
    """exp(self[i] - result[k]) for i <= k, else 0: for each line along the dim a table with rows i and columns k."""
    return (self.transpose(dim, -1).unsqueeze(-1) - result.transpose(dim, -1).unsqueeze(-2)).triu().exp().triu()


def log_size(x: Tensor) -> Tensor:
    """The logarithm of absolute values; -inf at 0, where its derivative is 0."""
    zero = x == 0
    return x.masked_fill(zero, 1).abs().log().masked_fill(zero, -inf)


def by_sign(x: Tensor, size: Tensor) -> tuple[Tensor, Tensor]:
    """`size` where x is positive, and where it is negative; -inf elsewhere."""
    return size.masked_fill(x <= 0, -inf), size.masked_fill(x >= 0, -inf)


def cumulative_extreme_grad(grad: Tensor, shape: Ints, dim: int, indices: Tensor) -> Tensor:
    """cummax, cummin: added up at the elements that were the extremes."""
    return blank(grad, shape).scatter_add(dim, indices, grad)
