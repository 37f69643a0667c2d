"""Every error of vmap: the classes and all texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.errors import DimError, TurnoutError
from turnout_aten.errors.transforms import DEPENDS_ON_VALUES, TRANSFORM_INSIDE, key_included

if TYPE_CHECKING:
    from turnout.operators import Operator


class VmapError(TurnoutError, RuntimeError):
    """A call that is not possible inside vmap, or a function that cannot be mapped as requested."""


class VmapArgumentError(TurnoutError, ValueError):
    """in_dims, out_dims, randomness or the arguments of a mapped function do not fit each other."""


class VmapDimError(VmapArgumentError, DimError):
    """A dimension in in_dims or out_dims that a tensor does not have; PyTorch raises IndexError for one in out_dims."""


class LoopWarning(UserWarning):
    """An operator without a batching rule ran once per example."""


# ---- calls inside of vmap


def escaped(num: int) -> str:
    return (
        f"a tensor that was batched by vmap (level {num}) is used outside of it: after the mapped function returned, or in "
        "another thread\n  to fix  return it from the mapped function"
    )


NOT_BATCHED = key_included("Batched", "without a batched tensor", "turnout.vmap")
RESIZED = "the memory of all examples would change its size"


def no_value(what: str) -> str:
    return (
        f"{what}: inside vmap a tensor stands for all examples and has no value of its own, "
        "so Python cannot read or branch on it\n"
        "  to fix  use turnout.where for a choice, or do this outside of vmap"
    )


def no_memory(what: str) -> str:
    return (
        f"{what}: a tensor inside vmap does not have an array of its own\n"
        "  to fix  return it from the mapped function, and convert the result"
    )


def captured_write(name: str, argument: str) -> str:
    return (
        f"{name}: '{argument}' is not batched by this vmap, but the values to be written are: each example has "
        "a value of its own\n"
        "  to fix  write into a tensor made from a batched one, such as turnout.zeros_like(x) or x.new_zeros(...)"
    )


def unmappable(name: str, why: str) -> str:
    return f"{name}: {why}, which vmap cannot give for each example"


def data_dependent(name: str) -> str:
    return unmappable(name, DEPENDS_ON_VALUES)


def imperative(what: str) -> str:
    return f"{what} is not possible on a tensor inside vmap\n{TRANSFORM_INSIDE}"


def slow_loop(op: Operator) -> str:
    return f"{op.qualified_name} has no batching rule: it runs once per example (said once per operator)"


def empty_loop(op: Operator) -> str:
    return f"{op.qualified_name} has no batching rule and would run once per example, but there are no examples"


def no_tensors(op: Operator) -> str:
    return unmappable(op.qualified_name, "it returns a value that is not a tensor")


def out_shape(name: str, have: tuple[int, ...], wanted: tuple[int, ...]) -> str:
    return f"{name}: inside vmap 'out' must have the result's shape {list(wanted)} already; it has {list(have)}"


# ---- random numbers


def random_refused(name: str) -> str:
    return (
        f"{name}: inside vmap it must be known whether all examples share the random numbers\n"
        "  to fix  vmap(..., randomness='same') or randomness='different'"
    )


def random_captured(name: str) -> str:
    return (
        f"{name}: self is not batched, so it cannot take different random numbers for each example\n"
        "  to fix  write into a batched tensor, or use randomness='same'"
    )


# ---- what vmap is given


def bad_randomness(value: Any) -> str:
    return f"vmap: randomness must be 'error', 'same' or 'different', got {value!r}"


def no_arguments() -> str:
    return "vmap: the mapped function got no arguments, so nothing says how many examples there are"


def in_dims_count(given: int, arguments: int) -> str:
    return f"vmap: in_dims has {given} entries for {arguments} positional arguments"


def dims_structure(what: str, place: str) -> str:
    return f"vmap: {what} does not have the structure of {place}"


def dim_kind(what: str, place: str, dim: Any) -> str:
    return f"vmap: {what} of {place} must be an int or None, got {dim!r}"


def dim_of_other(place: str, dim: int, value: Any) -> str:
    return f"vmap: in_dims says {dim} for {place}, which has type {type(value).__name__} and is not a tensor; use None for it"


def dim_range(what: str, place: str, dim: int, ndim: int) -> str:
    return f"vmap: {what} says {dim} for {place}, which has {ndim} dimension(s)"


def nothing_mapped() -> str:
    return "vmap: in_dims is None for every tensor, so nothing says how many examples there are"


def sizes_differ(sizes: list[tuple[str, int]]) -> str:
    return "vmap: the mapped dims have different lengths: " + ", ".join(f"{place} has {n}" for place, n in sizes)


def output_kind(place: str, value: Any) -> str:
    return f"vmap: the mapped function must return tensors where out_dims is not None; {place} is {type(value).__name__}"


def output_batched(place: str) -> str:
    return f"vmap: out_dims says None for {place}, but its values differ between examples"


# ---- rules that users register


def bad_rule(name: str, found: Any) -> str:
    return f"{name}: its vmap rule must return a tuple (result, out_dims); it returned {type(found).__name__}"


def bad_out_dims(name: str, bdims: Any) -> str:
    return f"{name}: the out_dims of its vmap rule do not fit the result; they are {bdims!r}"
