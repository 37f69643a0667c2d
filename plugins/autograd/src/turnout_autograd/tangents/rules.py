"""The rule of an operator, from the generated table."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from turnout_autograd.generated.tangents import MISSING, RULES

if TYPE_CHECKING:
    from turnout.operators import Operator


class Rule:
    """The derivative of one operator along tangents. In-place and out variants have that of the functional operator.

    compute   `compute(tangents, result, *args)`, with one tangent per tensor argument and all arguments in schema order
    reads     the arguments whose values it needs, and the outputs: an in-place operator must keep those of self
    outputs   which of the outputs that are tensors the tangents belong to; an attribute of `compute`

    The tangent of a view is a view of self's tangent, or a copy where its layout does not allow that one. Any other tangent is
    in memory of its own, and has the shape, dtype and device of its result.
    """

    __slots__ = ("_arguments", "_op", "_tensors", "compute", "reads")

    def __init__(self, op: Operator, compute: Callable[..., Any], reads: frozenset[str]) -> None:
        own = [a for a in op.schema.arguments if op.schema.kind != "out" or not a.is_write]
        self._op = op
        self._arguments = len(own)
        self._tensors = sum(a.type.is_tensor_like for a in own)
        self.compute = compute
        self.reads = reads

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any], tangents: tuple[Any, ...], result: Any) -> Any:
        """The tangent of each differentiable output (one, or a tuple), None where it is zero.

        Arguments:
            args, kwargs: the values of a call of the operator
            tangents: one for each argument that is a tensor, an optional tensor or a list of tensors, in schema order: a tensor
                of its shape and dtype, a tuple for a list, None where there is none
            result: what the call returned
        """
        if kwargs or len(args) != self._arguments:
            args = self._op.bind(args, kwargs)[: self._arguments]
        return self.compute(tangents[: self._tensors], result, *args)


def rule(op: Operator) -> Rule | None:
    """The rule of a standard operator; None for one that has none, or whose results are constants."""
    found = RULES.get(op.qualified_name)
    if found is None:
        return None
    family, name = found
    compute = getattr(import_module(f"turnout_autograd.generated.tangents.{family}"), name)
    return Rule(op, compute, compute.reads)


def missing(op: Operator) -> str | None:
    """Why a standard operator has no derivatives at all; None where it has a rule, or where its results are constants."""
    return MISSING.get(op.qualified_name)
