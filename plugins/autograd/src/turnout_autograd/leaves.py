"""How a gradient ends at a leaf: hooks, accumulation into `.grad`, and its memory layout.

Edges lead to the leaves themselves. The node that users see there, `AccumulateGrad`, is made when somebody asks for it, and its
hooks are kept with the leaf, as those on the leaf are.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from sys import getrefcount
from typing import Any
from weakref import ref

from turnout.keys import TRACKED
from turnout_aten.shapes.extents import contiguous_strides, is_dense
from turnout_aten.tensor.levels import GRAD
from turnout_aten.tensor.tensor import Tensor, wrap
from turnout_autograd import errors
from turnout_autograd.engine import run_hooks, run_posthooks, run_prehooks
from turnout_autograd.graph import Handle, Node, fit_to_leaf, is_plain, start

_LOCK = threading.RLock()  # several sweeps may end at one leaf; reentrant, for a finalizer may start another

HOOKS = "autograd hooks"
POST_HOOKS = "autograd post-accumulate hooks"
NODE_PREHOOKS = "autograd prehooks of the node"
NODE_HOOKS = "autograd hooks of the node"
_NODE = "autograd node"


class AccumulateGrad(Node):
    """The node where a gradient ends: it adds to the `.grad` of the leaf `variable`."""

    __slots__ = ("__weakref__", "variable")
    op_name = "AccumulateGrad"
    variable: Tensor

    def backward(self, grad: Tensor, edges: tuple[Any, ...]) -> tuple[Any, ...]:
        accumulate(self.variable, [self.variable, fit_to_leaf(grad, self.variable)])
        return ()

    def register_hook(self, hook: Callable[[tuple[Any, ...], tuple[Any, ...]], Any]) -> Handle:
        """`hook((), grad_outputs)` after `.grad` was accumulated, and after the hooks on the tensor that follow that."""
        return Handle(leaf_hooks(self.variable, NODE_HOOKS), hook)

    def register_prehook(self, hook: Callable[[tuple[Any, ...]], Any]) -> Handle:
        """`hook(grad_outputs)` before `.grad` is accumulated, after the hooks on the tensor; may return new grad_outputs."""
        return Handle(leaf_hooks(self.variable, NODE_PREHOOKS), hook)


def node_of(edge: Any) -> Any:
    """What users see at the end of an edge that leads to one output: its node, for a leaf the one that accumulates."""
    if not isinstance(edge, Tensor):
        return edge
    with _LOCK:
        if edge.extra is None:
            edge.extra = {}
        reference = edge.extra.get(_NODE)
        made: AccumulateGrad | None = None if reference is None else reference()
        if made is None:
            made = AccumulateGrad()
            start(made, ())
            made.variable = edge
            edge.extra[_NODE] = ref(made)  # weak: the node holds the leaf
        return made


def hooked(leaf: Tensor, grad: Tensor) -> Tensor:
    """The gradient after the leaf's hooks."""
    extra = leaf.extra
    table = extra.get(HOOKS) if extra else None
    return run_hooks(table, grad) if table else grad


def leaf_hooks(leaf: Tensor, name: str) -> dict[int, Any]:
    """The table of a leaf's hooks, made when there is none yet."""
    global _any_hooks
    _any_hooks = True
    if leaf.extra is None:
        leaf.extra = {}
    table: dict[int, Any] = leaf.extra.setdefault(name, {})
    return table


_any_hooks = False  # in the whole process: a step without hooks looks at no leaf twice


def deliver(sinks: dict[int, list[Any]]) -> None:
    """Accumulate every sink's gradient into its leaf's `.grad`, when all hooks on leaves have run."""
    if _any_hooks:
        for sink in sinks.values():
            leaf = sink[0]
            if leaf.gmask and leaf.extra is not None:
                sink[1] = fit_to_leaf(hooked(leaf, sink[1]), leaf)
    accumulate_all(sinks.values())


def accumulate_all(sinks: Iterable[list[Any]]) -> None:
    """Accumulate gradients, pairs [tensor, gradient], with the hooks of the nodes that do so around it."""
    if _any_hooks:
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
        if _any_hooks:
            _accumulated(leaf, sink)


def _accumulated(leaf: Tensor, sink: list[Any]) -> None:
    """Run the hooks that follow the accumulation. Raises GradientError for one on the tensor that returns anything."""
    extra = leaf.extra
    table = extra.get(POST_HOOKS) if extra else None
    if table:
        for hook in list(table.values()):
            given = hook(leaf)
            if given is not None:
                raise errors.GradientError(errors.post_hook_result(given))
    table = extra.get(NODE_HOOKS) if extra else None
    if table:
        run_posthooks(node_of(leaf), table, (), (sink[1],))


def accumulate(leaf: Tensor, sink: list[Any]) -> None:
    """Add sink[1] to `leaf.grad`.

    The first gradient becomes `.grad` itself when nobody else holds it and it has the leaf's layout, else a copy does. Later
    ones are added in place, unless the addition is to be recorded.
    """
    grad = sink[1]
    with _LOCK:
        extra = leaf.extra
        if extra is None:
            extra = leaf.extra = {}
        have = extra.get("grad")
        if have is None:
            # 3: the sink, the local name, and the argument of getrefcount.
            if not grad.gmask and getrefcount(grad) <= 3 and _alone(grad) and _same_layout(grad, leaf):
                extra["grad"] = grad if grad.storage is None else wrap(grad.array, grad.device)
            else:
                extra["grad"] = laid_out(grad, leaf)
        elif GRAD.get()[0]:
            extra["grad"] = have + grad
        else:
            have.add_(grad)


def _alone(grad: Tensor) -> bool:
    """Whether no tensor that anybody can reach shares the gradient's memory. It may be a view whose base only the view holds."""
    storage = grad.storage
    if storage is None:
        return True
    view = grad.view_of
    # 3: the local name, the argument of getrefcount, and the slot of `grad`, or for the base that of the record.
    if view is None:
        return getrefcount(storage) <= 3
    return getrefcount(view) <= 3 and getrefcount(view.base) <= 2 and getrefcount(storage) <= 4


def _same_layout(grad: Tensor, leaf: Tensor) -> bool:
    ndim = len(leaf.array.shape)
    if not ndim:
        return True
    if ndim == 1 and grad.storage is None:  # so it is no view, and its one dim is dense
        return leaf.storage is None or leaf.stride() == (1,)
    return grad.stride() == leaf.stride()


def laid_out(grad: Tensor, leaf: Tensor) -> Tensor:
    """A copy with the leaf's strides where those are dense, else contiguous; recorded where gradients are."""
    shape: tuple[int, ...] = leaf.array.shape
    strides = leaf.stride()
    row_major = strides == contiguous_strides(shape)
    dense = row_major or is_dense(shape, strides)
    if dense and is_plain(grad):  # 2 us instead of 9
        device = grad.device
        array = device.backend.empty(shape, grad.dtype, device, None if row_major else strides)
        device.backend.copy(array, grad.array)
        return wrap(array, device)
    if grad.gmask & GRAD.get()[0] or not dense:
        return grad.clone()
    copy = grad.new_empty_strided(shape, strides)
    copy.copy_(grad)
    if copy.gmask:
        copy.gmask = 0
        copy.keys &= ~TRACKED
    return copy
