"""Shape functions of matrix products. Operands must have one dtype; nothing is promoted."""

from __future__ import annotations

from turnout.dtypes import INT, DType
from turnout.errors import DTypeError, ShapeError
from turnout_aten.dtypes import check_held
from turnout_aten.errors import arguments as texts
from turnout_aten.shapes.extents import broadcast, expands_to, wrap_dim
from turnout_aten.shapes.promotion import result_type
from turnout_aten.shapes.specs import Out, Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from turnout_aten.shapes.specs import ShapeTable
    from turnout_aten.tensor.tensor import Tensor


def _dtype(name: str, **operands: Tensor) -> DType:
    dtypes = {argument: tensor.dtype for argument, tensor in operands.items()}
    first = next(iter(dtypes.values()))
    if any(d is not first for d in dtypes.values()):
        raise DTypeError(texts.several_dtypes(name, dtypes))
    return first


def _ranks(name: str, *operands: tuple[str, Tensor, int]) -> None:
    for argument, tensor, rank in operands:
        if len(tensor.array.shape) != rank:
            raise ShapeError(f"{name}: '{argument}' must have {rank} dimensions, got shape {list(tensor.array.shape)}")


def _inner(name: str, a: tuple[int, ...], b: tuple[int, ...], left: int, right: int) -> None:
    if left != right:
        raise ShapeError(texts.unmatched(name, a, b, left, right))


def mm(self: Tensor, mat2: Tensor) -> Out:
    """[n, m] times [m, p]."""
    a, b = self.array.shape, mat2.array.shape
    if len(a) != 2 or len(b) != 2:
        _ranks("mm", ("self", self, 2), ("mat2", mat2, 2))
    if a[1] != b[0]:
        _inner("mm", a, b, a[1], b[0])
    return Out((a[0], b[1]), _dtype("mm", self=self, mat2=mat2), exact=True)


def bmm(self: Tensor, mat2: Tensor) -> Out:
    """[k, n, m] times [k, m, p]."""
    _ranks("bmm", ("self", self, 3), ("mat2", mat2, 3))
    a, b = self.array.shape, mat2.array.shape
    _inner("bmm", a, b, a[0], b[0])
    _inner("bmm", a, b, a[2], b[1])
    return Out((a[0], a[1], b[2]), _dtype("bmm", self=self, mat2=mat2), exact=True)


def mv(self: Tensor, vec: Tensor) -> Out:
    """[n, m] times [m]."""
    _ranks("mv", ("self", self, 2), ("vec", vec, 1))
    a, b = self.array.shape, vec.array.shape
    _inner("mv", a, b, a[1], b[0])
    return Out((a[0],), _dtype("mv", self=self, vec=vec), exact=True)


def dot(self: Tensor, tensor: Tensor) -> Out:
    """[n] times [n], without conjugation."""
    _ranks("dot", ("self", self, 1), ("tensor", tensor, 1))
    a, b = self.array.shape, tensor.array.shape
    _inner("dot", a, b, a[0], b[0])
    return Out((), _dtype("dot", self=self, tensor=tensor), exact=True)


def _added(name: str, self: Tensor, product: Out, beta: Any, alpha: Any) -> Out:
    """A product to which `self`, expanded to its shape, is added."""
    if self.dtype is not product.dtype:
        raise DTypeError(f"{name}: 'self' has dtype {self.dtype.name}, the matrices have {product.dtype.name}")
    for argument, number in (("beta", beta), ("alpha", alpha)):
        # For integers, alpha and beta are truncated. PyTorch does so only here.
        if isinstance(number, complex) and not product.dtype.is_complex:
            raise DTypeError(f"{name}: {argument} must be real for a result of dtype {product.dtype.name}, got {number}")
        if product.dtype.category == INT:
            check_held(product.dtype, number, name, argument)
    if not expands_to(self.array.shape, product.shape):
        raise ShapeError(texts.no_product_shape(name, self.array.shape, product.shape))
    return product


def addmm(self: Tensor, mat1: Tensor, mat2: Tensor, beta: Any = 1, alpha: Any = 1) -> Out:
    """beta * self + alpha * (mat1 @ mat2); self is expanded to the product's shape."""
    return _added("addmm", self, mm(mat1, mat2), beta, alpha)


def addmv(self: Tensor, mat: Tensor, vec: Tensor, beta: Any = 1, alpha: Any = 1) -> Out:
    """beta * self + alpha * (mat @ vec)."""
    return _added("addmv", self, mv(mat, vec), beta, alpha)


def baddbmm(self: Tensor, batch1: Tensor, batch2: Tensor, beta: Any = 1, alpha: Any = 1) -> Out:
    """beta * self + alpha * (batch1 @ batch2)."""
    return _added("baddbmm", self, bmm(batch1, batch2), beta, alpha)


def vdot(self: Tensor, other: Tensor) -> Out:
    """[n] times [n], self conjugated."""
    _ranks("vdot", ("self", self, 1), ("other", other, 1))
    a, b = self.array.shape, other.array.shape
    _inner("vdot", a, b, a[0], b[0])
    return Out((), _dtype("vdot", self=self, other=other), exact=True)


def cross(self: Tensor, other: Tensor, dim: int = -1) -> Out | Result:
    """Vectors of length 3 along `dim`; the other dims broadcast."""
    a, b = self.array.shape, other.array.shape
    if len(a) != len(b):
        raise ShapeError(f"linalg.cross: operands need equally many dimensions, got shapes {list(a)} and {list(b)}")
    d = wrap_dim(dim, len(a))
    if not a or a[d] != 3 or b[d] != 3:
        raise ShapeError(f"linalg.cross: dim {dim} must have length 3 in both operands, got shapes {list(a)} and {list(b)}")
    dtype = result_type(self, other)
    return Result(Out(broadcast(a, b), dtype), {"self": dtype, "other": dtype})


# fmt: off
SHAPES: ShapeTable = {
    "mm.out": mm,
    "bmm.out": bmm,
    "mv.out": mv,
    "dot.out": dot,
    "vdot.out": vdot,
    "addmm.out": addmm,
    "addmv.out": addmv,
    "baddbmm.out": baddbmm,
    "linalg_cross.out": cross,
}
# fmt: on
