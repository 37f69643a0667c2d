"""Rules for decompositions, solvers and Fourier transforms: their operators take batches in front, so a batch joins those."""

from __future__ import annotations

from typing import Any

from turnout.generated import operators as aten
from turnout.tensors import Tensor
from turnout_batched.rules import products
from turnout_batched.rules.alignment import Dims, family, front, logical_ndim, padded, wrapped_dim


@family
def decomposed(call: Any, size: int, dims: Dims, *values: Any) -> tuple[Any, int]:
    """All tensors belong to one batch of matrices; results that were not asked for have shape [0] for each example."""
    given = [front(v, d, size) if isinstance(v, Tensor) else v for v, d in zip(values, dims, strict=True)]
    if logical_ndim(values[0], dims[0]) < 2:
        # The batch would be taken for a dim of the matrix; one example raises the usual error.
        call(*[aten.select__int(v, 0, 0) if isinstance(v, Tensor) else v for v in given])
    made = call(*given)
    return ([_for_each(t, size) for t in made], 0) if isinstance(made, (list, tuple)) else (made, 0)


def _for_each(made: Tensor, size: int) -> Tensor:
    if made.array.shape == (0,) != (size,):
        empty: Tensor = aten.expand(made, (size, 0))
        return empty
    return made


def solve_triangular(
    size: int, dims: Dims, self: Tensor, B: Tensor, upper: bool, left: bool, unitriangular: bool
) -> tuple[Tensor, int]:
    ndim = max(logical_ndim(self, dims[0]), logical_ndim(B, dims[1]))
    a, b = padded(self, dims[0], ndim), padded(B, dims[1], ndim)
    return aten.linalg_solve_triangular(a, b, upper=upper, left=left, unitriangular=unitriangular), 0


def ldl_solve(size: int, dims: Dims, LD: Tensor, pivots: Tensor, B: Tensor, hermitian: bool) -> tuple[Tensor, int]:
    ndim = max(logical_ndim(LD, dims[0]), logical_ndim(B, dims[2]))
    a = padded(front(LD, dims[0], size), 0, ndim)
    p = padded(front(pivots, dims[1], size), 0, ndim - 1)
    return aten.linalg_ldl_solve(a, p, padded(B, dims[2], ndim), hermitian=hermitian), 0


def cross(size: int, dims: Dims, self: Tensor, other: Tensor, dim: int) -> tuple[Tensor, int]:
    at = wrapped_dim(dim, logical_ndim(self, dims[0])) + 1
    return aten.linalg_cross(front(self, dims[0], size), front(other, dims[1], size), dim=at), 0


def vdot(size: int, dims: Dims, self: Tensor, other: Tensor) -> tuple[Tensor, int]:
    return products.dot(size, dims, aten.conj(self), other)


@family
def transform(call: Any, size: int, dims: Dims, self: Tensor, dim: Any, *rest: Any) -> tuple[Tensor, int]:
    ndim = logical_ndim(self, dims[0])
    return call(front(self, dims[0], size), [wrapped_dim(d, ndim) + 1 for d in dim], *rest), 0
