"""The tape: nodes, the edges between them, and what nodes save.

A node stands for one recorded call and has one output, whose gradient `backward` turns into those of its inputs. Operators with
several differentiable outputs are reached through `Output`, which names one of them. So an edge is one object: a node, an
`Output`, a leaf tensor, or None where no gradient is wanted. `seq` rises with every node: edges lead to smaller ones.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, NoReturn
from weakref import ref

from turnout.errors import AliasError, CallError
from turnout.keys import TRACKED
from turnout.operators.values import tensors_in
from turnout.state import DISPATCH, FRESH
from turnout_aten.tensor.levels import GRAD
from turnout_aten.tensor.tensor import Tensor, wrap
from turnout_autograd import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from turnout.devices import Device
    from turnout.dtypes import DType
    from turnout_aten.tensor.storage import Storage

next_seq = count().__next__


class Node:
    """One recorded call.

    edges  one per differentiable argument, list elements in a row
    seq    when it was recorded
    extra  None, or the hooks
    unary  whether `backward` returns one gradient instead of a tuple of as many as there are edges
    count  how many outputs it has, where that is not one
    """

    __slots__ = ("edges", "extra", "seq")

    op_name = ""
    unary = False
    several = False

    count: int
    edges: tuple[Any, ...]
    extra: Hooks | None
    seq: int

    def backward(self, grad: Any, edges: tuple[Any, ...]) -> Any:
        """The gradients of the arguments; `edges` is the node's own with None for those that nobody needs now."""
        raise NotImplementedError(f"{type(self).__name__}.backward")

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
        from turnout_autograd.leaves import node_of

        return tuple((e.node, e.index) if isinstance(e, Output) else (node_of(e), 0) for e in self.edges)

    def register_hook(self, hook: Callable[[tuple[Any, ...], tuple[Any, ...]], Any]) -> Handle:
        """`hook(grad_inputs, grad_outputs)` after the node ran; may return new grad_inputs.

        Inside of functional transforms it runs for the gradient of the innermost one that the node belongs to.
        # differs from torch: inside vmap it sees the gradients of all examples; a hook on a tensor sees those of one.
        """
        return Handle(hooks_of(self).post, self._for_its_level(hook))

    def register_prehook(self, hook: Callable[[tuple[Any, ...]], Any]) -> Handle:
        """`hook(grad_outputs)` before the node runs; may return new grad_outputs."""
        return Handle(hooks_of(self).pre, self._for_its_level(hook))

    def _for_its_level(self, hook: Callable[..., Any]) -> Callable[..., Any]:
        from turnout_autograd.levels import for_its_level, levels_behind

        return for_its_level(hook, levels_behind(self))

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dict for whatever the user wants to keep with the node."""
        return hooks_of(self).metadata

    def __call__(self, *grads: Tensor | None) -> Any:
        """The gradients of the arguments for those of the outputs, without hooks; one of them, or a tuple.

        Raises CallError for a wrong number of gradients, and what `backward` raises for saved tensors that were changed or freed.
        """
        wanted = self.count if self.several else 1
        if len(grads) != wanted or not all(g is None or isinstance(g, Tensor) for g in grads):
            raise CallError(errors.node_called(self.op_name, wanted, grads))
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


class Hooks:
    """The hooks of a node: on its outputs by index, before it, after it, and the tensors that retain their gradient."""

    __slots__ = ("line", "metadata", "outputs", "post", "pre", "retained")

    def __init__(self) -> None:
        self.outputs: dict[int, dict[int, Any]] = {}
        self.retained: dict[int, ref[Tensor]] = {}
        self.pre: dict[int, Any] = {}
        self.post: dict[int, Any] = {}
        self.metadata: dict[Any, Any] = {}
        self.line = ""


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


_next_hook = count().__next__


class Handle:
    """Removes a hook. A context manager too."""

    __slots__ = ("_hooks", "_key")

    def __init__(self, hooks: dict[int, Any], hook: Any) -> None:
        self._hooks = hooks
        self._key = _next_hook()
        hooks[self._key] = hook

    def remove(self) -> None:
        """Take the hook away; doing it again does nothing."""
        self._hooks.pop(self._key, None)

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.remove()


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


# ---- saved inputs are the tensors themselves with the version they had


class _Freed:
    """Stands in for saved values that were freed: its version is never the saved one."""

    __slots__ = ()
    storage = None
    ver = -1


FREED: Any = _Freed()


def spoiled(node: Node, argument: str, tensor: Any, version: int) -> NoReturn:
    """Raise the error for a saved tensor that is not at the version it was saved with."""
    if tensor is FREED:
        raise errors.GradientError(errors.freed(node.op_name))
    raise AliasError(errors.changed(node.op_name, argument, tensor, version, tensor.version()))


def check_saved(node: Node, argument: str, tensor: Any, version: int) -> Any:
    """The saved tensor, when it may still be used. Raises GradientError when it was freed, AliasError when it was changed."""
    storage = tensor.storage
    if (tensor.ver if storage is None else storage.ver) != version:
        spoiled(node, argument, tensor, version)
    return tensor


# ---- saved outputs: without the tensor, which holds the node


class Kept:
    """A saved output: everything of the tensor but its history, which is the node's own."""

    __slots__ = ("array", "device", "gmask", "index", "offset", "storage", "version")

    def __init__(self, tensor: Tensor, gmask: int, index: int = -1) -> None:
        storage: Storage = tensor.shared_storage()
        self.array = tensor.array
        self.device = tensor.device
        self.storage = storage
        self.offset = tensor.offset
        self.version = storage.ver
        self.gmask = gmask
        self.index = index

    def tensor(self, node: Node, argument: str) -> Tensor:
        """The output again, as the node's output where that is recorded. Raises AliasError when it was changed."""
        made = wrap(self.array, self.device)
        made.storage = self.storage
        made.offset = self.offset
        if self.storage.ver != self.version:
            spoiled(node, argument, made, self.version)
        if self.gmask & GRAD.get()[0]:
            attach(made, node if self.index < 0 else Output(node, self.index), self.gmask)
        return made


class _FreedOutput:
    __slots__ = ()

    def tensor(self, node: Node, argument: str) -> NoReturn:
        raise errors.GradientError(errors.freed(node.op_name))


FREED_OUTPUT: Any = _FreedOutput()


# ---- fitting a gradient to its argument


def is_plain(tensor: Tensor) -> bool:
    """Whether a call on it would meet nothing but its backend's kernel: what that would do may then be done without the call."""
    if GRAD.get()[0] or DISPATCH.get() is not FRESH:
        return False
    return tensor.keys | TRACKED == tensor.device.backend.keys | TRACKED


Meta = tuple[tuple[int, ...], "DType", "Device"]


def metas(*tensors: Tensor | None) -> tuple[Meta | None, ...]:
    """What `fit` needs to know of arguments that were broadcast, promoted, or came from another device."""
    return tuple(None if t is None else (t.array.shape, t.dtype, t.device) for t in tensors)


def fit(grad: Tensor, meta: Meta) -> Tensor:
    """A gradient summed over broadcast dims, and with the dtype and device of the argument it belongs to."""
    from turnout_autograd.formulas import sum_to

    shape, dtype, device = meta
    if grad.array.shape != shape:
        grad = sum_to(grad, shape)
    if grad.dtype is not dtype:
        grad = grad.real if grad.is_complex() and dtype.category < grad.dtype.category else grad
        grad = grad.to(dtype=dtype)
    if grad.device is not device:
        grad = grad.to(device=device)
    return grad


def fit_to_leaf(grad: Tensor, leaf: Tensor) -> Tensor:
    """The same for a leaf, which says itself what it needs."""
    a = grad.array
    b = leaf.array
    try:
        if a.shape == b.shape and a.dtype is b.dtype and grad.device is leaf.device:
            return grad
    except AttributeError:  # an array without dtype
        pass
    if not _fits(grad.shape, leaf.shape):
        raise errors.GradientError(errors.leaf_shape(grad, leaf))
    return fit(grad, (b.shape, leaf.dtype, leaf.device))


def _fits(shape: tuple[int, ...], leaf: tuple[int, ...]) -> bool:
    """Whether `leaf` broadcasts to `shape`."""
    ahead = len(shape) - len(leaf)
    return ahead >= 0 and all(n in (1, m) for n, m in zip(leaf, shape[ahead:], strict=True))
