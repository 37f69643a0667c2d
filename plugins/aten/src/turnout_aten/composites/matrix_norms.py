"""Norms of vectors and matrices, and condition numbers, in terms of vector norms and singular values."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

from turnout.errors import ArgumentError, ShapeError
from turnout_aten import operators as aten
from turnout_aten.composites.conversions import converted
from turnout_aten.errors import arguments as texts
from turnout_aten.shapes.decompositions import floating, matrices, square
from turnout_aten.shapes.extents import numel, wrap_dim

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnout.dtypes import DType
    from turnout_aten.tensor.tensor import Tensor

ORDERS = (2, -2, 1, -1, inf, -inf)


def norm(
    self: Tensor, ord: Any = None, dim: Sequence[int] | None = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """The norm of vectors; with `ord` and two dims, of matrices. Without `ord`, the 2-norm of all elements."""
    if dim is not None and ord is not None and len(dim) not in (1, 2):
        raise ShapeError(f"linalg.norm: dim must name 1 or 2 dimensions, got {list(dim)}")
    if dim is None and ord is not None and self.ndim not in (1, 2):
        raise ShapeError(f"linalg.norm: with ord and without dim, self must have 1 or 2 dimensions, got shape {list(self.shape)}")
    if ord is not None and (self.ndim if dim is None else len(dim)) == 2:
        return aten.linalg_matrix_norm(self, ord, (0, 1) if dim is None else dim, keepdim, dtype=dtype)
    return aten.linalg_vector_norm(self, 2 if ord is None else ord, dim, keepdim, dtype=dtype)


def norm_str(
    self: Tensor, ord: str, dim: Sequence[int] | None = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """The Frobenius or nuclear norm of matrices."""
    if dim is not None and len(dim) not in (1, 2):
        raise ShapeError(f"linalg.norm: dim must name 1 or 2 dimensions, got {list(dim)}")
    if dim is None and self.ndim not in (1, 2):
        raise ShapeError(f"linalg.norm: with ord and without dim, self must have 1 or 2 dimensions, got shape {list(self.shape)}")
    if (self.ndim if dim is None else len(dim)) != 2:
        raise ShapeError(f"linalg.norm: order {ord!r} needs two dimensions, got one")
    return aten.linalg_matrix_norm__str_ord(self, ord, (0, 1) if dim is None else dim, keepdim, dtype=dtype)


def _matrix_dims(name: str, self: Tensor, dim: Sequence[int]) -> tuple[int, int]:
    matrices(name, self, "self", half=True)
    if len(dim) != 2:
        raise ShapeError(f"{name}: dim must name two dimensions, got {list(dim)}")
    first, second = (wrap_dim(d, self.ndim) for d in dim)
    if first == second:
        raise ShapeError(f"{name}: dim must name two different dimensions, got {list(dim)}")
    return first, second


def _restored(x: Tensor, dims: tuple[int, int], keepdim: bool) -> Tensor:
    """A result for each matrix, with the two dims restored as length 1."""
    if not keepdim:
        return x
    for d in sorted(dims):
        x = aten.unsqueeze(x, d)
    return x


def _largest(x: Tensor, dim: tuple[int, ...], keepdim: bool = False) -> Tensor:
    """The largest of nonnegative numbers; 0 for none."""
    return (aten.amax if x.shape[dim[0]] else aten.sum__dim_IntList)(x, dim, keepdim)


def matrix_norm(
    self: Tensor, ord: Any, dim: Sequence[int] = (-2, -1), keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """The largest singular value (2), column sum (1) or row sum (inf). A negative order takes the smallest."""
    name = "linalg.matrix_norm"
    floating(name, self, half=True)
    dims = _matrix_dims(name, self, dim)
    if ord not in ORDERS:
        raise ArgumentError(f"{name}: order must be 1, -1, 2, -2, inf, -inf, 'fro' or 'nuc', got {ord!r}")
    extreme = _largest if ord > 0 else aten.amin
    if abs(ord) == 2:
        values = aten.linalg_svdvals(aten.movedim__intlist(converted(self, dtype or self.dtype), dims, (-2, -1)))
        return _restored(extreme(values, (-1,)), dims, keepdim)
    summed, chosen = dims if abs(ord) == 1 else dims[::-1]
    sums = aten.linalg_vector_norm(self, 1, (summed,), True, dtype=dtype)
    made = extreme(sums, (chosen,), True)
    if not keepdim:
        for d in sorted(dims, reverse=True):
            made = aten.squeeze__dim(made, d)
    return made


def matrix_norm_str(
    self: Tensor, ord: str = "fro", dim: Sequence[int] = (-2, -1), keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """The 2-norm of all elements (fro), or the sum of the singular values (nuc)."""
    name = "linalg.matrix_norm"
    floating(name, self, half=True)
    dims = _matrix_dims(name, self, dim)
    if ord == "fro":
        return aten.linalg_vector_norm(self, 2, dims, keepdim, dtype=dtype)
    if ord != "nuc":
        raise ArgumentError(f"{name}: order must be 1, -1, 2, -2, inf, -inf, 'fro' or 'nuc', got {ord!r}")
    values = aten.linalg_svdvals(aten.movedim__intlist(converted(self, dtype or self.dtype), dims, (-2, -1)))
    return _restored(aten.sum__dim_IntList(values, (-1,)), dims, keepdim)


def nuclear_norm(self: Tensor, keepdim: bool = False) -> Tensor:
    """The sum of the singular values of each matrix."""
    if self.ndim < 2:
        raise ShapeError(texts.few_dims("nuclear_norm", "self", 2, self.shape))
    return matrix_norm_str(self, "nuc", (-2, -1), keepdim)


def nuclear_norm_dim(self: Tensor, dim: Sequence[int], keepdim: bool = False) -> Tensor:
    """The sum of the singular values of the matrices along two dims."""
    return matrix_norm_str(self, "nuc", dim, keepdim)


# ---- condition numbers


def cond(self: Tensor, p: Any = None) -> Tensor:
    """The norm of a matrix times the norm of its inverse: infinite for a singular matrix, 0 for an empty one."""
    name = "linalg.cond"
    shape = matrices(name, self, "self")
    if p is None or p in (2, -2):
        if not numel(shape):
            return _zeros(self)
        values = aten.linalg_svdvals(self)
        largest, smallest = aten.select__int(values, -1, 0), aten.select__int(values, -1, -1)
        return aten.div__Tensor(smallest, largest) if p == -2 else aten.div__Tensor(largest, smallest)
    if p not in ORDERS:
        raise ArgumentError(f"{name}: order must be 1, -1, 2, -2, inf, -inf, 'fro' or 'nuc', got {p!r}")
    square(name, self, "self")
    return _zeros(self) if not numel(shape) else _by_inverse(self, aten.linalg_matrix_norm, p)


def cond_str(self: Tensor, p: str) -> Tensor:
    """The condition number in the Frobenius or nuclear norm."""
    name = "linalg.cond"
    if p not in ("fro", "nuc"):
        raise ArgumentError(f"{name}: order must be 1, -1, 2, -2, inf, -inf, 'fro' or 'nuc', got {p!r}")
    shape = square(name, self, "self")
    if not numel(shape):
        return _zeros(self)
    if p == "fro":
        return _by_inverse(self, aten.linalg_matrix_norm__str_ord, p)
    values = aten.linalg_svdvals(self)
    return aten.mul__Tensor(aten.sum__dim_IntList(values, (-1,)), aten.sum__dim_IntList(aten.reciprocal(values), (-1,)))


def _zeros(self: Tensor) -> Tensor:
    return aten.new_zeros(self, self.shape[:-2], dtype=self.dtype.to_real())


def _by_inverse(self: Tensor, norm_of: Any, order: Any) -> Tensor:
    inverse, info = aten.linalg_inv_ex(self)
    product = aten.mul__Tensor(norm_of(self, order), norm_of(inverse, order))
    return aten.masked_fill__Scalar(product, aten.ne__Scalar(info, 0), inf)
