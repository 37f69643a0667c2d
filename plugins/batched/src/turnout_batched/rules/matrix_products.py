"""Rules for products of matrices and vectors. They use matmul where that saves a copy of a shared operand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from turnout.dtypes import BOOL, INT
from turnout.errors import DTypeError, ShapeError
from turnout_aten import operators as aten
from turnout_aten.errors import arguments as texts
from turnout_aten.shapes.extents import broadcast
from turnout_aten.tensor.tensor import Tensor
from turnout_batched.rules.alignment import Dims, fits, front, logical_ndim, logical_shape, padded
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
    return _of_ranks(
        "mm.out", dims, (self, mat2), (2, 2), lambda: _product(_matrices(self, dims[0]), _matrices(mat2, dims[1]))
    ), 0


def _of_ranks(
    variant: str, dims: Dims, values: tuple[Tensor, Tensor], ranks: tuple[int, int], product: Callable[[], Tensor]
) -> Tensor:
    """A product of examples of these ranks, computed by what takes others too, and refuses lengths and dtypes in other words."""
    if logical_ndim(values[0], dims[0]) != ranks[0] or logical_ndim(values[1], dims[1]) != ranks[1]:
        fits(variant, dims, values)
    try:
        return product()
    except (DTypeError, ShapeError):
        fits(variant, dims, values)
        raise


def _product(left: Tensor, right: Tensor) -> Tensor:
    """matmul of batches: `linalg_matmul` may have a kernel that broadcasts them, and is composed where it has none."""
    if len(left.array.shape) == 3 == len(right.array.shape) and left.array.shape[0] == right.array.shape[0]:
        return aten.bmm(left, right)
    if len(right.array.shape) > 2:
        return aten.linalg_matmul(left, right)
    return aten.matmul(left, right)


def _matrices(value: Tensor, bdim: int | None) -> Tensor:
    return value if bdim is None else front(value, bdim, 0)


def bmm(size: int, dims: Dims, self: Tensor, mat2: Tensor) -> tuple[Tensor, int]:
    fits("bmm.out", dims, (self, mat2))
    return _product(_matrices(self, dims[0]), _matrices(mat2, dims[1])), 0


def mv(size: int, dims: Dims, self: Tensor, vec: Tensor) -> tuple[Tensor, int]:
    def product() -> Tensor:
        if dims[0] is None:
            return aten.matmul(front(vec, dims[1], size), aten.t(self))
        matrices = front(self, dims[0], size)
        if dims[1] is None:
            return aten.matmul(matrices, vec)
        return aten.squeeze__dim(aten.matmul(matrices, aten.unsqueeze(front(vec, dims[1], size), 2)), 2)

    return _of_ranks("mv.out", dims, (self, vec), (2, 1), product), 0


def dot(size: int, dims: Dims, self: Tensor, tensor: Tensor) -> tuple[Tensor, int]:
    def product() -> Tensor:
        if dims[0] is None or dims[1] is None:
            batch, shared = (tensor, self) if dims[0] is None else (self, tensor)
            return aten.matmul(front(batch, dims[1] if dims[0] is None else dims[0], size), shared)
        rows, columns = aten.unsqueeze(front(self, dims[0], size), 1), aten.unsqueeze(front(tensor, dims[1], size), 2)
        return aten._unsafe_view(aten.bmm(rows, columns), (size,))

    return _of_ranks("dot.out", dims, (self, tensor), (1, 1), product), 0


@rounded_once
def addmm(size: int, dims: Dims, self: Tensor, mat1: Tensor, mat2: Tensor, beta: Any, alpha: Any) -> tuple[Tensor, int]:
    product, _ = mm(size, dims[1:3], mat1, mat2)
    return _added("addmm.out", size, dims, (self, mat1, mat2, beta, alpha), product, 2)


@rounded_once
def addmv(size: int, dims: Dims, self: Tensor, mat: Tensor, vec: Tensor, beta: Any, alpha: Any) -> tuple[Tensor, int]:
    product = aten.mv(mat, vec) if dims[1] is None and dims[2] is None else mv(size, dims[1:3], mat, vec)[0]
    return _added("addmv.out", size, dims, (self, mat, vec, beta, alpha), product, 1)


@rounded_once
def baddbmm(size: int, dims: Dims, self: Tensor, batch1: Tensor, batch2: Tensor, beta: Any, alpha: Any) -> tuple[Tensor, int]:
    product, _ = bmm(size, dims[1:3], batch1, batch2)
    return _added("baddbmm.out", size, dims, (self, batch1, batch2, beta, alpha), product, 3)


def _added(variant: str, size: int, dims: Dims, values: Sequence[Any], product: Tensor, ndim: int) -> tuple[Tensor, int]:
    """beta * self + alpha * product, whose examples have `ndim` dims."""
    self, _, _, beta, alpha = values
    if beta != 1 or alpha != 1 or self.dtype is not product.dtype:
        fits(variant, dims, values)
    bdim = None if dims[1] is None and dims[2] is None else 0
    shape = logical_shape(product, bdim)
    product = _times(alpha, product)
    if beta == 0:  # nan and infinity in self do not count then
        return front(product, bdim, size), 0
    try:
        made = aten.add__Tensor(padded(product, bdim, ndim), padded(_times(beta, self), dims[0], ndim))
    except ShapeError:
        fits(variant, dims, values)
        raise
    if made.array.shape[1:] != shape:  # self is larger
        fits(variant, dims, values)
    return made, 0


def _times(number: Any, value: Tensor) -> Tensor:
    """A multiple in the dtype of a value, in which the number is taken."""
    if number == 1:
        return value
    kind = {BOOL: bool, INT: int}.get(value.dtype.category)
    return aten.mul__Scalar(value, number if kind is None else kind(number))
