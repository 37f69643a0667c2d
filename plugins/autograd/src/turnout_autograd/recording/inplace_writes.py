"""In-place operators on the tape: what may be written, and the new history of what was.

A write into a base gives it a new node. A write into a view gives its *base* a `CopySlices` node; see `views` for the view.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

from turnout.config.effects import effect
from turnout.errors import AliasError, CallError
from turnout.state import BELOW_AUTOGRAD, StateChange
from turnout_aten.errors import tensors as texts
from turnout_aten.tensor.levels import GRAD
from turnout_aten.tensor.tensor import Tensor, wrap
from turnout_autograd import errors
from turnout_autograd.duals.carried import carry_all, from_zero, replay
from turnout_autograd.engine.nodes import InputNode, Node, attach, next_seq
from turnout_autograd.engine.recorded_levels import EPOCHS
from turnout_autograd.engine.saved_tensors import Kept
from turnout_autograd.recording.views import TRACER, maker_of, move_retained, refresh, replayed, retained_at

if TYPE_CHECKING:
    from collections.abc import Sequence

_COPYING = StateChange(lifts=TRACER, excludes=~BELOW_AUTOGRAD)


def admit(name: str, tensor: Tensor, mask: int) -> None:
    """Raise AliasError when a tracked write into `tensor` is not allowed; `mask` are the levels that track the call."""
    view = tensor.view_of
    root = tensor
    if view is not None:
        root = view.base
        if view.no_grad:
            raise AliasError(texts.no_grad_view_written(name))
        if view.multi:
            raise AliasError(errors.recording.several_views_written(name, maker_of(view)))
        if view.maker:
            raise AliasError(errors.recording.custom_view_written(name, view.maker))
        if (tensor.gmask | root.gmask) & mask & 1 and root.node is None:
            raise AliasError(texts.leaf_written(name, "self", True))
        _admit_levels(name, root, mask)
    if tensor.gmask & mask & 1 and tensor.node is None:
        raise AliasError(texts.leaf_written(name, "self", view is not None))
    _admit_levels(name, tensor, mask)


def _admit_levels(name: str, root: Tensor, mask: int) -> None:
    node = root.node if root.gmask else None
    if node.__class__ is InputNode and node.bit & mask:
        raise AliasError(errors.recording.level_input_written(name))
    new = mask & ~root.gmask & ~1
    if new:
        version = root.version()
        if any(new & bit and version < epoch for bit, epoch in EPOCHS.copy().items()):
            raise AliasError(errors.recording.captured_written(name))


def original(tensor: Tensor) -> Tensor:
    """The values of self before a write, with self's history, for formulas that need them.

    The copy is made below Autograd, but a trace must see it: it would be a constant of the graph otherwise.
    """
    copy: Tensor = _COPYING.run(tensor.clone)
    if tensor.gmask:
        copy.set_gmask(tensor.gmask)
        copy.node = tensor.node
    carry_all(tensor, copy)
    return copy


def rebase(tensor: Tensor, node: Node, mask: int) -> None:
    """After a tracked write: `node`, whose first edge is self's, becomes the history of what was written."""
    view = tensor.view_of
    old = tensor.node if tensor.gmask else None
    if view is None:
        tensor.set_gmask(mask)
        tensor.node = node
        move_retained(old, node, tensor)
        return
    base = view.base
    of_base = base.node if base.gmask else None
    slices = CopySlices()
    slices.seq = next_seq()
    slices.extra = None
    slices.edges = ((base.node or base) if base.gmask & mask else None, *node.edges[1:])
    slices.inner = node
    slices.chain = from_zero(view.chain, base.storage_offset())
    slices.strides = base.stride()
    base.set_gmask(base.gmask | mask)
    base.node = slices
    move_retained(of_base, slices, base)
    # The view's own node is made at its next use; until then it must not look like a leaf.
    tensor.set_gmask(base.gmask)
    tensor.node = slices
    view.seen = -1
    if retained_at(old, tensor) is not None:
        refresh(tensor)
        move_retained(old, tensor.node, tensor)


def turn(tensor: Tensor, node: Node, mask: int) -> None:
    """After an in-place view (`t_`): nothing was written, so the new history is the tensor's own, of a view too.

    `retain_grad` stays where it was: what it has kept has the old shape.
    """
    tensor.set_gmask(mask)
    tensor.node = node
    if tensor.view_of is not None:
        tensor.view_of.seen = tensor.version()


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
            raise errors.GradientError(errors.passes.freed(self.label))
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

    __slots__ = ("edge", "kept")

    def __init__(self, kept: Kept, edge: Any) -> None:
        self.kept = kept
        self.edge = edge

    def tensor(self, node: Node, argument: str) -> Tensor:
        return self.kept.tensor(self.edge, argument)


def _leading_back(slices: CopySlices, inner: Node, rest: Tensor) -> Node:
    """A node that does what `inner` does; what it saved as its output is a view of what `slices` made, of the shape of `rest`."""
    outputs = {n: kept for n in type(inner).__slots__ if isinstance(kept := getattr(inner, n, None), Kept)}
    if not outputs:
        return inner
    inner = copy(inner)
    for name, found in outputs.items():
        kept = found.kept if isinstance(found, KeptOfView) else found
        # Not a view of `rest`, which may be inside of a vmap over gradients: what was saved is not.
        base = wrap(kept.array, kept.device).new_empty_strided(rest.shape, slices.strides, dtype=rest.dtype)
        attach(base, slices, kept.gmask)
        setattr(inner, name, KeptOfView(kept, replayed(kept.gmask, base, slices.chain).node))
    return inner


def increment_version(tensor: Tensor | Sequence[Tensor]) -> None:
    """Tell autograd that something other than an operator wrote into tensors. Raises CallError for anything but tensors.

    Arguments:
        tensor: the tensor, or the tensors

    Example:
        >>> x = turnout.ones(2)
        >>> before = x.version()
        >>> turnout.autograd.graph.increment_version(x)
        >>> x.version() > before
        True
    """
    effect("increment_version()")
    written = tuple(tensor) if isinstance(tensor, (tuple, list)) else (tensor,)
    for each in written:
        if not isinstance(each, Tensor):
            raise CallError(errors.recording.not_incremented(each))
    for each in written:
        each.bump_version()
