"""The tape: nodes, and the edges between them.

A node stands for one recorded call and has one output, whose gradient `backward` turns into those of its inputs. Operators with
several differentiable outputs are reached through `Output`, which names one of them. So an edge is one object: a node, an
`Output`, a leaf tensor, or None where no gradient is wanted. `seq` rises with every node: edges lead to smaller ones.

Edges lead to leaves themselves. The node that users see there, `AccumulateGrad`, is made when somebody asks for it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any
from weakref import ref

from turnout.config.effects import effect
from turnout.errors import CallError
from turnout.keys import TRACKED
from turnout.operators.values import tensors_in
from turnout_aten.tensor.levels import GRAD
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd import errors
from turnout_autograd.engine.accumulation import LEAF_LOCK, accumulate
from turnout_autograd.engine.fitting import fit_to_leaf
from turnout_autograd.engine.hook_tables import NODE_HOOKS, NODE_PREHOOKS, Handle, Hooks, leaf_hooks
from turnout_autograd.engine.recorded_levels import for_its_level, innermost

if TYPE_CHECKING:
    from collections.abc import Iterator

next_seq = count().__next__


class Node:
    """One recorded call.

    edges  one per differentiable argument, list elements in a row
    seq    when it was recorded
    extra  None, or the hooks
    unary  whether `backward` returns one gradient instead of a tuple of as many as there are edges
    count  how many outputs it has, where that is not one
    keeps  the slots that hold saved outputs; None for a class that does not say
    """

    __slots__ = ("edges", "extra", "seq")
    __unwrapped__ = ("backward", "plain", "release")  # a pass calls them for each node

    op_name = ""
    unary = False
    several = False
    keeps: tuple[str, ...] | None = None

    count: int
    edges: tuple[Any, ...]
    extra: Hooks | None
    seq: int

    def backward(self, grad: Any, edges: tuple[Any, ...]) -> Any:
        """The gradients of the arguments; `edges` are the node's, with None where no gradient is needed now."""
        raise NotImplementedError(f"{type(self).__name__} must define backward(self, grad, edges)")

    def release(self) -> None:
        """Drop what was saved."""

    def plain(self) -> Node:
        """The node, or where what it saved was packed by hooks, one like it with the tensors themselves."""
        return self

    # ---- what users see of a node

    def name(self) -> str:
        """The name of the node's class, "MulBackward0"."""
        return type(self).__name__

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """(node, output index) per argument: an `AccumulateGrad` for a leaf, (None, 0) for no gradient."""
        return tuple((e.node, e.index) if isinstance(e, Output) else (node_of(e), 0) for e in self.edges)

    def register_hook(self, hook: Callable[[tuple[Any, ...], tuple[Any, ...]], Any]) -> Handle:
        """`hook(grad_inputs, grad_outputs)` after the node ran; may return new grad_inputs.

        Inside of functional transforms it runs for the gradient of the innermost one that the node belongs to.

        # differs from torch: inside vmap, a hook of `Node.register_hook` sees the gradients of all examples; a hook on a tensor
        sees those of one.
        """
        effect("Node.register_hook()")
        return Handle(hooks_of(self).post, self._for_its_level(hook))

    def register_prehook(self, hook: Callable[[tuple[Any, ...]], Any]) -> Handle:
        """`hook(grad_outputs)` before the node runs; may return new grad_outputs."""
        effect("Node.register_prehook()")
        return Handle(hooks_of(self).pre, self._for_its_level(hook))

    def _for_its_level(self, hook: Callable[..., Any]) -> Callable[..., Any]:
        return for_its_level(hook, levels_behind(self))

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dict for whatever the user wants to keep with the node."""
        effect("Node.metadata")
        return hooks_of(self).metadata

    def __call__(self, *grads: Tensor | None) -> Any:
        """The gradients of the arguments for those of the outputs, without hooks; one of them, or a tuple.

        Raises CallError for a wrong number of gradients, and what `backward` raises for saved tensors that were changed or freed.
        """
        wanted = self.count if self.several else 1
        if len(grads) != wanted or not all(g is None or isinstance(g, Tensor) for g in grads):
            raise CallError(errors.passes.node_called(self.op_name, wanted, grads))
        if all(g is None for g in grads):
            found: Any = (None,) * len(self.edges)
        else:
            found = self.backward(list(grads) if self.several else grads[0], self.edges)
            found = (found,) if self.unary else tuple(found)
        return found[0] if len(found) == 1 else found

    def __repr__(self) -> str:
        return f"<{self.name()}>"


class Output:
    """One output of a node with several. It is what the tensor's `node` holds."""

    __slots__ = ("index", "node")

    def __init__(self, node: Node, index: int) -> None:
        self.node = node
        self.index = index


def hooks_of(node: Node) -> Hooks:
    """The node's hooks, made when there are none yet."""
    if node.extra is None:
        node.extra = Hooks()
    return node.extra


def keep_gradient(tensor: Tensor) -> None:
    """Keep the gradient that arrives at a tensor with a history in its `.grad`."""
    edge = tensor.node
    node, index = (edge.node, edge.index) if isinstance(edge, Output) else (edge, 0)
    hooks_of(node).retained[index] = ref(tensor)


def start(node: Node, edges: tuple[Any, ...]) -> None:
    """Fill the fields that every node has; generated kernels do it in line."""
    node.edges = edges
    node.seq = next_seq()
    node.extra = None


def made_since(seq: int, args: tuple[Any, ...], result: Any) -> Iterator[Node]:
    """The nodes of a call's arguments and results that were recorded after `seq`."""
    for tensor in tensors_in((*args, *(result if isinstance(result, (tuple, list)) else (result,)))):
        node = tensor.node if tensor.gmask else None
        node = node.node if isinstance(node, Output) else node
        if isinstance(node, Node) and node.seq > seq:
            yield node


def attach(tensor: Tensor, node: Any, mask: int) -> None:
    """Make a fresh tensor the output of a node (or `Output`)."""
    tensor.gmask = mask
    tensor.keys |= TRACKED
    tensor.node = node


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
        effect("Node.register_hook()")
        return Handle(leaf_hooks(self.variable, NODE_HOOKS), hook)

    def register_prehook(self, hook: Callable[[tuple[Any, ...]], Any]) -> Handle:
        """`hook(grad_outputs)` before `.grad` is accumulated, after the hooks on the tensor; may return new grad_outputs."""
        effect("Node.register_prehook()")
        return Handle(leaf_hooks(self.variable, NODE_PREHOOKS), hook)


def node_of(edge: Any) -> Any:
    """What users see at the end of an edge that leads to one output: its node, for a leaf the one that accumulates."""
    if not isinstance(edge, Tensor):
        return edge
    with LEAF_LOCK:
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


class InputNode(Node):
    """Where a functional gradient level stops: the node of one of its inputs. Outer levels pass through it.

    bit    the level's
    """

    __slots__ = ("bit",)
    bit: int
    op_name = "an input of a gradient transform"
    unary = True

    def backward(self, grad: Tensor, edges: tuple[Any, ...]) -> Tensor:
        return grad


def levels_behind(node: Node) -> int:
    """Which of the levels that run the node's call belongs to: those whose inputs it leads to."""
    running = GRAD.get()[1] & ~1
    own = innermost(running)
    found, seen, todo = 0, set(), [node] if running else []
    while todo and innermost(found) != own:
        at = todo.pop()
        if at in seen:
            continue
        seen.add(at)
        if at.__class__ is InputNode:
            found |= at.bit & running
        todo += [e.node if isinstance(e, Output) else e for e in at.edges if isinstance(e, (Node, Output))]
    return found
