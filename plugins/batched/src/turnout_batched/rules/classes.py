"""Rules for operators that have no row: what class an operator belongs to, its tags and its schema say.

`rule_of` knows two classes. Pointwise operators have the tag. Reductions, and whatever else works along dims of one tensor and
can keep them, have arguments `dim` and `keepdim`, or `dim` and the tag. So an operator that is added to either needs no row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from turnout_aten import operators as aten
from turnout_aten.declarations.tables import POINTWISE, REDUCTION, SEEDED
from turnout_aten.tensor.tensor import Tensor
from turnout_batched.rules.alignment import Dims, family, wrapped_dim
from turnout_batched.rules.pointwise import pointwise, unary
from turnout_batched.rules.reductions import example_dims, flat, kept, ready

if TYPE_CHECKING:
    from turnout.operators import Operator
    from turnout.schema.model import Argument

    Rule = Callable[..., tuple[Any, Any]]


def rule_of(op: Operator) -> Rule | None:
    """The rule of the operator's class, or None. `op` must be functional and return new tensors."""
    if op.schema.kind != "functional" or op.schema.is_view or SEEDED in op.tags:
        return None
    arguments = op.schema.arguments
    tensors = [i for i, a in enumerate(arguments) if a.type.is_tensor_like]
    names = [a.name for a in arguments]
    if any("[" in arguments[i].type.canonical for i in tensors):
        return None
    if tensors == [0] and "dim" in names and ("keepdim" in names or REDUCTION in op.tags):
        return _over_dims(arguments, names)
    if POINTWISE not in op.tags or "dim" in names:
        return None
    return unary if tensors == [0] else pointwise


def _over_dims(arguments: tuple[Argument, ...], names: list[str]) -> Rule:
    at = names.index("dim")
    several = "[" in arguments[at].type.canonical
    keeps = names.index("keepdim") if "keepdim" in names else None

    @family
    def reduce(call: Any, size: int, dims: Dims, *values: Any) -> tuple[Any, int]:
        """Reduce the whole example if no dim is given. An example without dims counts as one dim of length 1."""
        given = list(values)
        dim = given[at]
        keepdim = keeps is not None and given[keeps]
        if dim is None and not several:
            given[0], given[at] = flat(size, dims, given[0]), 1
            if not keepdim:
                return call(*given), 0
            shape = (size, *(1,) * (len(values[0].array.shape) - (dims[0] is not None)))
            return _each(call(*given), lambda t: aten.view(t, shape)), 0
        given[0], ndim = ready(size, dims, given[0])
        given[at] = example_dims(dim, given[0], ndim) if several else wrapped_dim(dim, ndim) + 1
        made = call(*given)
        return (_each(made, lambda t: kept(t, ndim)) if keepdim and not ndim else made), 0

    return reduce


def _each(made: Any, change: Callable[[Tensor], Tensor]) -> Any:
    return [change(t) for t in made] if isinstance(made, (list, tuple)) else change(made)
