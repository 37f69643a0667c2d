"""Which operators of a yaml are public, under which names, and which names clash."""

from __future__ import annotations

from collections.abc import Iterable

from turnout_aten.declarations.model import NativeFunction, NativeFunctions
from turnout_aten.functions.public_modules import HOMES
from turnout_aten.generation.packets import Packet, identifier, result_fields


def unique_identifiers(functions: NativeFunctions) -> None:
    """Raise ValueError when two operators would have one identifier."""
    seen: dict[str, str] = {}
    for function in functions:
        name = identifier(function)
        other = seen.setdefault(name, function.qualified_name)
        if other != function.qualified_name:
            raise ValueError(f"{other} and {function.qualified_name} would have one stub, {name}; rename an overload")


def is_public(function: NativeFunction) -> bool:
    """Whether a function gets a public name: not those starting with `_`, not backward operators,
    not what only recorded programs call.

    Of what autogen made, out variants do: they are reached through `out=` of the function that was written.
    """
    name = function.schema.name.name
    if function.is_generated and function.schema.kind != "out":
        return False
    return not (name.startswith(("_", "lift_fresh")) or name.endswith("_backward"))


def module_of(function: NativeFunction) -> str | None:
    """The python_module of the public function, "" if it has none; None without a public function."""
    if not is_public(function) or "function" not in function.variants:
        return None
    return (function.base or function).python_module or ""


def is_method(function: NativeFunction) -> bool:
    """Whether tensors have it as a method."""
    return "method" in function.variants and not function.is_generated


def function_packets(functions: NativeFunctions, module: str) -> list[Packet]:
    """The public functions of a python_module ("" for none), by name."""
    return [p for p in _packets((f for f in functions if module_of(f) == module), module) if p.bases]


def method_packets(functions: NativeFunctions) -> list[Packet]:
    """The methods of tensors, by name."""
    return _packets(f for f in functions if is_method(f))


def _packets(functions: Iterable[NativeFunction], module: str = "") -> list[Packet]:
    by_name: dict[str, list[NativeFunction]] = {}
    for function in functions:
        by_name.setdefault(function.schema.name.name, []).append(function)
    return [Packet(name, overloads, module) for name, overloads in sorted(by_name.items())]


def named_packets(functions: NativeFunctions) -> list[Packet]:
    """The packets with functions or methods whose results have names, by name."""
    found = {p.name: p for p in method_packets(functions)}
    found |= {p.name: p for module in HOMES for p in function_packets(functions, module)}
    return [packet for _, packet in sorted(found.items()) if result_fields(packet)]
