"""Rules for linear algebra on stacks of matrices, and for Fourier transforms. These operators accept batch dims in front."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from turnout_aten import operators as aten
from turnout_aten.shapes.extents import wrap_dim, wrap_dims
from turnout_aten.tensor.tensor import Tensor
from turnout_batched.rules.alignment import Dims, Rule, family, fits, front, logical_ndim, logical_shape, padded, refused


@family
def stacked(call: Any, size: int, dims: Dims, *values: Any) -> tuple[Any, Any]:
    """The first tensor has matrices in its last two dims. The others have the same number of dims in front, or fewer."""
    if logical_ndim(values[0], dims[0]) < 2:
        refused(call, size, dims, values)
    made = call(*[front(v, d, size) if isinstance(v, Tensor) else v for v, d in zip(values, dims, strict=True)])
    return ([_of_each(t, size) for t in made], 0) if isinstance(made, (list, tuple)) else (made, 0)


def _of_each(made: Tensor, size: int) -> Tensor:
    """A result that was not requested has shape [0] for each example."""
    if made.array.shape != (0,) or not size:
        return made
    return aten.expand(made, (size, 0))


def solved(variant: str, *own: int) -> Rule:
    """The rule of solvers, which broadcast the dims in front of their operands; each tensor has `own` dims behind them."""

    @family
    def solve(call: Any, size: int, dims: Dims, *values: Any) -> tuple[Tensor, int]:
        fits(variant, dims, values)
        tensors = tuple(zip(values, dims, own, strict=False))
        most = max([logical_ndim(v, d) - behind for v, d, behind in tensors])
        given = [padded(front(v, d, size), 0, most + behind) for v, d, behind in tensors]
        return call(*given, *values[len(own) :]), 0

    return solve


@family
def pseudo_inverse(
    call: Any, size: int, dims: Dims, self: Tensor, atol: Tensor | None, rtol: Tensor | None, hermitian: bool
) -> tuple[Tensor, int]:
    """Tolerances are broadcast with the dims in front of the matrices."""
    ndim = logical_ndim(self, dims[0])
    if ndim < 2:
        refused(call, size, dims, (self, atol, rtol, hermitian))
    bounds = [(t, d) for t, d in ((atol, dims[1]), (rtol, dims[2])) if t is not None]
    most = max([ndim - 2, *[logical_ndim(t, d) for t, d in bounds]])
    A = padded(front(self, dims[0], size), 0, most + 2)
    given = [None if t is None else padded(front(t, d, size), 0, most) for t, d in ((atol, dims[1]), (rtol, dims[2]))]
    return call(A, *given, hermitian), 0


@family
def least_squares(
    call: Any, size: int, dims: Dims, self: Tensor, b: Tensor, rcond: Any, driver: Any
) -> tuple[list[Tensor], int | list[int]]:
    """Residuals if all examples have full rank, otherwise none: all examples must have one shape."""
    ndim = logical_ndim(self, dims[0])
    vector = logical_shape(b, dims[1]) == logical_shape(self, dims[0])[:-1]
    if ndim < 2 or (not vector and logical_ndim(b, dims[1]) < 2):
        refused(call, size, dims, (self, b, rcond, driver))
    A, B = front(self, dims[0], size), front(b, dims[1], size)
    B = aten.unsqueeze(B, -1) if vector else B
    most = max(ndim, len(B.array.shape) - 1)
    solution, residuals, *own = [_of_each(t, size) for t in call(padded(A, 0, most), padded(B, 0, most), rcond, driver)]
    if vector:
        solution = aten.squeeze__dim(solution, -1)
        residuals = residuals if residuals.array.shape == (size, 0) else aten.squeeze__dim(residuals, -1)
    # Ranks and singular values have no dims of b.
    rest = [t if t.array.shape == (size, 0) else aten.view(t, (size, *t.array.shape[1 + most - ndim :])) for t in own]
    return [solution, residuals, *rest], 0


@family
def fourier(call: Any, size: int, dims: Dims, self: Tensor, over: Sequence[int], *rest: Any) -> tuple[Tensor, int]:
    """(self, dim[], ...)."""
    x = front(self, dims[0], size)
    return call(x, [d + 1 for d in wrap_dims(over, len(x.array.shape) - 1)], *rest), 0


def cross(size: int, dims: Dims, self: Tensor, other: Tensor, dim: int) -> tuple[Tensor, int]:
    fits("linalg_cross.out", dims, (self, other, dim))
    d = wrap_dim(dim, logical_ndim(self, dims[0])) + 1
    return aten.linalg_cross(front(self, dims[0], size), front(other, dims[1], size), dim=d), 0
