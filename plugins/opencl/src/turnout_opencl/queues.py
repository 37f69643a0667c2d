"""`Queue`: an in-order queue of a device, with the memory of what is made on it and the answers of its kernels.

A device has one, and another one for each stream of the user. While `SPECIAL` is empty, all work goes to the first queue of its
device and nobody watches it: finding that out is one look for each kernel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyopencl as cl

from turnout_opencl.reports import Reports

if TYPE_CHECKING:
    from turnout_opencl.devices import ClDevice
    from turnout_opencl.memory import Memory

# The queues of streams, and the profiles that run.
SPECIAL: set[object] = set()
# The index of the device that "opencl" means.
INDEX: ContextVar[Sequence[int]] = ContextVar("turnout_opencl.device", default=(0,))
# Device -> (the queue that its work goes to, the stream that has the queue). A device that is missing uses its first queue.
STREAMS: ContextVar[Sequence[Mapping[ClDevice, tuple[Queue, object]]]] = ContextVar("turnout_opencl.streams", default=({},))
# The results that a kernel may compute in pieces which its last one joins.
COUNTS = 64
# What records the kernels that are started in this context.
PROFILES: ContextVar[Sequence[tuple[Any, ...]]] = ContextVar("turnout_opencl.profiles", default=((),))


def active_profiles() -> Sequence[Any]:
    """What records the kernels that are started now. A copy of a context may have a profile that is over."""
    return [each for each in PROFILES.get()[0] if each in SPECIAL] if SPECIAL else ()


def is_done(event: cl.Event) -> bool:
    """Whether the command of an event is done, or has failed: its status is below 0 then."""
    return bool(event.command_execution_status <= 0)


class Queue:
    """The caller holds the lock of the device.

    number    which one of its device it is; 0 is the first
    commands  where work is queued now: a queue that takes no times, or one that does, while a profile runs
    pool      the memory of what is allocated on it
    reports   what its kernels found wrong
    counts    how many pieces of each result are there, of the kernel that runs: zeros between kernels
    stream    the stream that is always there, of the first queue
    last      the event of what was queued last; None where nothing was
    is_lent   whether others may have queued something after it
    """

    __slots__ = ("_plain", "_timed", "commands", "counts", "is_lent", "last", "number", "pool", "reports", "stream")

    def __init__(self, context: cl.Context, memory: Memory, number: int) -> None:
        self.number = number
        self.commands = self._plain = cl.CommandQueue(context)
        self._timed: cl.CommandQueue | None = None
        self.pool = memory.new_pool(self._plain)
        self.reports = Reports(self._plain)
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        self.counts = cast(Any, cl.Buffer(context, flags, hostbuf=np.zeros(COUNTS, np.int32)))
        self.counts.home = self
        self.stream: Any = None
        self.last: cl.Event | None = None
        self.is_lent = False

    def note(self, event: cl.Event) -> None:
        """Remember what was queued last: in order, so it is done when all is."""
        self.last, self.is_lent = event, False

    def is_idle(self) -> bool:
        """Whether all that is queued is done; does not wait."""
        if self.is_lent:
            self.note(self.mark(False))
        elif self.last is not None:
            self.commands.flush()  # else it may never begin
        return self.last is None or is_done(self.last)

    def finish(self) -> None:
        """Wait for all that is queued, and for events with a time: those are commands of the twin that takes times."""
        self._plain.finish()
        if self._timed is not None:
            self._timed.finish()

    def allocated(self, memory: Memory, size: int) -> Any:
        """A buffer of its pool, which writes to a new one in the plain queue: that must be over before another queue uses it."""
        buffer = memory.allocate(size, self.pool)
        if self.commands is not self._plain:
            self._plain.finish()
        return buffer

    def take_times(self, yes: bool) -> None:
        """Let what is queued from now on have times, or have none again. The order of all work stays."""
        wanted = self._with_times() if yes else self._plain
        if wanted is not self.commands:
            cl.enqueue_barrier(wanted, wait_for=[cl.enqueue_marker(self.commands)])
            self.commands.flush()
            self.commands = wanted

    def mark(self, with_time: bool) -> cl.Event:
        """An event that is done when all that is queued is done. One with a time is a command of a queue that takes times."""
        event = cl.enqueue_marker(self.commands)
        if with_time and self.commands is self._plain:
            self._plain.flush()
            timed = self._with_times()
            event = cl.enqueue_marker(timed, wait_for=[event])
            timed.flush()
        else:
            self.commands.flush()  # else the event may never come for other queues
        return event

    def _with_times(self) -> cl.CommandQueue:
        if self._timed is None:
            times = cl.command_queue_properties.PROFILING_ENABLE
            self._timed = cl.CommandQueue(self.commands.context, properties=times)
        return self._timed
