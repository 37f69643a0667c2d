"""Rules for products of matrices and vectors. They use matmul where that saves a copy of a shared operand."""

from __future__ import annotations

from typing import Any

from turnout.errors import ShapeError
from turnout_aten import operators as aten
from turnout_aten.errors import arguments as texts
from turnout_aten.shapes.extents import broadcast, expands_to
from turnout_aten.tensor.tensor import Tensor
from turnout_batched.rules.alignment import Dims, front, logical_shape, padded


def _unequal(name: str, a: tuple[int, ...], b: tuple[int, ...]) -> str:
    return f"{name}: examples of shapes {list(a)} and {list(b)} do not match"


def _shapes(name: str, dims: Dims, values: tuple[Tensor, Tensor], ndims: tuple[int, int]) -> None:
    """Check the shapes of the examples: matmul accepts any, but mm, mv and bmm do not."""
    a, b = logical_shape(values[0], dims[0]), logical_shape(values[1], dims[1])
    if (len(a), len(b)) != ndims or a[-1] != b[-1 if ndims[1] == 1 else -2] or (ndims == (3, 3) and a[0] != b[0]):
        raise ShapeError(_unequal(name, a, b))


def matmul(size: int, dims: Dims, self: Tensor, other: Tensor) -> tuple[Tensor, int]:
    """One product of batches. A batched vector is a matrix of one row or one column, unless it meets a shared matrix."""
    a, b = logical_shape(self, dims[0]), logical_shape(other, dims[1])
    if not a or not b:
        raise ShapeError(texts.operands_without_dims("matmul", a, b))
    if a[-1] != b[-2 if len(b) > 1 else 0]:
        raise ShapeError(_unequal("matmul", a, b))
    if len(a) == 1 == len(b):
        return dot(size, dims, self, other)
    ndim = max(len(a), len(b))
    if len(a) > 2 and len(b) > 2:
        broadcast(a[:-2], b[:-2])
    left, right = _matrices(self, dims[0]), _matrices(other, dims[1])
    if dims[1] is None and len(b) == 2:
        return aten.matmul(left, right), 0
    if dims[0] is None and len(a) == 2 and len(b) == 1:
        return aten.matmul(right, aten.t(left)), 0
    if len(a) == 1 and dims[0] is not None:
        left = aten.unsqueeze(left, 1)
    if len(b) == 1 and dims[1] is not None:
        right = aten.unsqueeze(right, 2)
    if dims[0] is not None:
        left = padded(left, 0, ndim)
    if dims[1] is not None:
        right = padded(right, 0, ndim)
    made = _product(left, right)
    rows = len(a) == 1 and dims[0] is not None
    columns = len(b) == 1 and dims[1] is not None
    if rows or columns:
        shape = made.array.shape
        made = aten._unsafe_view(made, (*shape[:-2], *(() if rows else shape[-2:-1]), *(() if columns else shape[-1:])))
    return made, 0


def mm(size: int, dims: Dims, self: Tensor, mat2: Tensor) -> tuple[Tensor, int]:
    _shapes("mm", dims, (self, mat2), (2, 2))
    return _product(_matrices(self, dims[0]), _matrices(mat2, dims[1])), 0


def _product(left: Tensor, right: Tensor) -> Tensor:
    """matmul of batches: `linalg_matmul` may have a kernel that broadcasts them, and is composed where it has none."""
    made: Tensor
    if len(left.array.shape) == 3 == len(right.array.shape) and left.array.shape[0] == right.array.shape[0]:
        made = aten.bmm(left, right)
    elif len(right.array.shape) > 2:
        made = aten.linalg_matmul(left, right)
    else:
        made = aten.matmul(left, right)
    return made


def _matrices(value: Tensor, bdim: int | None) -> Tensor:
    return value if bdim is None else front(value, bdim, 0)


def bmm(size: int, dims: Dims, self: Tensor, mat2: Tensor) -> tuple[Tensor, int]:
    _shapes("bmm", dims, (self, mat2), (3, 3))
    return _product(_matrices(self, dims[0]), _matrices(mat2, dims[1])), 0


def mv(size: int, dims: Dims, self: Tensor, vec: Tensor) -> tuple[Tensor, int]:
    _shapes("mv", dims, (self, vec), (2, 1))
    if dims[0] is None:
        return aten.matmul(front(vec, dims[1], size), aten.t(self)), 0
    matrices = front(self, dims[0], size)
    if dims[1] is None:
        return aten.matmul(matrices, vec), 0
    return aten.squeeze__dim(aten.matmul(matrices, aten.unsqueeze(front(vec, dims[1], size), 2)), 2), 0


def dot(size: int, dims: Dims, self: Tensor, tensor: Tensor) -> tuple[Tensor, int]:
    _shapes("dot", dims, (self, tensor), (1, 1))
    if dims[0] is None or dims[1] is None:
        batch, shared = (tensor, self) if dims[0] is None else (self, tensor)
        return aten.matmul(front(batch, dims[1] if dims[0] is None else dims[0], size), shared), 0
    terms = aten.mul__Tensor(front(self, dims[0], size), front(tensor, dims[1], size))
    return aten.sum__dim_IntList(terms, (1,), False, dtype=terms.dtype), 0


def addmm(size: int, dims: Dims, self: Tensor, mat1: Tensor, mat2: Tensor, beta: Any, alpha: Any) -> tuple[Tensor, int]:
    product, _ = mm(size, dims[1:3], mat1, mat2)
    return _added("addmm", size, dims, self, product, 2, beta, alpha)


def addmv(size: int, dims: Dims, self: Tensor, mat: Tensor, vec: Tensor, beta: Any, alpha: Any) -> tuple[Tensor, int]:
    product = aten.matmul(mat, vec) if dims[1] is None and dims[2] is None else mv(size, dims[1:3], mat, vec)[0]
    return _added("addmv", size, dims, self, product, 1, beta, alpha)


def baddbmm(size: int, dims: Dims, self: Tensor, batch1: Tensor, batch2: Tensor, beta: Any, alpha: Any) -> tuple[Tensor, int]:
    product, _ = bmm(size, dims[1:3], batch1, batch2)
    return _added("baddbmm", size, dims, self, product, 3, beta, alpha)


def _added(
    name: str, size: int, dims: Dims, self: Tensor, product: Tensor, ndim: int, beta: Any, alpha: Any
) -> tuple[Tensor, int]:
    """beta * self + alpha * product, whose examples have `ndim` dims."""
    bdim = None if dims[1] is None and dims[2] is None else 0
    if alpha != 1:
        product = aten.mul__Scalar(product, alpha)
    shape, wanted = logical_shape(self, dims[0]), logical_shape(product, bdim)
    if not expands_to(shape, wanted):
        raise ShapeError(f"{name}: an example's 'self' of shape {list(shape)} does not expand to the product's {list(wanted)}")
    if beta == 0:  # nan and infinity in self do not count then
        return front(product, bdim, size), 0
    added = self if beta == 1 else aten.mul__Scalar(self, beta)
    return aten.add__Tensor(padded(product, bdim, ndim), padded(added, dims[0], ndim)), 0
