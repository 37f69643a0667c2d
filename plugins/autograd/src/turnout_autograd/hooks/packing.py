"""`saved_tensors_hooks`: what nodes save passes through a function, and back through another one when backward needs it.

While such a context is entered, the key SavedTensors is in the state, above Autograd: a call goes on below it, then what its new
nodes saved is replaced by what `pack` made of it, and each such node becomes one of a subclass that unpacks before its formula
runs. A program without hooks has nothing of this on any path.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

from turnout.config.effects import effect
from turnout.errors import AliasError, CallError
from turnout.guards import Changes, Guard
from turnout.keys import KEYS
from turnout.operators import Operator
from turnout.operators.kernels import INTERNAL, Kernel
from turnout.state import StateChange
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd import errors
from turnout_autograd.duals.carried import Tangents, give_all, tangents_of
from turnout_autograd.duals.levels import FORWARD
from turnout_autograd.engine.nodes import Node, Output, attach, made_since, next_seq, start
from turnout_autograd.engine.recorded_levels import recording
from turnout_autograd.engine.saved_tensors import DualKept, Kept, Saved
from turnout_autograd.recording.inplace_writes import CopySlices, KeptOfView

KEY = "SavedTensors"
Pack = Callable[[Tensor], Any]
Unpack = Callable[[Any], Tensor]
# The pairs of hooks that are entered here, innermost last, and why entering more is refused now.
HOOKS: ContextVar[Sequence[tuple[Pack, Unpack]]] = ContextVar("turnout_autograd.saved_tensors_hooks", default=())
_DISABLED: ContextVar[Sequence[str]] = ContextVar("turnout_autograd.saved_tensors_hooks_disabled", default=())


class saved_tensors_hooks(Guard):
    """While entered, tensors are saved for backward as `pack(tensor)`, and `unpack` of that stands for them when they are needed.

    pack    gets a tensor without history over the same memory; returns anything, and may not write into the tensor
    unpack  gets that; returns a tensor with the same values, shape, dtype and device

    The innermost context counts. A saved tensor that was packed is not checked for later writes: what was packed is used. Raises
    GradientError where hooks are disabled (`disable_saved_tensors_hooks`).
    """

    def __init__(self, pack: Pack, unpack: Unpack) -> None:
        self.pack_hook = pack
        self.unpack_hook = unpack

    def sets(self) -> Changes:
        effect("saved_tensors_hooks()")
        for message in _DISABLED.get():
            raise errors.GradientError(message)
        return (HOOKS, [*HOOKS.get(), (self.pack_hook, self.unpack_hook)]), StateChange(includes=KEYS.bit(KEY)).here()


class save_on_cpu(saved_tensors_hooks):
    """While entered, copies on the cpu are saved; each goes back to its device when it is needed.

    pin_memory  accepted for programs written for PyTorch; memory is not pinned
    """

    def __init__(self, pin_memory: bool = False) -> None:
        super().__init__(lambda tensor: (tensor.device, tensor.to("cpu", copy=True)), lambda packed: packed[1].to(packed[0]))


class allow_mutation_on_saved_tensors(saved_tensors_hooks):
    """While entered, copies are saved, so that tensors may be written before backward has used them.

    # differs from torch: `allow_mutation_on_saved_tensors` copies a tensor when it is saved, not when a saved tensor is written.
    """

    def __init__(self) -> None:
        super().__init__(lambda tensor: tensor.clone(), lambda copy: copy)


class disable_saved_tensors_hooks(Guard):
    """While entered, entering `saved_tensors_hooks` raises GradientError with the text `error_message`."""

    def __init__(self, error_message: str) -> None:
        self._message = error_message

    def sets(self) -> Changes:
        if HOOKS.get():
            raise errors.GradientError(self._message)
        return ((_DISABLED, [self._message]),)


def packing(op: Operator) -> Any:
    """The kernel of one operator at the key."""
    below = ~KEYS.bit(KEY)
    written = op.schema.mutated_places

    def pack_saved(ks: int, *args: Any) -> Any:
        ks &= below
        if written:
            args = _apart(args, written)
        before = next_seq()
        result = op.lookup(ks)(ks, *args)
        hooks = HOOKS.get()
        if hooks:
            for node in made_since(before, args, result):
                pack(node, *hooks[-1])
        return result

    return Kernel(pack_saved, INTERNAL, label=f"pack what {op.qualified_name} saves")


def _apart(args: tuple[Any, ...], written: tuple[int, ...]) -> tuple[Any, ...]:
    """Arguments over the memory that a call writes, as in `x.mul_(x)`, in copies: it is packed after the write."""
    targets = [args[i] for i in written if isinstance(args[i], Tensor)]
    return tuple(
        arg.clone()
        if i not in written and isinstance(arg, Tensor) and any(_is_same_memory(arg, target) for target in targets)
        else arg
        for i, arg in enumerate(args)
    )


def _is_same_memory(arg: Tensor, target: Tensor) -> bool:
    """Whether they may share elements; those that overlap in part are left for the call to refuse."""
    return arg.is_alias_of(target) and not target.device.backend.partly_overlap(target.array, arg.array)


def pack(node: Node, pack_hook: Pack, unpack_hook: Unpack) -> None:
    """Replace what a node saved; does nothing for a node that was packed before."""
    if isinstance(node, CopySlices) and node.inner is not None:
        node = node.inner
    cls = type(node)
    found: dict[str, Any] = {}
    for name in cls.__slots__:
        saved = getattr(node, name, None)
        if isinstance(saved, (Kept, Tensor)):
            found[name] = packed(node, saved, pack_hook, unpack_hook)
        elif isinstance(saved, (list, tuple)) and any(isinstance(each, Tensor) for each in saved):
            found[name] = [Packed(t, pack_hook, unpack_hook) if isinstance(t, Tensor) else t for t in saved]
    if found:
        for name, value in found.items():
            setattr(node, name, value)
        if cls not in _CLASSES:
            _CLASSES[cls] = _packed_class(cls)
        node.__class__ = _CLASSES[cls]


def packed(node: Node, saved: Any, pack_hook: Pack, unpack_hook: Unpack) -> Packed:
    """One saved tensor packed: the tensor, (tensor, version), or for an output of the node a `Kept`."""
    if isinstance(saved, Kept):
        return Packed(saved.tensor(node, "an output"), pack_hook, unpack_hook, saved)
    return Packed(saved if isinstance(saved, Tensor) else saved[0], pack_hook, unpack_hook)


class Packed(Saved):
    """What `pack` made of a saved tensor, and the history and tangents that what `unpack` makes of that is given.

    kept  of a saved output: where it stands among the node's
    """

    __slots__ = ("_edge", "_gmask", "_index", "_is_output", "_packed", "_tangents", "_unpack")

    def __init__(self, tensor: Tensor, pack_hook: Pack, unpack_hook: Unpack, kept: Kept | None = None) -> None:
        self._unpack = unpack_hook
        self._is_output = kept is not None
        self._index = -1 if kept is None else kept.index
        self._gmask = tensor.gmask if kept is None else kept.gmask
        # A node does not hold its outputs, nor what leads to them.
        self._edge = None if kept is not None or not tensor.gmask else tensor.node or tensor
        self._tangents = tangents_of(tensor) if tensor.keys & FORWARD else None
        given = tensor.detach()
        version = given.version()
        self._packed = recording(0, pack_hook, given)
        if given.version() != version:
            raise AliasError(errors.hooks.pack_hook_wrote())

    def unpacked(self, node: Node) -> Any:
        """The saved tensor again, or for an output of `node` its `Kept`. Raises CallError when `unpack` returns no tensor."""
        tensor = self._unpack(self._packed)
        if not isinstance(tensor, Tensor):
            raise CallError(errors.hooks.unpack_hook_result(node.op_name, tensor))
        if not self._is_output and (self._gmask or self._tangents):
            tensor = tensor.detach()
        tensor = tensor.history_owner()
        if self._is_output:
            kept = Kept(tensor, self._gmask, self._index)
            return KeptOfView(DualKept(kept, self._tangents) if self._tangents else kept, node)
        if self._gmask:
            attach(tensor, _edge_of(self._edge), self._gmask)
        if self._tangents:
            give_all(self._tangents, tensor)
        return tensor

    def carrying(self, index: int, tensor: Tensor, tangents: Tangents) -> Saved:
        if self._is_output and self._index == index:
            self._tangents = tangents
        return self


class UnpackedLeaf(Node):
    """Leads from the unpacked values of a leaf to the leaf itself."""

    __slots__ = ()
    op_name = "a saved leaf"
    unary = True

    def backward(self, grad: Tensor, edges: tuple[Any, ...]) -> Tensor:
        return grad


def _edge_of(edge: Any) -> Any:
    if isinstance(edge, (Node, Output)):
        return edge
    node = UnpackedLeaf()
    start(node, (edge,))
    return node


_CLASSES: dict[type[Node], type[Node]] = {}


def _packed_class(cls: type[Node]) -> type[Node]:
    """The class of `cls`'s nodes whose saved tensors are packed."""

    def plain(node: Node) -> Node:
        unpacked = cls.__new__(cls)
        start(unpacked, node.edges)
        for name in cls.__slots__:
            value = getattr(node, name, _NOTHING)
            if value is _NOTHING:
                continue
            if isinstance(value, Packed):
                value = value.unpacked(node)
                _set_version(unpacked, name, value)
            elif isinstance(value, list) and any(isinstance(each, Packed) for each in value):
                value = [each.unpacked(node) if isinstance(each, Packed) else each for each in value]
                _set_version(unpacked, name, value)
            elif hasattr(unpacked, name):
                continue  # a version, set with its tensor
            setattr(unpacked, name, value)
        return unpacked

    def backward(node: Node, grad: Any, edges: tuple[Any, ...]) -> Any:
        return cls.backward(plain(node), grad, edges)

    return type(cls.__name__, (cls,), {"__slots__": (), "plain": plain, "backward": backward})


_NOTHING = object()


def _set_version(node: Node, name: str, value: Any) -> None:
    """What is compared with a saved tensor's version before it is used: the one that it has now."""
    if isinstance(value, Tensor):
        setattr(node, f"{name}_version", value.version())
    elif isinstance(value, list):
        setattr(node, f"{name}_version", [0 if t is None else t.version() for t in value])
