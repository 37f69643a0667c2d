"""Tensors inside of vmap as autograd sees them: the plain tensors under the vmaps, and one element of the batch of each.

A gradient between such tensors is computed between the plain ones, where the rows of the batch do not mix. A user's function
may run in a backward pass after those vmaps have ended: they are made active again while it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from turnout.guards import during
from turnout.registry import find_operator
from turnout_aten.tensor.levels import LEVELS, lower, peel, raise_
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd import errors

_permute = find_operator("aten::permute").stub


def run_in(levels: tuple[Any, ...], run: Callable[..., Any], *args: Any) -> Any:
    """`run(*args)` where these vmaps are active beside those that are."""
    together = {level.num: level for level in (*levels, *LEVELS.get())}
    return during(LEVELS, tuple([together[num] for num in sorted(together)]), run, *args)


class PlainTensors:
    """The plain tensors under outputs and inputs of which some are inside of a vmap.

    Raises GradientError unless all are batched by the same vmaps.
    """

    def __init__(self, outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> None:
        peeled = [peel(t) for t in (*outputs, *inputs)]
        self._levels = peeled[0][1]
        if any(levels != self._levels for _, levels, _ in peeled):
            raise errors.GradientError(errors.passes.inside_vmap())
        plain = [t for t, _, _ in peeled]
        orders = [order for _, _, order in peeled]
        split = len(outputs)
        self.outputs, self.inputs = plain[:split], plain[split:]
        self._output_orders, self._input_orders = orders[:split], orders[split:]

    def cotangents(self, given: Sequence[Tensor]) -> list[Tensor]:
        """Gradients of the outputs, as those of the plain tensors."""
        return [_permuted(lower(v, self._levels), _inverse(order)) for v, order in zip(given, self._output_orders, strict=True)]

    def elements(self, found: Sequence[Tensor | None]) -> tuple[Tensor | None, ...]:
        """Gradients of the plain inputs, as those of the inputs inside of the vmaps."""
        return tuple([
            None if g is None else raise_(_permuted(g, order), self._levels)
            for g, order in zip(found, self._input_orders, strict=True)
        ])  # fmt: skip


def seen_by_hook(tensor: Tensor, hook: Callable[[Tensor], Any]) -> tuple[Tensor, Callable[[Tensor], Any]]:
    """The plain tensor under the vmaps, and what is a hook on it where `hook` is one on an element."""
    plain, levels, order = peel(tensor)

    def run(grad: Tensor) -> Any:
        made = hook(raise_(_permuted(grad, order), levels))
        return _permuted(lower(made, levels), _inverse(order)) if isinstance(made, Tensor) else made

    return plain, partial(run_in, levels, run)


def _inverse(order: Sequence[int]) -> list[int]:
    return sorted(range(len(order)), key=order.__getitem__)


def _permuted(tensor: Tensor, order: Sequence[int]) -> Tensor:
    return tensor if list(order) == sorted(order) else _permute(tensor, order)
