"""What kernels find wrong in elements, such as a class that is not there, read together with the next results.

Waiting for each answer would stop the host at every step of a training. So a step goes on, with the wrong element left out, and
the error comes from the next read or wait, as it does on CUDA.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl

Error = Callable[[int], Exception]

_SLOTS = 64
_SIZE = 16  # bytes of an answer: {1, what was wrong}


class Reports:
    """Answers that were not read yet. The caller holds the lock of the device."""

    def __init__(self, queue: cl.CommandQueue) -> None:
        self._queue = queue
        self._step = max(_SIZE, queue.device.mem_base_addr_align // 8)  # a part of a buffer begins at a multiple of it
        self._buffer = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, _SLOTS * self._step)
        self._errors: list[Error] = []

    @property
    def pending(self) -> int:
        """How many there are."""
        return len(self._errors)

    @property
    def full(self) -> bool:
        """Whether they must be read before there can be another one."""
        return len(self._errors) == _SLOTS

    def slot(self, error: Error) -> Any:
        """A buffer for an answer, and the error that it stands for."""
        at = len(self._errors) * self._step
        self._errors.append(error)
        cl.enqueue_fill_buffer(self._queue, self._buffer, bytearray(1), at, _SIZE)
        return self._buffer.get_sub_region(at, _SIZE)

    def read(self) -> Exception | None:
        """Wait for all answers; the first error among them."""
        errors, self._errors = self._errors, []
        found = np.zeros((len(errors), self._step), np.uint8)
        cl.enqueue_copy(self._queue, found, self._buffer, is_blocking=True)
        answers = found[:, :_SIZE].copy().view(np.int64)
        return next((error(int(wrong)) for error, (said, wrong) in zip(errors, answers, strict=True) if said), None)
