"""What is determined of results that are not: vectors with a free sign, phase, or basis of a subspace.

`INVARIANTS` maps an OpInfo to a function from its results, as PyTorch's tensors, to those that must be equal; the results
themselves are then compared by shape and dtype.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Tensors = tuple[torch.Tensor, ...]


def eig(values: torch.Tensor, vectors: torch.Tensor) -> Tensors:
    """The eigenvalues, the matrix that was decomposed, the lengths of the vectors."""
    matrix = vectors @ torch.diag_embed(values) @ torch.linalg.inv(vectors) if vectors.numel() else vectors
    return values, matrix, vectors.norm(dim=-2)


def eigh(values: torch.Tensor, vectors: torch.Tensor) -> Tensors:
    """The eigenvalues, the matrix, and that the vectors are orthonormal."""
    return values, (vectors * values.unsqueeze(-2)) @ vectors.mH, vectors.mH @ vectors


def svd(U: torch.Tensor, S: torch.Tensor, Vh: torch.Tensor) -> Tensors:
    """The singular values, the matrix, and that the vectors are orthonormal."""
    k = S.shape[-1]
    return S, (U[..., :k] * S.unsqueeze(-2)) @ Vh[..., :k, :], U.mH @ U, Vh @ Vh.mH


def svd_transposed(U: torch.Tensor, S: torch.Tensor, V: torch.Tensor) -> Tensors:
    """The same for V in the place of its adjoint; zeros without vectors."""
    return svd(U, S, V.mH)


def random_range(U: torch.Tensor, S: torch.Tensor, V: torch.Tensor) -> Tensors:
    """That the vectors are orthonormal: which part of the matrix is found is random."""
    return U.mH @ U, V.mH @ V


INVARIANTS: dict[str, Callable[..., Any]] = {
    "linalg.eig": eig,
    "linalg.eigh": eigh,
    "linalg.svd": svd,
    "svd": svd_transposed,
    "svd_lowrank": random_range,
    "pca_lowrank": random_range,
}
