"""Error classes of this plugin, and their texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from turnout.errors import TurnoutError
from turnout_aten.errors.backends import ONE_BY_ONE


class TraceError(TurnoutError, RuntimeError):
    """A function that cannot be traced, or a graph that cannot be called with these arguments."""


class TraceWarning(UserWarning):
    """A value that a traced function computed became a constant of its graph."""


def inside_vmap() -> str:
    """trace() where a vmap is active."""
    return "trace: a trace cannot begin inside vmap\n  to fix  trace first, and call the graph inside vmap"


def nested() -> str:
    """trace() inside a function that is being traced."""
    return "trace: another trace is being recorded here\n  to fix  trace the inner function first, and call its graph"


def given_twice(first: str, second: str) -> str:
    """One tensor as two inputs."""
    return (
        f"trace: inputs {first} and {second} are the same tensor, so the graph could not tell them apart\n"
        "  to fix  pass a clone() as one of them"
    )


def captured_written(op: str, argument: str) -> str:
    """A write into a tensor from outside."""
    return (
        f"{op}: the traced function writes into {argument!r}, a tensor from outside that is not among its inputs\n"
        "  each replay would write into the graph's own copy, and the program would not see it\n"
        "  to fix  make it an argument of the function (a gradient in .grad: set it to None first)"
    )


def captured_view() -> str:
    """A tensor from outside that shares memory with a value of the graph."""
    return (
        "trace: a tensor from outside shares its memory with an input, or with a view of one; a replay cannot reproduce that\n"
        "  to fix  make the view inside the traced function"
    )


def became_number(op: str, value: object) -> str:
    """A Python number taken from a traced tensor."""
    return f"{op}: {value!r} is a constant of the graph from here on; a replay does not compute it from its own inputs"


def fake_constant() -> str:
    """A fake tensor from outside in a trace."""
    return (
        "trace: the function uses a fake tensor that is not among its inputs, and a replay would have no values for it\n"
        "  to fix  make it an argument; or leave it real, outside of the mode, with FakeMode(allow_non_fake_inputs=True)"
    )


def unknown_size(size: str, name: str) -> str:
    """A size that is computed from one that a replay does not know."""
    return (
        f"trace: the function uses the size {size}, and {name} is neither a size of an input nor of a result\n"
        "  to fix  make the tensor that it is a size of an argument of the function"
    )


def compared_with_unknown(comparison: str, name: str) -> str:
    """A decision about a size of an input and one from elsewhere."""
    return (
        f"trace: sizes were decided with {comparison}, and {name} is neither a size of an input nor of a result\n"
        "  to fix  make the inputs of each trace with a FakeMode of their own"
    )


def other_dims(name: str, which: str, expected: int, shape: Sequence[Any]) -> str:
    """A graph called with a tensor of another number of dims."""
    return f"{name}: {which} must have {expected} dims, as when the graph was traced; got shape {list(shape)}"


def other_size(name: str, which: str, dim: int, found: Any, formula: Any, expected: Any) -> str:
    """A graph called with a size that the trace took for a number, or for another size."""
    wanted = f"{expected}" if formula.__class__ is int else f"{formula} = {expected}"
    return (
        f"{name}: dim {dim} of {which} must be {wanted}, got {found}\n"
        "  to fix  make the graph with a size that is a symbol there: FakeMode().from_tensor(x, dynamic=dims) for a trace,\n"
        "          dynamic_shapes for torch.export"
    )


def assumption_failed(name: str, assumption: str, rows: Sequence[tuple[str, Any, str]]) -> str:
    """A graph called with sizes for which a decision of the trace would be another one."""
    sizes = "".join(f"\n  {size:<6}  {value}, {origin}" for size, value, origin in rows)
    return (
        f"{name}: the graph holds only where {assumption}, which was decided when it was made{sizes}\n"
        "  to fix  make it again with inputs of these sizes, and call that graph"
    )


def wrong_structure(name: str, expected: list[str], found: list[str]) -> str:
    """A graph called with arguments that are nested differently from those it was traced with."""
    return (
        f"{name}: the arguments must be nested as they were when the graph was traced\n"
        f"  traced  {', '.join(expected)}\n  got     {', '.join(found)}"
    )


def wrong_leaf(name: str, where: str, expected: str, found: str) -> str:
    """A graph called with a constant that differs from the one it was traced with."""
    return f"{name}: {where} must be {expected}, as when the graph was traced; got {found}"


def not_an_output(value: Any) -> str:
    """A result that a graph cannot return."""
    return (
        f"trace: a function may return tensors, numbers, strings, None, and lists, tuples and dicts of them, "
        f"got {type(value).__name__}"
    )


def not_saved(what: str, kind: type) -> str:
    """A value in a graph that cannot be saved."""
    return f"save: a file cannot hold {what} of type {kind.__name__}"


def not_a_graph(path: str, why: str) -> str:
    """A file that is not a saved graph."""
    return f"load: {path} is not a saved graph: {why}"


def not_data_of_a_graph(why: str) -> str:
    """Data from which no graph can be made."""
    return f"from_data: these are not the data of a graph: {why}"


def other_arguments(op: str, found: int, expected: int) -> str:
    """A file with a call that the installed operator does not accept."""
    return f"it calls {op} with {found} arguments, but the installed operator takes {expected}"


def other_argument(op: str, argument: str, expected: str) -> str:
    """A file with a call in which an argument is of another type."""
    return f"it calls {op} with an argument {argument!r} that is not of type {expected}"


def other_results(op: str, found: int, expected: int) -> str:
    """A call of a graph that returned more or fewer tensors than when it was traced."""
    return f"{op} returned {found} results; when the graph was traced or saved it returned {expected}"


def no_such_replay(name: str, wanted: str, device: object, ways: list[str]) -> str:
    """A way of replays that the device does not have."""
    where = "a graph without tensors" if device is None else f"device {str(device)!r}"
    offered = f"it offers {', '.join(map(repr, ways))}" if ways else "it offers none"
    return f"graph {name}: {where} does not replay by {wanted!r}; {offered}\n  to fix  {ONE_BY_ONE}"
