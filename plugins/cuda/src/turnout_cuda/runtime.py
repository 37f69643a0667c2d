"""What `turnout.cuda` asks of the backend: devices, streams, events, memory, recorded work. All of it is CuPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from turnout.errors import CallError
from turnout_cuda.memory import Peaks


class Properties(NamedTuple):
    """What a device is; memory in bytes."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    warp_size: int


class Runtime:
    """`cupy` is the package."""

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self.peaks = Peaks(cupy)

    # ---- devices

    def current_device(self) -> int:
        """The current device of this thread."""
        return int(self._cupy.cuda.runtime.getDevice())

    def set_device(self, index: int) -> None:
        """Make it the current one of this thread."""
        self._cupy.cuda.Device(index).use()

    def properties(self, index: int) -> Properties:
        """What the driver says of a device."""
        found = self._cupy.cuda.runtime.getDeviceProperties(index)
        name = found["name"].decode(errors="replace") if isinstance(found["name"], bytes) else found["name"]
        numbers = (found["major"], found["minor"], found["totalGlobalMem"], found["multiProcessorCount"], found["warpSize"])
        return Properties(name, *map(int, numbers))

    def synchronize(self, index: int) -> None:
        """Wait for all streams of a device."""
        self._cupy.cuda.Device(index).synchronize()

    # ---- streams and events

    def new_stream(self, index: int, priority: int) -> Any:
        """A stream of a device, which does not wait for the default one."""
        with self._cupy.cuda.Device(index):
            return self._cupy.cuda.Stream(non_blocking=True, priority=priority)

    def current_stream(self, index: int) -> Any:
        """The one that CuPy uses on a device in this thread."""
        with self._cupy.cuda.Device(index):
            return self._cupy.cuda.get_current_stream()

    def default_stream(self, index: int) -> Any:
        """The driver's own."""
        with self._cupy.cuda.Device(index):
            return self._cupy.cuda.Stream(null=True)

    def device_of_stream(self, stream: Any) -> int:
        """The device of a stream; the default one belongs to each, and is said to be the current one's."""
        return self.current_device() if stream.device_id < 0 else int(stream.device_id)

    def new_event(self, *, timing: bool, blocking: bool) -> Any:
        """An event of the current device."""
        return self._cupy.cuda.Event(block=blocking, disable_timing=not timing)

    def elapsed_time(self, start: Any, end: Any) -> float:
        """Milliseconds."""
        return float(self._cupy.cuda.get_elapsed_time(start, end))

    def new_recorder(self) -> Recorder:
        """An empty graph."""
        return Recorder(self._cupy)

    # ---- memory

    def memory_stats(self, index: int) -> dict[str, int]:
        """Bytes in use and taken from the driver, now and at most."""
        with self._cupy.cuda.Device(index):
            return self.peaks.statistics(index)

    def reset_peaks(self, index: int) -> None:
        """Let the peaks start from what is in use now."""
        with self._cupy.cuda.Device(index):
            self.peaks.reset(index)

    def memory_info(self, index: int) -> tuple[int, int]:
        """(free, total)"""
        found: tuple[int, int] = self._cupy.cuda.Device(index).mem_info
        return found

    def empty_cache(self) -> None:
        """Give back what is kept, on all devices, and host memory that copies went through."""
        for index in range(int(self._cupy.cuda.runtime.getDeviceCount())):
            with self._cupy.cuda.Device(index):
                self._cupy.get_default_memory_pool().free_all_blocks()
        self._cupy.get_default_pinned_memory_pool().free_all_blocks()


class Recorder:
    """Work captured from a stream, in memory of its own: a pool that nothing else takes memory from while the graph lives."""

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self._graph: Any = None
        self._pool: Any = None
        self._stream: Any = None
        self._leave: Callable[..., Any] | None = None

    def begin(self) -> None:
        """Capture the current stream. Raises CallError for the default stream, and while it captures already."""
        stream = self._cupy.cuda.get_current_stream()
        if self._stream is not None:
            raise CallError("cuda graph: it is being recorded already")
        if stream.ptr == 0:
            raise CallError("cuda graph: the default stream cannot be recorded; use turnout.cuda.graph, or a stream of your own")
        self._pool = self._cupy.cuda.MemoryPool()
        guard = self._cupy.cuda.using_allocator(self._pool.malloc)
        guard.__enter__()
        try:
            stream.begin_capture()
        except BaseException:
            guard.__exit__(None, None, None)
            raise
        self._stream, self._leave = stream, guard.__exit__

    def end(self) -> None:
        """Raises CallError where nothing is being recorded, and CUDA's error where the work could not be captured."""
        if self._stream is None or self._leave is None:
            raise CallError("cuda graph: it is not being recorded")
        stream, leave, self._stream, self._leave = self._stream, self._leave, None, None
        try:
            self._graph = stream.end_capture()
        finally:
            leave(None, None, None)

    def replay(self) -> None:
        """Queue it on the current stream. Raises CallError while it is empty."""
        if self._graph is None:
            raise CallError("cuda graph: nothing was recorded; record work with turnout.cuda.graph first")
        self._graph.launch(stream=self._cupy.cuda.get_current_stream())

    def reset(self) -> None:
        """Empty again."""
        self._graph = self._pool = None
