"""Gradients of reductions."""

from __future__ import annotations

from math import prod
from typing import Any

from turnout_aten import operators as aten
from turnout_aten.shapes.extents import dims_of
from turnout_aten.tensor.levels import peel
from turnout_aten.tensor.reads import reads
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd.formulas.broadcasting import Ints, blank
from turnout_autograd.formulas.complex import conj


def count_of(shape: Ints, dim: Any) -> int:
    """The number of elements that a reduction over `dim` takes together."""
    return prod(shape[d] for d in dims_of(len(shape), dim)) if shape else 1


def restored(x: Tensor, shape: Ints, dim: Any, keepdim: bool) -> Tensor:
    """The result of a reduction of a tensor of `shape`, with the reduced dims restored as 1."""
    if keepdim or not shape:
        return x
    for d in dims_of(len(shape), dim):
        x = x.unsqueeze(d)
    return x


def shared_grad(grad: Tensor, self: Tensor, result: Tensor, dim: Any, keepdim: bool) -> Tensor:
    """amax, amin: the elements that are the extremum share the gradient equally."""
    shape = self.shape
    mask = (self == restored(result, shape, dim, keepdim)).to(grad.dtype)
    share = restored(grad, shape, dim, keepdim)
    return mask * (share / mask.sum(dims_of(len(shape), dim), True) if shape else share)


def shared_of_all_grad(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    """max, min, median of all elements: those that are the result share the gradient equally, NaN where that is NaN."""
    nan = (self != self).logical_and(result != result)
    mask = (self == result).logical_or(nan).to(grad.dtype)
    return mask * (grad / mask.sum())


def selected_grad(grad: Tensor, shape: Ints, dim: int, indices: Tensor, keepdim: bool) -> Tensor:
    """max.dim, sort, topk: the gradient at the elements that were taken."""
    if not keepdim and shape:
        grad, indices = grad.unsqueeze(dim), indices.unsqueeze(dim)
    return blank(grad, shape).scatter(dim, indices, grad)


def may_hold_zero(x: Tensor) -> bool:
    """Whether an element is 0. Inside vmap nobody can ask, and it may be; without values it matters to a compiler alone."""
    if not x.device.backend.has_values:
        reads("whether an element is 0")
        return False
    return bool(peel(x)[1]) or bool((x == 0).any())


def products_of_others(x: Tensor) -> Tensor:
    """For each element the product of all others in its row, by an n x n table: exact, and differentiable again."""
    one = aten.eye(x.shape[-1], dtype=x.dtype, device=x.device) == 1
    return x.unsqueeze(-2).expand((*x.shape, x.shape[-1])).masked_fill(one, 1).prod(-1)


def prod_grad(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    """The product of all others; by division where no element is 0."""
    if not self.shape:
        return grad
    return prod_grad_dim(grad, self.reshape((-1,)), result, 0, False).reshape(self.shape)


def prod_grad_dim(grad: Tensor, self: Tensor, result: Tensor, dim: int, keepdim: bool) -> Tensor:
    """Products along one dim.

    With a zero among the elements the products of all others are taken from an n x n table: exact, and differentiable again.
    """
    shape = self.shape
    if not shape:
        return grad
    share = restored(grad, shape, dim, keepdim)
    if not may_hold_zero(self):
        return share * restored(result, shape, dim, keepdim) / self
    return share * products_of_others(self.transpose(dim, -1)).transpose(dim, -1)


def logsumexp_grad(grad: Tensor, self: Tensor, result: Tensor, dim: Any, keepdim: bool) -> Tensor:
    """The softmax."""
    shape = self.shape
    return restored(grad, shape, dim, keepdim) * conj((self - restored(result, shape, dim, keepdim)).exp())


def aminmax_grad(grads: Any, self: Tensor, smallest: Tensor, largest: Tensor, dim: Any, keepdim: bool) -> Any:
    """The sum of what amin and amax give."""
    each = zip(grads, (smallest, largest), strict=True)
    low, high = [None if g is None else shared_grad(g, self, r, dim, keepdim) for g, r in each]
    if low is None or high is None:
        return high if low is None else low
    return low + high
