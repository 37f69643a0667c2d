"""The sweep over the tape: from outputs to leaves, each node once, after all that need it.

Nodes are taken by falling `seq`: edges lead to nodes recorded earlier, so every contributor to a node has a greater
number. While one node at a time is pending, as in a chain, nothing is queued or looked up. Gradients of leaves are summed in
`sinks` and delivered at the end, so an exception on the way leaves every `.grad` as it was.
"""

from __future__ import annotations

from functools import cache
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from turnout.plugins import replaceable
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd import errors
from turnout_autograd.engine.accumulation import add_to
from turnout_autograd.engine.anomaly import ANOMALY, line_of
from turnout_autograd.engine.fitting import fit_to_leaf
from turnout_autograd.engine.hook_calls import after_node, at_outputs, before_node
from turnout_autograd.engine.nodes import Node, Output
from turnout_autograd.engine.saved_tensors import FREED, FREED_OUTPUT

if TYPE_CHECKING:
    from types import FrameType

    from turnout_autograd.engine.targets import Sinks, Wanted


@cache
@replaceable
def running_ahead(node_class: type[Node], freed: Any, freed_output: Any) -> Any:
    """What takes the nodes that need no Python: (node, grad, pending, heap, sinks, retain) -> (node, grad), where it stops.

    None without a plugin that can do so. `freed` and `freed_output` stand for saved values that were released.
    """
    return None


def sweep(roots: list[tuple[Any, Tensor]], retain: bool, wanted: Wanted | None = None) -> Sinks:
    """Push gradients from `roots`, pairs of an edge and its gradient. Returns id(leaf) -> [leaf, gradient].

    `wanted` limits the sweep to what leads to certain tensors, and collects the gradients of those that are not leaves.
    """
    check_nan = ANOMALY.check_nan
    lead = {} if wanted is None else wanted.lead
    sinks: Sinks = {}
    pending: dict[Node, Any] = {}
    heap: list[tuple[int, Node]] = []
    node: Any = None  # the one pending node that is not in `pending`
    grad: Any = None
    targets: Any = ()
    grads: Any = ()
    for target, value in roots:
        if isinstance(target, Output):
            _to_output(target, value, pending, heap)
        elif not isinstance(target, Node):
            if id(target) in sinks:
                add_to(sinks[id(target)], 1, value)
            else:
                sinks[id(target)] = [target, value]
        elif target in pending:
            add_to(pending, target, value)
        elif len(roots) == 1:
            node, grad = target, value
        else:
            pending[target] = value
            heappush(heap, (-target.seq, target))
    ahead = None if wanted is not None or check_nan else running_ahead(Node, FREED, FREED_OUTPUT)
    while True:
        if ahead is not None:
            node, grad = ahead(node, grad, pending, heap, sinks, retain)
        if node is None:
            if not heap:
                return sinks
            node = heappop(heap)[1]
            grad = pending.pop(node)
        targets = node.edges
        if wanted is not None:
            targets = lead.get(node, ())
            if not targets:  # the end: hooks on the tensor run, those of the node do not
                if node.extra is not None:
                    grad = at_outputs(node, node.extra, grad)
                wanted.collect(node, grad)
                node = None
                continue
            if node in wanted.outputs:
                wanted.collect(node, grad)
        if node.extra is not None:
            grad = before_node(node, node.extra, grad)
            if grad is None:
                node = None
                continue
        grads = node.backward(grad, targets)
        if not retain:
            node.release()
        if node.unary:
            target = targets[0]
            if isinstance(target, Node) and not heap and node.extra is None and not check_nan and grads is not None:
                node, grad = target, grads  # a chain: 300 ns less per node
                continue
            grads = (grads,)
        if node.extra is not None and node.extra.post:
            grads = after_node(node, node.extra, grads, grad)
        if check_nan:
            _check_nan(node, grads)
        node = grad = None
        for target, value in zip(targets, grads):  # noqa: B905 - lengths are the node's business
            if target is None or value is None:
                continue
            if isinstance(target, Node):
                if node is None and not heap:
                    node = target
                    grad = value
                elif target is node:
                    held = [grad]
                    grad = None
                    add_to(held, 0, value, grads)
                    grad = held.pop()
                else:
                    if node is not None:
                        pending[node] = grad
                        heappush(heap, (-node.seq, node))
                        node = grad = None
                    if target in pending:
                        add_to(pending, target, value, grads)
                    else:
                        pending[target] = value
                        heappush(heap, (-target.seq, target))
            elif isinstance(target, Output):
                if node is not None:
                    pending[node] = grad
                    heappush(heap, (-node.seq, node))
                    node = grad = None
                _to_output(target, value, pending, heap)
            else:
                value = fit_to_leaf(value, target)
                sink: Any = sinks.get(id(target))
                if sink is None:
                    sinks[id(target)] = [target, value]
                else:
                    add_to(sink, 1, value, grads)
        grads = value = None  # type: ignore[assignment]


def __user_frame__(frame: FrameType) -> Any:
    """The line that recorded the node whose gradients are computed, or whose gradient is added up (`turnout.user_frame`)."""
    if frame.f_code is not sweep.__code__:
        return NotImplemented
    node = frame.f_locals.get("node") or frame.f_locals.get("target")
    return node.extra.user_frame if isinstance(node, Node) and node.extra is not None else None


def _to_output(target: Output, value: Tensor, pending: dict[Node, Any], heap: list[tuple[int, Node]]) -> None:
    """Add to one of the output gradients of a node with several."""
    node = target.node
    grads: Any = pending.get(node)
    if grads is None:
        grads = pending[node] = [None] * node.count
        heappush(heap, (-node.seq, node))
    if grads[target.index] is None:
        grads[target.index] = value
    else:
        add_to(grads, target.index, value)


def _check_nan(node: Node, grads: Any) -> None:
    for i, grad in enumerate(grads):
        if grad is not None and bool((grad != grad).any()):
            raise errors.GradientError(errors.passes.nan_found(node.op_name, i, line_of(node)))


def blame(error: BaseException) -> None:
    """Add to an error of a backward pass which node it left, and the line that recorded it."""
    traceback = error.__traceback__
    node: Any = None
    while traceback is not None:
        if traceback.tb_frame.f_code is sweep.__code__:
            node = traceback.tb_frame.f_locals["node"]
        traceback = traceback.tb_next
    if isinstance(node, Node):
        text = errors.passes.failed_at(node.op_name, line_of(node))
        if text not in getattr(error, "__notes__", ()):
            error.add_note(text)
