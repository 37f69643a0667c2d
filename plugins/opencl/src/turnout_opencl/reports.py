"""What kernels find wrong in elements, such as a class that is not there, read together with the next results.

Waiting for each answer would stop the host at every step of a training. So a step goes on, with the wrong element left out, and
the error comes from the next read or wait, as it does on CUDA.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl

from turnout.config.lock import new_lock

Error = Callable[[int], Exception]

_SLOTS = 64
_SIZE = 16  # bytes of an answer: {1, what was wrong}


class Reports:
    """Answers of a queue's kernels that were not read yet. The caller holds `lock`, from a slot until its kernel is queued."""

    def __init__(self, commands: cl.CommandQueue) -> None:
        self.lock = new_lock()
        self._step = max(_SIZE, commands.device.mem_base_addr_align // 8)  # a part of a buffer begins at a multiple of it
        self._buffer = cl.Buffer(commands.context, cl.mem_flags.READ_WRITE, _SLOTS * self._step)
        self._errors: list[Error] = []
        self._clear(commands)

    @property
    def pending(self) -> int:
        """How many there are."""
        return len(self._errors)

    @property
    def full(self) -> bool:
        """Whether they must be read before there can be another one."""
        return len(self._errors) == _SLOTS

    def slot(self, error: Error) -> Any:
        """A buffer for an answer, with zeros in it, and the error that it stands for."""
        at = len(self._errors) * self._step
        self._errors.append(error)
        return self._buffer.get_sub_region(at, _SIZE)

    def any_wrong(self, commands: cl.CommandQueue) -> bool:
        """Whether an answer says that something is wrong, asked from another queue, which does not wait for this one.

        An answer is there as soon as something has waited for its kernel: an event, a stream or the host.
        """
        return bool(self._answers(commands)[:, 0].any())

    def read(self, commands: cl.CommandQueue) -> Exception | None:
        """Wait for all answers; the first error among them."""
        answers = self._answers(commands)
        errors, self._errors = self._errors, []
        if answers.any():
            self._clear(commands)
        return next((error(int(wrong)) for error, (said, wrong) in zip(errors, answers, strict=True) if said), None)

    def _clear(self, commands: cl.CommandQueue) -> None:
        cl.enqueue_fill_buffer(commands, self._buffer, bytearray(1), 0, _SLOTS * self._step).wait()

    def _answers(self, commands: cl.CommandQueue) -> Any:
        found = np.zeros((len(self._errors), self._step), np.uint8)
        cl.enqueue_copy(commands, found, self._buffer, is_blocking=True)
        return found[:, :_SIZE].copy().view(np.int64)
