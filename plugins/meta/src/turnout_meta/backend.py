"""The backend of device `meta`: arrays that have a shape, a dtype, strides and a storage, but no elements.

A view is told apart from a copy by its storage: views made with `strided` name the root they were made of.
"""

from __future__ import annotations

from typing import Any

from turnout.devices import Device
from turnout.dtypes import DType
from turnout.errors import NoDataError
from turnout_aten.backend import overlap
from turnout_aten.backend.tensor_backend import TensorBackend
from turnout_aten.shapes.extents import contiguous_strides
from turnout_meta.symbols.sizes import SymInt, as_shape, as_strides

Ints = tuple[int, ...]
_new = object.__new__
NOTHING_TO_COPY = "cannot copy out of a meta tensor: it has no data; use empty_like(tensor, device=...)"


class MetaArray:
    """What a tensor on `meta` holds. Never changed but for `sizes`.

    root    the array whose memory it would share: itself, unless it is a view
    offset  of its first element from the root's, in elements
    sizes   what depends on its values: operator -> (version of the tensor, size)
    """

    __slots__ = ("dtype", "offset", "root", "shape", "sizes", "strides")

    def __init__(self, shape: Ints, dtype: DType, strides: Ints, root: MetaArray | None = None, offset: int = 0) -> None:
        # Without two frames where all sizes are known.
        self.shape = as_shape(shape) if SymInt in map(type, shape) else shape
        self.dtype = dtype
        self.strides = as_strides(strides) if SymInt in map(type, strides) else strides
        self.root = self if root is None else root
        self.offset = offset
        self.sizes: dict[str, tuple[int, Any]] = {}

    def __repr__(self) -> str:
        return f"MetaArray({self.shape}, {self.dtype.name}, strides={self.strides}, offset={self.offset})"

    def __reduce__(self) -> tuple[Any, ...]:
        root = None if self.root is self else self.root
        return (MetaArray, (self.shape, self.dtype, self.strides, root, self.offset))


class MetaBackend(TensorBackend):
    """It has no memory and no values: kernels do nothing, and reading a value raises NoDataError."""

    has_values = False
    keeps_answers = True
    name = "Meta"
    device_type = "meta"

    # ---- memory

    def empty(self, shape: Ints, dtype: DType, device: Device, strides: Ints | None = None) -> MetaArray:
        return MetaArray(tuple(shape), dtype, contiguous_strides(shape) if strides is None else tuple(strides))

    def strided(self, root: MetaArray, shape: Ints, strides: Ints, offset: int) -> MetaArray:
        made: MetaArray = _new(MetaArray)  # without the frame of `__init__`
        made.shape = as_shape(tuple(shape)) if SymInt in map(type, shape) else tuple(shape)
        made.strides = as_strides(tuple(strides)) if SymInt in map(type, strides) else tuple(strides)
        made.dtype, made.root, made.offset, made.sizes = root.dtype, root.root, root.offset + offset, {}
        return made

    def data_ptr(self, array: MetaArray) -> int:
        return 0

    def retyped(self, root: MetaArray, dtype: DType) -> MetaArray:
        return self.empty((self.storage_size(root) * root.dtype.itemsize // dtype.itemsize,), dtype, self.place)

    def strides(self, array: MetaArray) -> Ints:
        return array.strides

    def dtype_of(self, array: MetaArray) -> DType:
        return array.dtype

    def partly_overlap(self, a: MetaArray, b: MetaArray) -> bool:
        return a.root is b.root and overlap.partly_overlap(overlap.of_elements(a), overlap.of_elements(b))

    # ---- values: there are none

    def copy(self, target: MetaArray, source: MetaArray) -> None:
        pass

    def fill(self, target: MetaArray, value: Any) -> None:
        pass

    def ramp(self, target: MetaArray, start: Any, step: Any) -> bool:
        return True

    def from_host(self, data: bytes | memoryview, shape: Ints, dtype: DType, device: Device) -> MetaArray:
        return self.empty(shape, dtype, device)

    def to_host(self, array: MetaArray) -> bytes:
        raise NoDataError(NOTHING_TO_COPY)

    def item(self, array: MetaArray) -> bool | int | float | complex:
        raise NoDataError("item: a meta tensor has no value")

    def adopt(self, value: Any) -> MetaArray | None:
        return value if isinstance(value, MetaArray) else None

    def as_array(self, value: Any) -> MetaArray:
        assert isinstance(value, MetaArray)
        return value

    def random_bits(self, shape: Ints, seed: int, offset: int, device: Device) -> MetaArray:
        from turnout.dtypes import uint64

        return self.empty(shape, uint64, device)
