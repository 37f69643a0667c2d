"""Peaks of memory. CuPy's pool says what is in use now, so its allocator is wrapped: each allocation compares with the peak."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Peaks:
    """The most bytes in use, and the most taken from the driver, of each device."""

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self._peaks: dict[int, tuple[int, int]] = {}

    def watch(self) -> Callable[[], None]:
        """Count from now on. Returns the undo, which puts the allocator back that CuPy had."""
        cuda = self._cupy.cuda
        before = cuda.get_allocator()

        def allocate(size: int) -> Any:
            made = before(size)
            self._note(int(cuda.runtime.getDevice()))
            return made

        cuda.set_allocator(allocate)
        return lambda: cuda.set_allocator(before)

    def _note(self, index: int) -> tuple[int, int]:
        pool = self._cupy.get_default_memory_pool()
        used, taken = int(pool.used_bytes()), int(pool.total_bytes())
        most = self._peaks.get(index, (0, 0))
        self._peaks[index] = max(most[0], used), max(most[1], taken)
        return used, taken

    def statistics(self, index: int) -> dict[str, int]:
        """Of the current device, which has this index."""
        used, taken = self._note(index)
        most = self._peaks[index]
        return {
            "allocated_bytes.all.current": used, "allocated_bytes.all.peak": most[0],
            "reserved_bytes.all.current": taken, "reserved_bytes.all.peak": most[1],
        }  # fmt: skip

    def reset(self, index: int) -> None:
        """Start from what is in use now, on the current device, which has this index."""
        self._peaks.pop(index, None)
        self._note(index)
