"""Gradients of indexing."""

from __future__ import annotations

from turnout_aten.tensor.tensor import Tensor
from turnout_autograd.formulas.broadcasting import Ints, blank


def index_select_grad(grad: Tensor, shape: Ints, dim: int, positions: Tensor) -> Tensor:
    """Zeros with the gradients added at their positions."""
    if not shape:
        return grad.sum() if grad.shape else grad
    if not positions.shape:
        positions = positions.reshape((1,))
    return blank(grad, shape).index_add(dim, positions, grad)
