"""Views on the tape: how a view's history follows the memory that it shares with its base.

A write into a view becomes the history of its base, and the view's own node is made anew at its next use by replaying how it
came from the base. `refresh` does that for any view whose base was written since (its record's `seen` is then behind the
storage's version).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.errors import AliasError
from turnout.guards import during
from turnout.keys import KEYS
from turnout.state import BELOW_ADINPLACEORVIEW, StateChange
from turnout_aten.tensor.levels import GRAD
from turnout_aten.tensor.storage import View
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd import errors
from turnout_autograd.duals.carried import replay
from turnout_autograd.engine.nodes import InputNode, Node, Output, hooks_of, start

if TYPE_CHECKING:
    from turnout_autograd.engine.hook_tables import Hooks

TRACER = KEYS.bit("Tracer")


def retained_at(edge: Any, tensor: Tensor) -> Hooks | None:
    """The hooks where an edge leads, when `retain_grad` was called for it on this tensor."""
    node, index = (edge.node, edge.index) if edge.__class__ is Output else (edge, 0)
    if node is None or node.extra is None:
        return None
    kept = node.extra.retained.get(index)
    return node.extra if kept is not None and kept() is tensor else None


def move_retained(old: Any, new: Any, tensor: Tensor) -> None:
    """`retain_grad` follows the tensor to its new node."""
    hooks = retained_at(old, tensor)
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
        raise AliasError(errors.recording.view_left_behind(_writer(base), _kind(view)))
    if not base.gmask:
        tensor.node = CutNode()
        start(tensor.node, (None,))
        view.seen = version
        return
    old = tensor.node
    again = replayed(base.gmask, base, view.chain)
    tensor.set_gmask(again.gmask)
    tensor.node = again.node
    view.seen = version
    move_retained(old, again.node, tensor)


def _writer(base: Tensor) -> str:
    node = base.node.node if isinstance(base.node, Output) else base.node
    return getattr(node, "op_name", "") or "an operator"


def _kind(view: View) -> str:
    if view.no_grad:
        return errors.recording.MADE_UNRECORDED
    if view.maker:
        return errors.recording.made_in(view.maker)
    return errors.recording.made_together(maker_of(view))


def maker_of(view: View) -> str:
    """The operator that gave a view together with others."""
    return next(op.qualified_name for op, _, index in view.chain if index is not None)


def replayed(mask: int, base: Tensor, chain: Any) -> Tensor:
    """The view of `base` that a chain makes, recorded for the levels of `mask`."""
    return during(GRAD, (mask, GRAD.get()[1]), _REPLAYING.run, replay, base, chain)


# Refreshing must neither be traced nor cast, and is recorded even where it is needed below Autograd.
_REPLAYING = StateChange(drops=TRACER, lifts=~BELOW_ADINPLACEORVIEW, excludes=TRACER)


def current_node(tensor: Tensor) -> Any:
    """The node that made a tensor, refreshed where it is a view; None for leaves, inputs of levels that run, and untracked."""
    if tensor.view_of is not None:
        refresh(tensor)
    node = tensor.node
    if node.__class__ is InputNode and node.bit & GRAD.get()[1]:
        return None
    return node.node if node.__class__ is Output else node


def refresh_if_view(tensor: Any) -> None:
    if getattr(tensor, "view_of", None) is not None:
        refresh(tensor)
