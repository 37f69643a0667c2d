"""Functional gradient levels on the one tape: what `grad`, `vjp` and `jvp` are made of.

A level is a bit in the tensors' `gmask`. Its inputs are aliases whose node is an `InputNode`: the level's pullback stops there,
outer levels pass through. Inside vmaps the inputs are lowered first, so that rows do not mix. An input that a vmap does not batch
is spread where it meets one that it does: until then, and if that never happens, its gradient is one for all examples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from turnout.config.lock import new_lock
from turnout.dtypes import FLOAT
from turnout.guards import during
from turnout.registry import find_operator
from turnout.state import BELOW_AUTOGRAD, in_effect
from turnout_aten.tensor.levels import CLOCK, GRAD, LEVELS, SHARED, batched_at, lower, raise_
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd.duals.carried import carry, found_in, part_given, set_tangent
from turnout_autograd.duals.levels import ForwardLevel, active
from turnout_autograd.engine.nodes import InputNode, Node, attach, start
from turnout_autograd.engine.recorded_levels import EPOCHS, LIVE, PULLED
from turnout_autograd.engine.sweep import sweep
from turnout_autograd.engine.targets import Wanted
from turnout_autograd.recording.views import refresh

_LOCK = new_lock()
_GIVEN = "given to a level"
_expand = find_operator("aten::expand")
_sum = find_operator("aten::sum.dim_IntList").stub


class Level:
    """One functional level: its bit, the vmap levels it was entered under, and its inputs' nodes.

    The bit is free again when the level and every pullback made of it are gone.
    """

    __slots__ = ("__weakref__", "bit", "inputs", "vmaps")

    def __init__(self, vmaps: tuple[Any, ...] | None = None) -> None:
        """`vmaps` are those that the inputs are lowered to; by default those that are active."""
        self.bit = 0  # so that a level which could not be made gives nothing back
        with _LOCK:
            bit, epoch = 2, CLOCK.advance()
            while bit in EPOCHS:
                bit <<= 1
            EPOCHS[bit] = epoch
            self.bit = bit
        LIVE[bit] = self
        self.vmaps = LEVELS.get() if vmaps is None else vmaps
        self.inputs: list[tuple[InputNode | None, tuple[Any, ...]]] = []

    def __del__(self) -> None:
        try:
            self._end()
        except MemoryError:
            self._end()

    def _end(self) -> None:
        SHARED.levels.pop(self.bit, None)
        EPOCHS.pop(self.bit, None)

    def given(self, tensor: Tensor) -> Tensor | None:
        """Where an input of the level came from; None for other tensors."""
        if tensor.node.__class__ is not InputNode or not any(tensor.node is node for node, _ in self.inputs):
            return None
        return None if tensor.extra is None else tensor.extra.get(_GIVEN)

    def run(self, function: Callable[[], Any]) -> Any:
        """`function()` inside the level."""
        enabled = GRAD.get()[0] | self.bit
        return during(GRAD, (enabled, enabled), function)


def enter(level: Level, tensor: Tensor) -> Tensor:
    """An input of the level, made before it is entered: an alias that the level tracks; raised to its vmaps again."""
    vmaps = batched_at(tensor, level.vmaps)
    low = lower(tensor, vmaps)
    if low.view_of is not None:
        refresh(low)
    made = low.new_alias(low.array, low.storage_offset())
    carry(low, made)
    if low.dtype.category < FLOAT:
        level.inputs.append((None, vmaps))
        return raise_(made, vmaps)
    outer = low.gmask & GRAD.get()[0]
    node = InputNode()
    start(node, ((low.node or low.history_owner()) if outer else None,))
    node.bit = level.bit
    attach(made, node, outer | level.bit)
    made.extra = {**(made.extra or {}), _GIVEN: low}
    if vmaps != level.vmaps:
        SHARED.spread = spread
        SHARED.levels[level.bit] = None
    level.inputs.append((node, vmaps))
    return raise_(made, vmaps)


class SpreadNode(Node):
    """A tensor repeated for the examples of a vmap. Levels inside the vmap differentiate for each example, others for all."""

    __slots__ = ("level",)
    level: Any
    op_name = "a tensor that all examples of a vmap share"
    unary = True

    def backward(self, grad: Tensor, edges: tuple[Any, ...]) -> Tensor:
        if PULLED.get() > self.level.epoch:
            return raise_(grad, (self.level,))
        return _sum(grad, (0,))


def spread(tensor: Tensor, level: Any) -> Tensor:
    """A tensor of its own for each example of a vmap, in front."""
    if tensor.view_of is not None:
        refresh(tensor)
    mask = tensor.gmask & GRAD.get()[0]
    ks = in_effect(tensor.keys) & BELOW_AUTOGRAD
    made: Tensor = _expand.lookup(ks)(ks, tensor, (level.size, *tensor.array.shape), False)
    made.view_of = None  # its history is not that of a view
    node = SpreadNode()
    start(node, (tensor.node or tensor.history_owner(),))
    node.level = level
    attach(made, node, mask)
    return made


def leave(level: Level, tensor: Tensor, vmaps: tuple[Any, ...] | None = None) -> Tensor:
    """A result as the outside sees it: without the level's bit, with the history of outer levels. Call after leaving it.

    vmaps  those that it is lowered to; those of the level's that batch it, if they are not given
    """
    vmaps = batched_at(tensor, level.vmaps) if vmaps is None else vmaps
    low = lower(tensor, vmaps)
    part = part_given(low, level.given)
    if part is not None:
        return raise_(part, vmaps)
    if low.view_of is not None:
        refresh(low)
    made = low.new_alias(low.array, low.storage_offset())
    outer = low.gmask & GRAD.get()[0] & ~level.bit
    if outer:
        attach(made, low.node or low.history_owner(), outer)
    for forward, tangent in (found_in(low) or {}).items():
        if forward in active():
            set_tangent(made, forward, forward.compute(partial(_left_tangent, level, forward), tangent))
    return raise_(made, vmaps)


def _left_tangent(level: Level, forward: ForwardLevel, tangent: Tensor) -> Tensor:
    """A tangent of a result that leaves a level: the level tracks it no more either."""
    columns = () if forward.columns is None else (forward.columns,)
    low = lower(tangent, columns)
    made: Tensor = leave(level, low, ()) if low.gmask & level.bit else low
    return raise_(made, columns)


def pull(
    level: Level, outputs: Sequence[Tensor], cotangents: Sequence[Tensor | None], retain: bool = True
) -> list[Tensor | None]:
    """The gradients with respect to the level's inputs, None where none arrives; `outputs` are those inside the level.

    An output whose cotangent is None does not matter.
    """
    enabled, allowed = GRAD.get()
    mode = enabled & ~level.bit, allowed & ~level.bit
    return during(GRAD, mode, during, PULLED, EPOCHS[level.bit], _pulled, level, outputs, cotangents, retain)


def _pulled(level: Level, outputs: Sequence[Tensor], cotangents: Sequence[Tensor | None], retain: bool) -> list[Tensor | None]:
    roots = []
    for output, cotangent in zip(outputs, cotangents, strict=True):
        if cotangent is None:
            continue
        vmaps = batched_at(output, level.vmaps)
        low = lower(output, vmaps)
        if low.view_of is not None:
            refresh(low)
        if low.gmask & level.bit:
            roots.append((low.node, lower(cotangent, vmaps)))
    nodes = [node for node, _ in level.inputs if node is not None]
    wanted = Wanted([edge for edge, _ in roots], (), frozenset(nodes))
    sweep(roots, retain, wanted)
    found = [None if node is None else wanted.outputs[node][0] for node, _ in level.inputs]
    return [None if g is None else raise_(g, vmaps) for g, (_, vmaps) in zip(found, level.inputs, strict=True)]
