"""Complex numbers: conjugates, and gradients of parts, angles and signs."""

from __future__ import annotations

from typing import Any

from turnout.dtypes import COMPLEX, DType
from turnout_aten import operators as aten
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd.formulas.masking import masked, where


def conj(x: Any) -> Any:
    """The complex conjugate; real values are returned as they are."""
    if isinstance(x, Tensor):
        # x.dtype in line: 60 ns of 350; inside vmap it is another property
        dtype = x.device.backend.dtype_of(x.array) if type(x) is Tensor else x.dtype
        return aten.conj_physical(x) if dtype.category == COMPLEX else x
    return x.conjugate() if isinstance(x, complex) else x


def converted(x: Tensor, dtype: DType) -> Tensor:
    """A gradient or tangent in the dtype of what it belongs to: the real part where that is real."""
    if dtype.category < COMPLEX and x.is_complex():
        x = aten.real(x)
    return x.to(dtype=dtype)


def angle_grad(grad: Tensor, self: Tensor) -> Tensor:
    """grad * (-y, x) / (x^2 + y^2) of x + iy; 0 for real numbers and at 0."""
    if self.dtype.category != COMPLEX:
        return aten.zeros_like(grad)
    x, y, zero = over_square_of_modulus(self)
    return aten.view_as_complex(aten.stack([masked(grad * -y, zero), masked(grad * x, zero)], -1))


def over_square_of_modulus(self: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """x / (x^2 + y^2) and y / (x^2 + y^2) of x + iy, and where that is 0 / 0."""
    x, y = aten.real(self), aten.imag(self)
    size = x * x + y * y
    zero = size == 0
    size = where(zero, 1, size)
    return x / size, y / size, zero


def polar_unit(angle: Tensor) -> Tensor:
    """exp(-i angle)."""
    return aten.complex(angle.cos(), -angle.sin())


def sgn_grad(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    """(grad - s^2 conj(grad)) / (2 |x|), the part across the sign s; 0 at 0 and for real numbers."""
    if self.dtype.category != COMPLEX:
        return aten.zeros_like(grad)
    size = self.abs()
    turned = (grad - conj(grad) * result * result) / (where(size == 0, 1, size) * 2)
    return masked(turned, size == 0)
