"""The levels that functionalities put a tensor on: gradients that record, vmaps that are entered, and the clock of versions.

Tensors carry what Autograd and Batched attach to them, so what joins those stands here. The plugins own the values: Autograd sets
GRAD, Batched sets LEVELS and installs how a tensor is taken from one level to another.
"""

from __future__ import annotations

import threading
from contextvars import ContextVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# (enabled, allowed): gradient levels that record now, and those that enable_grad may turn on. Bit 0 is imperative autograd.
GRAD: ContextVar[tuple[int, int]] = ContextVar("turnout.grad", default=(1, 1))
# The active vmap levels, outermost first.
LEVELS: ContextVar[tuple[Any, ...]] = ContextVar("turnout.levels", default=())


class Clock:
    """`epoch` rises by 1 << 32 at every entry of a gradient level or trace; a new tensor's version starts with it.

    So "older than this level" is `version < level's epoch`; users see the low 32 bits.
    """

    __slots__ = ("_lock", "epoch")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.epoch = 0

    def advance(self) -> int:
        """Begin a new epoch, and return it."""
        with self._lock:
            self.epoch += 1 << 32
            return self.epoch


CLOCK = Clock()
VERSION_MASK = (1 << 32) - 1


_LOWERING: list[tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any], Callable[[Any], Any]]] = []


def install_lowering(
    lower: Callable[[Any, Any], Any], raise_: Callable[[Any, Any], Any], peel: Callable[[Any], Any]
) -> Callable[[], None]:
    """Called by the plugin that owns LEVELS; returns the undo."""
    installed = (lower, raise_, peel)
    _LOWERING.append(installed)
    return lambda: _LOWERING.remove(installed)


def lower(tensor: Any, levels: tuple[Any, ...]) -> Any:
    """`tensor` with the batch dims of `levels` in front, outermost first; itself when there are none."""
    return _LOWERING[-1][0](tensor, levels) if levels else tensor


def raise_(tensor: Any, levels: tuple[Any, ...]) -> Any:
    """The inverse of `lower`: wraps the leading dims as batch dims of `levels`."""
    return _LOWERING[-1][1](tensor, levels) if levels else tensor


def peel(tensor: Any) -> tuple[Any, tuple[Any, ...], tuple[int, ...]]:
    """(the plain tensor under all vmaps, the levels that it is batched at, the order of its dims that puts their dims in front).

    `lower(tensor, levels)` is the plain tensor with its dims in that order.
    """
    if not LEVELS.get():
        return tensor, (), tuple(range(tensor.ndim))
    plain, levels, order = _LOWERING[-1][2](tensor)
    return plain, levels, order
