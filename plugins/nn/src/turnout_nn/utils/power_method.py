"""Norms of weights: along all dimensions but one, and the largest singular value."""

from __future__ import annotations

from turnout.nn import functional

import turnout
from turnout import Tensor
from turnout_nn.module import Module


def norm_except(weight: Tensor, dim: int | None) -> Tensor:
    """The 2-norm of each part of a weight along a dimension, in the shape in which it divides the weight; None for all of it."""
    if dim is None or dim == -1:
        return turnout.linalg.vector_norm(weight)
    others = [i for i in range(weight.ndim) if i != dim % weight.ndim]
    return turnout.linalg.vector_norm(weight, dim=others, keepdim=True) if others else weight.abs()


def channels_of(module: Module) -> int:
    """The dimension of the output channels of a module's weight."""
    from turnout_nn.modules.convolutions import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d

    return 1 if isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)) else 0


def matrix_of(weight: Tensor, dim: int) -> Tensor:
    """The weight with one row for each output channel."""
    return weight.movedim(dim, 0).flatten(1)


def power_steps(matrix: Tensor, u: Tensor, v: Tensor, steps: int, eps: float) -> tuple[Tensor, Tensor]:
    """Better estimates of the first left and right singular vectors."""
    for _ in range(steps):
        u = functional.normalize(matrix @ v, dim=0, eps=eps)
        v = functional.normalize(matrix.mH @ u, dim=0, eps=eps)
    return u, v


def spread(matrix: Tensor, u: Tensor, v: Tensor) -> Tensor:
    """The singular value that belongs to two singular vectors."""
    return turnout.vdot(u, matrix @ v)
