"""`register_multi_grad_hook`: one hook on several tensors.

It is a hook on each of them that collects. Which of them a sweep reaches is looked up before the sweep, where such hooks exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakSet

from turnout.errors import ArgumentError, CallError
from turnout.guards import during
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd import errors
from turnout_autograd.engine.gradient_edges import get_gradient_edge
from turnout_autograd.engine.nodes import Node, Output

if TYPE_CHECKING:
    from turnout_autograd.engine.hook_tables import Handle
    from turnout_autograd.engine.targets import Wanted

ALL, ANY = "all", "any"
Result = TypeVar("Result")


class JointHook:
    """The hook, and the handle that removes it.

    edges  where the gradients of its tensors are
    """

    def __init__(self, tensors: Sequence[Tensor], hook: Callable[[Any], None], mode: str) -> None:
        self.hook = hook
        self.mode = mode
        self.edges = [get_gradient_edge(t).target for t in tensors]
        self.handles: list[Handle] = [t.register_hook(self._seeing(i)) for i, t in enumerate(tensors)]
        JOINT_HOOKS.used = True
        JOINT_HOOKS.live.add(self)

    def _seeing(self, index: int) -> Callable[[Tensor], None]:
        def see(grad: Tensor) -> None:
            state = _RUNNING.get().get(id(self))
            if state is not None:
                state.see(index, grad)

        return see

    def remove(self) -> None:
        """Remove the hook; a second call does nothing."""
        for handle in self.handles:
            handle.remove()
        JOINT_HOOKS.live.discard(self)

    def __enter__(self) -> JointHook:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.remove()


class JointHooks:
    """Those that there are; sweeps ask `used` alone while there were none in this process."""

    __slots__ = ("live", "used")

    def __init__(self) -> None:
        self.used = False
        self.live: WeakSet[JointHook] = WeakSet()


JOINT_HOOKS = JointHooks()


class Collected:
    """What one sweep has given to one hook so far."""

    def __init__(self, joint: JointHook, expected: list[bool]) -> None:
        self.joint = joint
        self.missing = {i for i, each in enumerate(expected) if each}
        self.grads: list[Tensor | None] = [None] * len(expected)
        self.called = not self.missing

    def see(self, index: int, grad: Tensor) -> None:
        self.grads[index] = grad
        self.missing.discard(index)
        if self.joint.mode == ANY and not self.called:
            self.called = True
            self.joint.hook(grad)
        elif not self.missing:
            self.finish()

    def finish(self) -> None:
        """Call the hook, once: at the last gradient, or at the end of the sweep where one was on the way and is None."""
        if self.joint.mode == ALL and not self.called:
            self.called = True
            self.joint.hook(self.grads)


_RUNNING: ContextVar[dict[int, Collected]] = ContextVar("joint hooks of the running sweep", default={})  # noqa: B039 - read only


def watched(run: Callable[[], Result], roots: Iterable[tuple[Any, Any]], wanted: Wanted | None = None) -> Result:
    """Run a sweep from `roots`: the hooks get its gradients."""
    nodes, leaves = _reached([edge for edge, _ in roots])
    if wanted is not None:
        nodes &= wanted.lead.keys()
        leaves &= wanted.leaves

    def reaches(edge: Any) -> bool:
        if isinstance(edge, Tensor):
            return id(edge) in leaves
        return (edge.node if isinstance(edge, Output) else edge) in nodes

    states = {id(j): Collected(j, [reaches(e) for e in j.edges]) for j in list(JOINT_HOOKS.live)}

    def finished() -> Any:
        result = run()
        for state in states.values():
            state.finish()
        return result

    return during(_RUNNING, states, finished)


def _reached(stack: list[Any]) -> tuple[set[Node], set[int]]:
    nodes: set[Node] = set()
    leaves: set[int] = set()
    while stack:
        edge = stack.pop()
        node = edge.node if isinstance(edge, Output) else edge
        if isinstance(node, Node):
            if node not in nodes:
                nodes.add(node)
                stack += [e for e in node.edges if e is not None]
        else:
            leaves.add(id(node))
    return nodes, leaves


def register_multi_grad_hook(tensors: Sequence[Tensor], fn: Callable[[Any], None], *, mode: str = ALL) -> JointHook:
    """`fn(grads)` once in each backward pass that reaches any of the tensors, when it has computed all gradients that it will.

    Returns a handle, also a context manager, that removes it. Raises ArgumentError for another mode, and GradientError for a
    tensor that requires no gradient.

    Arguments:
        tensors: the tensors
        fn: takes a list of gradients, with None where the pass does not reach a tensor; for the mode "any" the first gradient
        mode: "all", or "any", for a call as soon as one gradient is there

    Example:
        >>> x, y = turnout.ones(2, requires_grad=True), turnout.ones(1, requires_grad=True)
        >>> with turnout.autograd.graph.register_multi_grad_hook([x, y], lambda grads: print(grads)):
        ...     (x * 3).sum().backward()
        [tensor([3., 3.]), None]
    """
    if mode not in (ALL, ANY):
        raise ArgumentError(errors.hooks.joint_mode(mode))
    for i, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            raise CallError(errors.passes.not_tensors("register_multi_grad_hook", "tensor", i, tensor))
        if not tensor.requires_grad:
            raise errors.GradientError(errors.hooks.hook_on_untracked())
    return JointHook(tensors, fn, mode)
