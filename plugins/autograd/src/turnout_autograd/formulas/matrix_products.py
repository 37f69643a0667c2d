"""Gradients of matrix products."""

from __future__ import annotations

from turnout_aten.tensor.tensor import Tensor
from turnout_autograd.formulas.broadcasting import Ints
from turnout_autograd.formulas.complex import conj
from turnout_autograd.formulas.views import turned

Geometry = tuple[Ints, Ints, int]


def _by_columns(geometry: Geometry) -> bool:
    """Whether a matrix lies in memory column by column, as a transposed weight does."""
    (rows, columns), strides, _ = geometry
    return strides == (1, rows) and columns > 1


def mm_self_grad(grad: Tensor, mat2: Tensor, geometry: Geometry) -> Tensor:
    """grad mat2^H, computed in the memory order of the matrix that it is the gradient of: a leaf then needs no copy."""
    if _by_columns(geometry):
        return turned(conj(mat2).mm(turned(grad)))
    return grad.mm(turned(conj(mat2)))


def mm_mat2_grad(grad: Tensor, self: Tensor, geometry: Geometry) -> Tensor:
    """self^H grad, likewise."""
    if _by_columns(geometry):
        return turned(turned(grad).mm(conj(self)))
    return turned(conj(self)).mm(grad)
