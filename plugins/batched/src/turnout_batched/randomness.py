"""BatchedMode: what operators that draw random numbers do while a vmap is active.

At a level with "different" the numbers are drawn for all examples at once: tensors are lowered to those levels, sizes get them in
front, and the result is raised again. At a level with "same" the operator runs as for one example.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

from turnout.keys import IMPLICIT
from turnout.operators.kernels import FALLTHROUGH, INTERNAL, Kernel
from turnout.state import StateChange
from turnout_aten import operators as aten
from turnout_aten.declarations.tables import SEEDED
from turnout_aten.tensor.levels import LEVELS
from turnout_aten.tensor.tensor import Tensor
from turnout_batched import errors
from turnout_batched.levels import MODE, lower, raise_
from turnout_batched.values import BATCHED

if TYPE_CHECKING:
    from turnout.operators import Operator
    from turnout_batched.levels import Level

# Operators whose first argument is a row of numbers for each result, or a matrix of such rows.
_ROWS = frozenset({"aten::multinomial"})
_OUTSIDE = StateChange(drops=MODE, excludes=MODE)


def specialize(op: Operator) -> Any:
    """The kernel of one operator at BatchedMode; FALLTHROUGH for those that draw no random numbers."""
    if SEEDED not in op.tags:
        return FALLTHROUGH
    return Kernel(_drawing(op), INTERNAL, label=f"randomness of {op.qualified_name}")


def _drawing(op: Operator) -> Callable[..., Any]:
    names = [a.name for a in op.schema.arguments]
    written = next((i for i, a in enumerate(op.schema.arguments) if a.is_write), None)
    sized = names.index("size") if "size" in names else None
    decomposes = IMPLICIT in op.kernels

    def draw(ks: int, *args: Any) -> Any:
        levels = LEVELS.get()
        if any(level.randomness == "error" for level in levels):
            if not decomposes:
                raise errors.VmapError(errors.random_refused(op.qualified_name))
            below = ks & ~MODE  # what it calls is refused, if it draws at all: attention without dropout does not
            return op.lookup(below)(below, *args)
        different = tuple([level for level in levels if level.randomness == "different"])
        return _OUTSIDE.run(drawn, different, args)

    def drawn(different: tuple[Level, ...], args: tuple[Any, ...]) -> Any:
        if not different:
            return op.call_boxed(args)
        if written is not None:
            _check_written(op, args[written], different)
        if written is None and sized is None and not any(isinstance(a, Tensor) for a in args):
            return _one_by_one(op, args, different)
        values = [lower(a, different) if isinstance(a, Tensor) else a for a in args]
        if sized is not None:
            values[sized] = (*[level.size for level in different], *args[sized])
        made = _of_rows(op, values, len(different)) if op.qualified_name in _ROWS else op.call_boxed(tuple(values))
        return args[written] if written is not None else _raised(made, different)

    return draw


def _of_rows(op: Operator, values: list[Any], lead: int) -> Tensor:
    """The rows of all examples as one matrix. Examples of another rank are refused by the operator."""
    x, *rest = values
    own = x.shape[lead:]
    if len(own) not in (1, 2):
        op.call_boxed((aten.new_zeros(x, own), *rest))
    made = op.call_boxed((aten.reshape(x, (prod(x.shape[:-1]), x.shape[-1])), *rest))
    return aten.reshape(made, (*x.shape[:-1], made.shape[-1]))


def _raised(made: Any, levels: Any) -> Any:
    if isinstance(made, (list, tuple)):
        return tuple([raise_(each, levels) for each in made])
    return raise_(made, levels)


def _check_written(op: Operator, self: Tensor, levels: Any) -> None:
    """Check that self is batched at each of the levels; otherwise it has no room for one value per example."""
    found = []
    while self.keys & BATCHED:
        found.append(self.array.level)
        self = self.array.value
    if any(level not in found for level in levels):
        raise errors.VmapError(errors.random_captured(op.qualified_name))


def _one_by_one(op: Operator, args: tuple[Any, ...], levels: Any) -> Any:
    """A factory whose size arguments cannot be made larger, such as randperm: it runs once per example."""
    sizes = [level.size for level in levels]
    drawn = [op.call_boxed(args) for _ in range(prod(sizes))]
    if not drawn:
        drawn = [op.call_boxed(args)]
        made = aten.expand(drawn[0], (*sizes, *drawn[0].shape))
    else:
        made = aten.reshape(aten.stack(drawn, 0), (*sizes, *drawn[0].shape))
    return raise_(made, levels)
