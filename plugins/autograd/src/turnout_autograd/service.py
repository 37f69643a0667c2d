"""What `turnout.autograd` offers while this plugin is active."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from turnout.keys import KEYS
from turnout_aten.tensor.grad_mode import tracked_levels
from turnout_aten.tensor.levels import peel
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd import errors
from turnout_autograd.anomaly import (
    detect_anomaly,
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    set_detect_anomaly,
)
from turnout_autograd.calls import backward, grad
from turnout_autograd.custom_rules import custom_rule
from turnout_autograd.errors import DrawingError, GradientError
from turnout_autograd.function import Function, FunctionCtx, once_differentiable
from turnout_autograd.graph import Handle, Node, Output, hooks_of, keep_gradient
from turnout_autograd.leaves import HOOKS, POST_HOOKS, leaf_hooks
from turnout_autograd.levels import enter, for_its_level, leave, new_level, pull
from turnout_autograd.numeric import GradcheckError, gradcheck, gradgradcheck
from turnout_autograd.writes import current_node, refresh

_BATCHED = KEYS.bit("Batched")
_MODULES = {
    "function": "function",
    "functional": "functional",
    "graph": "graph_tools",
    "transforms": "transforms",
}


def __getattr__(name: str) -> Any:
    """What few programs need is imported when they do."""
    if name in _MODULES:
        from importlib import import_module

        return import_module(f"turnout_autograd.{_MODULES[name]}")
    raise AttributeError(name)


def register_tensor_hook(tensor: Tensor, hook: Callable[[Tensor], Tensor | None]) -> Handle:
    """`hook(grad)` whenever the gradient with respect to the tensor is computed; what it returns takes its place.

    Inside of functional transforms that is the gradient of the innermost one, inside vmap that of an example.
    """
    if not tensor.requires_grad:
        raise GradientError(errors.hook_on_untracked())
    if tensor.keys & _BATCHED:
        from turnout_autograd.examples import seen_by_hook

        tensor, hook = seen_by_hook(tensor, hook)
    hook = for_its_level(hook, tracked_levels(tensor))
    node, index = _edge(tensor)
    if node is None:
        return Handle(leaf_hooks(tensor, HOOKS), hook)
    return Handle(hooks_of(node).outputs.setdefault(index, {}), hook)


def register_post_accumulate_grad_hook(tensor: Tensor, hook: Callable[[Tensor], None]) -> Handle:
    """`hook(leaf)` after a leaf's `.grad` was accumulated."""
    if not tensor.requires_grad:
        raise GradientError(errors.hook_on_untracked())
    if tensor.node is not None or peel(tensor)[1]:
        raise GradientError(errors.post_hook_not_leaf())
    return Handle(leaf_hooks(tensor, POST_HOOKS), hook)


def retain_grad(tensor: Tensor) -> None:
    """Keep the gradient of a tensor that is not a leaf in its `.grad`; refused inside of functional transforms."""
    if not tensor.requires_grad:
        raise GradientError(errors.retain_untracked())
    if tracked_levels(tensor) & ~1:
        raise GradientError(errors.retain_in_level())
    if tensor.node is not None:
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


__all__ = [
    "DrawingError", "Function", "FunctionCtx", "GradcheckError", "GradientError", "Handle", "Node",
    "backward", "current_node", "custom_rule", "detect_anomaly", "enter", "grad", "gradcheck", "gradgradcheck",
    "is_anomaly_check_nan_enabled", "is_anomaly_enabled", "leave", "new_level", "once_differentiable", "output_nr",
    "pull", "refresh", "register_post_accumulate_grad_hook", "register_tensor_hook", "retain_grad", "retains_grad",
    "set_detect_anomaly",
]  # fmt: skip
