"""Complex numbers: conjugates and parts.

# differs from torch: `conj`, `adjoint`, `H` and `mH` of a complex tensor compute a new tensor. A write into it does not reach the
original, and a write into the original does not reach it. Conjugation is never lazy, so `resolve_conj` returns its argument.
`real` and `imag` of a complex tensor are views, as in PyTorch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnout.dtypes import COMPLEX
from turnout.errors import DTypeError
from turnout_aten import operators as aten

if TYPE_CHECKING:
    from turnout_aten.tensor.tensor import Tensor


def conj(self: Tensor) -> Tensor:
    """The complex conjugate; a real tensor is returned as it is."""
    if self.dtype.category != COMPLEX:
        return self
    return aten.conj_physical(self)


def resolve_conj(self: Tensor) -> Tensor:
    """The tensor itself: no conjugate is ever pending."""
    return self


def resolve_neg(self: Tensor) -> Tensor:
    """The tensor itself: no negation is ever pending."""
    return self


def real(self: Tensor) -> Tensor:
    """The real part; a real tensor is returned as it is."""
    if self.dtype.category != COMPLEX:
        return self
    return aten.select__int(aten.view_as_real(self), -1, 0)


def imag(self: Tensor) -> Tensor:
    """The imaginary part of a complex tensor; a real one has none."""
    if self.dtype.category != COMPLEX:
        raise DTypeError(f"imag is defined for complex tensors, this one is {self.dtype.name}")
    return aten.select__int(aten.view_as_real(self), -1, 1)
