"""The context-local state of dispatch, the guards that change it, and the clock of tensor versions.

`DISPATCH` holds `(include, keep)`: bits added to every call's key set, and the complement of the excluded ones. A stub reads
nothing else. All are ContextVars: a thread or asyncio task sees its own, and every guard restores in `finally` order.
"""

from __future__ import annotations

import threading
from contextvars import ContextVar

from turnout.keys import KEYS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextvars import Token
    from typing import Any

    Keys = str | Iterable[str] | int

_BIT = KEYS.bit
BELOW_AUTOGRAD = ~(_BIT("Autograd") | _BIT("AutogradOther"))
BELOW_ADINPLACEORVIEW = BELOW_AUTOGRAD & ~_BIT("ADInplaceOrView")

# (include, keep) of a fresh context: BackendSelect and ADInplaceOrView are included; Autocast is off by its switches.
FRESH = (_BIT("BackendSelect") | _BIT("ADInplaceOrView"), -1)
DISPATCH: ContextVar[tuple[int, int]] = ContextVar("turnout.dispatch", default=FRESH)
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


class Guard:
    """A context manager that replaces DISPATCH by `change(include, keep)` and puts the old value back."""

    __slots__ = ("_change", "_token")

    def __init__(self, change: Callable[[int, int], tuple[int, int]]) -> None:
        self._change = change
        self._token: Token[tuple[int, int]] | None = None

    def __enter__(self) -> Guard:
        if self._token is not None:
            raise RuntimeError("a guard object can be entered once at a time; make a new one")
        self._token = DISPATCH.set(self._change(*DISPATCH.get()))
        return self

    def __exit__(self, *exc_info: object) -> None:
        token, self._token = self._token, None
        assert token is not None
        DISPATCH.reset(token)


def include(keys: Keys) -> Guard:
    """While entered, these functionalities take part in every call, whether a tensor brings them or not.

    An opt-in functionality (Autocast) that is included is switched on: it then takes part for tensors that bring it.
    """
    on, switches = _split(keys)
    return Guard(lambda inc, keep: (inc | on | switches, keep | switches))


def exclude(keys: Keys) -> Guard:
    """While entered, these functionalities take no part, even where a tensor brings them or the state includes them."""
    bits, switches = _split(keys)
    return Guard(lambda inc, keep: (inc, keep & ~(bits | switches)))


def below_autograd() -> Guard:
    """While entered, no gradient is recorded by any key: AutogradOther and Autograd of all backends are excluded."""
    return Guard(lambda inc, keep: (inc, keep & BELOW_AUTOGRAD))


def below_adinplaceorview() -> Guard:
    """While entered, neither Autograd nor the bookkeeping of views and versions runs."""
    return Guard(lambda inc, keep: (inc, keep & BELOW_ADINPLACEORVIEW))


def _split(keys: Keys) -> tuple[int, int]:
    """Functionality bits (a backend's own bit is never in the state) and the switches of opt-in ones among them."""
    bits = KEYS.mask(keys) & ~KEYS.backend_mask
    opted = [f for f in KEYS.functionalities if f.opt_in and bits & f.bit]
    switches = sum(f.switch for f in opted)
    return bits & ~sum(f.bit for f in opted), switches


# ---- levels of vmap: core holds what joins gradients and batching, the Batched plugin implements it

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
