"""`ClArray`: a strided view of an OpenCL buffer. Positions are counted in elements from the buffer's start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout_aten.backend import overlap
from turnout_aten.errors.failures import no_room
from turnout_aten.shapes.extents import contiguous_strides, reach_of

if TYPE_CHECKING:
    from turnout.dtypes import DType
    from turnout_opencl.devices import ClDevice

Ints = tuple[int, ...]


class ClArray:
    """The array of a tensor on `opencl`. Its elements can change; its shape, strides and offset cannot.

    place    the device that the buffer and its queue belong to
    buffer   a `pyopencl.Buffer`, shared by all views of it
    offset   where the first element stands in the buffer
    size     how many elements there are
    """

    __slots__ = ("buffer", "dtype", "offset", "place", "shape", "size", "strides")

    def __init__(self, place: ClDevice, buffer: Any, shape: Ints, dtype: DType, strides: Ints, offset: int = 0) -> None:
        self.place = place
        self.buffer = buffer
        self.shape = shape
        self.dtype = dtype
        self.strides = strides
        self.offset = offset
        size = 1
        for length in shape:
            size *= length
        self.size = size

    def view(self, shape: Ints, strides: Ints, offset: int) -> ClArray:
        """Another view, `offset` counted from this array's first element. Strides may be negative; tensors' are not."""
        return ClArray(self.place, self.buffer, shape, self.dtype, strides, self.offset + offset)

    def reshaped(self, shape: Ints) -> ClArray:
        """Another shape of a contiguous array."""
        return self.view(shape, contiguous_strides(shape), 0)

    def broadcast(self, shape: Ints) -> ClArray:
        """Repeat the array to a shape, with stride 0."""
        return self if self.shape == shape else self.view(shape, broadcast_strides(self, shape), 0)

    def at_least_1d(self) -> ClArray:
        """The array itself, or one element of a dim where it has no dims."""
        return self if self.shape else self.view((1,), (1,), 0)

    @property
    def is_contiguous(self) -> bool:
        if self.strides == contiguous_strides(self.shape):
            return True
        return all(s == r for n, s, r in zip(self.shape, self.strides, contiguous_strides(self.shape), strict=True) if n > 1)

    def __repr__(self) -> str:
        return f"ClArray({self.shape}, {self.dtype.name}, strides={self.strides}, offset={self.offset})"


def broadcast_strides(array: ClArray, shape: Ints) -> Ints:
    """The strides that repeat an array to `shape`, to which it broadcasts."""
    lead = len(shape) - len(array.shape)
    own = [0 if n == 1 else s for n, s in zip(array.shape, array.strides, strict=True)]
    return (0,) * lead + tuple(own)


def memory_of(*arrays: ClArray | None) -> tuple[Ints, tuple[Any, ...]]:
    """What a kernel gets of arrays: where they begin in their buffers, and the buffers; 0 and None for one that is missing."""
    return tuple([0 if a is None else a.offset for a in arrays]), tuple([None if a is None else a.buffer for a in arrays])


def new_array(place: ClDevice, shape: Ints, dtype: DType, strides: Ints | None = None) -> ClArray:
    """An uninitialised array with its own memory."""
    if strides is None:
        strides = contiguous_strides(shape)
    reach = reach_of(shape, strides)
    try:
        buffer = place.allocate(reach * dtype.itemsize)
    except MemoryError as error:
        raise no_room(f"opencl:{place.index}", shape, dtype) from error
    return ClArray(place, buffer, shape, dtype, strides)


def partly_overlap(a: ClArray, b: ClArray) -> bool:
    """Whether two arrays share some but not all of their elements, or the same ones in another order."""
    return a.buffer is b.buffer and overlap.partly_overlap(_extent(a), _extent(b))


def _extent(array: ClArray) -> overlap.Extent:
    size = array.dtype.itemsize
    return overlap.Extent(array.offset * size, array.shape, tuple([s * size for s in array.strides]), size)
