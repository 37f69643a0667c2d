"""Kernels of views that read a tensor's memory as elements of another dtype. They follow the internal convention."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnout.errors import ShapeError
from turnout_aten.tensor.tensor import wrap

if TYPE_CHECKING:
    from turnout.dtypes import DType
    from turnout_aten.tensor.tensor import Tensor

    Ints = tuple[int, ...]
    Geometry = tuple[Ints, Ints, int]


def view_dtype(ks: int, self: Tensor, dtype: DType) -> Tensor:
    """The same memory as elements of another dtype; the last dim grows or shrinks with the size of an element.

    Raises ShapeError if strides, offset or the last length do not allow that.
    """
    own = self.dtype
    if dtype is own:
        return self.new_alias(self.array, self.storage_offset())
    backend = self.device.backend
    shape, strides, offset = self.array.shape, backend.strides(self.array), self.storage_offset()
    return _of_dtype(self, dtype, _retyped(shape, strides, offset, own, dtype))


def view_as_real(ks: int, self: Tensor) -> Tensor:
    """The same memory as real and imaginary parts in a last dim of length 2. Raises DTypeError for a real tensor."""
    from turnout_aten.shapes import elementary

    made = elementary.view_as_real(self)
    strides = (*[2 * s for s in self.device.backend.strides(self.array)], 1)
    return _of_dtype(self, made.dtype, (made.shape, strides, 2 * self.storage_offset()))


def view_as_complex(ks: int, self: Tensor) -> Tensor:
    """The same memory as complex numbers. The last dim has length 2 and holds their real and imaginary parts.

    Raises DTypeError for dtypes other than float32 and float64, ShapeError if the last dim has another length or its two
    elements are not adjacent in memory.
    """
    from turnout_aten.shapes import elementary

    made = elementary.view_as_complex(self)
    *strides, last = self.device.backend.strides(self.array)
    offset = self.storage_offset()
    if last != 1 or offset % 2 or any(s % 2 for s, n in zip(strides, made.shape, strict=True) if n > 1):
        raise ShapeError(
            "view_as_complex: the last stride must be 1, the offset and the other strides even, got strides "
            f"{[*strides, last]} and offset {offset}; make the tensor contiguous"
        )
    return _of_dtype(self, made.dtype, (made.shape, tuple([s // 2 for s in strides]), offset // 2))


def _of_dtype(self: Tensor, dtype: DType, geometry: Geometry) -> Tensor:
    """The memory as elements of `dtype`, with one version counter."""
    shape, strides, offset = geometry
    backend = self.device.backend
    storage = self.shared_storage()
    counter, original = storage.counter, storage.memory.array
    root = original if backend.dtype_of(original) is dtype else backend.retyped(original, dtype)
    made = wrap(
        backend.empty(shape, dtype, self.device) if 0 in shape else backend.strided(root, shape, strides, offset), self.device
    )
    made.storage = counter if root is counter.array else counter.retyped(root)
    made.offset = offset
    return made


def _retyped(shape: Ints, strides: Ints, offset: int, own: DType, dtype: DType) -> Geometry:
    """A geometry counted in elements of `own`, converted to elements of `dtype`."""
    old, new = own.itemsize, dtype.itemsize
    if old == new:
        return shape, strides, offset
    words = f"view: as {dtype.name}, elements of {old} bytes as {new}"
    if not shape:
        raise ShapeError(f"{words}: a 0-dim tensor has no dimension whose length could change")
    if strides[-1] != 1:
        raise ShapeError(f"{words}: the last stride must be 1, got {strides[-1]}; make the tensor contiguous")
    if old > new:
        times = old // new
        return (*shape[:-1], shape[-1] * times), (*[s * times for s in strides[:-1]], 1), offset * times
    times = new // old
    if shape[-1] % times or offset % times or any(s % times for s in strides[:-1]):
        raise ShapeError(
            f"{words}: the last length, the offset and the other strides must be multiples of {times}, got shape "
            f"{list(shape)}, offset {offset}, strides {list(strides)}"
        )
    return (*shape[:-1], shape[-1] // times), (*[s // times for s in strides[:-1]], 1), offset // times
