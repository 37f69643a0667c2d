"""Rules for linear algebra on stacks of matrices, and for Fourier transforms. These operators accept batch dims in front."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from turnout_aten import operators as aten
from turnout_aten.shapes.extents import wrap_dim, wrap_dims
from turnout_aten.tensor.tensor import Tensor
from turnout_batched.rules.alignment import Dims, family, front, logical_ndim, logical_shape, padded


@family
def stacked(call: Any, size: int, dims: Dims, *values: Any) -> tuple[Any, Any]:
    """The first tensor has matrices in its last two dims. The others have the same number of dims in front, or fewer."""
    ndim = logical_ndim(values[0], dims[0])
    batches = [front(v, d, size) if isinstance(v, Tensor) else v for v, d in zip(values, dims, strict=True)]
    if ndim < 2:  # the operator must refuse it: the batch must not become a dim of the matrix
        return call(*[aten.select__int(v, 0, 0) if isinstance(v, Tensor) else v for v in batches]), None
    made = call(*batches)
    return ([_of_each(t, size) for t in made], 0) if isinstance(made, (list, tuple)) else (made, 0)


def _of_each(made: Tensor, size: int) -> Tensor:
    """A result that was not requested has shape [0] for each example."""
    if made.array.shape != (0,) or not size:
        return made
    empty: Tensor = aten.expand(made, (size, 0))
    return empty


@family
def solved(call: Any, size: int, dims: Dims, matrix: Tensor, *rest: Any) -> tuple[Any, Any]:
    """Like `stacked`, but the dims in front are broadcast. The last tensor is the right-hand side."""
    values = (matrix, *rest)
    ndim = max(logical_ndim(v, d) for v, d in zip(values, dims, strict=True) if isinstance(v, Tensor))
    if ndim < 2:
        return stacked(call, size, dims, *values)
    given = []
    for v, d in zip(values, dims, strict=True):
        if isinstance(v, Tensor):  # pivots have one dim less than their matrices
            v = padded(front(v, d, size), 0, ndim - (logical_ndim(v, d) < logical_ndim(matrix, dims[0])))
        given.append(v)
    return call(*given), 0


def pseudo_inverse(
    size: int, dims: Dims, self: Tensor, atol: Tensor | None, rtol: Tensor | None, hermitian: bool
) -> tuple[Tensor, int]:
    """Tolerances are broadcast with the dims in front of the matrices."""
    ndim = logical_ndim(self, dims[0])
    if ndim < 2:
        return aten.linalg_pinv__atol_rtol_tensor(aten.select__int(front(self, dims[0], size), 0, 0)), 0
    bounds = [None if t is None else padded(front(t, d, size), 0, ndim - 2) for t, d in ((atol, dims[1]), (rtol, dims[2]))]
    A = front(self, dims[0], size)
    return aten.linalg_pinv__atol_rtol_tensor(A, atol=bounds[0], rtol=bounds[1], hermitian=hermitian), 0


def least_squares(
    size: int, dims: Dims, self: Tensor, b: Tensor, rcond: Any, driver: Any
) -> tuple[list[Tensor], int | list[int]]:
    """Residuals if all examples have full rank, otherwise none: all examples must have one shape."""
    ndim = logical_ndim(self, dims[0])
    vector = logical_shape(b, dims[1]) == logical_shape(self, dims[0])[:-1]
    A, B = front(self, dims[0], size), front(b, dims[1], size)
    if ndim >= 2:
        B = aten.unsqueeze(B, -1) if vector else B
        most = max(ndim, len(B.array.shape) - 1)
        A, B = padded(A, 0, most), padded(B, 0, most)
    solution, residuals, *rest = [_of_each(t, size) for t in aten.linalg_lstsq(A, B, rcond, driver=driver)]
    if vector:
        solution = aten.squeeze__dim(solution, -1)
        residuals = residuals if residuals.array.shape == (size, 0) else aten.squeeze__dim(residuals, -1)
    return [solution, residuals, *rest], 0


@family
def fourier(call: Any, size: int, dims: Dims, self: Tensor, over: Sequence[int], *rest: Any) -> tuple[Tensor, int]:
    """(self, dim[], ...)."""
    x = front(self, dims[0], size)
    return call(x, [d + 1 for d in wrap_dims(over, len(x.array.shape) - 1)], *rest), 0


def cross(size: int, dims: Dims, self: Tensor, other: Tensor, dim: int) -> tuple[Tensor, int]:
    ndim = max(logical_ndim(self, dims[0]), logical_ndim(other, dims[1]))
    d = wrap_dim(dim, ndim) + 1
    a, b = (padded(front(v, k, size), 0, ndim) for v, k in ((self, dims[0]), (other, dims[1])))
    return aten.linalg_cross(a, b, dim=d), 0
