"""The text of the parts: for each first letter of operators' names their stubs, public functions, methods and table."""

from __future__ import annotations

import re
from collections.abc import Iterable

from turnout.operators.stubs import STUB_GLOBALS, stub_source
from turnout_aten.declarations.model import NativeFunction, NativeFunctions
from turnout_aten.functions.parts import PARTS, part_name
from turnout_aten.generation.catalogue import (
    HOMES,
    Packet,
    cache_name,
    function_packets,
    method_packets,
    named_packets,
    unique_identifiers,
)
from turnout_aten.generation.functions import functions_lines, preamble, return_types_lines, stub_name
from turnout_aten.generation.methods import method_source, operator_methods
from turnout_aten.generation.operators import Resolve, operators_lines
from turnout_aten.generation.source import header, imports, indented

_FUNCTIONS_NOTE = """

# Public module -> its functions by name.
FUNCTIONS = {"""


def parts_texts(functions: NativeFunctions, source: str, resolve: Resolve) -> dict[str, str]:
    """Every part, name -> text; those without operators too. Raises ValueError for names that clash."""
    unique_identifiers(functions)
    return {name: _part_text(functions, name, source, resolve) for name in PARTS}


def names_text(functions: NativeFunctions, source: str) -> str:
    """The module with the names of all operators and functions, for who asks for all."""
    lines = [header("The names of operators and of public functions, for who lists them.", source)]
    lines += ["# Packet -> its overloads.", "OPERATORS = {"]
    packets: dict[str, list[str]] = {}
    for f in functions:
        packets.setdefault(f.schema.name.name, []).append(f.schema.name.overload)
    lines += [f"    {name!r}: {tuple(overloads)!r}," for name, overloads in sorted(packets.items())]
    lines += ["}", "", "# Public module -> its functions.", "FUNCTIONS = {"]
    for module, home in HOMES.items():
        lines += [
            f"    {home!r}: (",
            *(f"        {p.public_name!r}," for p in function_packets(functions, module)),
            "    ),",
        ]
    lines += ["}", "", "# Operators whose functions and methods return tuples with names.", "RETURN_TYPES = ("]
    return "\n".join([*lines, *(f"    {p.name!r}," for p in named_packets(functions)), ")"]) + "\n"


def return_types_text(source: str) -> str:
    """The module beside the type stubs of the classes of named results."""
    return (
        header("The classes of named results, for type checkers.", source)
        + "\nfrom turnout_aten.functions.return_types import __getattr__\n"
    )


def methods_text(functions: NativeFunctions, source: str) -> str:
    """The module with the class `TensorMethods`, whose methods stand in the parts."""
    special = operator_methods(functions)
    names = [p.public_name for p in method_packets(functions) if p.name not in special]
    lines = [header("Methods of tensors, and Python's operators on them.", source)]
    lines += ["from turnout_aten.functions.parts import methods_class", "", "NAMES = ("]
    lines += [*(f"    {name!r}," for name in names), ")", "", "# Python's operators -> the part they stand in."]
    lines += ["SPECIAL = {", *(f"    {name!r}: {part_name(one.operator)!r}," for name, one in special.items()), "}"]
    return "\n".join([*lines, "", "TensorMethods = methods_class(__name__, NAMES, SPECIAL)"]) + "\n"


def _part_text(functions: NativeFunctions, part: str, source: str, resolve: Resolve) -> str:
    own = [f for f in functions if part_name(f.schema.name.name) == part]
    homes = {home: [p for p in function_packets(functions, module) if part_name(p.name) == part]
             for module, home in HOMES.items()}  # fmt: skip
    public = [p for packets in homes.values() for p in packets]
    clash = {p.public_name for p in public if [q.public_name for q in public].count(p.public_name) > 1}
    if clash:
        raise ValueError(f"two public functions of part {part!r} would be called {', '.join(sorted(clash))}")
    special = operator_methods(functions)
    with_methods = [p for p in method_packets(functions) if part_name(p.name) == part and p.name not in special]
    methods = [line for p in with_methods for line in method_source(p)]
    methods += [line for one in special.values() if part_name(one.operator) == part for line in one.lines]
    body = [*functions_lines(public), "", "", *_methods_lines(methods)]
    stubs = _stubs_lines(own)
    lines = [header(_title(part), source)]
    lines += imports("turnout.operators.arguments", _used(STUB_GLOBALS, [*stubs, *body]))
    if _used(["aten"], methods):
        lines.append("from turnout_aten.generated import operators as aten")
    lines += ["from turnout.registry import REGISTRY", "miss = REGISTRY.miss"]
    lines += ["from turnout_aten.functions.parts import publish", *preamble([*public, *with_methods], body)]
    named = {p.name: p for p in [*with_methods, *public]}
    lines += [*return_types_lines(named.values()), *stubs, *body]
    lines += [*operators_lines(functions, own, resolve), *_functions_table(homes)]
    return "\n".join([*lines, "", "publish(OPERATORS, FUNCTIONS, methods)"]) + "\n"


def _title(part: str) -> str:
    which = f"starts with {part}" if len(part) == 1 else f"starts with {part}_"
    return f"Operators whose name {which}, underscores in front apart: stubs, functions, methods, table."


def _stubs_lines(own: Iterable[NativeFunction]) -> list[str]:
    lines: list[str] = []
    for f in own:
        stub = stub_source(f.schema, f.qualified_name, stub_name(f), cache_name(f)).rstrip()
        lines += ["", f"{cache_name(f)} = {{}}", *stub.splitlines()]
    return lines


def _methods_lines(methods: list[str]) -> list[str]:
    note = '"""What `Tensor` gets: one method for each operator with a method variant."""'
    return ["class methods:", *indented([note, *methods])]


def _functions_table(homes: dict[str, list[Packet]]) -> list[str]:
    lines = [_FUNCTIONS_NOTE]
    for home, packets in homes.items():
        if packets:
            lines += [f"    {home!r}: {{", *(f"        {p.public_name!r}: {p.public_name}," for p in packets), "    },"]
    return [*lines, "}"]


def _used(names: Iterable[str], lines: list[str]) -> list[str]:
    used = set(re.findall(r"\w+", "\n".join(lines)))
    return [name for name in names if name in used]
