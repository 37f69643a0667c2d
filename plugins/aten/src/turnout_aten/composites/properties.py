"""Operators that return a number or a bool about a tensor: its dtype, shape, strides, or single value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnout.dtypes import COMPLEX, FLOAT
from turnout.errors import ShapeError
from turnout_aten import operators as aten
from turnout_aten.errors.arguments import not_one_element
from turnout_aten.shapes.extents import numel, wrap_dim

if TYPE_CHECKING:
    from turnout_aten.tensor.tensor import Tensor


def is_floating_point(self: Tensor) -> bool:
    """Whether the dtype is floating-point, not complex."""
    return self.dtype.category == FLOAT


def is_complex(self: Tensor) -> bool:
    """Whether the dtype is complex."""
    return self.dtype.category == COMPLEX


def is_signed(self: Tensor) -> bool:
    """Whether the dtype has negative numbers."""
    return self.dtype.is_signed


def is_nonzero(self: Tensor) -> bool:
    """Whether the only element is not 0. Raises ShapeError for any other number of elements."""
    if numel(self.shape) != 1:
        raise ShapeError(not_one_element("is_nonzero", self.shape, "; use any() or all()"))
    return bool(aten._local_scalar_dense(self))


def is_same_size(self: Tensor, other: Tensor) -> bool:
    """Whether two shapes are equal."""
    return self.shape == other.shape


def sym_size(self: Tensor, dim: int) -> int:
    """The length of a dim."""
    return self.shape[wrap_dim(dim, self.ndim)]


def sym_stride(self: Tensor, dim: int) -> int:
    """The stride of a dim, in elements."""
    return self.stride()[wrap_dim(dim, self.ndim)]


def sym_numel(self: Tensor) -> int:
    """The number of elements."""
    return numel(self.shape)


def sym_storage_offset(self: Tensor) -> int:
    """The position of the first element in the storage, in elements."""
    return self.storage_offset()


def sym_is_contiguous(self: Tensor, memory_format: str) -> bool:
    """Whether the elements lie in memory in the order of a memory format, without gaps."""
    return self.is_contiguous(memory_format)
