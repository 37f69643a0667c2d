"""Operators without a gradient: their results still require one, and `backward` says what is missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from turnout.dtypes import FLOAT
from turnout.errors.plugins import warn
from turnout.operators.values import tensors_in
from turnout.plugins import is_ours
from turnout.state import BELOW_AUTOGRAD as BELOW
from turnout_aten.tensor.levels import GRAD
from turnout_aten.tensor.storage import owner_of
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd import errors
from turnout_autograd.duals.results import outputs_of
from turnout_autograd.engine.nodes import Node, Output, attach, start
from turnout_autograd.recording.inplace_writes import admit
from turnout_autograd.recording.views import refresh_if_view

if TYPE_CHECKING:
    from turnout.operators import Operator


def refuse(node: Node, argument: str, reason: str) -> NoReturn:
    """What `not_implemented` in an entry does at backward."""
    raise errors.GradientError(errors.recording.not_implemented(node.op_name, argument, reason))


class NotImplementedNode(Node):
    """Stands for a call of an operator without a gradient: an error when a gradient arrives."""

    __slots__ = ("count", "label")
    several = True
    count: int
    label: str

    @property
    def op_name(self) -> str:  # type: ignore[override]
        return self.label

    def backward(self, grads: Any, edges: tuple[Any, ...]) -> Any:
        raise errors.GradientError(errors.recording.not_implemented(self.label))


class WarnedNode(NotImplementedNode):
    """The same with a warning and no gradients."""

    __slots__ = ()

    def backward(self, grads: Any, edges: tuple[Any, ...]) -> Any:
        warn(errors.recording.not_implemented_warned(self.label), is_ours, UserWarning)
        return (None,) * len(edges)


def not_implemented(op: Operator, options: Mapping[str, Any]) -> Callable[..., Any]:
    """Keeps `requires_grad` through an operator without a rule; backward then raises an error, or warns.

    The option is read at each call, so that a configuration's context manager has its effect.
    """
    mutated = op.schema.mutated_places

    def record_missing(ks: int, *args: Any) -> Any:
        below = ks & BELOW
        call = op.lookup(below)
        enabled = GRAD.get()[0]
        missing = options["missing"]
        if not enabled or missing == "nothing":
            return call(below, *args)
        tracked = 0
        tensors = list(tensors_in(args))
        for tensor in tensors:
            refresh_if_view(tensor)
            tracked |= tensor.gmask & enabled
        if not tracked:
            return call(below, *args)
        written = [t for i in mutated for t in tensors_in((args[i],)) if t.dtype.category >= FLOAT]
        for tensor in written:
            admit(op.qualified_name, tensor, tracked)
        edges = tuple([(t.node or t) if t.gmask & enabled else None for t in tensors])
        result = call(below, *args)
        node = WarnedNode() if missing == "warn" else NotImplementedNode()
        start(node, edges)
        node.label = op.qualified_name
        fresh = [t for t in outputs_of(result) if not any(t is given for given in tensors)]
        fresh = [t for t in fresh if t.dtype.category >= FLOAT]
        node.count = len(fresh) + len(written)
        for i, tensor in enumerate(fresh):
            attach(tensor, Output(node, i), tracked)
        for i, tensor in enumerate(written):
            _rewrite(tensor, node, len(fresh) + i, tracked)
        return result

    record_missing.__qualname__ = f"gradient of {op.qualified_name} is not implemented"
    return record_missing


def _rewrite(tensor: Tensor, node: NotImplementedNode, index: int, tracked: int) -> None:
    """A written tensor's history is the missing gradient from here on; so is that of the base it views."""
    root = owner_of(tensor)
    root.set_gmask(root.gmask | tracked)
    root.node = Output(node, index)
    if root is not tensor:
        tensor.set_gmask(root.gmask)
        tensor.node = root.node
