"""The tangents of a tensor: read, set, and kept true for memory that several tensors share.

A tangent is a value: it is replaced and never written. So it may be the tangent of several tensors, and the memory of something
else. A write into a view replaces the tangent of its base; a view whose base was written since takes its tangent from the base
again, through the operators that made the view.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from turnout.guards import during, restore
from turnout.registry import find_operator
from turnout_aten.tensor.grad_mode import tracked_levels
from turnout_aten.tensor.levels import GRAD, lower, raise_
from turnout_autograd.duals.levels import FORWARD, ForwardLevel, active, in_columns

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnout_aten.tensor.tensor import Tensor

TANGENTS = "tangents"
SOURCE = "entered from"
_AS_STRIDED = "aten::as_strided"
_zeros_like = find_operator("aten::zeros_like").stub
_clone = find_operator("aten::clone").stub
_copy = find_operator("aten::copy_").stub
_zero = find_operator("aten::zero_").stub
_new_empty_strided = find_operator("aten::new_empty_strided").stub


class Tangents(dict[ForwardLevel, Any]):
    """Level -> tangent.

    seen    the version of the memory that a view's tangents belong to
    behind  the levels whose tangents a view must still take from its base: they were not active when it took the others
    """

    __slots__ = ("behind", "seen")

    def __init__(self, seen: int, behind: frozenset[ForwardLevel] = frozenset()) -> None:
        self.seen = seen
        self.behind = behind

    def fits(self, view: Tensor) -> bool:
        """Whether these are the view's, at the levels that are active."""
        return self.seen == view.version() and (not self.behind or self.behind.isdisjoint(active()))


def tangents_of(tensor: Tensor) -> Tangents | None:
    """What a tensor carries, or None. Those of a view whose memory was written since are made anew."""
    extra = tensor.extra
    found: Tangents | None = None if extra is None else extra.get(TANGENTS)
    if tensor.view_of is not None and (found is None or not found.fits(tensor)):
        return _from_base(tensor, found)
    return found


def tangent_of(tensor: Tensor, level: ForwardLevel) -> Any:
    """The tangent at a level, or None for zero."""
    found = found_in(tensor)
    return None if found is None else found.get(level)


def found_in(tensor: Tensor) -> Tangents | None:
    """`tangents_of` for any tensor that a program has."""
    if tensor.history_owner().keys & FORWARD:
        return tensor.with_history_owner(tangents_of)
    return None


def set_tangent(tensor: Tensor, level: ForwardLevel, tangent: Any) -> None:
    """Make it the tangent of this very tensor, whose memory is not written; None for zero."""
    owner = tensor.history_owner()
    if owner is not tensor:
        tensor, tangent = owner, _of_owner(level, tangent)
    extra = tensor.extra
    if extra is None:
        extra = tensor.extra = {}
    found = extra.get(TANGENTS)
    if found is None:
        if tangent is None:
            return
        found = extra[TANGENTS] = Tangents(0 if tensor.view_of is None else tensor.version())
    if tangent is None:
        found.pop(level, None)
    else:
        found[level] = tangent
        tensor.keys |= FORWARD


def _of_owner(level: ForwardLevel, tangent: Any) -> Any:
    """A tangent of a tensor that a transform shows in the place of another, as one of the other."""
    if tangent is None or level.is_deferred:
        return tangent
    if level.columns is None:
        return tangent.history_owner()
    columns = (level.columns,)
    return in_columns(level, lambda: raise_(lower(tangent, columns).history_owner(), columns))


def attach(tensor: Tensor, level: ForwardLevel, tangent: Any) -> None:
    """The tangent of a result that was just computed."""
    extra = tensor.extra
    if extra is None:
        extra = tensor.extra = {}
    found = extra.get(TANGENTS)
    if found is None:
        found = extra[TANGENTS] = Tangents(0 if tensor.view_of is None else tensor.version())
    found[level] = tangent
    tensor.keys |= FORWARD


def carry(tensor: Tensor, made: Tensor) -> None:
    """Give `made`, an alias of `tensor`, the same tangents at the levels that are active."""
    found = found_in(tensor)
    for level in active() if found else ():
        set_tangent(made, level, found.get(level))  # type: ignore[union-attr]


def carry_all(tensor: Tensor, copy: Tensor) -> None:
    """Give a copy of a tensor's values the tangents that those have, where they are not computed."""
    found = None if tensor.extra is None else tensor.extra.get(TANGENTS)
    if found:
        give_all(found, copy)


def give_all(tangents: Tangents, made: Tensor) -> None:
    """Make tangents those of a tensor that has none, and nothing else in `extra`."""
    given = Tangents(0 if made.view_of is None else made.version())
    given.update(tangents)
    made.extra = {TANGENTS: given}
    made.keys |= FORWARD


def _from_base(view: Tensor, found: Tangents | None) -> Tangents | None:
    record = view.view_of
    assert record is not None
    of_base = tangents_of(record.base) if record.base.keys & FORWARD else None
    if of_base is None:
        if found is not None:
            found.seen = view.version()
        return found
    made = Tangents(view.version(), frozenset(of_base).difference(active()))
    _, allowed = before = GRAD.get()
    try:
        GRAD.set((0 if record.no_grad else allowed, allowed))  # where the view was made decides, not where it is used
        for level in active():
            tangent = of_base.get(level)
            if tangent is not None:
                made[level] = level.compute(partial(part_of, record), tangent)
    finally:
        try:
            GRAD.set(before)
        except MemoryError:
            restore(GRAD, before)
    if view.extra is None:
        view.extra = {}
    view.extra[TANGENTS] = made
    return made


# ---- writes


def written(tensor: Tensor, level: ForwardLevel, tangent: Any) -> None:
    """After a write into a tensor: its tangent is this one from here on, and what shares its memory follows."""
    record = tensor.view_of
    root = tensor if record is None else record.base
    before = tangent_of(root, level)
    if record is not None:
        if before is None and tangent is None:
            return
        tangent = level.compute(partial(_with_part, root, level, record), before, tangent)
        tensor.keys |= FORWARD
    if before is not None and not GRAD.get()[0]:
        tangent = level.compute(partial(_unrecorded, level), before, tangent)
    set_tangent(root, level, tangent)
    if root.storage is not None and root.storage.views and root.keys & FORWARD:
        for view in root.live_views():
            view.keys |= FORWARD
            found = None if view.extra is None else view.extra.get(TANGENTS)
            if found is not None:
                found.seen = -1  # it may have been looked up since the memory was written


def part_given(result: Tensor, given: Callable[[Tensor], Tensor | None]) -> Tensor | None:
    """What a result is of the tensors that a level was given: one of them or a view of it; None where it was computed.

    `given` says where an input of the level came from. What leaves a level is that very tensor, so that it follows later writes.
    """
    view = result.view_of
    if view is None:
        return given(result)
    source = None if view.no_grad or view.multi or view.maker else given(view.base)
    return None if source is None else replay(source, view.chain)


def replay(tensor: Tensor, chain: tuple[Any, ...]) -> Tensor:
    """The view of `tensor` that a chain of view operators gives."""
    for op, args, index in chain:
        tensor = op.call_boxed((tensor, *args))
        if index is not None:
            tensor = tensor[index]
    return tensor


def from_zero(chain: tuple[Any, ...], offset: int) -> tuple[Any, ...]:
    """The chain for a tensor laid out as its base, at the start of a storage; the base is at `offset` of its own."""
    op, args, index = chain[0]
    if not offset or op.qualified_name != _AS_STRIDED or args[2] is None:
        return chain
    return ((op, (*args[:2], args[2] - offset), index), *chain[1:])


def part_of(record: Any, whole: Tensor) -> Tensor:
    """The part of a base's tangent that belongs to a view."""
    if any(op.qualified_name == _AS_STRIDED for op, _, _ in record.chain):
        whole = _laid_out(record.base, None, whole)
    return replay(whole, from_zero(record.chain, record.base.storage_offset()))


def _with_part(root: Tensor, level: ForwardLevel, record: Any, whole: Tensor | None, part: Tensor | None) -> Tensor:
    """A copy of a base's tangent with another part."""
    made = _laid_out(root, level, _zeros_like(root) if whole is None else whole)
    into = replay(made, from_zero(record.chain, root.storage_offset()))
    if part is None:
        _zero(into)
    else:
        _copy(into, part)
    return made


def _unrecorded(level: ForwardLevel, before: Tensor | None, tangent: Tensor | None) -> Tensor | None:
    """The tangent after a write inside `no_grad`: other values with the history from before, as the tensor itself has then."""
    columns = () if level.columns is None else (level.columns,)
    old = None if before is None else lower(before, columns)
    if old is None or not tracked_levels(old):
        return tangent
    allowed = GRAD.get()[1]
    made: Tensor = during(GRAD, (allowed, allowed), _clone, old)
    return raise_(_zero(made) if tangent is None else _copy(made, lower(tangent, columns)), columns)


def _laid_out(root: Tensor, level: ForwardLevel | None, tangent: Tensor) -> Tensor:
    """A copy of a tangent with the strides of the tensor that it belongs to; with all columns of a level that is given."""
    shape, strides = root.shape, root.stride()
    columns = None if level is None else level.columns
    if columns is None:
        return _copy(_new_empty_strided(tangent, shape, strides), tangent)
    flat = lower(tangent, (columns,))
    extent = 1 + sum((n - 1) * abs(s) for n, s in zip(shape, strides, strict=True))
    return raise_(_copy(_new_empty_strided(flat, (columns.size, *shape), (extent, *strides)), flat), (columns,))
