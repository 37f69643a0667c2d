"""The backend of device `cuda`: CuPy arrays on NVIDIA GPUs.

Work is queued on CuPy's current stream of the calling thread, so `with cupy.cuda.Stream():` puts operators on a stream of its
own. Copies to the host wait for that stream; across streams the caller orders work, as with CuPy itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from ml_dtypes import bfloat16

from turnout.config.lock import new_lock
from turnout.devices import Device, device
from turnout.dtypes import DType
from turnout.errors import CallError
from turnout_arrays import ArrayBackend
from turnout_arrays.numbers import real_for
from turnout_arrays.random import signed, start_of
from turnout_aten.tensor.random import WORD
from turnout_cuda.memory import Peaks
from turnout_cuda.pointwise import convert
from turnout_cuda.programs import DTYPES, name_of
from turnout_cuda.recordings import CURRENT
from turnout_cuda.replays import RecordedReplay

if TYPE_CHECKING:
    from turnout_aten.tensor.tensor import Tensor

Ints = tuple[int, ...]
_AS_IT_IS = 1.0, -0.0  # scale of a random number, and what is added: 0.0 would change the sign of a zero
_ON_HOST = 1  # cudaMemoryTypeHost, as `cudaPointerGetAttributes` says it


def _there(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method, run with the device of its first array as the current one: calls may come without a guard."""

    @wraps(method)
    def run(self: CUDABackend, array: Any, *args: Any) -> Any:
        place = array.device
        if place.id == self.cupy.cuda.runtime.getDevice():
            return method(self, array, *args)
        with place:
            return method(self, array, *args)

    return run


class CUDABackend(ArrayBackend):
    """`cupy` is the package, `xp` what the kernel library gets (see `turnout_cuda.module`), `peaks` those of memory."""

    name = "CUDA"
    device_type = "cuda"
    indexed = True
    keeps_answers = True
    wrapper_module = "turnout_cuda.wrapped"
    replays = MappingProxyType({"cuda_graph": RecordedReplay})

    def __init__(self, cupy: Any, xp: Any) -> None:
        super().__init__(xp, bfloat16)
        self.cupy = cupy
        self.guarded_array = cupy.ndarray
        self.peaks = Peaks(cupy)
        self._lock = new_lock()
        self._read: deque[tuple[Any, Any]] = deque()  # what streams read: (done, an array of the host)

    # ---- devices

    def device_count(self) -> int:
        return int(self.cupy.cuda.runtime.getDeviceCount())

    def current_device(self) -> Device:
        return device(self.device_type, int(self.cupy.cuda.runtime.getDevice()))

    def guard(self, device: Device) -> AbstractContextManager[object] | None:
        """Makes the device CuPy's current one, unless it is."""
        if device.index is None or device.index == self.cupy.cuda.runtime.getDevice():
            return None
        return self.cupy.cuda.Device(device.index)

    def synchronize(self, device: Device) -> None:
        self.cupy.cuda.Device(self.resolve_device(device).index).synchronize()
        self.xp.faults.check()

    def empty_cache(self) -> None:
        """On all devices, and host memory that copies went through."""
        for index in range(self.device_count()):
            with self.cupy.cuda.Device(index):
                self.peaks.note(index)  # the most that was taken
                self.cupy.get_default_memory_pool().free_all_blocks()
        self.cupy.get_default_pinned_memory_pool().free_all_blocks()

    def _on(self, device: Device) -> AbstractContextManager[object]:
        return self.guard(device) or nullcontext()

    # ---- memory

    def empty(self, shape: Ints, dtype: DType, device: Device, strides: Ints | None = None) -> Any:
        if strides is None and device.index == self.cupy.cuda.runtime.getDevice():
            try:  # five frames less
                return self.array_type(shape, self.native[dtype])
            except (ValueError, OverflowError, MemoryError):
                pass  # what is wrong is said below
        with self._on(device):
            return super().empty(shape, dtype, device, strides)

    def from_numbers(self, values: list[Any], shape: Ints, dtype: DType) -> Any:
        """`from_host` does that, which knows the device."""
        return None

    def spaced(self, start: float, end: float, steps: int, dtype: DType) -> Any:
        """The operator does that, under the guard of its device."""
        return None

    def strided(self, root: Any, shape: Ints, strides: Ints, offset: int) -> Any:
        itemsize = root.itemsize
        return self.array_type(shape, root.dtype, root.data + offset * itemsize, tuple([s * itemsize for s in strides]))

    def data_ptr(self, array: Any) -> int:
        return int(array.data.ptr)

    # ---- page-locked memory of the host

    def pinned_memory(self, size: int) -> Any:
        return self.cupy.cuda.alloc_pinned_memory(max(size, 1))

    def is_pinned(self, address: int) -> bool:
        return bool(self.cupy.cuda.runtime.pointerGetAttributes(address).type == _ON_HOST)

    def receive_later(self, target: Any, source: Tensor) -> bool:
        """From page-locked memory, on the current stream, which keeps that memory until it has read it."""
        array, stream = source.array, self.cupy.cuda.get_current_stream()
        alike = source.dtype is self.dtype_of(target) and source.is_contiguous() and target.flags.c_contiguous
        if not target.size or not alike or stream.is_capturing() or not source.is_pinned():
            return False
        with target.device:
            target.set(array, stream)
            event = self.cupy.cuda.Event(disable_timing=True)
            event.record(stream)
        with self._lock:
            while self._read and self._read[0][0].done:
                self._read.popleft()
            self._read.append((event, array))
        return True

    # ---- values

    fill, ramp, positions = _there(ArrayBackend.fill), _there(ArrayBackend.ramp), _there(ArrayBackend.positions)

    @_there
    def copy(self, target: Any, source: Any) -> None:
        source = real_for(target.dtype, source if source.device == target.device else self._fetched(source))
        if source.data.mem is target.data.mem and self.partly_overlap(target, source):
            source = source.copy()
        if not convert(self.xp, target, source):
            self.cupy.copyto(target, source, casting="unsafe")

    @_there
    def duplicate(self, array: Any, dtype: DType) -> Any:
        ours = array.__class__ is self.array_type
        if not ours or array.dtype != self.native.get(dtype) or not array.flags.c_contiguous:
            return None
        try:
            made = self.array_type(array.shape, array.dtype)
        except MemoryError:  # `empty` says how much was wanted
            return None
        self.cupy.copyto(made, array, casting="unsafe")
        return made

    def received(self, source: Tensor, device: Device) -> Any:
        """From another device of this backend at once, without the host."""
        if source.device.backend is not self:
            return super().received(source, device)
        with self._on(device):
            return self._fetched(source.array)

    def _fetched(self, source: Any) -> Any:
        """An array of another device on the current one. Its stream is waited for, and waits before its memory is used again."""
        cuda, here = self.cupy.cuda, self.cupy.cuda.get_current_stream()
        with source.device:
            source = self.xp.ascontiguousarray(source)
            there, computed = cuda.get_current_stream(), cuda.Event(disable_timing=True)
            computed.record(there)
        here.wait_event(computed)
        made, read = self.cupy.asarray(source), cuda.Event(disable_timing=True)
        read.record(here)
        with source.device:
            there.wait_event(read)
        return made

    @_there
    def to_host(self, array: Any) -> bytes | memoryview:
        """Waits for the current stream of the array's device."""
        data: memoryview = np.ascontiguousarray(self.cupy.asnumpy(array)).reshape(-1).view("u1").data
        self.xp.faults.check()
        return data

    @_there
    def tolist(self, array: Any) -> Any:
        found = super().tolist(array)
        self.xp.faults.check()
        return found

    @_there
    def item(self, array: Any) -> bool | int | float | complex:
        found = super().item(array)
        self.xp.faults.check()
        return found

    def from_host(self, data: bytes | memoryview, shape: Ints, dtype: DType, device: Device) -> Any:
        host = np.frombuffer(data, "u1").view(self.native_dtype(dtype)).reshape(shape)
        with self._on(device):
            return self.xp.asarray(host)

    def kernel_context(self) -> AbstractContextManager[object]:
        return nullcontext()

    def numpy(self, array: Any) -> Any:
        """The host cannot reach the memory."""
        return None

    def random_bits(self, shape: Ints, seed: int, offset: int, device: Device) -> Any:
        return self._drawn("random_words", shape, "uint64", seed, device, (offset,))

    def uniform(self, shape: Ints, seed: int, offset: int, dtype: DType, device: Device) -> Any:
        if dtype.name not in DTYPES:
            return None
        return self._drawn("random_uniform", shape, self.native[dtype], seed, device, (offset,), _AS_IT_IS)

    def normal(self, shape: Ints, seed: int, offset: int, dtype: DType, device: Device) -> Any:
        if dtype.name not in DTYPES:
            return None
        return self._drawn("random_normal", shape, self.native[dtype], seed, device, (offset, offset + prod(shape)), _AS_IT_IS)

    def integers(self, shape: Ints, seed: int, offset: int, low: int, span: int, device: Device) -> Any:
        inverse = signed(WORD // span)
        return self._drawn("random_integers", shape, "int64", seed, device, (offset,), (inverse, span, low))

    def _drawn(
        self, kernel: str, shape: Ints, native: Any, seed: int, device: Device, offsets: Ints, rest: tuple[float, ...] = ()
    ) -> Any:
        """A new array that a raw kernel draws, from words that begin at these offsets of a stream."""
        with self._on(device):
            made = self.xp.empty(shape, native)
            if made.size:
                kind = "float32" if made.dtype.kind in "iu" else name_of(made)
                self.start_drawing(kernel, kind, (made,), made.size, device, seed, offsets, rest)
            return made

    def start_drawing(
        self, kernel: str, kind: str, arrays: tuple[Any, ...], size: int, device: Device, seed: int, offsets: Ints,
        rest: tuple[float, ...] = (),
    ) -> None:  # fmt: skip
        """Start a kernel that draws words which begin at these offsets of a stream. Recorded, each launch draws others."""
        recording = CURRENT.recording
        if recording is None:
            if self.cupy.cuda.get_current_stream().is_capturing():
                raise CallError(
                    "cuda graph: random numbers are drawn in work that turnout.cuda.graph records, and in no other recording"
                )
            starts = [start_of(seed, at) for at in offsets]
            state = [signed(word) for word in (*[first for first, _ in starts], starts[0][1])]
            self.xp.programs.over_elements(kernel, kind, size, (*arrays, size, *state, *rest), packed=True)
        else:
            row = recording.drawn(device, seed, *offsets)
            self.xp.programs.over_elements(f"{kernel}_of_row", kind, size, (*arrays, size, row, *rest), packed=True)
