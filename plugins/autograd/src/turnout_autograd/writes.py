"""In-place operators on the tape: what may be written, and how histories follow the memory.

A write into a base gives it a new node. A write into a view gives its *base* a `CopySlices` node, and the view's own node is
made anew at its next use by replaying how it came from the base. `refresh` does that for any view whose base was written since
(its record's `seen` is then behind the storage's version).
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

from turnout.errors import AliasError
from turnout.keys import KEYS
from turnout.state import BELOW_AUTOGRAD, DISPATCH
from turnout_aten.errors import tensors as texts
from turnout_aten.tensor.levels import GRAD
from turnout_aten.tensor.storage import View
from turnout_aten.tensor.tensor import Tensor, wrap
from turnout_autograd import errors
from turnout_autograd.graph import Hooks, Kept, Node, Output, attach, hooks_of, next_seq, start

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

_TRACER = KEYS.bit("Tracer")


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


class LevelEpochs(dict[int, int]):
    """Live bit of a functional level -> the clock's epoch when it was entered."""


EPOCHS = LevelEpochs()


def admit(name: str, tensor: Tensor, mask: int) -> None:
    """Raise AliasError when a tracked write into `tensor` is not allowed; `mask` are the levels that track the call."""
    view = tensor.view_of
    root = tensor
    if view is not None:
        root = view.base
        if view.no_grad:
            raise AliasError(texts.no_grad_view_written(name))
        if view.multi:
            raise AliasError(errors.several_views_written(name, _maker(view)))
        if view.maker:
            raise AliasError(errors.custom_view_written(name, view.maker))
        if (tensor.gmask | root.gmask) & mask & 1 and root.node is None:
            raise AliasError(errors.leaf_written(name, True))
        _admit_levels(name, root, mask)
    if tensor.gmask & mask & 1 and tensor.node is None:
        raise AliasError(errors.leaf_written(name, view is not None))
    _admit_levels(name, tensor, mask)


def _admit_levels(name: str, root: Tensor, mask: int) -> None:
    node = root.node if root.gmask else None
    if node.__class__ is InputNode and node.bit & mask:
        raise AliasError(errors.level_input_written(name))
    new = mask & ~root.gmask & ~1
    if new:
        version = root.version()
        if any(new & bit and version < epoch for bit, epoch in EPOCHS.items()):
            raise AliasError(errors.captured_written(name))


def original(tensor: Tensor) -> Tensor:
    """The values of self before a write, with self's history, for formulas that need them.

    The copy is made below Autograd, but a trace must see it: it would be a constant of the graph otherwise.
    """
    include, keep = DISPATCH.get()
    token = DISPATCH.set((include, keep & BELOW_AUTOGRAD | _TRACER))
    try:
        copy = tensor.clone()
    finally:
        DISPATCH.reset(token)
    if tensor.gmask:
        copy.set_gmask(tensor.gmask)
        copy.node = tensor.node
    return copy


def rebase(tensor: Tensor, node: Node, mask: int) -> None:
    """After a tracked write: `node`, whose first edge is self's, becomes the history of what was written."""
    view = tensor.view_of
    old = tensor.node if tensor.gmask else None
    if view is None:
        tensor.set_gmask(mask)
        tensor.node = node
        _move_retained(old, node, tensor)
        return
    base = view.base
    of_base = base.node if base.gmask else None
    slices = CopySlices()
    slices.seq = next_seq()
    slices.extra = None
    slices.edges = ((base.node or base) if base.gmask & mask else None, *node.edges[1:])
    slices.inner = node
    slices.chain = _from_zero(view.chain, base.storage_offset())
    slices.strides = base.stride()
    base.set_gmask(base.gmask | mask)
    base.node = slices
    _move_retained(of_base, slices, base)
    # The view's own node is made at its next use; until then it must not look like a leaf.
    tensor.set_gmask(base.gmask)
    tensor.node = slices
    view.seen = -1
    if _retained_at(old, tensor) is not None:
        refresh(tensor)
        _move_retained(old, tensor.node, tensor)


def _from_zero(chain: tuple[Any, ...], offset: int) -> tuple[Any, ...]:
    """The chain for a tensor laid out as its base, at the start of a storage; the base is at `offset` of its own."""
    op, args, index = chain[0]
    if not offset or op.qualified_name != "aten::as_strided" or args[2] is None:
        return chain
    return ((op, (*args[:2], args[2] - offset), index), *chain[1:])


def turn(tensor: Tensor, node: Node, mask: int) -> None:
    """After an in-place view (`t_`): nothing was written, so the new history is the tensor's own, of a view too.

    `retain_grad` stays where it was: what it has kept has the old shape.
    """
    tensor.set_gmask(mask)
    tensor.node = node
    if tensor.view_of is not None:
        tensor.view_of.seen = tensor.version()


def _retained_at(edge: Any, tensor: Tensor) -> Hooks | None:
    """The hooks where an edge leads, when `retain_grad` was called for it on this tensor."""
    node, index = (edge.node, edge.index) if edge.__class__ is Output else (edge, 0)
    if node is None or node.extra is None:
        return None
    kept = node.extra.retained.get(index)
    return node.extra if kept is not None and kept() is tensor else None


def _move_retained(old: Any, new: Any, tensor: Tensor) -> None:
    """`retain_grad` follows the tensor to its new node."""
    hooks = _retained_at(old, tensor)
    if hooks is not None:
        kept = hooks.retained.pop(old.index if old.__class__ is Output else 0)
        node, index = (new.node, new.index) if new.__class__ is Output else (new, 0)
        hooks_of(node).retained[index] = kept


class CutNode(Node):
    """The history of a view whose base was detached and then written: gradients end here."""

    __slots__ = ()
    op_name = "a view of a tensor that was detached"
    unary = True

    def backward(self, grad: Tensor, edges: tuple[Any, ...]) -> None:
        return None


class CopySlices(Node):
    """A write into a view, as the history of its base.

    inner    the node of the write itself; None once it was freed
    label    its name then
    chain    how the view came from the base
    strides  the base's: some of the chain may see memory and not elements
    """

    __slots__ = ("chain", "inner", "label", "strides")
    chain: tuple[Any, ...]
    inner: Node | None
    label: str
    strides: tuple[int, ...]

    @property
    def op_name(self) -> str:  # type: ignore[override]
        return self.label if self.inner is None else self.inner.op_name

    def backward(self, grad: Tensor, edges: tuple[Any, ...]) -> tuple[Any, ...]:
        """The gradient of the base is `grad` outside the view, and what the write's formula makes of it inside."""
        if self.inner is None:
            raise errors.GradientError(errors.freed(self.label))
        inner = self.inner.plain()
        rest = grad.clone()
        if rest.stride() != self.strides:
            rest = grad.new_empty_strided(grad.shape, self.strides).copy_(grad)
        part = replay(rest, self.chain)
        if GRAD.get()[0]:
            inner = _leading_back(self, inner, rest)
        to_self = inner.edges[0] if edges[0] is not None else None
        given = inner.backward(part.clone(), (to_self, *edges[1:]))
        grads = (given,) if inner.unary else given
        if edges[0] is None:
            return (None, *grads[1:])
        if grads[0] is None:
            part.zero_()
        else:
            part.copy_(grads[0])
        return (rest, *grads[1:])

    def release(self) -> None:
        if self.inner is not None:
            self.inner.release()
            self.label = self.inner.op_name
            self.inner = None


class KeptOfView(Kept):
    """A saved output of a write into a view: it leads back past the write to the base, as the view itself does."""

    __slots__ = ("edge",)

    def __init__(self, kept: Kept, edge: Any) -> None:
        for name in Kept.__slots__:
            setattr(self, name, getattr(kept, name))
        self.edge = edge

    def tensor(self, node: Node, argument: str) -> Tensor:
        return super().tensor(self.edge, argument)


def _leading_back(slices: CopySlices, inner: Node, rest: Tensor) -> Node:
    """A node that does what `inner` does; what it saved as its output is a view of what `slices` made, of the shape of `rest`."""
    outputs = {n: kept for n in type(inner).__slots__ if isinstance(kept := getattr(inner, n, None), Kept)}
    if not outputs:
        return inner
    inner = copy(inner)
    for name, kept in outputs.items():
        # Not a view of `rest`, which may be inside of a vmap over gradients: what was saved is not.
        base = wrap(kept.array, kept.device).new_empty_strided(rest.shape, slices.strides, dtype=rest.dtype)
        attach(base, slices, kept.gmask)
        with _recording(kept.gmask):
            setattr(inner, name, KeptOfView(kept, replay(base, slices.chain).node))
    return inner


def replay(tensor: Tensor, chain: tuple[Any, ...]) -> Tensor:
    """The view of `tensor` that a chain of view operators gives."""
    for op, args, index in chain:
        tensor = op.call_boxed((tensor, *args))
        if index is not None:
            tensor = tensor[index]
    return tensor


def refresh(tensor: Tensor) -> None:
    """Make a view's node anew when its base was written since; does nothing for a view that is up to date.

    Raises AliasError for views that may not follow their base: those made under no_grad, and one of several made together.
    """
    view = tensor.view_of
    assert view is not None
    version = tensor.version()
    if view.seen == version:
        return
    base = view.base
    if not base.gmask and tensor.node is None:
        view.seen = version
        return
    if view.no_grad or view.multi or view.maker:
        raise AliasError(errors.view_left_behind(_writer(base), _kind(view)))
    if not base.gmask:
        tensor.node = CutNode()
        start(tensor.node, (None,))
        view.seen = version
        return
    old = tensor.node
    with _recording(base.gmask):
        again = replay(base, view.chain)
    tensor.set_gmask(again.gmask)
    tensor.node = again.node
    view.seen = version
    _move_retained(old, again.node, tensor)


def _writer(base: Tensor) -> str:
    node = base.node.node if isinstance(base.node, Output) else base.node
    return getattr(node, "op_name", "") or "an operator"


def _kind(view: View) -> str:
    if view.no_grad:
        return errors.MADE_UNRECORDED
    if view.maker:
        return errors.made_in(view.maker)
    return errors.made_together(_maker(view))


def _maker(view: View) -> str:
    """The operator that gave a view together with others."""
    return next(op.qualified_name for op, _, index in view.chain if index is not None)


def _recording(mask: int) -> AbstractContextManager[None]:
    from contextlib import contextmanager

    @contextmanager
    def recording() -> Iterator[None]:
        include, keep = DISPATCH.get()
        grad = GRAD.set((mask, GRAD.get()[1]))
        token = DISPATCH.set((include & ~_SILENT, (keep | _ALWAYS) & ~_SILENT))
        try:
            yield
        finally:
            DISPATCH.reset(token)
            GRAD.reset(grad)

    return recording()


# Refreshing must neither be traced nor cast, and is recorded even where it is needed below Autograd.
_SILENT = _TRACER
_ALWAYS = KEYS.bit("Autograd") | KEYS.bit("AutogradOther") | KEYS.bit("ADInplaceOrView")


def current_node(tensor: Tensor) -> Any:
    """The node that made a tensor, refreshed where it is a view; None for leaves, inputs of levels that run, and untracked."""
    if tensor.view_of is not None:
        refresh(tensor)
    node = tensor.node
    if node.__class__ is InputNode and node.bit & GRAD.get()[1]:
        return None
    return node.node if node.__class__ is Output else node
