"""What Turnout asks of the device `loopback`. The memory is the host's: each method has a line to replace by a call of yours."""

from __future__ import annotations

from typing import Any

from turnout.devices import Device
from turnout.dtypes import DType
from turnout_aten.plugin_api import TensorBackend
from turnout_aten.plugin_api import device as tensor_device

Ints = tuple[int, ...]


class Array:
    """What a tensor holds: a handle of the device's memory. Turnout reads `shape` and passes the rest to the backend."""

    def __init__(self, handle: Any) -> None:
        self.handle = handle  # here a NumPy array

    @property
    def shape(self) -> Ints:
        shape: Ints = self.handle.shape
        return shape


class LoopbackBackend(TensorBackend):
    """The device `loopback`."""

    name = "Loopback"
    device_type = "loopback"

    def __init__(self) -> None:
        self.cpu = tensor_device("cpu")

    # ---- memory

    def empty(self, shape: Ints, dtype: DType, device: Device, strides: Ints | None = None) -> Array:
        return Array(self.cpu.backend.empty(shape, dtype, self.cpu, strides))

    def strided(self, root: Array, shape: Ints, strides: Ints, offset: int) -> Array:
        return Array(self.cpu.backend.strided(root.handle, shape, strides, offset))

    def retyped(self, root: Array, dtype: DType) -> Array:
        return Array(self.cpu.backend.retyped(root.handle, dtype))

    def strides(self, array: Array) -> Ints:
        return self.cpu.backend.strides(array.handle)

    def dtype_of(self, array: Array) -> DType:
        return self.cpu.backend.dtype_of(array.handle)

    # ---- values

    def copy(self, target: Array, source: Array) -> None:
        self.cpu.backend.copy(target.handle, source.handle)

    def to_host(self, array: Array) -> bytes | memoryview:
        return self.cpu.backend.to_host(array.handle)

    def from_host(self, data: bytes | memoryview, shape: Ints, dtype: DType, device: Device) -> Array:
        return Array(self.cpu.backend.from_host(data, shape, dtype, self.cpu))

    # `fill`, `item` and `random_bits` work without a method: cpu does them, and the result is copied. Define them for speed.
