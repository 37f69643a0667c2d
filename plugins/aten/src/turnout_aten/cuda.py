"""`turnout.cuda`: devices of type "cuda", under PyTorch's names: which there are, streams and events, memory, recorded work.

`is_available` and `device_count` answer without a package for the device, too. Everything else asks the backend of the device,
and is its error where there is none: DeviceError or PluginError with the reason. The backend offers it as its attribute
`runtime`, an object with a method for each question; streams, events and graphs are the backend's own.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from turnout.errors import DeviceError, TurnoutError
from turnout_aten.functions.docstrings import describe
from turnout_aten.tensor.devices import device as device_named
from turnout_aten.tensor.random import default_generator

if TYPE_CHECKING:
    from collections.abc import Iterator

    from turnout.devices import Device

    Place = str | int | Device | None

__all__ = [
    "CUDAGraph", "Event", "Stream", "current_device", "current_stream", "default_stream", "device", "device_count",
    "empty_cache", "get_device_capability", "get_device_name", "get_device_properties", "graph", "is_available",
    "is_bf16_supported", "manual_seed", "manual_seed_all", "max_memory_allocated", "max_memory_reserved", "mem_get_info",
    "memory_allocated", "memory_reserved", "memory_stats", "reset_peak_memory_stats", "set_device", "stream", "synchronize",
]  # fmt: skip
__dir__ = __all__.copy


def _runtime() -> Any:
    """What the backend of the device offers. Raises DeviceError or PluginError where there is none."""
    backend: Any = device_named("cuda").backend
    return backend.runtime


def _index(place: Place) -> int:
    """The index of a device: an int, "cuda:1", or None for the current one. Raises DeviceError where there is no such device."""
    runtime = _runtime()
    named = device_named("cuda", place) if isinstance(place, int) else device_named("cuda" if place is None else place)
    if named.type != "cuda":
        raise DeviceError(f"expected a device such as 'cuda' or 'cuda:1', or its index, got {str(named)!r}")
    if named.index is None:
        return int(runtime.current_device())
    named.backend.resolve_device(named)
    return named.index


# ---- devices


def is_available() -> bool:
    """Whether tensors can be made on the device "cuda": a package for it is installed, works, and finds a device.

    Example:
        >>> device = "cuda" if turnout.cuda.is_available() else "cpu"
        >>> turnout.ones(2, device=device).sum().item()
        2.0
    """
    return device_count() > 0


def device_count() -> int:
    """The number of devices of type "cuda"; 0 where there is no package for them, or where it does not work.

    Example:
        >>> turnout.cuda.device_count() >= 0
        True
    """
    try:
        return device_named("cuda").backend.device_count()
    except TurnoutError:
        return 0


def current_device() -> int:
    """The index of the device that "cuda" means in this thread.

    Example:
        >>> index = turnout.cuda.current_device() if turnout.cuda.is_available() else 0
    """
    return _index(None)


def set_device(device: Place) -> None:
    """Make a device the one that "cuda" means in this thread.

    Arguments:
        device: "cuda:1" or 1

    Example:
        >>> if turnout.cuda.device_count() > 1:
        ...     turnout.cuda.set_device(1)
    """
    _runtime().set_device(_index(device))


class device:
    """A block in which "cuda" means this device in this thread.

    Arguments:
        device: "cuda:1" or 1; None changes nothing
    """

    def __init__(self, device: Place) -> None:
        self._index = None if device is None else _index(device)
        self._before: list[int] = []

    def __enter__(self) -> None:
        runtime = _runtime()
        self._before.append(runtime.current_device())
        if self._index is not None:
            runtime.set_device(self._index)

    def __exit__(self, *exc_info: object) -> None:
        _runtime().set_device(self._before.pop())


def get_device_name(device: Place = None) -> str:
    """The name of a device, such as "NVIDIA H100".

    Example:
        >>> name = turnout.cuda.get_device_name() if turnout.cuda.is_available() else ""
    """
    return str(get_device_properties(device).name)


def get_device_capability(device: Place = None) -> tuple[int, int]:
    """The compute capability of a device, as (major, minor).

    Example:
        >>> at_least = turnout.cuda.is_available() and turnout.cuda.get_device_capability() >= (7, 0)
    """
    found = get_device_properties(device)
    return found.major, found.minor


def get_device_properties(device: Place = None) -> Any:
    """What a device is: `name`, `major`, `minor`, `total_memory` in bytes, `multi_processor_count`, `warp_size`.

    Example:
        >>> if turnout.cuda.is_available():
        ...     room = turnout.cuda.get_device_properties().total_memory
    """
    return _runtime().properties(_index(device))


def is_bf16_supported() -> bool:
    """Whether the current device computes in bfloat16 by itself, which begins with capability 8.0.

    Example:
        >>> dtype = "bfloat16" if turnout.cuda.is_available() and turnout.cuda.is_bf16_supported() else "float16"
    """
    return get_device_capability() >= (8, 0)


def synchronize(device: Place = None) -> None:
    """Wait until everything that was queued on a device is done.

    Example:
        >>> if turnout.cuda.is_available():
        ...     turnout.cuda.synchronize()
    """
    _runtime().synchronize(_index(device))


# ---- streams and events


class Stream:
    """A queue of work on a device; different ones run side by side. `with turnout.cuda.stream(s):` puts operators on it.

    `native` is the stream of the library under the backend.

    Arguments:
        priority: a number; the lower one goes first where there is a choice
    """

    def __init__(self, device: Place = None, priority: int = 0) -> None:
        self.native = _runtime().new_stream(_index(device), priority)

    @classmethod
    def _around(cls, native: Any) -> Stream:
        made = cls.__new__(cls)
        made.native = native
        return made

    @property
    def device(self) -> Device:
        """The device that it belongs to."""
        return device_named("cuda", _runtime().device_of_stream(self.native))

    @property
    def cuda_stream(self) -> int:
        """The address of the driver's stream, for other libraries."""
        return int(self.native.ptr)

    def synchronize(self) -> None:
        """Wait until everything that was queued is done."""
        self.native.synchronize()

    def query(self) -> bool:
        """Whether everything that was queued is done."""
        return bool(self.native.done)

    def record_event(self, event: Event | None = None) -> Event:
        """Put an event into the queue, by default a new one. Returns the event."""
        made = Event() if event is None else event
        made.record(self)
        return made

    def wait_event(self, event: Event) -> None:
        """Let what is queued from now on wait for an event."""
        self.native.wait_event(event.native)

    def wait_stream(self, stream: Stream) -> None:
        """Let what is queued from now on wait for what another stream has in its queue now."""
        self.wait_event(stream.record_event())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.cuda_stream == other.cuda_stream and self.device is other.device

    def __hash__(self) -> int:
        return hash((self.cuda_stream, self.device))

    def __repr__(self) -> str:
        return f"<turnout.cuda.Stream on {self.device} at {self.cuda_stream:#x}>"


class Event:
    """A mark in a queue of work, that others can wait for.

    enable_timing  whether `elapsed_time` may ask when it was reached
    blocking       whether `synchronize` sleeps and leaves the processor to others

    `native` is the event of the library under the backend.
    """

    def __init__(self, enable_timing: bool = False, blocking: bool = False) -> None:
        self.native = _runtime().new_event(timing=enable_timing, blocking=blocking)

    def record(self, stream: Stream | None = None) -> None:
        """Put it into a stream's queue; None means the current stream."""
        self.native.record(None if stream is None else stream.native)

    def wait(self, stream: Stream | None = None) -> None:
        """Let what is queued from now on in a stream wait for it; None means the current stream."""
        (current_stream() if stream is None else stream).wait_event(self)

    def query(self) -> bool:
        """Whether it was reached."""
        return bool(self.native.done)

    def synchronize(self) -> None:
        """Wait until it is reached."""
        self.native.synchronize()

    def elapsed_time(self, end_event: Event) -> float:
        """The milliseconds from this event to a later one, both with `enable_timing` and reached."""
        return float(_runtime().elapsed_time(self.native, end_event.native))


def current_stream(device: Place = None) -> Stream:
    """The stream of a device that operators of this thread go to.

    Example:
        >>> if turnout.cuda.is_available():
        ...     turnout.cuda.current_stream().synchronize()
    """
    return Stream._around(_runtime().current_stream(_index(device)))


def default_stream(device: Place = None) -> Stream:
    """The stream of a device that operators go to where no other one was chosen.

    Example:
        >>> if turnout.cuda.is_available():
        ...     assert turnout.cuda.current_stream() == turnout.cuda.default_stream()
    """
    return Stream._around(_runtime().default_stream(_index(device)))


@contextmanager
def stream(stream: Stream | None) -> Iterator[None]:
    """A block in which operators of this thread go to a stream, on its device.

    Arguments:
        stream: the stream; None changes nothing

    Example:
        >>> if turnout.cuda.is_available():
        ...     with turnout.cuda.stream(turnout.cuda.Stream()):
        ...         x = turnout.ones(2, device="cuda") + 1
    """
    if stream is None:
        yield
        return
    with device(stream.device), stream.native:
        yield


# ---- memory


def memory_stats(device: Place = None) -> dict[str, int]:
    """The memory of a device that this process uses, in bytes.

    | key | number |
    |---|---|
    | `allocated_bytes.all.current`, `.peak` | bytes that arrays use |
    | `reserved_bytes.all.current`, `.peak` | bytes taken from the driver, with those kept for later arrays |

    Example:
        >>> if turnout.cuda.is_available():
        ...     used = turnout.cuda.memory_stats()["allocated_bytes.all.current"]
    """
    found: dict[str, int] = _runtime().memory_stats(_index(device))
    return found


def memory_allocated(device: Place = None) -> int:
    """The bytes that arrays use on a device.

    Example:
        >>> used = turnout.cuda.memory_allocated() if turnout.cuda.is_available() else 0
    """
    return memory_stats(device)["allocated_bytes.all.current"]


def max_memory_allocated(device: Place = None) -> int:
    """The most bytes that arrays have used on a device, since the start or since `reset_peak_memory_stats`.

    Example:
        >>> most = turnout.cuda.max_memory_allocated() if turnout.cuda.is_available() else 0
    """
    return memory_stats(device)["allocated_bytes.all.peak"]


def memory_reserved(device: Place = None) -> int:
    """The bytes taken from the driver, with those that are kept for later arrays.

    Example:
        >>> taken = turnout.cuda.memory_reserved() if turnout.cuda.is_available() else 0
    """
    return memory_stats(device)["reserved_bytes.all.current"]


def max_memory_reserved(device: Place = None) -> int:
    """The most bytes taken from the driver, since the start or since `reset_peak_memory_stats`.

    Example:
        >>> most = turnout.cuda.max_memory_reserved() if turnout.cuda.is_available() else 0
    """
    return memory_stats(device)["reserved_bytes.all.peak"]


def reset_peak_memory_stats(device: Place = None) -> None:
    """Let the peaks of a device start from what is in use now.

    Example:
        >>> if turnout.cuda.is_available():
        ...     turnout.cuda.reset_peak_memory_stats()
    """
    _runtime().reset_peaks(_index(device))


def mem_get_info(device: Place = None) -> tuple[int, int]:
    """The bytes of a device that are free for any process, and all that it has.

    Example:
        >>> free, total = turnout.cuda.mem_get_info() if turnout.cuda.is_available() else (0, 0)
    """
    free, total = _runtime().memory_info(_index(device))
    return int(free), int(total)


def empty_cache() -> None:
    """Give the memory that is kept for later arrays back to the driver, on all devices.

    Example:
        >>> if turnout.cuda.is_available():
        ...     turnout.cuda.empty_cache()
    """
    _runtime().empty_cache()


# ---- random numbers


def manual_seed(seed: int) -> None:
    """Restart the default generator of the current device from a seed.

    Example:
        >>> if turnout.cuda.is_available():
        ...     turnout.cuda.manual_seed(0)
    """
    default_generator(f"cuda:{_index(None)}").manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Restart the default generators of all devices of type "cuda" from a seed; without a device it does nothing.

    Example:
        >>> turnout.cuda.manual_seed_all(0)
    """
    for index in range(device_count()):
        default_generator(f"cuda:{index}").manual_seed(seed)


# ---- recorded work


class CUDAGraph:
    """Work that was recorded from a stream, and runs again at one call, with the same tensors.

    What it reads and writes stays where it was when it was recorded: copy new values into these tensors before `replay`.
    """

    def __init__(self) -> None:
        self._recorder = _runtime().new_recorder()

    def capture_begin(self) -> None:
        """Record what the current stream is given from now on, instead of running it. The default stream cannot be recorded."""
        self._recorder.begin()

    def capture_end(self) -> None:
        """Stop recording."""
        self._recorder.end()

    def replay(self) -> None:
        """Run what was recorded, on the current stream."""
        self._recorder.replay()

    def reset(self) -> None:
        """Forget what was recorded, and give its memory back."""
        self._recorder.reset()


def graph(cuda_graph: CUDAGraph, stream: Stream | None = None) -> AbstractContextManager[None]:
    """A block whose work on a stream is recorded into a graph, instead of run.

    Where the block raises, the graph stays empty.

    Arguments:
        cuda_graph: the graph to record into
        stream: the stream to record; None makes one

    Example:
        >>> if turnout.cuda.is_available():
        ...     x, g = turnout.zeros(2, device="cuda"), turnout.cuda.CUDAGraph()
        ...     with turnout.cuda.graph(g):
        ...         y = x + 1
        ...     g.replay()
    """
    return _recording(cuda_graph, stream)


@contextmanager
def _recording(cuda_graph: CUDAGraph, on: Stream | None) -> Iterator[None]:
    chosen = Stream() if on is None else on
    synchronize(chosen.device)
    with stream(chosen):
        cuda_graph.capture_begin()
        try:
            yield
        except BaseException:
            try:
                cuda_graph.capture_end()
            finally:
                cuda_graph.reset()
            raise
        cuda_graph.capture_end()


describe(globals(), device='"cuda:1" or 1; None for the current one', seed="the seed, an int")
