"""The sweep over the tape: from outputs to leaves, each node once, after all that need it.

Nodes are taken by falling `seq`: edges lead to nodes recorded earlier, so whoever contributes to a node has a greater
number. While one node at a time is pending, as in a chain, nothing is queued or looked up. Gradients of leaves are summed in
`sinks` and delivered at the end, so an exception on the way leaves every `.grad` as it was.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from turnout.errors import CallError
from turnout_aten.tensor.levels import GRAD
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd import errors
from turnout_autograd.graph import Hooks, Node, Output, fit_to_leaf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Sinks = dict[int, list[Any]]


class Anomaly:
    """Whether forward lines are recorded and gradients are searched for NaN (`detect_anomaly`)."""

    __slots__ = ("always", "check_nan", "depth")

    def __init__(self) -> None:
        self.depth = 0
        self.always = False
        self.check_nan = False

    @property
    def enabled(self) -> bool:
        return self.always or self.depth > 0


ANOMALY = Anomaly()


def sweep(roots: list[tuple[Any, Tensor]], retain: bool, wanted: Wanted | None = None) -> Sinks:
    """Push gradients from `roots`, pairs of an edge and its gradient. Returns id(leaf) -> [leaf, gradient].

    `wanted` limits the sweep to what leads to certain tensors, and collects the gradients of those that are not leaves.
    """
    check_nan = ANOMALY.check_nan
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
            have = sinks.get(id(target))
            sinks[id(target)] = [target, value if have is None else have[1] + value]
        elif target in pending:
            pending[target] = pending[target] + value
        elif len(roots) == 1:
            node, grad = target, value
        else:
            pending[target] = value
            heappush(heap, (-target.seq, target))
    while True:
        if node is None:
            if not heap:
                return sinks
            node = heappop(heap)[1]
            grad = pending.pop(node)
        targets = node.edges
        if wanted is not None:
            targets = wanted.reach(node)
            if not targets:  # the end: hooks on the tensor run, those of the node do not
                if node.extra is not None:
                    grad = _at_outputs(node, node.extra, grad)
                wanted.collect(node, grad)
                node = None
                continue
            wanted.collect(node, grad)
        if node.extra is not None:
            grad = _before(node, node.extra, grad)
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
            grads = _after(node, node.extra, grads, grad)
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
                    grad = grad + value
                else:
                    if node is not None:
                        pending[node] = grad
                        heappush(heap, (-node.seq, node))
                        node = grad = None
                    if target in pending:
                        pending[target] = pending[target] + value
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
                    sink[1] = sink[1] + value
        grads = value = None  # type: ignore[assignment]


def _to_output(target: Output, value: Tensor, pending: dict[Node, Any], heap: list[tuple[int, Node]]) -> None:
    """Add to one of the output gradients of a node with several."""
    node = target.node
    grads: Any = pending.get(node)
    if grads is None:
        grads = pending[node] = [None] * node.count
        heappush(heap, (-node.seq, node))
    have: Tensor | None = grads[target.index]
    grads[target.index] = value if have is None else have + value


# ---- hooks


def _before(node: Node, hooks: Hooks, grad: Any) -> Any:
    """Run the hooks on a node's output gradients; returns them, changed or not, and None when they left none."""
    grads = _at_outputs(node, hooks, grad)
    if not hooks.pre:
        return grads
    given = run_prehooks(node, hooks.pre, tuple(grads) if node.several else (grads,))
    if all(each is None for each in given):
        return None
    return list(given) if node.several else given[0]


def _at_outputs(node: Node, hooks: Hooks, grad: Any) -> Any:
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


def _after(node: Node, hooks: Hooks, grads: Any, grad: Any) -> Any:
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
        raise CallError(errors.node_hook_result(node.op_name, given))
    if len(given) != len(grads):
        raise errors.GradientError(errors.node_hook_count(node.op_name, len(given), len(grads)))
    for new, old in zip(given, grads, strict=True):
        if new is not None:
            _check_hook(new, old)
    return given


def _check_hook(given: Any, grad: Tensor | None) -> None:
    """Raise for a hook's result that is not like the gradient it replaces."""
    if not isinstance(given, Tensor):
        raise CallError(errors.hook_result(given))
    if grad is None:
        raise errors.GradientError(errors.hook_for_none())
    if given.shape != grad.shape or given.dtype is not grad.dtype or given.device != grad.device:
        raise errors.GradientError(errors.hook_changed(given, grad))


def _check_nan(node: Node, grads: Any) -> None:
    for i, grad in enumerate(grads):
        if grad is not None and bool((grad != grad).any()):
            line = node.extra.line if node.extra is not None and node.extra.line else errors.UNNOTED
            raise errors.GradientError(errors.nan_found(node.op_name, i, line))


# ---- sweeps that end at given tensors


class Wanted:
    """The tensors whose gradients are asked for, and which nodes lead to them."""

    def __init__(self, roots: Iterable[Any], targets: Iterable[Any], stops: frozenset[Node] = frozenset()) -> None:
        """`targets` are edges; `stops` are nodes beyond which nothing is wanted: the inputs of a functional level."""
        self.leaves: set[int] = set()
        self.outputs: dict[Node, dict[int, Any]] = {}
        for edge in targets:
            if isinstance(edge, Tensor):
                self.leaves.add(id(edge))
            elif isinstance(edge, Output):
                self.outputs.setdefault(edge.node, {})[edge.index] = None
            else:
                self.outputs.setdefault(edge, {})[0] = None
        self.outputs.update({node: {0: None} for node in stops})
        self.stops = stops
        self.lead = self._search(roots)

    def _search(self, roots: Iterable[Any]) -> set[Node]:
        """The nodes from which a wanted tensor can be reached, the wanted ones' own nodes included."""
        seen: set[Node] = set()
        stack = [e.node if isinstance(e, Output) else e for e in roots]
        while stack:
            node = stack.pop()
            if isinstance(node, Node) and node not in seen:
                seen.add(node)
                if node not in self.stops:
                    stack += [e.node if isinstance(e, Output) else e for e in node.edges if e is not None]
        lead: set[Node] = set()
        for node in sorted(seen, key=_seq):
            if node in self.outputs or (node not in self.stops and any(self._leads(e, lead) for e in node.edges)):
                lead.add(node)
        return lead

    def _leads(self, edge: Any, lead: set[Node]) -> bool:
        if isinstance(edge, Node):
            return edge in lead
        if isinstance(edge, Output):
            return edge.node in lead
        return edge is not None and id(edge) in self.leaves

    def reach(self, node: Node) -> tuple[Any, ...]:
        """The node's edges with None for those that lead nowhere; () when none does."""
        if node in self.stops:
            return ()
        edges = tuple([e if self._leads(e, self.lead) else None for e in node.edges])
        return edges if any(e is not None for e in edges) else ()

    def collect(self, node: Node, grad: Any) -> None:
        """Keep the gradients of the node's outputs that are asked for."""
        found = self.outputs.get(node)
        if found is not None:
            for index in found:
                found[index] = grad[index] if node.several else grad

    def gradient(self, edge: Any, sinks: Sinks) -> Any:
        """The gradient of one of the targets, None where it was not reached."""
        if isinstance(edge, Tensor):
            sink = sinks.get(id(edge))
            return None if sink is None else sink[1]
        if isinstance(edge, Output):
            return self.outputs[edge.node][edge.index]
        return self.outputs[edge][0]


def _seq(node: Node) -> int:
    return node.seq


class recording:
    """While entered, GRAD's enabled bits are as given; for the time of a sweep."""

    __slots__ = ("_enabled", "_token")

    def __init__(self, enabled: int) -> None:
        self._enabled = enabled

    def __enter__(self) -> None:
        self._token = GRAD.set((self._enabled, GRAD.get()[1]))

    def __exit__(self, *exc_info: object) -> None:
        GRAD.reset(self._token)
