"""`OpenCLBackend`: memory and values of device `opencl`. Its arrays are `ClArray`s; it shares nothing with NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import pyopencl as cl

from turnout.config.lock import new_lock
from turnout.devices import Device, device
from turnout.dtypes import DTYPES, FLOAT, DType
from turnout.errors import DeviceError, OutOfMemoryError, ShapeError, TurnoutError
from turnout.guards import Changes, Guard
from turnout_arrays.random import start_of
from turnout_aten.backend.tensor_backend import TensorBackend
from turnout_aten.tensor import host_bytes as elements
from turnout_opencl import arrays
from turnout_opencl.arrays import ClArray, new_array
from turnout_opencl.devices import ClDevice, found_devices
from turnout_opencl.grids import packed
from turnout_opencl.loops import run_loop
from turnout_opencl.profiles import profile
from turnout_opencl.programs import SOURCES, TYPES
from turnout_opencl.queues import INDEX

Ints = tuple[int, ...]


class OpenCLBackend(TensorBackend):
    """`platform()` says which platforms count (see the option); devices are opened when they are first used."""

    name = "OpenCL"
    device_type = "opencl"
    indexed = True
    array_type = ClArray

    def __init__(self, platform: Callable[[], str]) -> None:
        self._platform = platform
        self._lock = new_lock()
        self._found: list[Any] | None = None
        self._open: dict[int, ClDevice] = {}

    # ---- devices

    def _devices(self) -> list[Any]:
        if self._found is None:
            self._found = found_devices(self._platform())
        return self._found

    def opened(self, where: Device) -> ClDevice:
        """The opened device. Raises DeviceError where there is none of that index."""
        index = INDEX.get()[0] if where.index is None else where.index
        found = self._open.get(index)
        if found is None:
            self.resolve_device(device("opencl", index))
            with self._lock:
                found = self._open.get(index) or self._open.setdefault(index, ClDevice(self._devices()[index], index))
        return found

    def device_count(self) -> int:
        return len(self._devices())

    def current_device(self) -> Device:
        return device("opencl", INDEX.get()[0])

    def guard(self, device: Device) -> AbstractContextManager[object] | None:
        return None if device.index is None or device.index == INDEX.get()[0] else _Current(device.index)

    def synchronize(self, device: Device) -> None:
        self.opened(device).finish()

    def empty_cache(self) -> None:
        for opened in list(self._open.values()):
            opened.release()

    def close(self) -> None:
        """Finish what is queued and forget the devices; arrays that are still alive keep theirs."""
        for opened in self._open.values():
            opened.close()
        self._open.clear()

    def profile(self) -> profile:
        """The times of its kernels."""
        return profile()

    # ---- memory

    def empty(self, shape: Ints, dtype: DType, device: Device, strides: Ints | None = None) -> ClArray:
        return new_array(self.opened(device), tuple(shape), dtype, None if strides is None else tuple(strides))

    def retyped(self, root: ClArray, dtype: DType) -> ClArray:
        size, old, new = self.storage_size(root), root.dtype.itemsize, dtype.itemsize
        if root.offset * old % new:
            raise ShapeError(f"view: the memory of this tensor does not begin at a multiple of {new} bytes")
        return ClArray(root.place, root.buffer, (size * old // new,), dtype, (1,), root.offset * old // new)

    def strided(self, root: ClArray, shape: Ints, strides: Ints, offset: int) -> ClArray:
        return root.view(tuple(shape), tuple(strides), offset)

    def strides(self, array: ClArray) -> Ints:
        return array.strides

    def dtype_of(self, array: ClArray) -> DType:
        return array.dtype

    def partly_overlap(self, a: ClArray, b: ClArray) -> bool:
        return arrays.partly_overlap(a, b)

    def error_kind(self, error: Exception) -> type[TurnoutError] | None:
        """A driver finds out that memory is short when a kernel starts, too."""
        if isinstance(error, cl.MemoryError):
            return OutOfMemoryError
        return DeviceError if isinstance(error, cl.Error) else None

    # ---- values

    def copy(self, target: ClArray, source: ClArray) -> None:
        copy(target, source)

    def fill(self, target: ClArray, value: Any) -> None:
        fill(target, value)

    def ramp(self, target: ClArray, start: Any, step: Any) -> bool:
        if not target.place.supports(target.dtype):
            return False
        if target.dtype.category != FLOAT:
            start, step = int(start), int(step)
        bits = TYPES[target.dtype].bits
        numbers = (bits(start, target.place.double), bits(step, target.place.double))
        call, count = packed(0, target.shape, (target.strides,), (target.offset,), numbers=numbers)
        target.place.start("move", target.dtype, "range", call, (target.buffer,), count)
        return True

    def to_host(self, array: ClArray) -> bytes | memoryview:
        dense = array if array.is_contiguous else contiguous(array)
        return memoryview(dense.place.read(dense))

    def from_host(self, data: bytes | memoryview, shape: Ints, dtype: DType, device: Device) -> ClArray:
        made = self.empty(shape, dtype, device)
        made.place.write(made, data)
        return made

    def item(self, array: ClArray) -> bool | int | float | complex:
        return elements.decode(self.to_host(array), array.dtype)[0]

    def adopt(self, value: Any) -> ClArray | None:
        return value if isinstance(value, ClArray) else None

    def as_array(self, value: Any) -> ClArray:
        assert isinstance(value, ClArray), "kernels of this backend return ClArrays"
        return value

    def dlpack(self, array: ClArray, options: dict[str, Any]) -> Any:
        raise BufferError("OpenCL memory cannot be exported through DLPack; ask for a copy on the host: dl_device=(1, 0)")

    def dlpack_device(self, array: ClArray) -> tuple[int, int]:
        """kDLOpenCL and the index of the device."""
        return 4, array.place.index

    def from_dlpack(self, value: Any) -> ClArray:
        """An array over the memory of a tensor; OpenCL memory of other libraries belongs to contexts of their own."""
        array = self.adopt(getattr(value, "array", None))
        if array is None:
            raise BufferError(f"opencl takes the memory of Turnout's tensors alone, not that of {type(value).__name__}")
        if value.requires_grad:
            value.__dlpack__()  # which refuses it, as that of any tensor
        return array.view(array.shape, array.strides, 0)

    def random_bits(self, shape: Ints, seed: int, offset: int, device: Device) -> ClArray:
        """Word i is a hash of (seed, offset + i), the one that `turnout_arrays.random` computes."""
        made = self.empty(shape, DTYPES["uint64"], device)
        start, key = start_of(seed, offset)
        bits = TYPES[made.dtype].bits
        call, count = packed(0, (made.size,), ((1,),), (0,), numbers=(bits(start, False), bits(key, False)))
        made.place.start("random", made.dtype, "bits", call, (made.buffer,), count)
        return made


class _Current(Guard):
    """Makes a device of an index the one that `opencl` means."""

    def __init__(self, index: int) -> None:
        self._index = index

    def sets(self) -> Changes:
        return ((INDEX, [self._index]),)


# ---- what kernels use too


def copy(target: ClArray, source: ClArray) -> None:
    """Write `source`, of the same shape, into `target`, converting the dtype; through the host where the device cannot.

    An array that is the target is there already.
    """
    if source is target:
        return
    if arrays.partly_overlap(target, source):
        source = contiguous(source)
    place = target.place
    dtype, given = target.dtype, source.dtype
    if dtype is not given and not (place.supports(dtype) and place.supports(given)):
        _copy_through_host(target, source)
        return
    if dtype.name == "float64" and not place.double:
        dtype = given = DTYPES["uint64"]  # the same bytes
    strides, offsets = (target.strides, source.strides), (target.offset, source.offset)
    if run_loop("cast", given.name, dtype, target, (source.buffer,), strides[1:], offsets[1:], ()):
        return
    call, count = packed(SOURCES[given], target.shape, strides, offsets)
    place.start("cast", dtype, "cast", call, (target.buffer, source.buffer), count)


def contiguous(array: ClArray, dtype: DType | None = None) -> ClArray:
    """A row-major copy, converted if a dtype is given."""
    made = new_array(array.place, array.shape, dtype or array.dtype)
    copy(made, array)
    return made


def row_major_of(array: ClArray, dtype: DType | None = None) -> ClArray:
    """The array itself if its elements stand in order and have the dtype, else a copy of which that is true."""
    return array if array.is_contiguous and dtype in (None, array.dtype) else contiguous(array, dtype)


def fill(target: ClArray, value: Any) -> None:
    """Fill an array with a Python number; integers wrap around."""
    place = target.place
    if target.is_contiguous:
        place.fill(target, element_bytes(value, target.dtype))
    elif place.supports(target.dtype):
        kind = TYPES[target.dtype]
        call, count = packed(0, target.shape, (target.strides,), (target.offset,), numbers=(kind.bits(value, place.double),))
        place.start("move", target.dtype, "fill", call, (target.buffer,), count)
    else:
        one = new_array(place, (1,), target.dtype)
        place.fill(one, element_bytes(value, target.dtype))
        copy(target, one.view(target.shape, (0,) * len(target.shape), 0))


def element_bytes(value: Any, dtype: DType) -> bytes:
    """One element as little-endian bytes."""
    if dtype.name == "bfloat16":
        bits = int(np.float32(value).view(np.uint32))
        rounded = bits >> 16 | 0x40 if value != value else (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
        return rounded.to_bytes(2, "little")
    with np.errstate(all="ignore"):
        made = np.asarray(value).astype(np.dtype(dtype.name).newbyteorder("<"))
    return made.tobytes()


def _copy_through_host(target: ClArray, source: ClArray) -> None:
    """Conversions that OpenCL C has no type for: complex numbers, and float64 where the device has none."""
    dense = source if source.is_contiguous else contiguous(source)
    values = elements.decode(memoryview(dense.place.read(dense)), source.dtype)
    if source.dtype.name.startswith("complex") and not target.dtype.name.startswith("complex"):
        values = [v if target.dtype.name == "bool" else v.real for v in values]
    data = b"".join(element_bytes(v, target.dtype) for v in values)
    made = new_array(target.place, target.shape, target.dtype)
    target.place.write(made, data)
    copy(target, made)
