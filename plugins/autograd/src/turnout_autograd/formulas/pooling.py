"""Gradients of pooling."""

from __future__ import annotations

from math import prod

from turnout_aten.tensor.tensor import Tensor
from turnout_autograd.formulas.broadcasting import Ints, blank


def placed_grad(grad: Tensor, shape: Ints, indices: Tensor, ndim: int) -> Tensor:
    """Every gradient added at the place in the last `ndim` dims that its window's largest element came from."""
    lead = len(shape) - ndim
    flat = (*grad.shape[:lead], prod(grad.shape[lead:]))
    zeros = blank(grad, (*shape[:lead], prod(shape[lead:])))
    return zeros.scatter_add(-1, indices.reshape(flat), grad.reshape(flat)).reshape(shape)
