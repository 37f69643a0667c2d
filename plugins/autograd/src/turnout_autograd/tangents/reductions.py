"""Tangents of reductions and of operators that select elements."""

from __future__ import annotations

from math import prod
from typing import Any

from turnout_aten.shapes.extents import dims_of
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd.formulas.complex import conj


def along(gradient: Tensor, self_t: Tensor, dim: Any, keepdim: bool) -> Tensor:
    """The inner product of the tangent with the gradient of the reduction, in each slice that it takes together."""
    product = conj(gradient) * self_t
    if not product.shape:
        return product
    return product.sum(dims_of(len(product.shape), dim), keepdim)


def selected(self_t: Tensor, dim: int, indices: Tensor, keepdim: bool) -> Tensor:
    """max.dim, median.dim, kthvalue: the tangent of the element that was taken."""
    if keepdim or not self_t.shape:
        return self_t.gather(dim, indices)
    return self_t.gather(dim, indices.unsqueeze(dim)).squeeze(dim)


def taken(self_t: Tensor, indices: Tensor, ndim: int) -> Tensor:
    """Pooling: the tangent of each window's largest element, at its place in the last `ndim` dims."""
    shape = indices.shape
    lead = len(shape) - ndim
    flat = self_t.reshape((*self_t.shape[:lead], prod(self_t.shape[lead:])))
    return flat.gather(-1, indices.reshape((*shape[:lead], prod(shape[lead:])))).reshape(shape)
