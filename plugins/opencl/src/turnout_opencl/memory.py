"""The memory of one device: buffers that are no longer needed are kept for the next arrays of about that size.

A driver takes some microseconds for a new buffer, and first touches cost more. All work of a device is in one queue, in order, so
a buffer can be used again as soon as no array holds it: what still reads it stands before what writes it next.
"""

from __future__ import annotations

import pyopencl as cl
from pyopencl.tools import ImmediateAllocator, MemoryPool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Memory:
    """The pool, and what was asked of it. The caller holds the lock of the device.

    peaks     the largest numbers of bytes since `reset_peaks`: (in arrays, held from the driver)
    requests  how many buffers were asked for
    refusals  how many of them did not fit
    """

    def __init__(self, queue: cl.CommandQueue) -> None:
        # Takes memory from the driver when it is asked for; a buffer alone may get it only when a kernel starts.
        self._pool: Any = MemoryPool(ImmediateAllocator(queue))
        self.peaks = (0, 0)
        self.requests = 0
        self.refusals = 0

    def allocate(self, size: int) -> Any:
        """A buffer of at least that many bytes, which goes back when nobody refers to it. Raises MemoryError without room."""
        self.requests += 1
        try:
            buffer = self._allocated(max(size, 1))
        except (cl.Error, TypeError, OverflowError) as error:  # more bytes than a size_t counts are no driver's error
            self.refusals += 1
            raise MemoryError(f"{size} bytes: {error}") from error
        # It grows here only, so the peak needs no look at what is freed.
        active, held = self.peaks
        self.peaks = max(active, self._pool.active_bytes), max(held, self._pool.managed_bytes)
        return buffer

    def _allocated(self, size: int) -> Any:
        try:
            return self._pool.allocate(size)
        except cl.Error:
            self.release()  # drivers have several errors for too little memory, and the pool knows one of them
            return self._pool.allocate(size)

    def statistics(self) -> dict[str, int]:
        """Bytes and buffers, under the names of `torch.cuda.memory_stats`."""
        pool = self._pool
        return {
            "allocated_bytes.all.current": pool.active_bytes,
            "allocated_bytes.all.peak": self.peaks[0],
            "reserved_bytes.all.current": pool.managed_bytes,
            "reserved_bytes.all.peak": self.peaks[1],
            "active.all.current": pool.active_blocks,
            "inactive.all.current": pool.held_blocks,
            "allocation.all.allocated": self.requests,
            "num_ooms": self.refusals,
        }

    def reset_peaks(self) -> None:
        """Let the peaks start from what is in use now."""
        self.peaks = self._pool.active_bytes, self._pool.managed_bytes

    def release(self) -> None:
        """Give buffers that no array uses back to the driver."""
        self._pool.free_held()
