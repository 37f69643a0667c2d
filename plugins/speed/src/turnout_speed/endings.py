"""What composite kernels end in, as the extension module reads it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from turnout.operators.stubs import python_name
from turnout.registry import find_operator
from turnout_aten.composites.endings import LENGTHS, OTHER_DTYPE, ROW_MAJOR, SAME_DTYPE, ZERO, Ending, Equal, Inferred

if TYPE_CHECKING:
    from collections.abc import Sequence

_WHEN = {
    None: -2, ROW_MAJOR: -3, LENGTHS: -4, OTHER_DTYPE: -5, SAME_DTYPE: -6, False: -7, "contiguous_format": -8,
    ZERO: -9,
}  # fmt: skip


def rows_of(endings: Sequence[Ending], names: Sequence[str]) -> tuple[Any, ...] | None:
    """The rows of endings of an operator with these arguments; None if one calls an operator that is not there."""
    rows: list[Any] = []
    return tuple(rows) if all(_add_ending(rows, ending, names, nested=False) for ending in endings) else None


def _add_ending(rows: list[Any], ending: Ending, names: Sequence[str], *, nested: bool) -> bool:
    """Add the row of an ending after those of its operands; False if it calls an operator that is not there."""
    op = find_operator(ending.operator) if ending.operator else None
    operands: list[Any] = []
    for operand in ending.operands:
        if isinstance(operand, Ending):
            if not _add_ending(rows, operand, names, nested=True):
                return False
            operands.append(32 + len(rows) - 1)
        else:
            value = operand.sizes if isinstance(operand, Inferred) else operand
            at = names.index(value) if isinstance(value, str) else (value,)
            operands.append((at, True) if isinstance(operand, Inferred) else at)
    when = tuple([_condition(ending.when[name]) if name in ending.when else -1 for name in names])
    keywords = () if op is None else tuple([sys.intern(python_name(a.name)) for a in op.schema.arguments if a.kwarg_only])
    rows.append((nested, when, op, tuple(operands), keywords[: ending.keywords], -1 if ending.item is None else ending.item))
    return op is not None or not ending.operator


def _condition(wanted: Any) -> int:
    """A condition of an ending as the extension module reads it."""
    return 1000 + wanted.number if isinstance(wanted, Equal) else _WHEN.get(wanted, wanted)
