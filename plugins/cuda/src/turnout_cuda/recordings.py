"""What a recorded graph needs beside its work: memory of its own, tables that stay, and the random numbers of each launch.

A launch repeats what kernels were started with. So the state of the generator is no number among that: each draw reads it from a
row of a table on the device, which is written before a launch, from where the device's default generator is by then.
"""

from __future__ import annotations

from _thread import _local  # threading itself would be another module to load
from typing import Any

import numpy as np

from turnout.devices import Device
from turnout.errors import CallError
from turnout_arrays.random import start_of
from turnout_aten.tensor.random import Generator, default_generator

_DRAWS = 4096  # of a graph, at most
_WORDS = 3  # of a row: where the first and the second words begin, and the key


class Recording:
    """What one graph keeps. Between `begin` and `end` it is the one of the thread."""

    def __init__(self, cupy: Any, allocator: Any, device: Device) -> None:
        self._cupy = cupy
        self._device = device
        self.pool = cupy.cuda.MemoryPool()
        self._allocating = cupy.cuda.using_allocator(allocator(self.pool.malloc))
        self._kept: list[Any] = []
        self._draws: list[tuple[int, ...]] = []  # where the words of each begin, counted from where the recording began
        self._table: Any = None
        self._launched: Any = None  # an event behind the last launch
        self._generator: Generator | None = None
        self._start = self._reached = (0, 0)

    def begin(self) -> None:
        """Memory comes from the graph's pool from now on."""
        self._table = self._cupy.ndarray((_DRAWS, _WORDS), "uint64")
        self._generator = default_generator(self._device)
        self._start = self._reached = self._generator.get_state()
        self._allocating.__enter__()
        CURRENT.recording = self

    def end(self) -> None:
        """The memory of the thread is as before; the generator has drawn nothing."""
        CURRENT.recording = None
        self._allocating.__exit__(None, None, None)
        if self._draws and self._generator is not None:
            self._generator.set_state(self._start)
        else:
            self._table = None

    def keep(self, array: Any) -> Any:
        """The array, which lives as long as the graph."""
        self._kept.append(array)
        return array

    def constant(self, values: Any) -> Any:
        """An array of the host on the device, in memory that no work of the graph writes. The copy is not recorded."""
        cuda = self._cupy.cuda
        pool, side = cuda.MemoryPool(), cuda.Stream(non_blocking=True)
        with cuda.using_allocator(pool.malloc):
            made = self._cupy.ndarray(values.shape, values.dtype)
        made.set(values, side)
        side.synchronize()
        self.keep(pool)
        return self.keep(made)

    def drawn(self, device: Device, seed: int, *places: int) -> Any:
        """The row of the table for words of a generator. Raises CallError for one that is not the device's default one."""
        assert self._generator is not None
        now = self._generator.get_state()
        if device is not self._device or (seed, places[0]) != self._reached or now[1] == self._reached[1]:
            raise CallError("cuda graph: only the default generator of its device draws numbers in recorded work")
        if len(self._draws) == _DRAWS:
            raise CallError(f"cuda graph: recorded work draws numbers at most {_DRAWS} times")
        self._reached = now
        self._draws.append(tuple([place - self._start[1] for place in places]))
        return self._table[len(self._draws) - 1]

    def renew(self) -> None:
        """Let the next launch draw what comes next from the default generator, on the current stream."""
        if not self._draws:
            return
        assert self._generator is not None
        seed, first = self._generator.reserve(self._reached[1] - self._start[1])
        rows = np.zeros((len(self._draws), _WORDS), np.uint64)
        for row, draw in zip(rows, self._draws, strict=True):
            starts = [start_of(seed, first + place) for place in draw]
            row[: len(starts)] = [start for start, _ in starts]
            row[-1] = starts[0][1]
        here = self._cupy.cuda.get_current_stream()
        if self._launched is not None:  # on another stream, it may still read the table
            here.wait_event(self._launched)
        self._table[: len(rows)].set(rows, here)

    def launched(self) -> None:
        """The current stream was given the graph."""
        if self._draws:
            self._launched = self._cupy.cuda.Event(disable_timing=True)
            self._launched.record(self._cupy.cuda.get_current_stream())


class Current(_local):
    """The recording of a thread."""

    recording: Recording | None = None


CURRENT = Current()
