"""The key Forward: tensors that carry a tangent bring it, so that no other call pays for it.

The kernel of an operator calls what is below it for the values, and then the operator's rule, which is written in operators, for
the tangent of the result. Both run at the levels outside of the one that the call takes part in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from turnout.dtypes import FLOAT
from turnout.guards import restore
from turnout.keys import EXPLICIT, IMPLICIT
from turnout.operators.kernels import FALLTHROUGH, INTERNAL, Kernel, bind
from turnout.operators.values import tensors_in
from turnout.plugins import replaceable
from turnout.registry import find_operator
from turnout.state import DISPATCH
from turnout_aten.declarations.signatures import functional_of
from turnout_aten.declarations.standard import written_in_operators
from turnout_aten.declarations.tables import INPLACE_VIEW, RESIZES
from turnout_aten.tensor.levels import GRAD, LEVELS
from turnout_aten.tensor.storage import Storage
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd import errors
from turnout_autograd.duals.carried import Tangents, attach, set_tangent, tangents_of, written
from turnout_autograd.duals.levels import ACTIVE, FORWARD, ForwardLevel
from turnout_autograd.duals.results import for_each, outputs_of
from turnout_autograd.engine.saved_tensors import keep_tangents
from turnout_autograd.forward.sources import follow_sources, history
from turnout_autograd.forward.transposed import transposed
from turnout_autograd.recording.standard_kernels import standard
from turnout_autograd.tangents import rule as rule_of

if TYPE_CHECKING:
    from turnout.operators import Operator

    Compute = Callable[..., Any]  # (tangents, result, *args) -> the tangent of each differentiable output

BELOW = ~FORWARD
_clone = find_operator("aten::clone").stub


def specialize(op: Operator) -> Any:
    """The kernel of one operator at Forward, or FALLTHROUGH where no tangent can come in or go out."""
    fn = decide(op)
    return fn if fn is FALLTHROUGH else Kernel(fn, INTERNAL, label=f"tangent of {op.qualified_name}")


def decide(op: Operator) -> Any:
    """The function of the internal convention for one operator, or FALLTHROUGH."""
    schema = op.schema
    if not schema.takes_tensors:
        return FALLTHROUGH
    if RESIZES in op.tags:
        return _refusing(op, errors.forward.resized)
    if schema.kind == "out":
        return _refusing(op, errors.forward.out_given)
    writes = schema.is_mutable
    if not writes and not schema.gives_tensors:
        return FALLTHROUGH
    constant = standard(op) is FALLTHROUGH
    if not writes and constant:
        return _aliasing(op) if schema.is_view else FALLTHROUGH
    if INPLACE_VIEW in op.tags and schema.kind == "inplace":
        return _turning(op)
    if IMPLICIT in op.kernels:
        return _through_parts(op, IMPLICIT)
    if constant:
        return tangent_kernel(op, _zero, frozenset(), NAMES)
    found = rule_of(op)
    if found is not None:
        return tangent_kernel(op, found.compute, found.reads, NAMES)
    if standard(op) is None and schema.kind == "functional" and written_in_operators(op):
        return _through_parts(op, EXPLICIT)
    compute = transposed(functional_of(op) or op if writes else op)
    return tangent_kernel(op, compute, None, NAMES)


def _zero(tangents: Any, result: Any, *args: Any) -> None:
    """The tangent of what does not depend on values that can be differentiated."""


# ---- what a call needs of its schema


class Slots:
    """Where the tensors are among an operator's arguments."""

    __slots__ = ("lists", "tensors")

    def __init__(self, op: Operator) -> None:
        arguments = op.schema.arguments
        self.tensors = tuple([i for i, a in enumerate(arguments) if a.type.is_tensor_like])
        self.lists = frozenset([i for i, a in enumerate(arguments) if a.type.is_tensor_list])

    def tangents_at(self, args: tuple[Any, ...], active: tuple[ForwardLevel, ...]) -> tuple[list[Any] | None, int]:
        """The tangents at the innermost active level that an argument has one of, and the place of that level.

        One for each tensor-like argument, None where it has none, a tuple for a list. (None, -1) where no argument has one.
        """
        carried: list[Any] = []
        carries = False
        for i in self.tensors:
            value = args[i]
            found: Any = None
            if value is not None:
                if i in self.lists:
                    found = [_carried(x) for x in value]
                    carries = True
                elif value.keys & FORWARD:
                    found = tangents_of(value)
                    carries = True
            carried.append(found)
        depth = len(active) - 1 if carries else -1
        while depth >= 0:
            level = active[depth]
            given: list[Any] = []
            here = False
            for each in carried:
                if each is None:
                    given.append(None)
                    continue
                tangent: Any
                if each.__class__ is list:
                    tangent = tuple([None if one is None else one.get(level) for one in each])
                    here = here or any([t is not None for t in tangent])  # noqa: C419 - no generator's frames
                else:
                    tangent = each.get(level)
                    here = here or tangent is not None
                given.append(tangent)
            if here:
                return given, depth
            depth -= 1
        return None, -1

    def take_part(self, args: tuple[Any, ...]) -> bool:
        """Whether an argument has a tangent at an active level."""
        return self.tangents_at(args, ACTIVE.get())[1] >= 0


def _carried(value: Any) -> Tangents | None:
    return tangents_of(value) if isinstance(value, Tensor) and value.keys & FORWARD else None


def _through_parts(op: Operator, key: str) -> Callable[..., Any]:
    """A kernel that is written in operators, run here: each of them is differentiated, and seen by what is below (Tracer)."""
    return parts_kernel(op, bind(op.registry.winner(op, key), op, "Forward"), NAMES)


@replaceable
def parts_kernel(op: Operator, parts: Callable[..., Any], names: dict[str, Any]) -> Callable[..., Any]:
    """`parts` where an argument has a tangent, and what is below otherwise. `names` as for `tangent_kernel`."""
    slots = Slots(op)

    def push_through_parts(ks: int, *args: Any) -> Any:
        if slots.take_part(args):
            return parts(ks, *args)
        ks &= BELOW
        return op.lookup(ks)(ks, *args)

    return push_through_parts


# ---- operators with rules


def _aliasing(op: Operator) -> Callable[..., Any]:
    """For `detach` and views without tangents. What they give is memory that a deferred level may need as it is."""
    lookup = op.lookup

    def alias(ks: int, *args: Any) -> Any:
        ks &= BELOW
        result = lookup(ks)(ks, *args)
        if any(level.is_deferred for level in ACTIVE.get()):
            for tensor in outputs_of(result):
                tensor.keys |= FORWARD  # so that a write into it comes here
        return result

    return alias


@replaceable
def tangent_kernel(op: Operator, compute: Compute, reads: frozenset[str] | None, names: dict[str, Any]) -> Callable[..., Any]:
    """The kernel that computes a tangent for each result, and for each argument that is written.

    reads  of an operator that writes, the arguments whose values the rule needs; None for all
    names  those of this package that a replacement reads
    """
    slots = Slots(op)
    tangents_at = slots.tangents_at
    arguments = op.schema.arguments
    at = op.schema.mutated_places
    kept = [i for i, a in enumerate(arguments) if a.type.is_tensor_like and (reads is None or a.name in reads)] if at else []
    one = len(op.schema.returns) == 1 and op.schema.returns[0].type.is_tensor and not at
    cache, resolve = op.cache, op.resolve
    without_tangents = _aliasing(op) if op.schema.is_view else None
    state, levels, vmaps, gradients = DISPATCH, ACTIVE, LEVELS, GRAD

    def push_tangents(ks: int, *args: Any) -> Any:
        active = levels.get()
        given, depth = tangents_at(args, active)
        targets: Any = None
        if at:
            targets = [t for i in at for t in tensors_in((args[i],))]
            histories = [history(t) for t in targets]
            for each in active:
                if each.is_deferred:
                    each.protect(targets)
        if depth < 0:
            if without_tangents is not None:
                return without_tangents(ks, *args)
            ks &= BELOW
            return (cache.get(ks) or resolve(ks))(ks, *args)
        level = active[depth]
        before = state.get()
        around = vmaps.get()
        recorded = gradients.get()
        columns = level.columns
        try:
            levels.set(active[:depth])
            if not depth:
                state.set((before[0], before[1] & BELOW))
                ks &= BELOW
            values: Any = _originals(args, targets, kept) if kept else args
            result = (cache.get(ks) or resolve(ks))(ks, *args)
            if at:
                nodes = [t.node for t in targets]  # the rule may use a view, which then gets a new one
            shown = result if not at else targets[0] if len(targets) == 1 else targets
            if level.is_deferred:
                found = level.defer(compute, given, shown, values, one)
            else:
                if columns is not None:
                    vmaps.set((*around, columns))
                if recorded[0] & ~level.recorded:
                    gradients.set((recorded[0] & level.recorded, recorded[1] & level.recorded))
                found = compute(given, shown, *values)
        finally:
            try:
                if gradients.get() is not recorded:
                    gradients.set(recorded)
                if columns is not None:
                    vmaps.set(around)
                if not depth:
                    state.set(before)
                levels.set(active)
            except MemoryError:
                restore(gradients, recorded)
                restore(vmaps, around)
                restore(state, before)
                restore(levels, active)
        if one:
            if found is not None:
                attach(result, level, found)
                if result.gmask:
                    keep_tangents(result.node, result, tangents_of(result))
            return result
        if at:
            tangents = for_each(compute, found, targets)
            for tensor, node, tangent, before_it in zip(targets, nodes, tangents, histories, strict=True):
                if tensor.dtype.category >= FLOAT:
                    written(tensor, level, tangent)
                    if tensor.gmask and node is not None:  # a leaf has none
                        keep_tangents(node, tensor, tangents_of(tensor))
                follow_sources(tensor, before_it)
            return result
        outputs = outputs_of(result)
        for tensor, tangent in zip(outputs, for_each(compute, found, outputs), strict=True):
            if tangent is not None:
                attach(tensor, level, tangent)
                if tensor.gmask:
                    keep_tangents(tensor.node, tensor, tangents_of(tensor))
        return result

    return push_tangents


NAMES: dict[str, Any] = {
    "ACTIVE": ACTIVE, "LEVELS": LEVELS, "GRAD": GRAD, "FORWARD": FORWARD, "BELOW": BELOW, "tangents_of": tangents_of,
    "attach": attach, "keep_tangents": keep_tangents, "Tangents": Tangents, "Level": ForwardLevel, "Storage": Storage,
}  # fmt: skip


def _originals(args: tuple[Any, ...], targets: Sequence[Tensor], kept: Sequence[int]) -> list[Any]:
    """The arguments, those at `kept` with copies of what will be written."""
    copies: dict[int, Tensor] = {}

    def original(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [original(each) for each in value]
        if not isinstance(value, Tensor) or not any(value.shares_memory_with(t) for t in targets):
            return value
        if id(value) not in copies:
            copies[id(value)] = _clone(value)
        return copies[id(value)]

    given = list(args)
    for i in kept:
        given[i] = original(given[i])
    return given


def _turning(op: Operator) -> Callable[..., Any]:
    """For `t_` and similar operators: nothing is written, and the tangent is turned as the tensor is."""
    functional = functional_of(op)
    assert functional is not None

    def turn_tangents(ks: int, self: Tensor, *args: Any) -> Any:
        found = tangents_of(self)
        ks &= BELOW
        result = op.lookup(ks)(ks, self, *args)
        turned = {
            level: level.compute(lambda t: functional.call_boxed((t, *args)), found[level])
            for level in ACTIVE.get() if found and level in found
        }  # fmt: skip
        for level, tangent in turned.items():
            set_tangent(self, level, tangent)
        if found:
            found.seen = self.version()
        return result

    return turn_tangents


def _refusing(op: Operator, text: Callable[[str], str]) -> Callable[..., Any]:
    slots = Slots(op)

    def refuse(ks: int, *args: Any) -> Any:
        if slots.take_part(args):
            raise errors.GradientError(text(op.qualified_name))
        ks &= BELOW
        return op.lookup(ks)(ks, *args)

    return refuse
