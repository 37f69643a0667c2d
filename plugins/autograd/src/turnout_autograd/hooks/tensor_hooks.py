"""Hooks on tensors, and gradients that tensors keep which are not leaves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from turnout.config.effects import effect
from turnout.keys import KEYS
from turnout_aten.tensor.grad_mode import tracked_levels
from turnout_aten.tensor.levels import peel
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd import errors
from turnout_autograd.engine.hook_tables import HOOKS, POST_HOOKS, Handle, leaf_hooks
from turnout_autograd.engine.nodes import Output, hooks_of, keep_gradient
from turnout_autograd.engine.recorded_levels import for_its_level
from turnout_autograd.recording.views import refresh
from turnout_autograd.transforms.batch_elements import seen_by_hook

_BATCHED = KEYS.bit("Batched")


def register_tensor_hook(tensor: Tensor, hook: Callable[[Tensor], Tensor | None]) -> Handle:
    """`hook(grad)` whenever the gradient with respect to the tensor is computed; what it returns takes its place.

    Inside of functional transforms that is the gradient of the innermost one, inside vmap that of an element of the batch.
    """
    effect("register_hook()")
    if not tensor.requires_grad:
        raise errors.GradientError(errors.hooks.hook_on_untracked())
    if tensor.keys & _BATCHED:
        tensor, hook = seen_by_hook(tensor, hook)
    hook = for_its_level(hook, tracked_levels(tensor))
    node, index = _edge(tensor)
    if node is None:
        return Handle(leaf_hooks(tensor, HOOKS), hook)
    return Handle(hooks_of(node).outputs.setdefault(index, {}), hook)


def register_post_accumulate_grad_hook(tensor: Tensor, hook: Callable[[Tensor], None]) -> Handle:
    """`hook(leaf)` after a leaf's `.grad` was accumulated."""
    effect("register_post_accumulate_grad_hook()")
    if not tensor.requires_grad:
        raise errors.GradientError(errors.hooks.hook_on_untracked())
    if tensor.node is not None or peel(tensor)[1]:
        raise errors.GradientError(errors.hooks.post_hook_not_leaf())
    return Handle(leaf_hooks(tensor, POST_HOOKS), hook)


def retain_grad(tensor: Tensor) -> None:
    """Keep the gradient of a tensor that is not a leaf in its `.grad`; refused inside of functional transforms."""
    if not tensor.requires_grad:
        raise errors.GradientError(errors.passes.retain_untracked())
    if tracked_levels(tensor) & ~1:
        raise errors.GradientError(errors.passes.retain_in_level())
    if tensor.node is not None:
        effect("retain_grad()")
        keep_gradient(tensor)


def retains_grad(tensor: Tensor) -> bool:
    """Whether the gradient of a tensor that is not a leaf will be kept."""
    node, index = _edge(tensor)
    kept = node.extra.retained.get(index) if node is not None and node.extra is not None else None
    return kept is not None and kept() is tensor


def output_nr(tensor: Tensor) -> int:
    """Which output of its node a tensor is."""
    return _edge(tensor)[1]


def _edge(tensor: Tensor) -> tuple[Any, int]:
    """A tensor's node, brought up to date, and which of its outputs it is; (None, 0) for a leaf."""
    if tensor.view_of is not None:
        refresh(tensor)
    edge = tensor.node
    return (edge.node, edge.index) if isinstance(edge, Output) else (edge, 0)
