"""The backend of device `dask`: values are arrays of dask.array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dask.array as da
import ml_dtypes
import numpy as np
from dask.utils import parse_bytes

from turnout.devices import Device
from turnout.dtypes import DType
from turnout.errors import ArgumentError
from turnout.errors.plugins import warn
from turnout.plugins import is_ours
from turnout_arrays.functional import FunctionalArrayBackend
from turnout_arrays.numbers import real_for
from turnout_arrays.random import random_bits
from turnout_aten.backend.functional_arrays import FunctionalArray, Memory
from turnout_dask import errors
from turnout_dask.scheduling import Scheduling
from turnout_dask.steps import ChunkedMemory

Ints = tuple[int, ...]


class DaskBackend(FunctionalArrayBackend):
    """Arrays in chunks. Nothing is computed before its elements are needed on the host.

    option  reads an option of the plugin by name
    """

    name = "Dask"
    device_type = "dask"
    memory_type: type[Memory] = ChunkedMemory
    adopts = da.Array

    def __init__(self, option: Callable[[str], Any]) -> None:
        super().__init__(np, ml_dtypes.bfloat16)
        self.option = option
        self.scheduling = Scheduling(option)
        self._warned = False

    # ---- chunks

    def bytes_of(self, option: str) -> int:
        """An option that is a size, such as "64MiB", in bytes."""
        said = self.option(option)
        try:
            size = int(parse_bytes(said))
        except (ValueError, OverflowError):
            size = -1
        if not 0 <= size < 1 << 63:
            raise ArgumentError(errors.no_size(f"plugin.dask.{option}", said))
        return size

    def chunks(self, shape: Ints, native: Any) -> tuple[Ints, ...]:
        """The chunks of a new array."""
        if 0 in shape:
            return tuple([(n,) for n in shape])
        limit = max(self.bytes_of("chunk_size"), native.itemsize)
        return da.core.normalize_chunks("auto", shape, limit=limit, dtype=np.dtype(f"V{native.itemsize}"))

    def check_growth(self, value: Any) -> None:
        """Warn once of a graph that has grown as it does in a loop that persists nothing."""
        if not self._warned and len(value.dask.layers) > _MANY_STEPS:
            self._warned = True
            warn(errors.growing(_MANY_STEPS), is_ours, errors.GraphWarning)

    # ---- values

    def as_value(self, made: Any) -> Any:
        return made if isinstance(made, da.Array) else self.from_numpy(np.asarray(made))

    def from_numpy(self, array: Any) -> Any:
        """A value with the elements of a NumPy array that nobody writes."""
        return da.from_array(array, chunks=self.chunks(array.shape, array.dtype), name=False, asarray=False)

    def full(self, shape: Ints, dtype: DType, device: Device, number: Any) -> Any:
        native = self.native_dtype(dtype)
        try:
            fitting = np.full((), number, native)
        except OverflowError:  # an integer that does not fit wraps around
            fitting = np.asarray(number).astype(native)
        made = da.full(shape, fitting[()], dtype=native, chunks=self.chunks(shape, native))
        return made if made.dtype == native else made.astype(native)

    def converted(self, value: Any, dtype: DType) -> Any:
        native = self.native_dtype(dtype)
        return value.map_blocks(_converted, native, dtype=native, meta=np.empty((0,) * value.ndim, native))

    def reshaped(self, value: Any, shape: Ints) -> Any:
        if value.shape == shape:
            return value
        try:
            return value.reshape(shape)
        except NotImplementedError:  # dims that are not split or merged evenly
            return value.reshape(-1).reshape(shape)

    def assigned(self, value: Any, index: tuple[slice, ...], part: Any) -> Any:
        made = value.copy()
        made[index] = part
        return made

    def repeated(self, value: Any, shape: Ints) -> Any:
        return da.broadcast_to(value, shape)

    def gathered(self, flat: Any, shape: Ints, strides: Ints, offset: int) -> Any:
        return self.reshaped(flat[self.element_positions(shape, strides, offset).reshape(-1)], shape)

    def scattered(self, flat: Any, shape: Ints, strides: Ints, offset: int, part: Any) -> Any:
        # Chunks are not written: each place is told which element of the part it takes.
        taken = np.full(flat.shape, -1)
        places = self.element_positions(shape, strides, offset).reshape(-1)
        taken[places] = np.arange(places.size)
        here = da.from_array(taken >= 0, chunks=flat.chunks)
        return da.where(here, self.reshaped(part, (places.size,))[np.maximum(taken, 0)].rechunk(flat.chunks), flat)

    def reinterpreted(self, value: Any, dtype: DType) -> Any:
        native = self.native_dtype(dtype)
        flat = self.reshaped(value, (value.size,)).rechunk(-1)
        length = value.size * value.dtype.itemsize // native.itemsize
        return flat.map_blocks(_reinterpreted, native, dtype=native, chunks=((length,),), meta=np.empty(0, native))

    def value_to_host(self, value: Any) -> bytes | memoryview:
        return super().value_to_host(self.scheduling.compute([value])[0])

    def value_from_host(self, data: bytes | memoryview, shape: Ints, dtype: DType, device: Device) -> Any:
        return self.from_numpy(super().value_from_host(data, shape, dtype, device))

    # ---- arrays

    def adopt(self, value: Any) -> FunctionalArray | None:
        unknown = isinstance(value, da.Array) and any(np.isnan(n) for n in value.shape)
        return None if unknown else super().adopt(value)

    def ramp(self, target: FunctionalArray, start: Any, step: Any) -> bool:
        native = self.native_dtype(target.dtype)
        kind = np.dtype("int64" if native.kind in "iu" else "float64")
        places = da.arange(target.shape[0], dtype=kind, chunks=self.chunks(target.shape, kind))
        places = places * kind.type(step) + kind.type(start)
        target.write(places.map_blocks(_converted, native, dtype=native, meta=np.empty(0, native)))
        return True

    def random_bits(self, shape: Ints, seed: int, offset: int, device: Device) -> FunctionalArray:
        """Each chunk has the numbers that it would have in one piece, so they do not depend on chunks or workers."""
        count = int(np.prod(shape, dtype=object))
        places = da.arange(count, dtype="int64", chunks=self.chunks((count,), np.dtype("int64")))
        bits = places.map_blocks(_bits, seed, offset, dtype="uint64", meta=np.empty(0, "uint64"))
        return self.as_array(self.reshaped(bits, shape))

    def describe(self, array: FunctionalArray) -> str | None:
        if self.option("print_values"):
            return None
        value = array.value()
        chunks = "x".join(str(max(lengths, default=0)) for lengths in value.chunks)
        return f"..., shape={list(array.shape)}, chunks={value.npartitions}" + (f" of {chunks}" if chunks else "")


_MANY_STEPS = 5000


def _converted(block: Any, native: Any) -> Any:
    with np.errstate(all="ignore"):
        return real_for(native, block).astype(native)


def _reinterpreted(block: Any, native: Any) -> Any:
    flat = np.ascontiguousarray(block).view("u1")
    return flat[: flat.size // native.itemsize * native.itemsize].view(native)


def _bits(places: Any, seed: int, offset: int) -> Any:
    return random_bits(np, places.shape, seed, offset + int(places[0])) if places.size else places.astype("uint64")
