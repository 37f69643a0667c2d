"""Matrices that the gradients of linear algebra are built from."""

from __future__ import annotations

from typing import Any

from turnout_aten import operators as aten
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd.formulas.complex import conj


def adjoint(x: Tensor) -> Tensor:
    """The conjugate transpose."""
    return conj(x.transpose(-2, -1))


def identity_like(like: Tensor) -> Tensor:
    return aten.eye(like.shape[-1], dtype=like.dtype, device=like.device)


def diagonal_matrices(x: Tensor) -> Tensor:
    """Diagonal matrices."""
    wide = x.unsqueeze(-1)
    one = aten.eye(x.shape[-1], dtype=x.dtype.to_real(), device=x.device) == 1
    return aten.where__self(one, wide, wide.new_zeros(()))


def off_diagonal(x: Tensor) -> Tensor:
    """Zeros on the diagonal."""
    return x.tril(-1) + x.triu(1)


def divided_by_differences(x: Tensor, values: Tensor, dtype: Any) -> Tensor:
    """x[i, j] / (values[j] - values[i]); x[i, i] as it is."""
    difference = values.unsqueeze(-2) - values.unsqueeze(-1)
    return x / (difference.to(dtype) + identity_like(x))


def lower_solved(L: Tensor, x: Tensor) -> Tensor:
    """L^-H x."""
    return aten.linalg_solve_triangular(adjoint(L), x, upper=True, unitriangular=True)


def upper_solved(U: Tensor, x: Tensor) -> Tensor:
    """x U^-H."""
    return aten.linalg_solve_triangular(adjoint(U), x, upper=False, left=False)
