"""The levels of a thread: gradient levels that record, active vmaps, and the clock of versions.

The plugins own the values: Autograd sets GRAD; Batched sets LEVELS and installs the functions that move a tensor between levels.
They stand here because both plugins and `Tensor` read them.
"""

from __future__ import annotations

from contextvars import ContextVar

from turnout.config.lock import new_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

IMPERATIVE = 1  # the bit of imperative autograd among gradient levels
# (enabled, allowed): gradient levels that record now, and levels that enable_grad may turn on.
GRAD: ContextVar[Sequence[int]] = ContextVar("turnout.grad", default=(1, 1))
# The active vmap levels, outermost first.
LEVELS: ContextVar[tuple[Any, ...]] = ContextVar("turnout.levels", default=())


class Shared:
    """`levels` are the bits of gradient levels that have an input which a vmap around them does not batch.

    Where tensors of such a level meet examples of that vmap, the plugin that owns LEVELS spreads them: each example gets its own,
    and its own gradient. `spread(tensor, level)` is the plugin's that owns GRAD.
    """

    __slots__ = ("levels", "spread")

    def __init__(self) -> None:
        self.levels: dict[int, None] = {}  # changed without a lock: each change is one step
        self.spread: Callable[[Any, Any], Any] | None = None


SHARED = Shared()


class Clock:
    """`epoch` rises by 1 << 32 at every entry of a gradient level or trace; a new tensor's version starts with it.

    So "older than this level" is `version < level's epoch`; users see the low 32 bits.
    """

    __slots__ = ("_lock", "epoch")

    def __init__(self) -> None:
        self._lock = new_lock()
        self.epoch = 0

    def advance(self) -> int:
        """Begin a new epoch, and return it."""
        with self._lock:
            self.epoch += 1 << 32
            return self.epoch


CLOCK = Clock()
VERSION_MASK = (1 << 32) - 1


_LOWERING: list[tuple[Callable[..., Any], ...]] = []


def install_lowering(
    lower: Callable[[Any, Any], Any], raise_: Callable[[Any, Any], Any], peel: Callable[[Any], Any],
    levels_of: Callable[[Any], Any],
) -> Callable[[], None]:  # fmt: skip
    """Called by the plugin that owns LEVELS; returns the undo."""
    installed = (lower, raise_, peel, levels_of)
    _LOWERING.append(installed)
    return lambda: _LOWERING.remove(installed)


def lower(tensor: Any, levels: tuple[Any, ...]) -> Any:
    """`tensor` with the batch dims of `levels` in front, outermost first. Returns `tensor` if `levels` is empty."""
    return _LOWERING[-1][0](tensor, levels) if levels else tensor


def raise_(tensor: Any, levels: tuple[Any, ...]) -> Any:
    """The inverse of `lower`: wraps the leading dims as batch dims of `levels`."""
    return _LOWERING[-1][1](tensor, levels) if levels else tensor


def peel(tensor: Any) -> tuple[Any, tuple[Any, ...], tuple[int, ...]]:
    """(plain, levels, order): the tensor under all vmaps, the levels that batch it, and the dim order that puts those first.

    `lower(tensor, levels)` is `plain` with its dims in `order`.
    """
    if not LEVELS.get():
        return tensor, (), tuple(range(tensor.ndim))
    plain, levels, order = _LOWERING[-1][2](tensor)
    return plain, levels, order


def batched_at(tensor: Any, levels: tuple[Any, ...]) -> tuple[Any, ...]:
    """Those of some active levels at which a tensor is batched."""
    if not levels:
        return ()
    found = _LOWERING[-1][3](tensor)
    return tuple([level for level in levels if level in found]) if found else ()


def of_all_examples(tensor: Any) -> Any:
    """`tensor` with the batch dims of all its levels in front, so that its values can be read. Outside of vmap, `tensor`."""
    return lower(tensor, batched_at(tensor, LEVELS.get()))
