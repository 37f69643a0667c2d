"""Streams and events of `turnout.opencl`: queues of a device beside its default one, and the order between them.

Work of one stream is done in order; that of two streams may overlap, unless an event or `wait_stream` puts one before the other.
The memory of an array goes back to the stream in which it was made, and not before kernels of other streams that use it are done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import finalize

from turnout.config.effects import effect
from turnout.devices import Device
from turnout.devices import device as device_named
from turnout.errors import CallError, DeviceError
from turnout.errors.calls import other_device
from turnout.guards import Changes, Guard
from turnout_opencl.queues import INDEX, STREAMS, is_done

if TYPE_CHECKING:
    import pyopencl as cl

    from turnout_opencl.devices import ClDevice
    from turnout_opencl.queues import Queue


def opened(where: str | Device | None) -> ClDevice:
    """The device of this name; None is the current one. Raises DeviceError for a device of another type."""
    named = device_named("opencl" if where is None else where)
    if named.type != "opencl":
        raise DeviceError(other_device("opencl", named))
    return named.backend.opened(named)  # type: ignore[attr-defined]  # the backend of devices of this type


class Stream:
    """A queue of a device. `with turnout.opencl.stream(s):` lets work go there.

    When the stream is gone, its work goes on, and the next stream that is made gets its queue.

    Arguments:
        device: "opencl" or "opencl:1"; None for the current one

    Example:
        >>> s = turnout.opencl.Stream()
        >>> with turnout.opencl.stream(s):
        ...     y = turnout.ones(3, device="opencl").exp()
        >>> turnout.opencl.current_stream().wait_stream(s)
        >>> y.sum().item() > 8
        True
    """

    def __init__(self, device: str | Device | None = None) -> None:
        self._place = opened(device)
        self._queue = self._place.new_queue()
        finalize(self, self._place.give_back, self._queue).atexit = False

    @property
    def device(self) -> Device:
        """The device whose queue it is."""
        return device_named("opencl", self._place.index)

    def synchronize(self) -> None:
        """Wait until all that was queued is done. Raises what its kernels found wrong."""
        effect("Stream.synchronize()")
        self._place.finish_queue(self._queue)

    def query(self) -> bool:
        """Whether all that was queued is done; does not wait."""
        effect("Stream.query()")
        return self._place.is_idle(self._queue)

    def record_event(self, event: Event | None = None) -> Event:
        """Record what has been queued here, in an event, which is returned; None makes a new one."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Let what is queued here from now on wait for what an event has recorded."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Let what is queued here from now on wait for what has been queued in another stream."""
        self.wait_event(stream.record_event())

    def __repr__(self) -> str:
        name = "the default stream" if self._queue is self._place.main else f"stream {self._queue.number}"
        return f"<{name} of {self.device}>"


class Event:
    """A point in the work of a stream.

    Arguments:
        enable_timing: whether `elapsed_time` can ask when it was reached

    Example:
        >>> start, end = (turnout.opencl.Event(enable_timing=True) for _ in range(2))
        >>> start.record()
        >>> x = turnout.ones(1000, device="opencl").exp()
        >>> end.record()
        >>> end.synchronize()
        >>> start.elapsed_time(end) > 0
        True
    """

    def __init__(self, enable_timing: bool = False) -> None:
        self._with_time = enable_timing
        self._recorded: tuple[ClDevice, Queue, cl.Event] | None = None

    def record(self, stream: Stream | None = None) -> None:
        """Record what has been queued in a stream; None is the current one. A second time replaces the first one."""
        effect("Event.record()")
        stream = current_stream() if stream is None else _checked(stream, "record")
        self._recorded = stream._place, stream._queue, stream._place.mark(stream._queue, self._with_time)

    def wait(self, stream: Stream | None = None) -> None:
        """Let what is queued in a stream from now on wait for what was recorded; None is the current stream.

        A stream of another device waits through the host.
        """
        effect("Event.wait()")
        stream = current_stream() if stream is None else _checked(stream, "wait")
        if self._recorded is None:
            return
        place, _, event = self._recorded
        if place is stream._place:
            place.wait_for(stream._queue, event)
        else:
            event.wait()

    def query(self) -> bool:
        """Whether what was recorded is done, or nothing was; does not wait."""
        effect("Event.query()")
        return self._recorded is None or is_done(self._recorded[2])

    def synchronize(self) -> None:
        """Wait until what was recorded is done. Raises what kernels of its stream found wrong."""
        effect("Event.synchronize()")
        if self._recorded is not None:
            place, queue, event = self._recorded
            event.wait()
            place.raise_reports(queue)

    def elapsed_time(self, end_event: Event) -> float:
        """The milliseconds on the device's clock between this event and a later one of the same device.

        Raises CallError where an event does not take the time, was not recorded or is not done, and for two devices.
        """
        effect("Event.elapsed_time()")
        points = []
        for name, event in (("the event", self), ("end_event", end_event)):
            if not event._with_time:
                raise CallError(f"elapsed_time: {name} takes no time; make it with Event(enable_timing=True)")
            if event._recorded is None:
                raise CallError(f"elapsed_time: {name} was not recorded")
            if not event.query():
                raise CallError(f"elapsed_time: {name} is not done yet; call its synchronize() first")
            points.append(event._recorded)
        (place, _, first), (other, _, last) = points
        if place is not other:
            raise CallError(f"elapsed_time: the events are of two devices, opencl:{place.index} and opencl:{other.index}")
        return float(last.profile.end - first.profile.end) / 1e6


class stream(Guard):
    """Let the work of this context go to a stream, and "opencl" mean its device: `with turnout.opencl.stream(s):`.

    The context is that of the thread or asyncio task. Blocks can be nested; None changes nothing.

    Arguments:
        stream: where the work goes

    Example:
        >>> s = turnout.opencl.Stream()
        >>> with turnout.opencl.stream(s):
        ...     turnout.opencl.current_stream() is s
        True
    """

    __slots__ = ("_stream",)

    def __init__(self, stream: Stream | None) -> None:
        self._stream = None if stream is None else _checked(stream, "stream")

    def sets(self) -> Changes:
        effect("turnout.opencl.stream()")
        chosen = self._stream
        if chosen is None:
            return ()
        place = chosen._place
        if opened(chosen.device) is not place:
            raise DeviceError(f"stream: {chosen!r} was made before the plugin opencl was deactivated; make a new one")
        return ((INDEX, [place.index]), (STREAMS, [{**STREAMS.get()[0], place: (chosen._queue, chosen)}]))


def current_stream(device: str | Device | None = None) -> Stream:
    """The stream that work of this context goes to.

    Arguments:
        device: "opencl" or "opencl:1"; None for the current one

    Example:
        >>> turnout.opencl.current_stream() is turnout.opencl.default_stream()
        True
    """
    effect("current_stream()")
    place = opened(device)
    found: Any = STREAMS.get()[0].get(place)
    return _default(place) if found is None else found[1]


def default_stream(device: str | Device | None = None) -> Stream:
    """The stream that work goes to outside of all `stream` blocks.

    Arguments:
        device: "opencl" or "opencl:1"; None for the current one

    Example:
        >>> turnout.opencl.default_stream("opencl:0")
        <the default stream of opencl:0>
    """
    return _default(opened(device))


def _default(place: ClDevice) -> Stream:
    if place.main.stream is None:
        made = Stream.__new__(Stream)
        made._place, made._queue = place, place.main
        place.main.stream = made
    return place.main.stream


def _checked(stream: Any, name: str) -> Stream:
    if not isinstance(stream, Stream):
        raise CallError(f"{name}: expected a turnout.opencl.Stream, got {type(stream).__name__}")
    return stream
