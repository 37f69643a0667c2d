"""Functional gradient levels on the one tape: what `grad`, `vjp` and `jvp` are made of.

A level is a bit in the tensors' `gmask`. Its inputs are aliases whose node is an `InputNode`: the level's pullback stops there,
outer levels pass through. Inside vmap levels the inputs are lowered first, so that rows do not mix.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from turnout.config.lock import new_lock
from turnout.dtypes import FLOAT
from turnout_aten.tensor.levels import CLOCK, GRAD, LEVELS, lower, raise_
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd.duals.carried import carry, set_tangent, tangents_of
from turnout_autograd.duals.levels import FORWARD, ForwardLevel, active
from turnout_autograd.engine.nodes import InputNode, attach, start
from turnout_autograd.engine.recorded_levels import EPOCHS, LIVE, PULLED
from turnout_autograd.engine.sweep import sweep
from turnout_autograd.engine.targets import Wanted
from turnout_autograd.recording.views import refresh

_LOCK = new_lock()


class Level:
    """One functional level: its bit, the vmap levels it was entered under, and its inputs' nodes.

    The bit is free again when the level and every pullback made of it are gone.
    """

    __slots__ = ("__weakref__", "bit", "inputs", "vmaps")

    def __init__(self, vmaps: tuple[Any, ...] | None = None) -> None:
        """`vmaps` are those that the inputs are lowered to; by default those that are active."""
        with _LOCK:
            bit = 2
            while bit in EPOCHS:
                bit <<= 1
            EPOCHS[bit] = CLOCK.advance()
        self.bit = bit
        LIVE[bit] = self
        self.vmaps = LEVELS.get() if vmaps is None else vmaps
        self.inputs: list[tuple[Tensor, InputNode | None]] = []

    def __del__(self) -> None:
        EPOCHS.pop(self.bit, None)

    def run(self, function: Callable[[], Any]) -> Any:
        """`function()` inside the level."""
        enabled, _ = before = GRAD.get()
        try:
            GRAD.set((enabled | self.bit, enabled | self.bit))
            return function()
        finally:
            GRAD.set(before)


def enter(level: Level, tensor: Tensor) -> Tensor:
    """An input of the level, made before it is entered: an alias that the level tracks; raised to the vmap levels again."""
    low = lower(tensor, level.vmaps)
    if low.view_of is not None:
        refresh(low)
    made = low.new_alias(low.array, low.storage_offset())
    carry(low, made)
    if low.dtype.category < FLOAT:
        level.inputs.append((low, None))
        return raise_(made, level.vmaps)
    outer = low.gmask & GRAD.get()[0]
    node = InputNode()
    start(node, ((low.node or low.history_owner()) if outer else None,))
    node.bit = level.bit
    attach(made, node, outer | level.bit)
    level.inputs.append((low, node))
    return raise_(made, level.vmaps)


def leave(level: Level, tensor: Tensor, vmaps: tuple[Any, ...] | None = None) -> Tensor:
    """A result as the outside sees it: without the level's bit, with the history of outer levels. Call after leaving it.

    vmaps  those that the tensor is inside of; the level's own, if they are not given
    """
    vmaps = level.vmaps if vmaps is None else vmaps
    low = lower(tensor, vmaps)
    if low.view_of is not None:
        refresh(low)
    made = low.new_alias(low.array, low.storage_offset())
    outer = low.gmask & GRAD.get()[0] & ~level.bit
    if outer:
        attach(made, low.node or low.history_owner(), outer)
    if low.keys & FORWARD:
        for forward, tangent in (tangents_of(low) or {}).items():
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
    enabled, allowed = before = GRAD.get()
    pulled = PULLED.get()
    try:
        GRAD.set((enabled & ~level.bit, allowed & ~level.bit))
        PULLED.set(EPOCHS[level.bit])
        roots = []
        for output, cotangent in zip(outputs, cotangents, strict=True):
            if cotangent is None:
                continue
            low = lower(output, level.vmaps)
            if low.view_of is not None:
                refresh(low)
            if low.gmask & level.bit:
                roots.append((low.node, lower(cotangent, level.vmaps)))
        nodes = [node for _, node in level.inputs if node is not None]
        wanted = Wanted([edge for edge, _ in roots], (), frozenset(nodes))
        sweep(roots, retain, wanted)
        found = [None if node is None else wanted.outputs[node][0] for _, node in level.inputs]
        return [None if gradient is None else raise_(gradient, level.vmaps) for gradient in found]
    finally:
        try:
            PULLED.set(pulled)
        finally:
            GRAD.set(before)
