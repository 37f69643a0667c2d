"""Shapes of matrix products. Operands have one dtype: nothing is promoted here."""

from __future__ import annotations

from turnout.dtypes import DType
from turnout.errors import DTypeError, ShapeError
from turnout.shapes.extents import expands_to
from turnout.shapes.pointwise import check_alpha
from turnout.shapes.specs import Out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from turnout.tensors import Tensor


def _dtype(name: str, **operands: Tensor) -> DType:
    dtypes = {argument: tensor.dtype for argument, tensor in operands.items()}
    first = next(iter(dtypes.values()))
    if any(d is not first for d in dtypes.values()):
        found = ", ".join(f"{argument} {d.name}" for argument, d in dtypes.items())
        raise DTypeError(f"{name}: operands must have one dtype, got {found}")
    return first


def _ranks(name: str, *operands: tuple[str, Tensor, int]) -> None:
    for argument, tensor, rank in operands:
        if len(tensor.array.shape) != rank:
            raise ShapeError(f"{name}: '{argument}' must have {rank} dimensions, got shape {list(tensor.array.shape)}")


def _inner(name: str, a: tuple[int, ...], b: tuple[int, ...], left: int, right: int) -> None:
    if left != right:
        raise ShapeError(f"{name}: shapes {list(a)} and {list(b)} do not match: {left} against {right}")


def mm(self: Tensor, mat2: Tensor) -> Out:
    """[n, m] times [m, p]."""
    a, b = self.array.shape, mat2.array.shape
    if len(a) != 2 or len(b) != 2:
        _ranks("mm", ("self", self, 2), ("mat2", mat2, 2))
    if a[1] != b[0]:
        _inner("mm", a, b, a[1], b[0])
    return Out((a[0], b[1]), _dtype("mm", self=self, mat2=mat2))


def bmm(self: Tensor, mat2: Tensor) -> Out:
    """[k, n, m] times [k, m, p]."""
    _ranks("bmm", ("self", self, 3), ("mat2", mat2, 3))
    a, b = self.array.shape, mat2.array.shape
    _inner("bmm", a, b, a[0], b[0])
    _inner("bmm", a, b, a[2], b[1])
    return Out((a[0], a[1], b[2]), _dtype("bmm", self=self, mat2=mat2))


def mv(self: Tensor, vec: Tensor) -> Out:
    """[n, m] times [m]."""
    _ranks("mv", ("self", self, 2), ("vec", vec, 1))
    a, b = self.array.shape, vec.array.shape
    _inner("mv", a, b, a[1], b[0])
    return Out((a[0],), _dtype("mv", self=self, vec=vec))


def dot(self: Tensor, tensor: Tensor) -> Out:
    """[n] times [n], without conjugation."""
    _ranks("dot", ("self", self, 1), ("tensor", tensor, 1))
    a, b = self.array.shape, tensor.array.shape
    _inner("dot", a, b, a[0], b[0])
    return Out((), _dtype("dot", self=self, tensor=tensor))


def addmm(self: Tensor, mat1: Tensor, mat2: Tensor, beta: Any = 1, alpha: Any = 1) -> Out:
    """beta * self + alpha * (mat1 @ mat2); self is expanded to the product's shape."""
    product = mm(mat1, mat2)
    dtype = _dtype("addmm", self=self, mat1=mat1, mat2=mat2)
    check_alpha(beta, dtype, "beta")
    check_alpha(alpha, dtype)
    shape = product.shape
    if not expands_to(self.array.shape, shape):
        raise ShapeError(
            f"addmm: 'self' of shape {list(self.array.shape)} does not expand to the product's {list(shape)}"
        )
    return product
