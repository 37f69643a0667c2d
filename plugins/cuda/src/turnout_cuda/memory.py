"""Memory in `turnout.cuda`: what is in use, and the most that was.

CuPy's pool says what is in use now, so its allocator is wrapped: each allocation compares with the peak.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from turnout.config.effects import effect
from turnout.config.lock import new_lock
from turnout.errors import OutOfMemoryError
from turnout_aten.errors.failures import amount
from turnout_aten.functions.docstrings import describe
from turnout_cuda.devices import backend_in_use, index_of

if TYPE_CHECKING:
    from turnout_cuda.devices import Place


_BLOCK = 512  # bytes: the pool gives whole blocks


class Peaks:
    """The most bytes in use, and the most taken from the driver, of each device."""

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self._lock = new_lock()
        self._peaks: dict[int, tuple[int, int]] = {}
        self._reach: dict[int, int] = {}  # what may be in use: what was, and all that was asked for since

    def watch(self) -> Callable[[], None]:
        """Count from now on. Returns the undo, which puts the allocator back that CuPy had."""
        cuda = self._cupy.cuda
        before = cuda.get_allocator()
        cuda.set_allocator(self.allocator(before))
        return lambda: cuda.set_allocator(before)

    def allocator(self, malloc: Callable[[int], Any]) -> Callable[[int], Any]:
        """An allocator of CuPy's that is counted, and whose error says what memory is used for.

        The pool adds up all blocks to say what is in use. It is asked only where that may be more than ever, by a part in 256.
        """
        peaks, reach, lock = self._peaks, self._reach, self._lock

        def allocate(size: int) -> Any:
            try:
                made = malloc(size)
            except MemoryError as error:
                raise self._no_room(int(size), error) from error
            index = made.device_id
            with lock:
                reach[index] = most = reach.get(index, 0) + -(-size // _BLOCK) * _BLOCK
            known = peaks.get(index)
            if known is None or most > known[0] + (known[0] >> 8):
                self.note(index)
            return made

        return allocate

    def note(self, index: int) -> tuple[int, int]:
        """What is in use, and taken from the driver, on the current device, which has this index."""
        pool = self._cupy.get_default_memory_pool()
        with self._lock:
            used, taken = int(pool.used_bytes()), int(pool.total_bytes())
            most = self._peaks.get(index, (0, 0))
            self._peaks[index], self._reach[index] = (max(most[0], used), max(most[1], taken)), used
        return used, taken

    def _no_room(self, size: int, error: MemoryError) -> OutOfMemoryError:
        """The error of an allocation on the current device, before the operator is known."""
        index, pool = int(self._cupy.cuda.runtime.getDevice()), self._cupy.get_default_memory_pool()
        free, total = map(int, self._cupy.cuda.Device(index).mem_info)
        used, taken, limit = int(pool.used_bytes()), int(pool.total_bytes()), int(pool.get_limit())
        made = OutOfMemoryError(f"cuda:{index} has no room for {amount(size)}: {error}")
        made.facts = (
            f"\n  memory     {amount(size)} asked for; arrays use {amount(used)}, {amount(taken - used)} are kept for later ones,"
            f" {amount(free)} of {amount(total)} are free"
        )
        if limit:
            made.facts += f"\n  limit      {amount(limit)}, which CuPy's pool may take"
        remedies = ["turnout.cuda.empty_cache() gives back what is kept"] if taken > used else []
        remedies += ["cupy.get_default_memory_pool().set_limit, or CUPY_GPU_MEMORY_LIMIT, sets another limit"] if limit else []
        made.remedy = "".join(f"; {each}" for each in remedies)
        return made

    def statistics(self, index: int) -> dict[str, int]:
        """What `memory_stats` says of the device with this index."""
        with self._cupy.cuda.Device(index):
            used, taken = self.note(index)
        most = self._peaks[index]
        return {
            "allocated_bytes.all.current": used, "allocated_bytes.all.peak": most[0],
            "reserved_bytes.all.current": taken, "reserved_bytes.all.peak": most[1],
        }  # fmt: skip

    def reset(self, index: int) -> None:
        """Start from what is in use now on the device with this index."""
        self._peaks.pop(index, None)
        with self._cupy.cuda.Device(index):
            self.note(index)


def memory_stats(device: Place = None) -> dict[str, int]:
    """The memory of a device that this process uses, in bytes. Recorded graphs have memory of their own, which is not counted.

    | key | number |
    |---|---|
    | `allocated_bytes.all.current`, `.peak` | bytes that arrays use |
    | `reserved_bytes.all.current`, `.peak` | bytes taken from the driver, with those kept for later arrays |

    Example:
        >>> if turnout.cuda.is_available():
        ...     used = turnout.cuda.memory_stats()["allocated_bytes.all.current"]
    """
    effect("turnout.cuda.memory_stats()")
    return backend_in_use().peaks.statistics(index_of(device))


def memory_allocated(device: Place = None) -> int:
    """The bytes that arrays use on a device.

    Example:
        >>> used = turnout.cuda.memory_allocated() if turnout.cuda.is_available() else 0
    """
    effect("turnout.cuda.memory_allocated()")
    return memory_stats(device)["allocated_bytes.all.current"]


def max_memory_allocated(device: Place = None) -> int:
    """The most bytes that arrays have used on a device, since the start or since `reset_peak_memory_stats`.

    Example:
        >>> most = turnout.cuda.max_memory_allocated() if turnout.cuda.is_available() else 0
    """
    effect("turnout.cuda.max_memory_allocated()")
    return memory_stats(device)["allocated_bytes.all.peak"]


def memory_reserved(device: Place = None) -> int:
    """The bytes taken from the driver, with those that are kept for later arrays.

    Example:
        >>> taken = turnout.cuda.memory_reserved() if turnout.cuda.is_available() else 0
    """
    effect("turnout.cuda.memory_reserved()")
    return memory_stats(device)["reserved_bytes.all.current"]


def max_memory_reserved(device: Place = None) -> int:
    """The most bytes taken from the driver, since the start or since `reset_peak_memory_stats`.

    Example:
        >>> most = turnout.cuda.max_memory_reserved() if turnout.cuda.is_available() else 0
    """
    effect("turnout.cuda.max_memory_reserved()")
    return memory_stats(device)["reserved_bytes.all.peak"]


def reset_peak_memory_stats(device: Place = None) -> None:
    """Let the peaks of a device start from what is in use now.

    Example:
        >>> if turnout.cuda.is_available():
        ...     turnout.cuda.reset_peak_memory_stats()
    """
    effect("turnout.cuda.reset_peak_memory_stats()")
    backend_in_use().peaks.reset(index_of(device))


def mem_get_info(device: Place = None) -> tuple[int, int]:
    """The bytes of a device that are free for any process, and all that it has.

    Example:
        >>> free, total = turnout.cuda.mem_get_info() if turnout.cuda.is_available() else (0, 0)
    """
    effect("turnout.cuda.mem_get_info()")
    free, total = backend_in_use().cupy.cuda.Device(index_of(device)).mem_info
    return int(free), int(total)


def empty_cache() -> None:
    """Give the memory that is kept for later arrays back to the driver, on all devices, and host memory that copies went through.

    Example:
        >>> if turnout.cuda.is_available():
        ...     turnout.cuda.empty_cache()
    """
    effect("turnout.cuda.empty_cache()")
    backend_in_use().empty_cache()


describe(globals(), device='"cuda:1" or 1; None for the current one')
