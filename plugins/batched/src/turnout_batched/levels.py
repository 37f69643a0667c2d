"""Active vmaps, and how a tensor is lowered: made physically batched at some of them.

Levels are numbered by one counter and never reused, so a tensor that was kept from an earlier vmap is recognised.
In a chain of wrappers the numbers fall from the outside in: the outermost wrapper is of the innermost vmap.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

from turnout.guards import during
from turnout.keys import KEYS
from turnout.state import StateChange
from turnout_aten import operators as aten
from turnout_aten.tensor.levels import CLOCK, GRAD, LEVELS, SHARED
from turnout_aten.tensor.tensor import Tensor
from turnout_batched import errors
from turnout_batched.values import BATCHED, batched_tensor, physical

if TYPE_CHECKING:
    from collections.abc import Callable

    Levels = tuple["Level", ...]

MODE = KEYS.bit("BatchedMode")
_INSIDE = StateChange(includes=MODE).around(lambda _, function: function())
_next = count(1).__next__


class Level:
    """One running vmap: its number, its batch size, and how random numbers are drawn in it.

    epoch  the clock's when it was made: gradient levels of a later one are inside of it
    """

    __slots__ = ("epoch", "num", "randomness", "size")

    def __init__(self, size: int, randomness: str) -> None:
        self.num = _next()
        self.size = size
        self.randomness = randomness
        self.epoch = CLOCK.epoch

    def run(self, function: Callable[[], Any]) -> Any:
        """`function()` inside the vmap."""
        return during(LEVELS, (*LEVELS.get(), self), _INSIDE, 0, function)

    def __repr__(self) -> str:
        return f"<vmap level {self.num}: {self.size} examples>"


def check_active(level: Level) -> None:
    """Raise VmapError for a level that has ended or belongs to another thread or task."""
    if level not in LEVELS.get():
        raise errors.VmapError(errors.escaped(level.num))


# ---- dims


def moved(tensor: Tensor, source: int, to: int) -> Tensor:
    """Move one dim; both positions are counted from the front. Returns the tensor itself if the dim is already in place."""
    if source == to:
        return tensor
    order = list(range(len(tensor.array.shape)))
    order.insert(to, order.pop(source))
    return aten.permute(tensor, order)


def repeated(tensor: Tensor, level: Level) -> Tensor:
    """Add a dim of stride 0 in front, for the examples of a level."""
    if SHARED.levels and is_shared(tensor, level):
        return spread(tensor, level)
    return aten.expand(tensor, (level.size, *tensor.array.shape))


# ---- gradients of tensors that a vmap does not batch


def is_shared(tensor: Tensor, level: Level) -> bool:
    """Whether gradients inside a vmap track a tensor that it does not batch, so that each example has a gradient of its own."""
    mask = physical(tensor).gmask & GRAD.get()[0]
    if mask:
        for bit in tuple(SHARED.levels):
            if mask & bit:
                return True
    return False


def spread(tensor: Tensor, level: Level) -> Tensor:
    """The tensor for each example, in front; its gradient at levels inside the vmap stays that of an example."""
    if tensor.keys & BATCHED:
        batched = tensor.array
        return batched_tensor(spread(batched.value, level), batched.bdim + 1, batched.level)
    assert SHARED.spread is not None
    return SHARED.spread(tensor, level)


def spread_all(values: Any, level: Level, kept: tuple[int, ...] = ()) -> Any:
    """Arguments with such tensors made examples of the level, apart from those at `kept`."""
    return [value if i in kept else _spread_one(value, level) for i, value in enumerate(values)]


def _spread_one(value: Any, level: Level) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)([_spread_one(each, level) for each in value])
    if not isinstance(value, Tensor) or (value.keys & BATCHED and value.array.level is level) or not is_shared(value, level):
        return value
    return batched_tensor(spread(value, level), 0, level)


# ---- lowering


def lower(tensor: Tensor, levels: Levels) -> Tensor:
    """`tensor` with the batch dims of `levels` in front, outermost first; repeated at levels where it is not batched.

    Wrappers of other levels stay around it.
    """
    if not levels:
        return tensor
    last = levels[-1]
    if tensor.keys & BATCHED:
        batched = tensor.array
        if batched.level is last:
            return lower(moved(batched.value, batched.bdim, 0), levels[:-1])
        if batched.level.num > last.num:
            check_active(batched.level)
            return batched_tensor(lower(batched.value, levels), batched.bdim + len(levels), batched.level)
    return lower(repeated(tensor, last), levels[:-1])


def raise_(tensor: Tensor, levels: Levels) -> Tensor:
    """The inverse of `lower`: the leading dims become the batch dims of `levels`."""
    if not levels:
        return tensor
    last = levels[-1]
    if tensor.keys & BATCHED:
        batched = tensor.array
        if batched.level.num > last.num:
            bdim = max(batched.bdim, len(levels))
            value = moved(batched.value, batched.bdim, bdim)
            return batched_tensor(raise_(value, levels), bdim - len(levels), batched.level)
    return batched_tensor(raise_(tensor, levels[:-1]), 0, last)


def peel(tensor: Tensor) -> tuple[Tensor, Levels, tuple[int, ...]]:
    """The plain tensor, its levels from the outside in, and its dims in the order (batch dims of those levels, others)."""
    wrappers = []
    while tensor.keys & BATCHED:
        batched = tensor.array
        check_active(batched.level)
        wrappers.append((batched.level, batched.bdim))
        tensor = batched.value
    rest = list(range(len(tensor.array.shape)))
    found = [(level, rest.pop(bdim)) for level, bdim in reversed(wrappers)]
    return tensor, tuple([level for level, _ in found]), (*[dim for _, dim in found], *rest)


def levels_of(tensor: Tensor) -> list[Level]:
    """The levels that batch a tensor."""
    found = []
    while tensor.keys & BATCHED:
        batched = tensor.array
        check_active(batched.level)
        found.append(batched.level)
        tensor = batched.value
    return found
