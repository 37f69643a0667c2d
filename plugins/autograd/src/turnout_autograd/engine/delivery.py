"""The end of a sweep: the gradients of leaves pass their hooks and are accumulated."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from turnout_aten.tensor.tensor import Tensor
from turnout_autograd import errors
from turnout_autograd.engine.accumulation import accumulate
from turnout_autograd.engine.fitting import fit_to_leaf
from turnout_autograd.engine.hook_calls import hooked, run_posthooks, run_prehooks
from turnout_autograd.engine.hook_tables import LEAF_HOOKS, NODE_HOOKS, NODE_PREHOOKS, POST_HOOKS
from turnout_autograd.engine.nodes import node_of


def deliver(sinks: dict[int, list[Any]]) -> None:
    """Accumulate every sink's gradient into its leaf's `.grad`, when all hooks on leaves have run."""
    if LEAF_HOOKS.used:
        for sink in sinks.values():
            leaf = sink[0]
            if leaf.gmask and leaf.extra is not None:
                sink[1] = fit_to_leaf(hooked(leaf, sink[1]), leaf)
    accumulate_all(sinks.values())


def accumulate_all(sinks: Iterable[list[Any]]) -> None:
    """Accumulate gradients, pairs [tensor, gradient], with the hooks of the nodes that do so around it."""
    if LEAF_HOOKS.used:
        for sink in sinks:
            leaf = sink[0]
            table = leaf.extra.get(NODE_PREHOOKS) if leaf.extra else None
            if table:
                (sink[1],) = run_prehooks(node_of(leaf), table, (sink[1],))
    for sink in sinks:
        leaf = sink[0]
        if not leaf.gmask or sink[1] is None:
            continue  # requires_grad was switched off since, or a hook took the gradient away
        accumulate(leaf, sink)
        if LEAF_HOOKS.used:
            _accumulated(leaf, sink)


def _accumulated(leaf: Tensor, sink: list[Any]) -> None:
    """Run the hooks that follow the accumulation. Raises GradientError for one on the tensor that returns anything."""
    extra = leaf.extra
    table = extra.get(POST_HOOKS) if extra else None
    if table:
        for hook in list(table.values()):
            given = hook(leaf)
            if given is not None:
                raise errors.GradientError(errors.hooks.post_hook_result(given))
    table = extra.get(NODE_HOOKS) if extra else None
    if table:
        run_posthooks(node_of(leaf), table, (), (sink[1],))
