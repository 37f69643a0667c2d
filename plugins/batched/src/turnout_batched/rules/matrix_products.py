"""Rules for products of matrices and vectors. They use matmul where that saves a copy of a shared operand."""

from __future__ import annotations

from typing import Any

from turnout.dtypes import BOOL, INT
from turnout.errors import ShapeError
from turnout_aten import operators as aten
from turnout_aten.errors import arguments as texts
from turnout_aten.shapes.extents import broadcast
from turnout_aten.tensor.tensor import Tensor
from turnout_batched.rules.alignment import Dims, fits, front, logical_shape, padded
from turnout_batched.rules.rounding import rounded_once


def matmul(size: int, dims: Dims, self: Tensor, other: Tensor) -> tuple[Tensor, int]:
    """One product of batches. A batched vector is a matrix of one row or one column, unless it meets a shared matrix."""
    a, b = logical_shape(self, dims[0]), logical_shape(other, dims[1])
    if not a or not b:
        raise ShapeError(texts.operands_without_dims("matmul", a, b))
    inner = b[-2 if len(b) > 1 else 0]
    if a[-1] != inner:
        raise ShapeError(texts.unmatched("matmul", a, b, a[-1], inner))
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
    fits("mm.out", dims, (self, mat2))
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
    fits("bmm.out", dims, (self, mat2))
    return _product(_matrices(self, dims[0]), _matrices(mat2, dims[1])), 0


def mv(size: int, dims: Dims, self: Tensor, vec: Tensor) -> tuple[Tensor, int]:
    fits("mv.out", dims, (self, vec))
    if dims[0] is None:
        return aten.matmul(front(vec, dims[1], size), aten.t(self)), 0
    matrices = front(self, dims[0], size)
    if dims[1] is None:
        return aten.matmul(matrices, vec), 0
    return aten.squeeze__dim(aten.matmul(matrices, aten.unsqueeze(front(vec, dims[1], size), 2)), 2), 0


@rounded_once
def dot(size: int, dims: Dims, self: Tensor, tensor: Tensor) -> tuple[Tensor, int]:
    fits("dot.out", dims, (self, tensor))
    if dims[0] is None or dims[1] is None:
        batch, shared = (tensor, self) if dims[0] is None else (self, tensor)
        return aten.matmul(front(batch, dims[1] if dims[0] is None else dims[0], size), shared), 0
    terms = aten.mul__Tensor(front(self, dims[0], size), front(tensor, dims[1], size))
    return aten.sum__dim_IntList(terms, (1,), False, dtype=terms.dtype), 0


@rounded_once
def addmm(size: int, dims: Dims, self: Tensor, mat1: Tensor, mat2: Tensor, beta: Any, alpha: Any) -> tuple[Tensor, int]:
    fits("addmm.out", dims, (self, mat1, mat2, beta, alpha))
    return _added(size, dims, self, mm(size, dims[1:3], mat1, mat2)[0], 2, beta, alpha)


@rounded_once
def addmv(size: int, dims: Dims, self: Tensor, mat: Tensor, vec: Tensor, beta: Any, alpha: Any) -> tuple[Tensor, int]:
    fits("addmv.out", dims, (self, mat, vec, beta, alpha))
    product = aten.matmul(mat, vec) if dims[1] is None and dims[2] is None else mv(size, dims[1:3], mat, vec)[0]
    return _added(size, dims, self, product, 1, beta, alpha)


@rounded_once
def baddbmm(size: int, dims: Dims, self: Tensor, batch1: Tensor, batch2: Tensor, beta: Any, alpha: Any) -> tuple[Tensor, int]:
    fits("baddbmm.out", dims, (self, batch1, batch2, beta, alpha))
    return _added(size, dims, self, bmm(size, dims[1:3], batch1, batch2)[0], 3, beta, alpha)


def _added(size: int, dims: Dims, self: Tensor, product: Tensor, ndim: int, beta: Any, alpha: Any) -> tuple[Tensor, int]:
    """beta * self + alpha * product, whose examples have `ndim` dims."""
    bdim = None if dims[1] is None and dims[2] is None else 0
    product = _times(alpha, product)
    if beta == 0:  # nan and infinity in self do not count then
        return front(product, bdim, size), 0
    return aten.add__Tensor(padded(product, bdim, ndim), padded(_times(beta, self), dims[0], ndim)), 0


def _times(number: Any, value: Tensor) -> Tensor:
    """A multiple in the dtype of a value, in which the number is taken."""
    kind = {BOOL: bool, INT: int}.get(value.dtype.category)
    number = number if kind is None else kind(number)
    return value if number == 1 else aten.mul__Scalar(value, number)
