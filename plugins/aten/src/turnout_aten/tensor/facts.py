"""`x.shape` and `x.dtype`: what the array of a tensor says of itself. A compiled call path reads it without a frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnout_aten.tensor.size import Size, sizes
from turnout_aten.tensor.size import new as new_size

if TYPE_CHECKING:
    from turnout.dtypes import DType
    from turnout_aten.tensor.tensor import Tensor


def _shape(self: Tensor) -> Size:
    """The length of each dimension."""
    found = self.array.shape
    if found.__class__ is tuple:
        return sizes[found]
    return found if isinstance(found, Size) else new_size(Size, found)


def _dtype(self: Tensor) -> DType:
    """The type of the elements."""
    backend = self.device.backend
    known = backend.dtypes
    return backend.dtype_of(self.array) if known is None else known[self.array.dtype]  # saves a frame


shape, dtype = property(_shape), property(_dtype)
