"""Ranks and pseudo-inverses. Both ignore singular values up to max(atol, rtol * the largest one).

Without tolerances, rtol is the dtype's epsilon times the larger side of the matrix. If only atol is given, rtol is 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.dtypes import COMPLEX, int64
from turnout.errors import DTypeError
from turnout_aten import operators as aten
from turnout_aten.composites.conversions import converted
from turnout_aten.composites.decompositions import adjoint
from turnout_aten.dtypes import EPSILON
from turnout_aten.shapes.decompositions import matrices, square
from turnout_aten.shapes.extents import numel
from turnout_aten.tensor.tensor import Tensor

if TYPE_CHECKING:
    Tolerance = Tensor | float | None


def default_cut(self: Tensor, values: Tensor) -> Tensor:
    """epsilon * the larger side of the matrix * the largest value, with a last dim of length 1.

    Each factor is a multiplication of its own: a size that is not known has no product with a float.
    """
    smallest = aten.mul__Scalar(aten.amax(values, (-1,), True), EPSILON[self.dtype])
    return aten.mul__Scalar(smallest, max(self.shape[-2:]))


def _cut(self: Tensor, values: Tensor, atol: Tolerance, rtol: Tolerance) -> Tensor:
    """max(atol, rtol * the largest value), with a last dim of length 1."""
    if rtol is None and atol is None:
        return default_cut(self, values)
    relative = _times(aten.amax(values, (-1,), True), 0.0 if rtol is None else rtol)
    if atol is None:
        return relative
    if isinstance(atol, Tensor):
        return aten.maximum(aten.unsqueeze(atol, -1) if atol.ndim else atol, relative)
    return aten.clamp(relative, atol)


def _times(largest: Tensor, rtol: Any) -> Tensor:
    if isinstance(rtol, Tensor):
        return aten.mul__Tensor(largest, aten.unsqueeze(rtol, -1) if rtol.ndim else rtol)
    return aten.mul__Scalar(largest, rtol)


def _real(name: str, **tolerances: Any) -> None:
    for argument, value in tolerances.items():
        if isinstance(value, Tensor) and value.dtype.category == COMPLEX:
            raise DTypeError(f"{name}: '{argument}' must be real, got {value.dtype.name}")


# ---- rank


def _rank(self: Tensor, atol: Tolerance, rtol: Tolerance, hermitian: bool) -> Tensor:
    name = "linalg.matrix_rank"
    shape = square(name, self, "input") if hermitian else matrices(name, self, "input")
    _real(name, atol=atol, rtol=rtol)
    if not numel(shape[-2:]):
        return aten.new_zeros(self, shape[:-2], dtype=int64)
    values = aten.abs(aten.linalg_eigvalsh(self)) if hermitian else aten.linalg_svdvals(self)
    return aten.sum__dim_IntList(aten.gt__Tensor(values, _cut(self, values, atol, rtol)), (-1,))


def matrix_rank_tensors(
    input: Tensor, *, atol: Tensor | None = None, rtol: Tensor | None = None, hermitian: bool = False
) -> Tensor:
    """The number of singular values above the tolerance."""
    return _rank(input, atol, rtol, hermitian)


def matrix_rank_floats(self: Tensor, *, atol: float | None = None, rtol: float | None = None, hermitian: bool = False) -> Tensor:
    """matrix_rank with numbers."""
    return _rank(self, atol, rtol, hermitian)


def matrix_rank(self: Tensor, tol: float, hermitian: bool = False) -> Tensor:
    """matrix_rank with an absolute tolerance."""
    return _rank(self, tol, 0.0, hermitian)


def matrix_rank_tensor(input: Tensor, tol: Tensor, hermitian: bool = False) -> Tensor:
    """matrix_rank with an absolute tolerance for each matrix."""
    return _rank(input, tol, 0.0, hermitian)


# ---- pseudo-inverse


def pinv_tensors(self: Tensor, *, atol: Tensor | None = None, rtol: Tensor | None = None, hermitian: bool = False) -> Tensor:
    """The inverse on the span of the singular vectors above the tolerance, zero on the rest."""
    return _pinv(self, atol, rtol, hermitian)


def _pinv(self: Tensor, atol: Tolerance, rtol: Tolerance, hermitian: bool) -> Tensor:
    name = "linalg.pinv"
    shape = square(name, self, "self") if hermitian else matrices(name, self, "self")
    _real(name, atol=atol, rtol=rtol)
    if not numel(shape[-2:]):
        return aten.new_zeros(self, (*shape[:-2], shape[-1], shape[-2]))
    if hermitian:
        values, left = aten.linalg_eigh(self)
        right, size = left, aten.abs(values)
    else:
        left, values, right = aten.linalg_svd(self, False)
        right, size = adjoint(right), values
    counts = aten.gt__Tensor(size, _cut(self, size, atol, rtol))
    inverted = aten.masked_fill__Scalar(aten.reciprocal(values), aten.logical_not(counts), 0)
    scaled = aten.mul__Tensor(right, aten.to__dtype(aten.unsqueeze(inverted, -2), self.dtype))
    made = aten.matmul(scaled, adjoint(left))
    # differs from torch: `linalg.pinv` under `autocast` gives the dtype of its input, inside `vmap` and outside. PyTorch gives
    # the lower precision, which is that of its last product.
    return converted(made, self.dtype)


def pinv_floats(self: Tensor, *, atol: float | None = None, rtol: float | None = None, hermitian: bool = False) -> Tensor:
    """pinv with numbers."""
    return aten.linalg_pinv__atol_rtol_tensor(self, atol=_as_tensor(self, atol), rtol=_as_tensor(self, rtol), hermitian=hermitian)


def _as_tensor(self: Tensor, value: float | None) -> Tensor | None:
    return None if value is None else aten.new_full(self, (), value, dtype=self.dtype.to_real())


def pinv(self: Tensor, rcond: float, hermitian: bool = False) -> Tensor:
    """pinv with a relative tolerance."""
    return pinv_floats(self, atol=0.0, rtol=rcond, hermitian=hermitian)


def pinv_tensor(self: Tensor, rcond: Tensor, hermitian: bool = False) -> Tensor:
    """pinv with a relative tolerance for each matrix."""
    return aten.linalg_pinv__atol_rtol_tensor(self, atol=_as_tensor(self, 0.0), rtol=rcond, hermitian=hermitian)


def pinverse(self: Tensor, rcond: float = 1e-15) -> Tensor:
    """linalg.pinv(self, rcond)."""
    return pinv(self, rcond)
