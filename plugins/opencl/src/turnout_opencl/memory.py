"""The memory of one device: buffers that are no longer needed are kept for the next arrays of about that size.

A driver takes some microseconds for a new buffer, and first touches cost more. A queue works in order, so a buffer can be used
again on its queue as soon as no array holds it: what still reads it stands before what writes it next. So each queue has its own
pool. A kernel of another queue is not ordered in that way: what it uses is held until it is done.
"""

from __future__ import annotations

from collections import deque

import pyopencl as cl
from pyopencl.tools import ImmediateAllocator, MemoryPool

from turnout_opencl.pages import LARGE, pages_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


class Memory:
    """The pools, and what was asked of them. The caller holds the lock of the device.

    peaks     the largest numbers of bytes since `reset_peaks`: (in arrays, held from the driver)
    requests  how many buffers were asked for
    refusals  how many of them did not fit
    """

    def __init__(self, context: cl.Context) -> None:
        self._pages = pages_for(context)
        self._pools: list[Any] = []
        self._held: dict[object, deque[tuple[cl.Event, Sequence[Any]]]] = {}
        self.peaks = (0, 0)
        self.requests = 0
        self.refusals = 0

    def new_pool(self, commands: cl.CommandQueue) -> Any:
        """The pool of a queue. It takes memory from the driver when it is asked for, by a write in that queue.

        Without the write a buffer may get its memory only when a kernel starts.
        """
        self._pools.append(MemoryPool(ImmediateAllocator(commands)))
        return self._pools[-1]

    def allocate(self, size: int, pool: Any) -> Any:
        """A buffer of at least that many bytes, which goes back when nobody refers to it. Raises MemoryError without room."""
        self.requests += 1
        try:
            buffer = self._allocated(max(size, 1), pool)
        except (cl.Error, TypeError, OverflowError) as error:  # more bytes than a size_t counts are no driver's error
            self.refusals += 1
            raise MemoryError(f"{size} bytes: {error}") from error
        # It grows here only, so the peak needs no look at what is freed.
        active, held = self.peaks
        if len(self._pools) == 1:
            self.peaks = max(active, pool.active_bytes), max(held, pool.managed_bytes)
        else:
            self.peaks = max(active, self._sum("active_bytes")), max(held, self._sum("managed_bytes"))
        return buffer

    def _allocated(self, size: int, pool: Any) -> Any:
        held = pool.managed_bytes if size >= LARGE else 0
        try:
            buffer = pool.allocate(size)
        except cl.Error:
            self.release()  # drivers have several errors for too little memory, and the pool knows one of them
            held, buffer = pool.managed_bytes, pool.allocate(size)
        if size >= LARGE and self._pages is not None and pool.managed_bytes > held:
            self._pages.ask(buffer)
        return buffer

    def _sum(self, name: str) -> int:
        return sum(getattr(pool, name) for pool in self._pools)

    # ---- buffers of one queue in kernels of another

    def hold(self, queue: object, event: cl.Event, buffers: Sequence[Any]) -> None:
        """Do not use these buffers again before a command of `queue` is done."""
        self._held.setdefault(queue, deque()).append((event, buffers))

    def let_go(self, *, wait: bool = False) -> None:
        """Give back what was held for commands that are done; with `wait`, for all of them."""
        for held in self._held.values():
            while held and (wait or held[0][0].command_execution_status <= 0):  # below 0: it has failed
                event, _ = held.popleft()
                if wait:
                    event.wait()

    # ---- numbers

    def statistics(self) -> dict[str, int]:
        """Bytes and buffers, under the names of `torch.cuda.memory_stats`."""
        self.let_go()
        return {
            "allocated_bytes.all.current": self._sum("active_bytes"),
            "allocated_bytes.all.peak": self.peaks[0],
            "reserved_bytes.all.current": self._sum("managed_bytes"),
            "reserved_bytes.all.peak": self.peaks[1],
            "active.all.current": self._sum("active_blocks"),
            "inactive.all.current": self._sum("held_blocks"),
            "allocation.all.allocated": self.requests,
            "num_ooms": self.refusals,
        }

    def reset_peaks(self) -> None:
        """Let the peaks start from what is in use now."""
        self.let_go()
        self.peaks = self._sum("active_bytes"), self._sum("managed_bytes")

    def release(self) -> None:
        """Give buffers that no array uses back to the driver. Waits for kernels that use them outside of their queue."""
        self.let_go(wait=True)
        for pool in self._pools:
            pool.free_held()
