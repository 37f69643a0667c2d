"""The backend of device `cpu`: NumPy arrays, bfloat16 from ml_dtypes."""

from __future__ import annotations

from math import prod
from sys import getrefcount
from typing import Any

import numpy as np

from turnout.devices import Device
from turnout.dtypes import DType
from turnout_arrays import ArrayBackend
from turnout_arrays.random import random_bits
from turnout_aten.shapes.extents import reach_of
from turnout_aten.tensor.storage import ONE_NAME
from turnout_cpu.halves import LINE, to_float16
from turnout_cpu.pool import LARGE

# Random words at a time, so that the twenty steps of their hash stay in the cache.
_WORDS = 1 << 15


def _of_an_argument(value: Any) -> int:
    return getrefcount(value)


_ARGUMENT = _of_an_argument(object())  # what getrefcount says of an object that is an argument only


def _across(source: Any) -> bool:
    """Whether the last dim, a long one, goes across the rows of memory, as in a transposed matrix."""
    return bool(
        source.ndim > 1 and source.shape[-1] >= 256 and source.strides[-1] >= 4 * LINE and source.strides[-2] == source.itemsize
    )


class CPUBackend(ArrayBackend):
    """Host memory. One device, so no index, no guard, nothing to wait for."""

    name = "CPU"
    device_type = "cpu"
    scalars_mix = True

    def __init__(self) -> None:
        super().__init__(np, "ml_dtypes")

    def held_alone(self, array: Any, references: int) -> bool:
        if getrefcount(array) > _ARGUMENT + references or not array.flags.writeable:
            return False
        while True:
            base = array.base
            if base is None:
                return True
            if getrefcount(base) > ONE_NAME + 1:  # 1: the array over it
                return False
            if type(base) is not np.ndarray:
                # Memory of the program, unless its owner says that it is Turnout's: of a library that made it for a tensor.
                return getattr(type(base), "made_for_tensor", False)
            array = base

    def laid_out(self, shape: tuple[int, ...], native: Any, strides: tuple[int, ...], size: int) -> Any:
        if size == prod(shape):  # NumPy can give the array memory of its own
            try:
                return np.ndarray(shape, native, strides=[stride * native.itemsize for stride in strides])
            except (ValueError, OverflowError, MemoryError):
                pass  # the usual way says why
        return super().laid_out(shape, native, strides, size)

    def copy(self, target: Any, source: Any) -> None:
        if source.size <= LARGE and source.dtype is target.dtype:  # the usual one, without the frames below
            target[...] = source
            return
        large = source.size > LARGE and source.shape == target.shape
        if large and source.dtype == target.dtype and _across(source):
            # Some columns at a time: what is written fills whole lines of the cache. In one piece it takes six times as long.
            step = max(1, LINE // source.itemsize)
            for first in range(0, source.shape[-1], step):
                target[..., first : first + step] = source[..., first : first + step]
            return
        contiguous = large and source.flags.c_contiguous and target.flags.c_contiguous
        if contiguous and source.dtype.char == "f" and target.dtype.char == "e":
            with self.kernel_context():
                to_float16(target.reshape(-1), source.reshape(-1))
            return
        super().copy(target, source)

    def over_memory(self, memory: Any, shape: tuple[int, ...], dtype: DType, strides: tuple[int, ...] | None = None) -> Any:
        native = np.dtype(self.native_dtype(dtype))
        count = prod(shape) if strides is None else reach_of(shape, strides)
        root = np.frombuffer(memory, np.uint8, count * native.itemsize).view(native)
        return root.reshape(shape) if strides is None else self.strided(root, shape, strides, 0)

    def positions(self, mask: Any) -> Any:
        return mask.nonzero() if mask.__class__ is np.ndarray else None  # the module's function calls the method in four frames

    def random_bits(self, shape: tuple[int, ...], seed: int, offset: int, device: Device) -> Any:
        made = np.empty(shape, np.uint64)
        flat = made.reshape(-1)
        for start in range(0, flat.size, _WORDS):
            part = flat[start : start + _WORDS]
            part[...] = random_bits(np, part.shape, seed, offset + start)
        return made

    def spread(self, array: Any, shape: tuple[int, ...]) -> Any:
        made = np.empty(shape, array.dtype)
        made[...] = array
        return made
