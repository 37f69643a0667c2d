"""Tangents of the gradients of softmax."""

from __future__ import annotations

from turnout_aten.tensor.tensor import Tensor


def softmax_grad_tangent(output_t: Tensor, grad_output: Tensor, output: Tensor, dim: int) -> Tensor:
    """d (y (g - sum(g y))) along dy."""
    inner = grad_output - (grad_output * output).sum(dim, True)
    return output_t * inner - output * (grad_output * output_t).sum(dim, True)
