"""What Turnout asks of the device `torchlike`."""

import ctypes
from collections.abc import Iterable
from itertools import product
from math import prod
from operator import mul
from typing import Any

from turnout.devices import Device
from turnout.dtypes import DType
from turnout.errors import DTypeError
from turnout_aten.plugin_api import TensorBackend, contiguous_strides

from turnout_torchlike import driver

Ints = tuple[int, ...]
KINDS = {name: getattr(ctypes, f"c_{name}") for name in ("bool", "int8", "int16", "int32", "int64", "uint8", "uint64")}
KINDS |= {"float32": ctypes.c_float, "float64": ctypes.c_double}


class Array:
    """What a tensor holds: a handle, and which elements of the block it has. Strides and offset count elements."""

    def __init__(self, handle: driver.Handle, dtype: DType, shape: Ints, strides: Ints, offset: int = 0) -> None:
        if dtype.name not in KINDS:
            raise DTypeError(f"torchlike has no {dtype.name} tensors")
        self.handle, self.dtype, self.shape, self.strides, self.offset = handle, dtype, shape, strides, offset

    def places(self) -> list[int]:  # in row-major order
        return [self.offset + sum(map(mul, index, self.strides)) for index in product(*map(range, self.shape))]

    def read(self) -> list[Any]:
        return driver.load(self.handle, KINDS[self.dtype.name], self.places())

    def write(self, values: Iterable[Any]) -> None:
        convert = {"b": bool, "f": float}.get(self.dtype.name[0], int)
        driver.store(self.handle, KINDS[self.dtype.name], self.places(), map(convert, values))


class TorchlikeBackend(TensorBackend):
    name = "Torchlike"  # in dispatch keys: Torchlike, AutogradTorchlike, AutocastTorchlike
    device_type = "torchlike"  # turnout.ones(3, device="torchlike")

    def empty(self, shape: Ints, dtype: DType, device: Device, strides: Ints | None = None) -> Array:
        handle = driver.Handle(bytes(prod(shape) * dtype.itemsize))
        return Array(handle, dtype, shape, strides or contiguous_strides(shape))

    def strides(self, array: Array) -> Ints:
        return array.strides

    def dtype_of(self, array: Array) -> DType:
        return array.dtype

    def strided(self, root: Array, shape: Ints, strides: Ints, offset: int) -> Array:
        return Array(root.handle, root.dtype, shape, strides, root.offset + offset)

    def copy(self, target: Array, source: Array) -> None:
        target.write(source.read())

    def to_host(self, array: Array) -> bytes:
        whole = self.empty(array.shape, array.dtype, self.place)
        self.copy(whole, array)
        return driver.download(whole.handle)

    def from_host(self, data: bytes | memoryview, shape: Ints, dtype: DType, device: Device) -> Array:
        return Array(driver.Handle(data), dtype, shape, contiguous_strides(shape))
