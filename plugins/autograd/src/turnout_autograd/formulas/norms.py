"""Gradients of vector norms."""

from __future__ import annotations

from math import inf
from typing import Any

from turnout.dtypes import COMPLEX
from turnout_aten.shapes.extents import dims_of
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd.formulas.reductions import restored


def vector_norm_grad(grad: Tensor, self: Tensor, result: Tensor, ord: Any, dim: Any, keepdim: bool) -> Tensor:
    """sign(x) |x|^(p-1) / norm^(p-1); 0 where the norm is 0, shared among the extremes for inf and -inf."""
    if self.dtype.category != COMPLEX:
        self = self.to(grad.dtype)
    shape = self.shape
    grad, norm = restored(grad, shape, dim, keepdim), restored(result, shape, dim, keepdim)
    if ord == 0:
        return (self * 0).masked_fill(self == self, 0)
    if ord == 2:
        zero = norm == 0
        return self * (grad / norm.masked_fill(zero, 1)).masked_fill(zero, 0)
    size = self.abs()
    zero = size == 0
    direction = self.sgn()
    if ord == 1:
        return direction * grad
    if ord in (inf, -inf):
        mask = (size == norm).to(grad.dtype)
        return direction * (mask * (grad / (mask.sum(dims_of(len(shape), dim), True) if shape else mask)))
    if ord < 2:
        powers = size.masked_fill(zero, 1).pow(ord - 1).masked_fill(zero, 0)
    else:
        powers = size.pow(ord - 1)
    none = norm == 0  # 1 there, or the derivative with respect to grad would be NaN
    return direction * powers * (grad * norm.masked_fill(none, 1).pow(1 - ord)).masked_fill(none, 0)
