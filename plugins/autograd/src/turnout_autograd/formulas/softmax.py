"""Second derivatives of softmax and log_softmax."""

from __future__ import annotations

from turnout_aten.tensor.tensor import Tensor


def softmax_second_grad(grad: Tensor, grad_output: Tensor, output: Tensor, dim: int) -> Tensor:
    """d <grad, y (g - sum(g y))> / dy."""
    inner = grad_output - (grad_output * output).sum(dim, True)
    return grad * inner - grad_output * (grad * output).sum(dim, True)


def log_softmax_second_grad(grad: Tensor, output: Tensor, dim: int) -> Tensor:
    """d <grad, g - exp(y) sum(g)> / dg."""
    return grad - (grad * output.exp()).sum(dim, True)
