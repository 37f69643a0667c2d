"""What stands in place of stubs, functions and methods: what they say of their calls, as the extension module reads it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from turnout.operators.arguments import MISSING
from turnout_speed import _calls

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnout.operators.calls import CallSpec, Given, Source, Target
    from turnout.schema import Argument

# The types of arguments that are passed on as they are when they have the right class.
KINDS = {
    "Tensor": "Tensor", "Scalar": "Scalar", "int": "int", "SymInt": "int", "float": "float", "bool": "bool", "str": "str",
    "ScalarType": "ScalarType", "Device": "Device", "MemoryFormat": "str",
}  # fmt: skip
MOST = 12  # arguments


# ---- entry points


def call(made: Any, _: Any, spec: CallSpec, source: Source) -> Any:
    """A stub, public function or method, if its calls are of kinds that the extension module reads."""
    _call_handles()
    rows = [row_of(each) for each in spec.targets]
    if spec.last is not None and rows[0] is None:  # the others are only tried after the one that the text calls
        rows = []
    targets = tuple([row for row in rows if row is not None])
    if not targets and spec.packet is None:
        return made
    overloads = None
    if spec.packet is not None:
        variable, least, most, line, after = spec.packet
        seen = None if line is None else source.line(line)
        overloads = source.variables[variable].chosen, least, MOST if most is None else most, True, seen, after
    tail = source.line(spec.last) if spec.last is not None and targets else None
    results = source.variables[spec.results] if spec.results else None
    return _calls.call(made, targets, tail, results, overloads)


def _call_handles() -> None:
    """Let handles of custom operators be called as operators are. A program that has none does not load their module."""
    handle = getattr(sys.modules.get("turnout.library"), "CustomOpDef", None)
    if handle is not None:
        _calls.call_handles(handle)


def row_of(target: Target) -> Any:
    """A target as the extension module reads it; None if it has arguments of other kinds."""
    rows = rows_of(target.overload.schema.arguments, target.arguments)
    return None if rows is None else (target.overload.cache, target.parameters, rows, target.rest, target.alone)


def rows_of(arguments: Sequence[Argument], sources: Sequence[Given]) -> tuple[Any, ...] | None:
    """The arguments as the extension module reads them: (kind, may be None, size, parameter, default, name).

    None if one of them is of another kind, and may be given.
    """
    rows = []
    for argument, source in zip(arguments, sources, strict=True):
        canonical = argument.type.canonical
        default = argument.default if argument.has_default else MISSING
        optional = argument.may_be_none
        ints = _ints(argument.type)
        kind = "ints" if ints is not None else KINDS.get(canonical.rstrip("?"))
        if canonical in ("Tensor[]", "Tensor?[]"):
            kind, optional = "tensors", "?[" in canonical
        elif kind is None and canonical.endswith("?") and not argument.type.is_tensor_like:
            kind = "none"  # a generator, a layout, floats: only where it is not given
        if kind is None or (kind == "Tensor" and argument.has_default and not canonical.endswith("?")):
            return None
        rows.append((kind, optional, ints or 0, source.position, default, source.keyword or None))
    return tuple(rows) if len(rows) <= MOST else None


def _ints(kind: Any) -> int | None:
    """The size of a list of ints, 0 for any; None of any other type."""
    listed = kind.elem if kind.is_optional else kind
    is_of_ints = kind.is_list and listed.elem is kind.base and kind.base.canonical in ("int", "SymInt")
    return (listed.size or 0) if is_of_ints else None
