"""What `turnout.autograd` offers while this plugin is active."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import ref

from turnout.state import peel
from turnout.tensors import Tensor
from turnout_autograd import errors
from turnout_autograd.anomaly import detect_anomaly, set_detect_anomaly
from turnout_autograd.calls import backward, grad
from turnout_autograd.errors import DrawingError, GradientError
from turnout_autograd.function import Function, FunctionCtx, once_differentiable
from turnout_autograd.graph import Handle, Node, Output, hooks_of
from turnout_autograd.leaves import HOOKS, POST_HOOKS
from turnout_autograd.levels import enter, leave, new_level, pull
from turnout_autograd.numeric import GradcheckError, gradcheck, gradgradcheck
from turnout_autograd.writes import current_node, refresh


def __getattr__(name: str) -> Any:
    """`functional` and `graph`, which few programs need, are imported when they are."""
    if name == "functional":
        from turnout_autograd import functional

        return functional
    if name == "graph":
        from turnout_autograd.drawing import graph

        return graph
    raise AttributeError(name)


def register_tensor_hook(tensor: Tensor, hook: Callable[[Tensor], Tensor | None]) -> Handle:
    """`hook(grad)` whenever the gradient with respect to the tensor is computed; what it returns takes its place."""
    if not tensor.requires_grad:
        raise GradientError(errors.hook_on_untracked())
    if tensor.view_of is not None:
        refresh(tensor)
    edge = tensor.node
    if edge is None:
        return Handle(_leaf_table(tensor, HOOKS), hook)
    node, index = (edge.node, edge.index) if isinstance(edge, Output) else (edge, 0)
    return Handle(hooks_of(node).outputs.setdefault(index, {}), hook)


def register_post_accumulate_grad_hook(tensor: Tensor, hook: Callable[[Tensor], None]) -> Handle:
    """`hook(leaf)` after a leaf's `.grad` was accumulated."""
    if not tensor.requires_grad:
        raise GradientError(errors.hook_on_untracked())
    if tensor.node is not None or peel(tensor)[1]:
        raise GradientError(errors.post_hook_not_leaf())
    return Handle(_leaf_table(tensor, POST_HOOKS), hook)


def _leaf_table(tensor: Tensor, name: str) -> dict[int, Any]:
    if tensor.extra is None:
        tensor.extra = {}
    table: dict[int, Any] = tensor.extra.setdefault(name, {})
    return table


def retain_grad(tensor: Tensor) -> None:
    """Keep the gradient of a tensor that is not a leaf in its `.grad`."""
    if not tensor.requires_grad:
        raise GradientError(errors.retain_untracked())
    if tensor.view_of is not None:
        refresh(tensor)
    edge = tensor.node
    if edge is None:
        return
    node, index = (edge.node, edge.index) if isinstance(edge, Output) else (edge, 0)
    hooks_of(node).retained[index] = ref(tensor)


__all__ = [
    "DrawingError", "Function", "FunctionCtx", "GradcheckError", "GradientError", "Handle", "Node", "backward", "current_node",
    "detect_anomaly", "enter", "grad", "gradcheck", "gradgradcheck", "leave", "new_level", "once_differentiable", "pull",
    "refresh", "register_post_accumulate_grad_hook", "register_tensor_hook", "retain_grad", "set_detect_anomaly",
]  # fmt: skip
