"""The tables of operators: those of the parts, and the text of `generated/groups.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from turnout_aten.declarations.model import NativeFunction, NativeFunctions
from turnout_aten.declarations.variants import source_of
from turnout_aten.generation.catalogue import cache_name, identifier
from turnout_aten.generation.source import header

Resolve = Callable[[NativeFunction, str], str]

_STUBS = """
from turnout_aten.functions.parts import stub


def __getattr__(name):
    found = globals()[name] = stub(name)
    return found
"""

OPERATORS_NOTE = """
# Packet -> one row per overload: schema, stub, the stub's cache, tags, whether devices are checked, whether its device is
# made current, and its kernels that the yaml names: dispatch key and what runs. `module:function` is imported when the
# kernel is first needed; `autogen:KIND:OPERATOR` is made by turnout_aten.declarations.variants.kernel.
OPERATORS = {"""

GROUPS_NOTE = """
# The variants of each operator: functional, in-place, mutable, out; None where there is none.
GROUPS = ("""

STRUCTURED_NOTE = """
# Structured operator -> (the operators its shape function and kernels serve, with their kind; what precomputed
# arguments replace, added ones under "").
STRUCTURED = {"""


def operators_text(source: str) -> str:
    """The module that has the stubs by name; they stand in the parts."""
    return header("The call stubs of operators, `add__Tensor`, loaded when they are first used.", source) + _STUBS


def operators_lines(functions: NativeFunctions, own: Iterable[NativeFunction], resolve: Resolve) -> list[str]:
    """The table OPERATORS of a part: packet -> one row for each overload."""
    packets: dict[str, list[str]] = {}
    for f in own:
        flags = f"{sorted_tuple(f.tags)}, {f.device_check == 'ExactSame'}, {f.device_guard}"
        row = (
            f"({f.schema_text!r}, op_{identifier(f)}, {cache_name(f)}, {flags}, {kernel_rows(functions, f, resolve)!r})"
        )
        packets.setdefault(f.schema.name.name, []).append(row)
    lines = [OPERATORS_NOTE]
    for name, rows in packets.items():
        lines += [f"    {name!r}: (", *(f"        {row}," for row in rows), "    ),"]
    return [*lines, "}"]


def kernel_rows(functions: NativeFunctions, f: NativeFunction, resolve: Resolve) -> tuple[tuple[str, str], ...]:
    """The kernels that the yaml names for an operator: (dispatch key, what runs)."""
    rows = []
    for key, kernel in f.dispatch.items():
        if f.is_generated:
            what = f"{kernel}:{source_of(f, functions.by_name, functions.group_of(f)).qualified_name}"
        else:
            what = resolve(f, kernel)
        rows.append((key, what))
    return tuple(rows)


def groups_text(functions: NativeFunctions, source: str) -> str:
    """The tables GROUPS and STRUCTURED."""
    lines = [header("How operators belong together: variants, and who shares a shape function.", source), GROUPS_NOTE]
    for group in functions.groups:
        variants = (group.functional, group.inplace, group.mutable, group.out)
        row = tuple(None if f is None else f.qualified_name for f in variants)
        lines.append(f"    {row!r},")
    lines += [")", STRUCTURED_NOTE]
    for f in functions:
        if not f.structured:
            continue
        served = {v.qualified_name: v.schema.kind for v in functions if functions.delegate_of(v) is f}
        precomputed = f.precomputed.names if f.precomputed is not None else {}
        lines.append(f"    {f.qualified_name!r}: ({served!r}, {precomputed!r}),")
    lines.append("}")
    return "\n".join(lines) + "\n"


def sorted_tuple(words: frozenset[str]) -> str:
    """The words as a tuple's source."""
    return repr(tuple(sorted(words)))
