"""Hooks are run here, and their results checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.errors import CallError
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd import errors
from turnout_autograd.engine.hook_tables import HOOKS

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnout_autograd.engine.hook_tables import Hooks
    from turnout_autograd.engine.nodes import Node


def hooked(leaf: Tensor, grad: Tensor) -> Tensor:
    """The gradient after the leaf's hooks."""
    extra = leaf.extra
    table = extra.get(HOOKS) if extra else None
    return run_hooks(table, grad) if table else grad


def before_node(node: Node, hooks: Hooks, grad: Any) -> Any:
    """Run the hooks on a node's output gradients; returns them, changed or not, and None when they left none."""
    grads = at_outputs(node, hooks, grad)
    if not hooks.pre:
        return grads
    given = run_prehooks(node, hooks.pre, tuple(grads) if node.several else (grads,))
    if all(each is None for each in given):
        return None
    return list(given) if node.several else given[0]


def at_outputs(node: Node, hooks: Hooks, grad: Any) -> Any:
    """Run the hooks on the tensors that are a node's outputs, and keep the gradients of those that retain theirs."""
    grads = list(grad) if node.several else [grad]
    for index, table in hooks.outputs.items():
        if grads[index] is not None:
            grads[index] = run_hooks(table, grads[index])
    for index, reference in list(hooks.retained.items()):
        tensor = reference()
        if tensor is not None and grads[index] is not None:
            if tensor.extra is None:
                tensor.extra = {}
            have = tensor.extra.get("grad")  # not by `.grad`: after an in-place view it has the old shape
            tensor.extra["grad"] = grads[index] if have is None else have + grads[index]
    return grads if node.several else grads[0]


def run_hooks(table: dict[int, Callable[[Tensor], Any]], grad: Tensor) -> Tensor:
    """The gradient after each hook, in the order of registration. Raises for a result that cannot stand in its place."""
    for hook in list(table.values()):
        given = hook(grad)
        if given is not None:
            _check_hook(given, grad)
            grad = given
    return grad


def after_node(node: Node, hooks: Hooks, grads: Any, grad: Any) -> Any:
    """Run the hooks that see a node's input and output gradients."""
    return run_posthooks(node, hooks.post, tuple(grads), tuple(grad) if node.several else (grad,))


def run_prehooks(node: Node, table: dict[int, Callable[[Any], Any]], grads: tuple[Any, ...]) -> tuple[Any, ...]:
    """The gradients of a node's outputs after each hook that sees them. Raises for results that cannot stand in their place."""
    for hook in list(table.values()):
        given = hook(grads)
        if given is not None:
            grads = _replaced(node, grads, given)
    return grads


def run_posthooks(
    node: Node, table: dict[int, Callable[[Any, Any], Any]], grads: tuple[Any, ...], outputs: tuple[Any, ...]
) -> tuple[Any, ...]:
    """The gradients that a node gives after each hook that sees them and what they were computed from. Raises likewise."""
    for hook in list(table.values()):
        given = hook(grads, outputs)
        if given is not None:
            grads = _replaced(node, grads, given)
    return grads


def _replaced(node: Node, grads: tuple[Any, ...], given: Any) -> tuple[Any, ...]:
    """What a node's hook returned, checked."""
    if not isinstance(given, tuple):
        raise CallError(errors.hooks.node_hook_result(node.op_name, given))
    if len(given) != len(grads):
        raise errors.GradientError(errors.hooks.node_hook_count(node.op_name, len(given), len(grads)))
    for new, old in zip(given, grads, strict=True):
        if new is not None:
            _check_hook(new, old)
    return given


def _check_hook(given: Any, grad: Tensor | None) -> None:
    """Raise for a hook's result that does not match the gradient it replaces."""
    if not isinstance(given, Tensor):
        raise CallError(errors.hooks.hook_result(given))
    if grad is None:
        raise errors.GradientError(errors.hooks.hook_for_none())
    if given.shape != grad.shape or given.dtype is not grad.dtype or given.device != grad.device:
        raise errors.GradientError(errors.hooks.hook_changed(given, grad))
