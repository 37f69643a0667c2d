"""Error classes of this plugin, and their texts."""

from __future__ import annotations

from typing import Any

from turnout.errors import TurnoutError


class TraceError(TurnoutError, RuntimeError):
    """A function that cannot be traced, or a graph that cannot be called as it was."""


class TraceWarning(UserWarning):
    """Something of a traced function became a constant of its graph."""


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
        "  as a constant of the graph it would be written in each replay, and nobody would see it\n"
        "  to fix  make it an argument of the function (a gradient in .grad: set it to None first)"
    )


def captured_view() -> str:
    """A tensor from outside that shares memory with a value of the graph."""
    return (
        "trace: a tensor from outside shares its memory with an input, or with a view of one, and a replay could not know that\n"
        "  to fix  make the view inside the traced function"
    )


def became_number(op: str, value: object) -> str:
    """A Python number taken from a traced tensor."""
    return f"{op}: {value!r} is a constant of the graph from here on; a replay does not compute it from its own inputs"


def wrong_structure(name: str, expected: list[str], found: list[str]) -> str:
    """A graph called with arguments that are nested otherwise than those it was traced with."""
    return (
        f"{name}: the arguments must be nested as they were when the graph was traced\n"
        f"  traced  {', '.join(expected)}\n  got     {', '.join(found)}"
    )


def wrong_leaf(name: str, where: str, expected: str, found: str) -> str:
    """A graph called with another constant than the one it was traced with."""
    return f"{name}: {where} must be {expected} as it was when the graph was traced, got {found}"


def not_an_output(value: Any) -> str:
    """A result that a graph cannot return."""
    return (
        f"trace: a function may return tensors, numbers, strings, None, and lists, tuples and dicts of them, "
        f"got {type(value).__name__}"
    )


def not_saved(what: str, value: object) -> str:
    """A value in a graph that is no data."""
    return f"save: {what} is a {type(value).__name__}, which is no data that a file can hold"


def not_a_graph(path: str, why: str) -> str:
    """A file that is no saved graph."""
    return f"load: {path} is not a saved graph: {why}"


def other_arguments(path: str, op: str, found: int, expected: int) -> str:
    """A file with a call that the operator as it is now does not take."""
    return f"load: {path} calls {op} with {found} arguments, the operator that is installed takes {expected}"


def newer(path: str, version: object, known: int) -> str:
    """A file of a later format."""
    return f"load: {path} has version {version} of the format, this turnout-tracer reads up to {known}"
