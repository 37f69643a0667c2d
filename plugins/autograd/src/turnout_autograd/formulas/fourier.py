"""Gradients of Fourier transforms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnout_aten import operators as aten
from turnout_aten.tensor.tensor import Tensor

if TYPE_CHECKING:
    from turnout_autograd.formulas.broadcasting import Ints


def fft_r2c_grad(grad: Tensor, dim: Ints, normalization: int, onesided: bool, length: int) -> Tensor:
    """The inverse transform, with zeros in the half that the forward transform leaves out."""
    last = dim[-1] % grad.ndim
    missing = length - grad.shape[last]
    if onesided and missing:
        shape = (*grad.shape[:last], missing, *grad.shape[last + 1 :])
        grad = aten.cat([grad, grad.new_zeros(shape)], last)
    return aten.real(aten._fft_c2c(grad, dim, normalization, False))


def fft_c2r_grad(grad: Tensor, dim: Ints, normalization: int) -> Tensor:
    """The inverse transform; elements that represent two count twice."""
    made = aten._fft_r2c(grad, dim, normalization, True)
    last = dim[-1] % grad.ndim
    twice = grad.shape[last] - made.shape[last]
    if twice <= 0:
        return made
    parts = [made.narrow(last, 0, 1), made.narrow(last, 1, twice) * 2]
    rest = made.shape[last] - 1 - twice
    return aten.cat([*parts, made.narrow(last, 1 + twice, rest)] if rest else parts, last)


def fft_c2c_grad(grad: Tensor, dim: Ints, normalization: int, forward: bool) -> Tensor:
    """The inverse transform with the same scaling."""
    return aten._fft_c2c(grad, dim, normalization, not forward)
