"""Streams and events in `turnout.cuda`: CuPy's, under PyTorch's names."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from turnout.config.effects import effect
from turnout_aten.functions.docstrings import describe
from turnout_aten.tensor.devices import device as device_named
from turnout_cuda.devices import backend_in_use, current_device, device, index_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from turnout.devices import Device
    from turnout_cuda.devices import Place


def _on(place: Place) -> tuple[Any, Any]:
    """CuPy's `cuda`, and a context manager in which the device is the current one."""
    cuda = backend_in_use().cupy.cuda
    return cuda, cuda.Device(index_of(place))


class Stream:
    """A queue of work on a device; different ones run side by side. `with turnout.cuda.stream(s):` puts operators on it.

    It does not wait for the default stream. `native` is CuPy's stream.

    Arguments:
        priority: a number; the lower one goes first where there is a choice
    """

    def __init__(self, device: Place = None, priority: int = 0) -> None:
        cuda, on_device = _on(device)
        with on_device:
            self.native: Any = cuda.Stream(non_blocking=True, priority=priority)

    @classmethod
    def _around(cls, native: Any) -> Stream:
        made = cls.__new__(cls)
        made.native = native
        return made

    @property
    def device(self) -> Device:
        """The device that it belongs to; of the default stream, which each device has, the current one."""
        index = int(self.native.device_id)
        return device_named("cuda", current_device() if index < 0 else index)

    @property
    def cuda_stream(self) -> int:
        """The address of the driver's stream, for other libraries."""
        return int(self.native.ptr)

    def synchronize(self) -> None:
        """Wait until everything that was queued is done."""
        effect("Stream.synchronize()")
        self.native.synchronize()
        backend_in_use().xp.faults.check()

    def query(self) -> bool:
        """Whether everything that was queued is done."""
        effect("Stream.query()")
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

    `native` is CuPy's event.
    """

    def __init__(self, enable_timing: bool = False, blocking: bool = False) -> None:
        self.native: Any = backend_in_use().cupy.cuda.Event(block=blocking, disable_timing=not enable_timing)

    def record(self, stream: Stream | None = None) -> None:
        """Put it into a stream's queue; None means the current stream."""
        effect("Event.record()")
        self.native.record(None if stream is None else stream.native)

    def wait(self, stream: Stream | None = None) -> None:
        """Let what is queued from now on in a stream wait for it; None means the current stream."""
        effect("Event.wait()")
        (current_stream() if stream is None else stream).wait_event(self)

    def query(self) -> bool:
        """Whether it was reached."""
        effect("Event.query()")
        return bool(self.native.done)

    def synchronize(self) -> None:
        """Wait until it is reached."""
        effect("Event.synchronize()")
        self.native.synchronize()
        backend_in_use().xp.faults.check()

    def elapsed_time(self, end_event: Event) -> float:
        """The milliseconds from this event to a later one, both with `enable_timing` and reached."""
        effect("Event.elapsed_time()")
        return float(backend_in_use().cupy.cuda.get_elapsed_time(self.native, end_event.native))


def current_stream(device: Place = None) -> Stream:
    """The stream of a device that operators of this thread go to.

    Example:
        >>> if turnout.cuda.is_available():
        ...     turnout.cuda.current_stream().synchronize()
    """
    effect("turnout.cuda.current_stream()")
    cuda, on_device = _on(device)
    with on_device:
        return Stream._around(cuda.get_current_stream())


def default_stream(device: Place = None) -> Stream:
    """The stream of a device that operators go to where no other one was chosen.

    Example:
        >>> if turnout.cuda.is_available():
        ...     assert turnout.cuda.current_stream() == turnout.cuda.default_stream()
    """
    cuda, on_device = _on(device)
    with on_device:
        return Stream._around(cuda.Stream(null=True))


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
    effect("turnout.cuda.stream()")
    if stream is None:
        yield
        return
    with device(stream.device), stream.native:
        yield


describe(globals(), device='"cuda:1" or 1; None for the current one')
