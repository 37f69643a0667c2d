"""Writes into the input of a forward level: the tensor that it was made from shares its memory, and its history too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout_aten.tensor.storage import owner_of
from turnout_autograd.duals.carried import SOURCE, tangents_of, written
from turnout_autograd.recording.inplace_writes import rebase
from turnout_autograd.recording.views import refresh

if TYPE_CHECKING:
    from turnout_aten.tensor.tensor import Tensor
    from turnout_autograd.duals.levels import ForwardLevel


def history(tensor: Tensor) -> tuple[int, Any]:
    """The levels that track the memory of a tensor, and where its gradient comes from."""
    root = owner_of(tensor)
    return root.gmask, root.node


def follow_sources(tensor: Tensor, before: tuple[int, Any]) -> None:
    """After a write into an input of a level: the tensor that it was made from has the same tangents, and its history if the
    write was recorded. `before` is its `history` before the write."""
    is_recorded = history(tensor) != before
    root = owner_of(tensor)
    while root.extra is not None and SOURCE in root.extra:
        source, level = root.extra[SOURCE]
        found: dict[ForwardLevel, Any] = tangents_of(root) or {}
        for other in {*found, *(tangents_of(source) or {})} - {level}:
            written(source, other, found.get(other))
        if is_recorded and (source.gmask != root.gmask or source.node is not root.node):
            _take_history(source, root)
        root = source


def _take_history(source: Tensor, root: Tensor) -> None:
    if source.view_of is None or root.node is None:
        source.set_gmask(root.gmask)
        source.node = root.node
        return
    # As any write into a view: it becomes the history of the base, which leads back to both.
    rebase(source, root.node, root.gmask)
    refresh(source)
    root.set_gmask(source.gmask)
    root.node = source.node
