"""`trace_dispatch`: the path of every call that is made in a context, with nested redispatches and times.

While a trace is open in any context, each callable that resolution binds is wrapped by a function that checks whether its own
context is traced (`Registry.instrument`). Closing the last trace drops the caches with the wrapped callables, so a process that
does not trace pays nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from threading import get_ident
from time import perf_counter_ns
from typing import Any

from turnout.explanation.html import branch
from turnout.guards import Changes, Guard, restore
from turnout.keys import TRACKED
from turnout.operators import Operator
from turnout.operators.values import has_keys
from turnout.registry import REGISTRY, Registry
from turnout.table import Plan

Undo = Callable[[], None]
Run = Callable[..., Any]

# The parents of the next call in this context (its logs, or the running call), and whether arguments are recorded.
_OPEN_HERE: ContextVar[Sequence[Any]] = ContextVar("turnout.tracing", default=((), False))
# Registry -> the open traces, and the function that removes its instrument.
_TRACES: dict[int, tuple[set[trace_dispatch], Undo]] = {}


class Call:
    """One kernel that ran.

    op            the operator's qualified name
    key           the runtime key that was served
    reason        the word of the computed table
    kernel        the kernel's name, "missing" when nothing served the key
    distribution  `name version` of the distribution that registered the kernel
    source        `file:line` of the kernel
    arguments     the arguments in a few words each, if the trace records them
    thread        the identifier of the thread
    ns            nanoseconds from call to return, those of `calls` included; 0 while it runs
    error         the name of the exception's class if the kernel raised, else ""
    calls         the operators that the kernel called, and its redispatches
    """

    __slots__ = ("arguments", "calls", "distribution", "error", "kernel", "key", "ns", "op", "reason", "source", "thread")

    def __init__(self, facts: tuple[str, str, str, str, str, str], arguments: tuple[str, ...]) -> None:
        self.op, self.key, self.reason, self.kernel, self.distribution, self.source = facts
        self.arguments = arguments
        self.calls: list[Call] = []
        self.thread = get_ident()
        self.ns = 0
        self.error = ""

    @property
    def own_ns(self) -> int:
        """Nanoseconds without those of `calls`."""
        return self.ns - sum(call.ns for call in self.calls)

    def walk(self) -> Iterator[Call]:
        """This call and all calls below it, in the order in which they started."""
        yield self
        for call in self.calls:
            yield from call.walk()

    def to_dict(self) -> dict[str, Any]:
        """The call as data for JSON."""
        facts = {name: getattr(self, name) for name in self.__slots__ if name not in ("calls", "arguments")}
        return {**facts, "arguments": list(self.arguments), "calls": [call.to_dict() for call in self.calls]}

    def __repr__(self) -> str:
        return f"<Call of {self.op} at {self.key}: {self.kernel}>"


class Log:
    """The record of a trace. `calls` are the calls made in the context itself. Print it to see the tree."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def walk(self) -> Iterator[Call]:
        """Every call, outermost first, in the order in which they started."""
        return (each for call in self.calls for each in call.walk())

    def counts(self) -> dict[tuple[str, str], int]:
        """(key, kernel) -> how often the kernel served the key, the most frequent first."""
        return {key: count for key, (count, _) in self.totals().items()}

    def totals(self) -> dict[tuple[str, str], tuple[int, int]]:
        """(key, kernel) -> the number of calls and their own nanoseconds, the most frequent first."""
        found: dict[tuple[str, str], tuple[int, int]] = {}
        for call in self.walk():
            count, ns = found.get((call.key, call.kernel), (0, 0))
            found[call.key, call.kernel] = (count + 1, ns + call.own_ns)
        return dict(sorted(found.items(), key=lambda item: (-item[1][0], item[0])))

    def tree(self, *, times: bool = True) -> str:
        """A line for each call, indented below its caller."""
        return "\n".join(line for call in self.calls for line in _lines(call, 0, times))

    def to_dict(self) -> list[dict[str, Any]]:
        """The calls as data for JSON."""
        return [call.to_dict() for call in self.calls]

    def __str__(self) -> str:
        return self.tree()

    def _repr_html_(self) -> str:
        return "".join(map(_branch, self.calls))

    def __len__(self) -> int:
        return sum(1 for _ in self.walk())


def _line(call: Call, times: bool) -> str:
    what = f"{call.op}({', '.join(call.arguments)})" if call.arguments else call.op
    line = f"{call.key}  {what}  {call.kernel}" + (f" ({call.distribution})" if call.distribution else "")
    line += f"  raised {call.error}" if call.error else ""
    return f"{line}  {call.ns / 1000:.1f} us" if times else line


def _branch(call: Call) -> str:
    return branch(_line(call, True), [_branch(below) for below in call.calls])


def _lines(call: Call, depth: int, times: bool) -> Iterator[str]:
    yield "  " * depth + _line(call, times)
    for below in call.calls:
        yield from _lines(below, depth + 1, times)


class trace_dispatch(Guard):
    """Record every call made in this context: `with trace_dispatch() as log:`, then `print(log)`.

    Threads and tasks that start meanwhile are recorded if they run in a copy of the context. A trace inside another trace, or
    inside a kernel, records its part as well. With `arguments` it records these too, each as `spelled` writes it. `registry` has
    the operators, by default all. An object can be entered once.
    """

    def __init__(self, *, arguments: bool = False, registry: Registry | None = None) -> None:
        self._log = Log()
        self._arguments = arguments
        self._registry = REGISTRY if registry is None else registry
        self._entered = False

    def sets(self) -> Changes:
        if self._entered:
            raise RuntimeError("a trace can be entered once; make a new one with turnout.trace_dispatch()")
        self._entered = True
        parents, arguments = _OPEN_HERE.get()
        return ((_OPEN_HERE, [(*parents, self._log), arguments or self._arguments]),)

    def __enter__(self) -> Log:  # type: ignore[override]
        super().__enter__()
        registry = self._registry
        with registry.lock:
            traces, undo = _TRACES.get(id(registry)) or (set(), registry.instrument(_recorded))
            _TRACES[id(registry)] = ({*traces, self}, undo)
        return self._log

    def left(self) -> None:
        registry = self._registry
        with registry.lock:
            traces, undo = _TRACES.get(id(registry), (set(), None))
            traces.discard(self)
            if undo is not None and not traces:
                del _TRACES[id(registry)]
                undo()


def _recorded(op: Operator, plan: Plan, run: Run) -> Run:
    """`run`, recorded in the logs of the context in which it is called."""
    entry = plan.entry
    kernel = entry.kernel if entry is not None else None
    words = ("missing", "", "") if kernel is None else (kernel.name, kernel.origin, kernel.source)
    facts = (op.qualified_name, plan.key, entry.reason if entry is not None else "", *words)

    def run_and_record(ks: int, *args: Any) -> Any:
        parents, arguments = before = _OPEN_HERE.get()
        if not parents:
            return run(ks, *args)
        call = Call(facts, tuple(map(spelled, args)) if arguments else ())
        for parent in parents:
            parent.calls.append(call)
        start = perf_counter_ns()
        try:
            _OPEN_HERE.set(((call,), arguments))
            return run(ks, *args)
        except BaseException as error:
            call.error = type(error).__name__
            raise
        finally:
            try:
                _OPEN_HERE.set(before)
            except MemoryError:
                restore(_OPEN_HERE, before)
            call.ns = perf_counter_ns() - start

    return run_and_record


def spelled(value: Any) -> str:
    """An argument in one word: `float32[2,3]@cpu`, with `:grad` for a tracked one. Other values appear as they print.

    No element is read, so that printing a trace calls no operator.
    """
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(spelled, value))}]"
    if has_keys(value) and hasattr(value, "shape") and hasattr(value, "device"):
        grad = ":grad" if value.keys & TRACKED else ""
        return f"{value.dtype.name}[{','.join(map(str, value.shape))}]{grad}@{value.device}"
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
