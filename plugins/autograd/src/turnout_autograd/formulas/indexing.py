"""Gradients of indexing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnout_aten.tensor.tensor import Tensor

if TYPE_CHECKING:
    from turnout_autograd.formulas.broadcasting import Ints


def index_select_grad(grad: Tensor, shape: Ints, dim: int, positions: Tensor) -> Tensor:
    """Zeros with the gradients added at their positions."""
    if not shape:
        return grad.sum() if grad.shape else grad
    if not positions.shape:
        positions = positions.reshape((1,))
    return grad.new_zeros(shape).index_add(dim, positions, grad)
