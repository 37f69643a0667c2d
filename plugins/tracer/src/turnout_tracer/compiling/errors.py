"""Error classes of compiled functions, and their texts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from turnout.errors import TurnoutError

if TYPE_CHECKING:
    from turnout.explanation.user_frames import UserFrame


class CompileError(TurnoutError, RuntimeError):
    """A function that cannot be compiled where that was asked for, or an engine that failed."""


class EngineError(TurnoutError, RuntimeError):
    """Raised by an engine that does not take a graph."""


class NotLoweredError(Exception):
    """Why a record does not become a graph."""


class NotWorthwhileError(Exception):
    """Why an engine leaves a graph to eager calls."""


class RecordsError(Exception):
    """A call whose results record, and that is not one node: the function records itself."""


class CompileWarning(UserWarning):
    """A compiled function that runs eagerly."""


def at(why: str, line: UserFrame | None) -> str:
    """A reason with the line of the program."""
    return why if line is None else f"{why}, at {line}"


# ---- why a call runs eagerly


def read(what: str) -> str:
    """A value that left the tensors."""
    return f"the call takes values out of a tensor: {what}"


def dynamic(op: str) -> str:
    """A shape that depends on values."""
    return f"{op}: the shape of the result depends on values"


HIDDEN_TENSOR, HIDDEN_GENERATOR = [
    f"a {kind} comes from a place that the signature does not see" for kind in ("tensor", "generator")
]
OVER_ARRAY = "a tensor shares memory with a NumPy array of the program"
MODES = "the grad mode, or the default device or dtype"


def changed(place: str) -> str:
    """A side effect on Python objects."""
    return f"the call changes {place}, and a compiled call would not"


def result(kind: str) -> str:
    """A result that is no data."""
    return f"the result has a {kind}; only tensors, numbers and strings, nested in lists, tuples and dicts, can be results"


def kept_result(kind: str) -> str:
    """A list or dict of the program that is returned."""
    return f"the call returns a {kind} that the program has too"


def result_twice(kind: str) -> str:
    """A list or dict that stands in several places of the result."""
    return f"the result holds one {kind} in several places"


def unrelated_alias() -> str:
    """A result over memory of an input that is no plain view of it."""
    return "a result shares memory with an input in another dtype, or counts its versions apart"


def overlapping() -> str:
    """Inputs over one memory that none of them covers from its first element on: in a graph, an input has no offset."""
    return "inputs share memory that none of them covers from its start, or see it in several dtypes"


def outside_of_tensor() -> str:
    """as_strided over a tensor that is a part of its memory."""
    return "as_strided may see memory outside of the tensor that it is given"


def several_devices(devices: Iterable[str]) -> str:
    """A graph on more than one device."""
    return f"the graph uses several devices: {', '.join(devices)}"


def not_functional(error: BaseException) -> str:
    """A record that does not become a graph without writes."""
    first = str(error).partition("\n")[0]
    return f"the graph cannot be made free of writes: {type(error).__name__}: {first}"


def uncomparable(place: str, kind: str) -> str:
    """An object whose state cannot be part of a signature."""
    return f"{place} is a {kind}, whose state cannot be compared between calls"


def history(place: str) -> str:
    """A tensor whose history the function may read."""
    return f"the function names what tells how a tensor was computed, and {place} was computed by operators that were recorded"


def outside_world(name: str) -> str:
    """A function or module with effects outside of the program."""
    return f"the function names {name}, which reads or changes what a signature does not see"


def effect(what: str) -> str:
    """A call that does more than its operators show."""
    return f"the call uses {what}, which reads or changes what a signature does not see"


def hooks(place: str) -> str:
    """A tensor with hooks."""
    return f"{place} has hooks"


def too_large(limit: int) -> str:
    """A signature that takes long to compare."""
    return f"the signature has more than {limit:,} parts"


def refused_by_engine(engine: str, error: BaseException) -> str:
    """An engine that does not take the graph."""
    return f"the engine {engine!r} does not take the graph: {error}"


def left_by_engine(engine: str, why: str) -> str:
    """A graph that would be slower compiled. It is no fault: nothing warns of it."""
    return f"the engine {engine!r} leaves it to eager calls: {why}"


# Why a graph is for one size, where all sizes were asked for.
OUTSIDE_WRITTEN = "it writes tensors, gradients or attributes that are not arguments"
GRADIENTS = "gradients are recorded"
SIZED_DATA = "a tensor is made from numbers that depend on sizes"
SIZED_RESULT = "numbers or the nesting of the results depend on sizes"
TRACED_OFTEN = "each of several traces holds for few sizes"
SIZED_KIND = "it asks for the class or the text of a value, of which a symbol has others"
SIZED_VIEW = "a result is a view, or not in row-major order"

TOO_DEEP = "the arguments, or what the function reaches, are nested too deep"
RECORDS = "the results record for gradients"

# ---- texts that a program sees


def runs_eagerly(name: str, why: str) -> str:
    """The warning."""
    return f"compile: {name} runs eagerly: {why}"


def not_compiled(name: str, why: str) -> str:
    """The error of `strict=True`."""
    return (
        f"compile: {name} cannot be compiled, and strict=True was given\n"
        f"  why     {why}\n"
        "  to fix  leave strict out, or change the function"
    )


def too_many(name: str, limit: int, guard: str) -> str:
    """Signatures that come and go."""
    return (
        f"compile: {name} has had more than {limit} signatures; the least recently used are dropped and compiled again\n"
        f"  differs most often: {guard}"
    )


def engine_failed(engine: str, name: str, error: BaseException) -> str:
    """An exception of an engine."""
    return f"compile: the engine {engine!r} failed to compile {name}: {type(error).__name__}: {error}"


def second_of_random(name: str) -> str:
    """A second derivative through a call that draws."""
    return (
        f"compile: {name} draws random numbers, so its backward cannot be recorded: the numbers would be others\n"
        "  to fix  call the function itself where create_graph=True is wanted"
    )


def second_of_written(name: str) -> str:
    """A second derivative, after an input was written."""
    return (
        f"compile: an input of {name} was changed in place after the call, so its backward cannot be recorded\n"
        "  to fix  write into a clone(), or after backward()"
    )


def engine_unusable(engine: str, error: BaseException) -> str:
    """A plugin that cannot be activated, or a module without a function `compile`."""
    return f"compile: the engine {engine!r} cannot be used: {type(error).__name__}: {error}"


def wrong_results(engine: str, name: str, found: Any, expected: Any) -> str:
    """Results that are not those of the graph."""
    return f"compile: the engine {engine!r} returned for {name} {found}, expected {expected}"


def no_such_engine(engine: str, known: Iterable[str]) -> str:
    """An unknown engine."""
    return f"compile: there is no engine {engine!r}\n  known   {', '.join(known) or 'none'}"


def engine_not_for(engine: str, device: str, devices: Iterable[str]) -> str:
    """A device that the engine does not serve."""
    return f"compile: the engine {engine!r} takes graphs of {', '.join(devices)}, and this one is on {device}"


def several_engines(what: str, found: Iterable[str]) -> str:
    """More than one engine."""
    head = f"compile: several engines serve {what}: {', '.join(found)}"
    return head + "\n  to fix  name one by engine=, or by the setting compile.engine"


def twice(engine: str, plugins: Iterable[str]) -> str:
    """Two plugins with one engine."""
    return (
        f"compile: the engine {engine!r} is in several plugins: {', '.join(plugins)}\n"
        "  to fix  disable one of them by the setting plugins.disable"
    )


def not_callable(value: object) -> str:
    """compile(3)."""
    return f"compile: argument 'function' must be callable, got {type(value).__name__}"


def not_compiled_function(name: str, value: object) -> str:
    """explain(3)."""
    return f"{name}: expected what turnout.compile returned, got {type(value).__name__}"
