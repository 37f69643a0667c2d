"""In-place operators on the tape: what may be written, and how histories follow the memory.

A write into a base gives it a new node. A write into a view gives its *base* a `CopySlices` node, and the view's own node is
made anew at its next use by replaying how it came from the base. `refresh` does that for any view whose base was written since
(its record's `seen` is then behind the storage's version).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.errors import AliasError
from turnout.keys import KEYS
from turnout.state import BELOW_AUTOGRAD, DISPATCH, GRAD
from turnout.tensors import Tensor, View
from turnout_autograd import errors
from turnout_autograd.graph import Node, Output, hooks_of, next_seq, start

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
            raise AliasError(errors.no_grad_view_written(name))
        if view.multi:
            raise AliasError(errors.several_views_written(name, _maker(view)))
        if view.__class__ is not View:
            raise AliasError(errors.custom_view_written(name, view.maker))  # type: ignore[attr-defined]
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
    if view is None:
        old = tensor.node if tensor.gmask else None
        tensor.set_gmask(mask)
        tensor.node = node
        _move_retained(old, node, tensor)
        return
    base = view.base
    slices = CopySlices()
    slices.seq = next_seq()
    slices.extra = None
    slices.edges = ((base.node or base) if base.gmask & mask else None, *node.edges[1:])
    slices.inner = node
    slices.chain = view.chain
    by_memory = any(op.qualified_name == "aten::as_strided" for op, _, _ in view.chain)
    slices.strides = base.stride() if by_memory else None
    base.set_gmask(base.gmask | mask)
    base.node = slices
    # The view's own node is made at its next use; until then it must not look like a leaf.
    tensor.set_gmask(base.gmask)
    tensor.node = slices
    view.seen = -1


def turn(tensor: Tensor, node: Node, mask: int) -> None:
    """After an in-place view (`t_`): nothing was written, so the new history is the tensor's own, of a view too."""
    old = tensor.node if tensor.gmask else None
    tensor.set_gmask(mask)
    tensor.node = node
    _move_retained(old, node, tensor)
    if tensor.view_of is not None:
        tensor.view_of.seen = tensor.version()


def _move_retained(old: Any, node: Node, tensor: Tensor) -> None:
    """`retain_grad` follows the tensor to its new node."""
    index = 0
    if old.__class__ is Output:
        old, index = old.node, old.index
    if old is None or old.extra is None:
        return
    kept = old.extra.retained.get(index)
    if kept is not None and kept() is tensor:
        del old.extra.retained[index]
        hooks_of(node).retained[0] = kept


class CutNode(Node):
    """The history of a view whose base was detached and then written: gradients end here."""

    __slots__ = ()
    op_name = "a view of a tensor that was detached"
    unary = True

    def backward(self, grad: Tensor, edges: tuple[Any, ...]) -> None:
        return None


class CopySlices(Node):
    """A write into a view, as the history of its base.

    inner    the node of the write itself
    chain    how the view came from the base
    strides  the base's, where the chain sees memory and not elements (as_strided); else None
    """

    __slots__ = ("chain", "inner", "strides")
    chain: tuple[Any, ...]
    inner: Node
    strides: tuple[int, ...] | None

    @property
    def op_name(self) -> str:  # type: ignore[override]
        return self.inner.op_name

    def backward(self, grad: Tensor, edges: tuple[Any, ...]) -> tuple[Any, ...]:
        """The gradient of the base is `grad` outside the view, and what the write's formula makes of it inside."""
        strides = self.strides
        rest = grad.clone() if strides is None else grad.new_empty_strided(grad.shape, strides).copy_(grad)
        part = replay(rest, self.chain)
        inner = self.inner
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
        self.inner.release()


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
    if view.no_grad or view.multi or view.__class__ is not View:
        raise AliasError(errors.view_left_behind(_writer(base), _kind(view)))
    view.seen = version
    if not base.gmask:
        tensor.node = CutNode()
        start(tensor.node, (None,))
        return
    with _recording(base.gmask):
        again = replay(base, view.chain)
    tensor.set_gmask(again.gmask)
    tensor.node = again.node


def _writer(base: Tensor) -> str:
    node = base.node.node if isinstance(base.node, Output) else base.node
    return getattr(node, "op_name", "") or "an operator"


def _kind(view: View) -> str:
    if view.no_grad:
        return errors.MADE_UNRECORDED
    if view.__class__ is not View:
        return errors.made_in(view.maker)  # type: ignore[attr-defined]
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
    """The node that made a tensor, refreshed where it is a view; None for leaves and untracked tensors."""
    if tensor.view_of is not None:
        refresh(tensor)
    node = tensor.node
    return node.node if node.__class__ is Output else node
