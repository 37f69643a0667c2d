"""The text of `generated/operators.py` and `generated/groups.py`: stubs with their caches, tables of literals."""

from __future__ import annotations

from collections.abc import Callable

from turnout.codegen.catalogue import cache_name, identifier, unique_identifiers
from turnout.codegen.source import header, imports
from turnout.native.autogen import source_of
from turnout.native.model import NativeFunction, NativeFunctions
from turnout.stubs import STUB_GLOBALS, stub_source

Resolve = Callable[[NativeFunction, str], str]

OPERATORS_NOTE = """
# One row per operator: schema, stub, the stub's cache, tags, whether devices are checked, whether its device is made
# current.
OPERATORS = ("""

KERNELS_NOTE = """
# One row per kernel that the yaml names: operator, dispatch key, and what runs. `module:function` is imported when the
# kernel is first needed; `autogen:KIND:OPERATOR` is made by turnout.native.autogen.kernel.
KERNELS = ("""

GROUPS_NOTE = """
# The variants of each operator: functional, in-place, mutable, out; None where there is none.
GROUPS = ("""

STRUCTURED_NOTE = """
# Structured operator -> (the operators its shape function and kernels serve, with their kind; what precomputed
# arguments replace, added ones under "").
STRUCTURED = {"""


def operators_text(functions: NativeFunctions, source: str, resolve: Resolve) -> str:
    """The stubs and the tables OPERATORS and KERNELS."""
    unique_identifiers(functions)
    lines = [header("Operators: their call stubs, and what `import turnout` registers.", source)]
    lines += imports("turnout.calling", list(STUB_GLOBALS))
    for f in functions:
        lines += [
            "",
            f"{cache_name(f)} = {{}}",
            stub_source(f.schema, f.qualified_name, identifier(f), cache_name(f)).rstrip(),
        ]
    lines += ["", OPERATORS_NOTE]
    for f in functions:
        flags = f"{sorted_tuple(f.tags)}, {f.device_check == 'ExactSame'}, {f.device_guard}"
        lines.append(f"    ({f.schema_text!r}, {identifier(f)}, {cache_name(f)}, {flags}),")
    lines += [")", "", "for _row in OPERATORS:", '    _row[1].__qualname__ = _row[0][:_row[0].index("(")]']
    lines += [KERNELS_NOTE, *kernel_rows(functions, resolve), ")"]
    return "\n".join(lines) + "\n"


def kernel_rows(functions: NativeFunctions, resolve: Resolve) -> list[str]:
    """The rows of KERNELS."""
    rows = []
    for f in functions:
        for key, kernel in f.dispatch.items():
            if f.is_generated:
                group = functions.group_of(f)
                what = f"{kernel}:{source_of(f, functions.by_name, group).qualified_name}"
            else:
                what = resolve(f, kernel)
            rows.append(f"    ({f.qualified_name!r}, {key!r}, {what!r}),")
    return rows


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
