"""Texts of the errors of calls: what failed, where each key came from, what to do."""

from __future__ import annotations

from contextlib import suppress

from turnout.errors.layout import printed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from turnout.operators import Operator, Packet

A_DTYPE = "a dtype such as turnout.float32"


def stale(op: Operator) -> str:
    """A call through a handle whose definition was undone."""
    if any(op.kernels.values()):
        return f"{op.qualified_name} has kernels but no definition: the library that defines it is not loaded or was undone"
    return gone(op.qualified_name)


def gone(op_name: str) -> str:
    """A definition that was undone."""
    return f"{op_name} is gone: the library that defined it was undone; look the operator up again"


def too_many(expected: int, given: int) -> str:
    """Positional arguments, without the name of the function that takes them."""
    return f"takes {expected} positional argument{'s' if expected != 1 else ''}, got {given}"


def missing_argument(function: str, argument: str, type: object) -> str:
    return f"{function}: argument '{argument}' ({type}) is missing"


def unexpected_argument(op: Operator, name: str, args: tuple[Any, ...]) -> str:
    """A keyword that the schema does not have, or has already filled."""
    names = [a.name for a in op.schema.arguments]
    if name in names[: len(args)]:
        return f"{op.qualified_name}: argument '{name}' is given twice"
    return f"{op.qualified_name}: {no_argument(name, names)}"


def no_argument(name: str, known: Iterable[str]) -> str:
    return f"no argument '{name}'; there are {', '.join(known)}"


def wrong_type(op_name: str, argument: str, expected: str, value: Any) -> str:
    return f"{op_name}: argument '{argument}' must be {expected}, got {describe(value)}"


def unknown_overload(packet: Packet, overload: str) -> str:
    return f"{packet.namespace}::{packet.name} has no overload {overload!r}; it has {', '.join(dir(packet))}"


def no_kernel_at(op: Operator, key: str) -> str:
    """`op.kernel(key)` found no kernel."""
    there = ", ".join(op.kernels) or "none"
    return f"{op.qualified_name}: no kernel for {key}; kernels are registered at {there}"


def describe(value: Any) -> str:
    """A value in a few words: `Tensor float32 [3] on cpu, requires_grad`, `int 3`, `str 'x'`."""
    if value is None:
        return "None"
    with suppress(Exception):  # a property of the program's own class may raise anything
        if type(value.keys) is int:
            grad = ", requires_grad" if getattr(value, "requires_grad", False) else ""
            return f"Tensor {value.dtype.name} {list(value.shape)} on {value.device}{grad}"
    text = printed(value)
    if len(text) > 40:
        text = text[:37] + "..."
    return f"{type(value).__name__} {text}"


def other_device(device_type: str, given: object, besides: str = "") -> str:
    """A device of another type where a plugin's own is named."""
    return f"expected a device such as '{device_type}' or '{device_type}:1'{besides}, got {str(given)!r}"


def generator_elsewhere(op: Operator, generator: Any, wanted: Any) -> str:
    """A factory's generator and result are on different devices."""
    return (
        f"{op.qualified_name}: the generator is on {generator}, the result is asked for on {wanted}\n"
        f'  to fix  pass turnout.Generator("{wanted}")'
    )


def empty_list(op: Operator, argument: str) -> str:
    """A call without a backend because a list of tensors is empty."""
    return f"{op.qualified_name}: argument '{argument}' needs at least one tensor, got an empty list"


def two_devices(op: Operator, named: list[tuple[str, Any]], mixing: list[str], *, indices: bool) -> str:
    """`mixing`: the devices whose 0-dim tensors mix with others, and whose indices do if `indices`."""
    listed = ", ".join(f"{name} on {device}" for name, device in named)
    which = "indices and 0-dim tensors" if indices else "0-dim tensors"
    mix = f"; only {which} on {' or '.join(mixing)} mix with another device" if mixing else ""
    return f"{op.qualified_name}: tensors on two devices: {listed}\n  to fix  move one with .to(device){mix}"
