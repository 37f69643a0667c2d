"""`once_differentiable`: a backward that is not written in operators."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from turnout_aten.tensor.levels import GRAD
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd import errors
from turnout_autograd.engine.nodes import Node, Output, attach, start
from turnout_autograd.engine.recorded_levels import recording


class OnceNode(Node):
    """Stands for the gradients of a backward that was declared not to be differentiable again."""

    __slots__ = ("count", "label")
    several = True
    op_name = "once_differentiable"
    count: int
    label: str

    def backward(self, grads: Any, edges: tuple[Any, ...]) -> Any:
        raise errors.GradientError(errors.functions.function_once(self.label))


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """For a `Function.backward` that is not written in operators: it runs unrecorded, and differentiating it is an error.

    Arguments:
        backward: the function that is decorated

    Example:
        >>> class Double(turnout.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return x * 2
        ...     @staticmethod
        ...     @turnout.autograd.once_differentiable
        ...     def backward(ctx, grad):
        ...         return turnout.from_numpy(grad.numpy() * 2)
        >>> x = turnout.tensor([1.0], requires_grad=True)
        >>> turnout.autograd.grad(Double.apply(x), x)
        (tensor([2.]),)
    """

    @wraps(backward)
    def run_once(ctx: Any, *grads: Any) -> Any:
        enabled = GRAD.get()[0]
        found = recording(0, backward, ctx, *grads)
        tensors = [g for g in grads if isinstance(g, Tensor)]
        saved = [t for t in getattr(ctx, "saved_tensors", ()) if t is not None] if enabled else []
        tracked = 0
        for tensor in (*tensors, *saved):
            tracked |= tensor.gmask & enabled
        if not tracked:
            return found
        node = OnceNode()
        start(node, tuple([(t.node or t) if t.gmask & enabled else None for t in (*tensors, *saved)]))
        node.label = backward.__qualname__.removesuffix(".backward")
        results = [found] if isinstance(found, Tensor) else list(found)
        node.count = len(results)
        for i, each in enumerate(results):
            if isinstance(each, Tensor):
                results[i] = each.detach()
                attach(results[i], Output(node, i), tracked)
        return results[0] if isinstance(found, Tensor) else tuple(results)

    return run_once
