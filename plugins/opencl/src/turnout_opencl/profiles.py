"""`profile`: what a device took for the kernels that were started in a context, by its own clock.

A profile is a trace of dispatch (`turnout.trace_dispatch`), so it knows in which operator a kernel was started. Queues take times
while a profile runs; these are read from the driver when they are first asked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from threading import get_ident
from typing import TYPE_CHECKING, Any

from turnout.config.effects import effect
from turnout.config.tuples import NamedTuple
from turnout.errors import ArgumentError
from turnout.explanation.html import preformatted
from turnout.explanation.tracing import Call, Log, trace_dispatch
from turnout.guards import Changes
from turnout_opencl.queues import PROFILES, SPECIAL

if TYPE_CHECKING:
    import pyopencl as cl

    from turnout_opencl.devices import ClDevice


class KernelTime(NamedTuple):
    """One kernel, fill or copy on a device. Times are nanoseconds of the device's clock.

    kernel     its program and name
    dtype      the element type that it was compiled for; "" where there is none
    device     such as "opencl:0"
    stream     the number of the queue; 0 is the default one
    operators  the calls that it was started in, the outermost first; none outside of operators
    queued, submit, start, end  when it was queued, given to the device, began and was done
    """

    kernel: str
    dtype: str
    device: str
    stream: int
    operators: tuple[str, ...]
    queued: int
    submit: int
    start: int
    end: int

    @property
    def ns(self) -> int:
        """How long it ran."""
        return self.end - self.start


class Row(NamedTuple):
    """A row of a table: kernels, and their nanoseconds on the device; `own_ns` leaves those of operators called inside out."""

    name: str
    kernels: int
    own_ns: int
    total_ns: int


class Profile:
    """What a `profile` has recorded.

    log  the calls of operators, as `turnout.trace_dispatch` records them
    """

    def __init__(self) -> None:
        self.log = Log()
        self.places: set[ClDevice] = set()
        self._started: list[tuple[tuple[str, str, str, int], tuple[Call, ...], cl.Event]] = []
        self._times: list[KernelTime] = []
        self._of_calls: dict[int, int] = {}  # by the identity of the calls, which `log` keeps

    def record(self, place: ClDevice, stream: int, kernel: str, dtype: str, event: cl.Event) -> None:
        """Note a command that was queued in this context."""
        self.places.add(place)
        self._started.append(((kernel, dtype, f"opencl:{place.index}", stream), _running(self.log), event))

    @property
    def kernels(self) -> list[KernelTime]:
        """All kernels, fills and copies in the order in which they were queued. Waits for what is not done."""
        started, self._started = self._started, []
        for facts, calls, event in started:
            event.wait()
            at = event.profile
            time = KernelTime(*facts, _names(calls), at.queued, at.submit, at.start, at.end)
            self._times.append(time)
            for call in calls:
                self._of_calls[id(call)] = self._of_calls.get(id(call), 0) + time.ns
        return list(self._times)

    def device_ns(self, call: Call) -> int:
        """The nanoseconds on the device of a call of `log`, those of the calls inside it included. Waits for what is not done."""
        return self._of_calls.get(id(call), 0) if not self._started or self.kernels else 0

    def by_kernel(self) -> list[Row]:
        """A row for each kernel and dtype, the longest first."""
        return _rows((f"{time.kernel} {time.dtype}".rstrip(), time.ns, True) for time in self.kernels)

    def by_operator(self) -> list[Row]:
        """A row for each operator, the one with the most time of its own first. Kernels outside of operators have none."""
        found: list[tuple[str, int, bool]] = []
        for time in self.kernels:
            found += [(name, time.ns, name == time.operators[-1]) for name in dict.fromkeys(time.operators)]
        return _rows(found)

    def by_node(self, graph: Any) -> list[tuple[Any, int]]:
        """The nodes of a graph (`turnout.trace`) that was called, each with the nanoseconds of its kernels in all of its calls.

        Calls of the same operators in the same order outside of the graph count, too, as they do for a graph of one node.

        Raises ArgumentError where no call of the graph was profiled.
        """
        names = [node.op.qualified_name for node in graph.nodes]
        calls = self.log.calls
        times = [0] * len(names)
        at = replays = 0
        while names and at + len(names) <= len(calls):
            if [call.op for call in calls[at : at + len(names)]] != names:
                at += 1
                continue
            replays += 1
            times = [before + self.device_ns(calls[at + i]) for i, before in enumerate(times)]
            at += len(names)
        if not replays:
            raise ArgumentError(f"by_node: no call of the graph {graph.name!r} is among the {len(calls)} calls of this profile")
        return list(zip(graph.nodes, times, strict=True))

    def _repr_html_(self) -> str:
        return preformatted(self)

    def __str__(self) -> str:
        """The operators, as a table."""
        kernels = self.kernels
        whole = sum(time.ns for time in kernels)
        rows = self.by_operator()
        lines = [("operator", "kernels", "own ms", "total ms", "share")]
        for row in rows:
            shares = f"{row.own_ns / 1e6:.3f}", f"{row.total_ns / 1e6:.3f}", f"{100 * row.own_ns / max(whole, 1):.1f} %"
            lines.append((row.name, str(row.kernels), *shares))
        outside = [time.ns for time in kernels if not time.operators]
        if outside:
            share = f"{sum(outside) / 1e6:.3f}"
            lines.append(("(no operator)", str(len(outside)), share, share, f"{100 * sum(outside) / max(whole, 1):.1f} %"))
        widths = [max(len(line[i]) for line in lines) for i in range(5)]
        text = [f"{len(kernels)} kernels, fills and copies took {whole / 1e6:.3f} ms on the device"]
        for name, *cells in lines:
            text.append(
                "  ".join([name.ljust(widths[0]), *(cell.rjust(n) for cell, n in zip(cells, widths[1:], strict=True))])
            )  # fmt: skip
        return "\n".join(text)


class profile(trace_dispatch):
    """Record what devices take for the kernels started in this context: `with turnout.opencl.profile() as found:`.

    `print(found)` shows the operators. Their times overlap where streams do. A profile can be entered once.

    Example:
        >>> x = turnout.ones(1000, device="opencl")
        >>> with turnout.opencl.profile() as found:
        ...     y = x.exp()
        >>> [row.name for row in found.by_operator()]
        ['aten::exp']
    """

    def __init__(self) -> None:
        super().__init__()
        self._found = Profile()
        self._was_entered = False

    def sets(self) -> Changes:
        effect("turnout.opencl.profile()")
        if self._was_entered:
            raise RuntimeError("a profile can be entered once; make a new one with turnout.opencl.profile()")
        self._was_entered = True
        return (*super().sets(), (PROFILES, [(*PROFILES.get()[0], self._found)]))

    def __enter__(self) -> Profile:  # type: ignore[override]
        self._found.log = super().__enter__()
        SPECIAL.add(self._found)
        return self._found

    def left(self) -> None:
        super().left()
        SPECIAL.add(self)  # other threads are careful until all queues are plain again
        SPECIAL.discard(self._found)
        for place in tuple(self._found.places):
            place.take_no_times()
        SPECIAL.discard(self)


def _running(log: Log) -> tuple[Call, ...]:
    """The calls of this thread that have not ended, the outermost first."""
    path: list[Call] = []
    thread, calls = get_ident(), log.calls
    while True:
        last = next((call for call in reversed(calls) if call.thread == thread), None)
        if last is None or last.ns:
            return tuple(path)
        path.append(last)
        calls = last.calls


def _names(calls: Iterable[Call]) -> tuple[str, ...]:
    """The operators of nested calls. A call that goes on to the kernel of another key is one with it."""
    names: list[str] = []
    for call in calls:
        if not names or names[-1] != call.op:
            names.append(call.op)
    return tuple(names)


def _rows(found: Iterable[tuple[str, int, bool]]) -> list[Row]:
    rows: dict[str, Row] = {}
    for name, ns, own in found:
        _, kernels, own_ns, total_ns = rows.get(name, Row(name, 0, 0, 0))
        rows[name] = Row(name, kernels + 1, own_ns + (ns if own else 0), total_ns + ns)
    return sorted(rows.values(), key=lambda row: (-row.own_ns, -row.total_ns))
