"""A function run once at a forward level: its results, and their tangents.

Inputs enter the level as aliases that carry a tangent; results leave it as aliases without. In-place operators write into the
memory of the inputs, as they do in the function itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from turnout import plugins
from turnout.registry import find_operator
from turnout_aten import trees
from turnout_aten.tensor.levels import GRAD, batched_at, lower, raise_
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd.duals.carried import SOURCE, carry, part_given, set_tangent, tangent_of
from turnout_autograd.duals.levels import ForwardLevel, in_columns
from turnout_autograd.engine.nodes import InputNode, attach, start
from turnout_autograd.recording.views import refresh
from turnout_autograd.transforms.arguments import check_floating
from turnout_autograd.transforms.results import call

if TYPE_CHECKING:
    from turnout_autograd.transforms.arguments import Function

_clone = find_operator("aten::clone").stub
_zeros_like = find_operator("aten::zeros_like").stub


def lowered(vmaps: tuple[Any, ...], primal: Tensor, tangent: Tensor) -> tuple[Tensor, tuple[Any, ...]]:
    """A tangent lowered to those of some active vmaps that batch it or its primal, and those."""
    batched = {*batched_at(primal, vmaps), *batched_at(tangent, vmaps)}
    found = tuple([vmap for vmap in vmaps if vmap in batched])
    return lower(tangent, found), found


def dual(level: ForwardLevel, primal: Tensor, tangent: Any, vmaps: tuple[Any, ...]) -> Tensor:
    """An alias that carries a tangent at the level; `tangent` is lowered to the vmaps, and has the level's columns.

    A primal that some of the vmaps do not batch becomes one for each example, in memory of its own: it may be written into.
    """
    low = lower(primal, vmaps)
    if batched_at(primal, vmaps) != vmaps:
        low = _clone(low)
    if low.view_of is not None:
        refresh(low)
    made = low.new_alias(low.array, low.storage_offset())
    outer = low.gmask & GRAD.get()[0]
    if outer:
        attach(made, _history(low, outer), outer)
    carry(low, made)
    made.extra = {**(made.extra or {}), SOURCE: (low, level)}
    set_tangent(made, level, tangent)
    return raise_(made, vmaps)


def _history(low: Tensor, outer: int) -> Any:
    """The history of an input at outer levels. Where a write into the input could not become that of `low` too, it is refused."""
    view = low.view_of
    if low.node is not None and (view is None or not (view.base.node is None or view.no_grad or view.multi or view.maker)):
        return low.node
    node = InputNode()
    start(node, (low.node or low.history_owner(),))
    node.bit = outer
    return node


def primal_of(low: Tensor) -> Tensor:
    """A result as the outside of a level sees it: an alias that carries only the tangents of the levels that are active."""
    if low.view_of is not None:
        refresh(low)
    made = low.new_alias(low.array, low.storage_offset())
    outer = low.gmask & GRAD.get()[0]
    if outer:
        attach(made, low.node or low.history_owner(), outer)
    carry(low, made)
    return made


class DualRun:
    """A function run at a forward level.

    outputs   the results as the outside sees them
    vmaps     those of the level's that batch each result
    tangents  theirs, None for zero; under those vmaps and the level's columns
    """

    def __init__(
        self, name: str, function: Function, primals: Sequence[Any], level: ForwardLevel, tangents: Sequence[Any],
        has_aux: bool = False,
    ) -> None:  # fmt: skip
        """`primals` may be trees; `tangents` are one for each of their leaves, lowered to some vmaps, and those."""
        self.level = level
        leaves, self.inputs = trees.flatten(tuple(primals))
        for leaf in leaves:
            check_floating(name, "an argument", leaf)
        entered = [dual(level, leaf, *tangent) for leaf, tangent in zip(leaves, tangents, strict=True)]

        def run() -> Any:
            outputs, self.structure, aux = call(name, function, trees.unflatten(self.inputs, entered), has_aux)
            self.vmaps = [batched_at(t, level.vmaps) for t in outputs]
            low = [lower(t, vmaps) for t, vmaps in zip(outputs, self.vmaps, strict=True)]
            self.tangents = [tangent_of(t, level) for t in low]
            return low, aux

        low, aux = level.run(run)
        self.low = low
        self.outputs = [raise_(self._outside(t), vmaps) for t, vmaps in zip(low, self.vmaps, strict=True)]
        self.aux = trees.map_leaves(self._left, aux) if has_aux else None

    def _left(self, value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        vmaps = batched_at(value, self.level.vmaps)
        return raise_(self._outside(lower(value, vmaps)), vmaps)

    def _outside(self, low: Tensor) -> Tensor:
        part = part_given(low, self._given)
        return primal_of(low) if part is None else part

    def _given(self, tensor: Tensor) -> Tensor | None:
        source, level = (tensor.extra or {}).get(SOURCE, (None, None))
        return source if level is self.level else None

    @property
    def result(self) -> Any:
        """What the function returned."""
        return trees.unflatten(self.structure, self.outputs)

    def raised(self, index: int, tangent: Tensor | None) -> Tensor:
        """A result's tangent as the outside sees it; zeros where the result does not depend on the inputs."""
        low = self.low[index]
        return raise_(_zeros_like(low) if tangent is None else low.shown_like(tangent), self.vmaps[index])


# ---- all directions at once


def columns(name: str, primals: Sequence[Tensor], randomness: str) -> tuple[ForwardLevel, list[Any]]:
    """A level whose columns are all directions of the primals, and the tangents of those, each with the vmaps of its primal."""
    counts = [check_floating(name, "an argument", p).numel() for p in primals]
    level = ForwardLevel(plugins.service("Batched").columns(sum(counts), randomness), GRAD.get()[1])
    return level, in_columns(level, _directions, level, primals, counts)


def _directions(level: ForwardLevel, primals: Sequence[Tensor], counts: Sequence[int]) -> list[Any]:
    """For each primal, lowered to the vmaps that batch it, the tangents in all directions: those of its own elements are ones."""
    made, start = [], 0
    for primal, count in zip(primals, counts, strict=True):
        vmaps = batched_at(primal, level.vmaps)
        low = lower(primal, vmaps)
        directions = low.new_zeros((level.columns.size, *low.shape[: len(vmaps)], count))
        if count:
            directions.diagonal(-start, 0, -1).fill_(1)
        made.append((raise_(directions.reshape((level.columns.size, *low.shape)), (level.columns,)), vmaps))
        start += count
    return made


def by_columns(run: DualRun, index: int) -> Tensor:
    """The tangents of a result in all directions, along a dim behind its own."""
    level = run.level
    low = run.low[index]
    found = run.tangents[index]
    if found is None:
        made: Tensor = low.new_zeros((*low.shape, level.columns.size))
    else:
        made = in_columns(level, lower, found, (level.columns,)).movedim(0, -1)
    return raise_(made, run.vmaps[index])
