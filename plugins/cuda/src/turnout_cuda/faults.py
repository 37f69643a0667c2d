"""Indices out of range: kernels find them on the device, and the host raises the error where it waits for the device anyway.

The kernel that finds the first one writes it into page-locked memory, which the host reads without asking the device. So a call
that reads at indices waits for nothing, also while a stream is captured; what is launched again finds its indices again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache, partial
from itertools import count
from types import CodeType, FrameType
from typing import Any

import numpy  # whole: another thread may be importing it, and does not wait for one that imports a part

from turnout.config.lock import new_lock
from turnout.errors import DimError
from turnout.plugins import is_ours
from turnout_aten.errors import arguments as texts
from turnout_cuda.programs import Programs

Text = Callable[[str, int, int], str]  # of an operator, an index and the length of its dim

_WORDS = 3  # of a record: the number of the call or 0, the index, the length of the dim
_KEPT = 1 << 10  # calls whose lines are known
_OPERATORS = 1 << 16  # a number of a call counts calls in these units, and operators below


class Faults:
    """What kernels have found on each device. A kernel takes the address of the device's record and the number of its call."""

    def __init__(self, cupy: Any, programs: Programs) -> None:
        self._cupy = cupy
        self._programs = programs
        self._lock = new_lock()
        self._records: tuple[tuple[int, Any], ...] = ()  # (device, record), a record for each device that was used
        self._addresses: dict[int, int] = {}
        self._operators: dict[str, int] = {}
        self._texts: list[Callable[[int, int], str]] = []  # of an index and a length
        self._calls: list[tuple[int, tuple[CodeType, int] | None]] = [(0, None)] * _KEPT  # (number, line of the program)
        self._numbers = count(1)

    def call(self, operator: str, text: Text = texts.out_of_bounds) -> tuple[int, int]:
        """(address, number) for the kernels of a call on the current device. `text` is the error's."""
        device = int(self._cupy.cuda.runtime.getDevice())
        address, known = self._addresses.get(device), self._operators.get(operator)
        if address is None or known is None:
            address, known = self._new(device, operator, text)
        counted = next(self._numbers)
        number = counted * _OPERATORS + known
        self._calls[counted % _KEPT] = number, _line()
        return address, number

    def _new(self, device: int, operator: str, text: Text) -> tuple[int, int]:
        """What a first call on a device, or of an operator, adds."""
        with self._lock:
            if device not in self._addresses:
                memory = self._cupy.cuda.alloc_pinned_memory(8 * _WORDS)
                record = numpy.frombuffer(memory, numpy.int64, _WORDS)
                record[:] = 0
                self._records = (*self._records, (device, record.data))
                self._addresses[device] = record.ctypes.data
            if operator not in self._operators:
                self._texts.append(partial(text, operator))
                self._operators[operator] = len(self._texts) - 1
            return self._addresses[device], self._operators[operator]

    def expect(self, operator: str, index: Any, low: int, high: int) -> None:
        """Let the device look whether all indices are in low..high-1; `high` is the length of their dim."""
        if index.size:
            index = self._cupy.ascontiguousarray(index.astype("int64", copy=False))
            args = (index, index.size, low, high, *self.call(operator))
            self._programs.over_elements("look_at", "float32", index.size, args)

    def check(self) -> None:
        """Raise DimError for what was found. Called where the host has waited."""
        for device, record in self._records:
            if record[0]:
                self._raise(device, record)

    def _raise(self, device: int, record: Any) -> None:
        self._cupy.cuda.Device(device).synchronize()  # another stream may be writing
        number, index, length = record
        record[1] = record[2] = record[0] = 0
        text = self._texts[number % _OPERATORS](index, length)
        known, line = self._calls[number // _OPERATORS % _KEPT]
        if known == number and line is not None:
            text += f"\n  called at  {line[0].co_filename}:{line[1]} in {line[0].co_name}"
        raise DimError(f"{text}\n  found on   device {device}, after the call had returned")


class Noted(Faults):
    """Faults of which the numbers of calls are found when a prepared function runs; `script` is what writes that down."""

    def __init__(self, faults: Faults, cupy: Any, script: Any) -> None:
        super().__init__(cupy, script)
        self._faults = faults
        self._script = script

    def call(self, operator: str, text: Text = texts.out_of_bounds) -> Any:
        """What stands for (address, number)."""
        return self._script.found(partial(self._faults.call, operator, text), 2)


_is_ours = cache(is_ours)  # of a module: so it takes as long as `startswith`


def _line() -> tuple[CodeType, int] | None:
    """The line of the program that the call comes from. `user_frame` knows more and takes 13 us, this one takes 1."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and _is_ours(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    return None if frame is None else (frame.f_code, frame.f_lineno)
