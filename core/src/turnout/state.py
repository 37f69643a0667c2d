"""The context-local state of dispatch, and the guards that change it.

`DISPATCH` holds `(include, keep)`: the bits that are added to every call's key set, and the complement of the excluded bits. A
stub reads nothing else. It is a ContextVar: each thread and asyncio task has its own value. Keys that the setting `keys.enable`
includes in every context are added where the state is read: `current`.

A functionality changes it by a `StateChange`, for a call or a block, and asks `in_effect` for the key set of a call.
"""

from __future__ import annotations

import builtins
from contextvars import ContextVar

from turnout.config.installed import installed
from turnout.guards import Guard, during, restore
from turnout.keys import KEYS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from turnout.guards import Changes
    from turnout.registry.modes import DispatchMode

    Keys = str | Iterable[str] | int

__all__ = ["BELOW_ADINPLACEORVIEW", "BELOW_AUTOGRAD", "DISPATCH", "FRESH", "STUB_BUILTINS", "StateChange",
    "MODES", "below_adinplaceorview", "current", "exclude", "hide_fresh", "in_effect", "include", "included", "is_fresh",
    "lifted", "only_backends", "questions", "settle", "unsettle"]  # fmt: skip

_BIT = KEYS.bit
_PYTHON, _BACKEND_SELECT = _BIT("Python"), _BIT("BackendSelect")
_LIFTS = _BIT("state:lifts")  # no key: excluded where `lifted` lifts nothing
BELOW_AUTOGRAD = ~(_BIT("Autograd") | _BIT("AutogradOther"))
BELOW_ADINPLACEORVIEW = BELOW_AUTOGRAD & ~_BIT("ADInplaceOrView")

# (include, keep) of a fresh context. The switches of opt-in functionalities are off.
FRESH = (sum(row.bit for row in KEYS.functionalities if row.included), -1)
DISPATCH: ContextVar[Sequence[int]] = ContextVar("turnout.dispatch", default=FRESH)
# The active modes of this context, innermost last, for which the key Python is in the state.
MODES: ContextVar[Sequence[DispatchMode]] = ContextVar("turnout.modes", default=())


class StateChange:
    """A change to the state: what takes part in every call, what stops to, what is no longer excluded, and what is excluded."""

    __slots__ = ("_drops", "_excludes", "_includes", "_lifts")

    def __init__(self, *, includes: int = 0, drops: int = 0, lifts: int = 0, excludes: int = 0) -> None:
        self._includes, self._drops, self._lifts, self._excludes = includes, ~drops, lifts, ~excludes

    def block(self) -> Guard:
        """A guard: while it is entered, the change holds."""
        return _Changed(self)

    def here(self) -> tuple[ContextVar[Sequence[int]], list[int]]:
        """What a guard sets for a block with this change."""
        include, keep = DISPATCH.get()
        return DISPATCH, [include & self._drops | self._includes, (keep | self._lifts) & self._excludes]

    def run(self, function: Callable[..., Any], *args: Any) -> Any:
        """`function(*args)` with this change."""
        variable, changed = self.here()
        return during(variable, tuple(changed), function, *args)

    def around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """A kernel of the internal convention that calls another one with this change: `run`, without its frames."""
        includes, drops, lifts, excludes = self._includes, self._drops, self._lifts, self._excludes

        def call_with_change(ks: int, *args: Any) -> Any:
            include, keep = before = DISPATCH.get()
            try:
                DISPATCH.set((include & drops | includes, (keep | lifts) & excludes))
                return call(ks, *args)
            finally:
                try:
                    DISPATCH.set(before)
                except MemoryError:
                    restore(DISPATCH, before)

        return call_with_change


class _Changed(Guard):
    """While entered, a change holds."""

    __slots__ = ("_change",)

    def __init__(self, change: StateChange) -> None:
        self._change = change

    def sets(self) -> Changes:
        return (self._change.here(),)


def include(keys: Keys) -> Guard:
    """While entered, these functionalities take part in every call, even if no tensor brings them.

    An opt-in functionality (Autocast) is only switched on: it takes part in calls with tensors that bring it. An installed
    plugin that provides one of them is activated. Raises UniverseError for an unknown name, PluginError when the plugin cannot
    be used, DisabledError when configuration disables it or the key.
    """
    try:
        if not isinstance(keys, int):
            keys = KEYS.listed(keys)
            installed().enabled_keys().require(keys)
        on, switches = _split(keys)
        return StateChange(includes=on | switches, lifts=switches).block()
    except Exception as error:
        installed().shorten(error)
        raise


def exclude(keys: Keys) -> Guard:
    """While entered, these functionalities take no part in any call."""
    try:
        bits, switches = _split(keys)
        return StateChange(excludes=bits | switches).block()
    except Exception as error:
        installed().shorten(error)
        raise


class _OnlyBackends(Guard):
    """What `only_backends` returns. The state keeps no mode either, whose key subclasses of Tensor share."""

    __slots__ = ()

    def sets(self) -> Changes:
        KEYS.discovered()
        inc, keep = DISPATCH.get()
        return (MODES, []), (DISPATCH, [inc & ~_PYTHON, keep & ~(KEYS.around_calls & ~_BACKEND_SELECT | _LIFTS)])


def only_backends() -> Guard:
    """While entered, operators compute values and nothing else: no other functionality sees them.

    For what a functionality computes for itself, such as whether a result has a nan. Functionalities that make a tensor what it
    is (`holds_values` in their manifests) stay, so fake tensors and those inside vmap are what they were. No gradient, view or
    version is recorded; do not write tensors of the program here.
    """
    return _OnlyBackends()


def lifted(keep: int, bits: int) -> int:
    """`keep` without the exclusion of these bits, for calls below a functionality. Inside `only_backends` they stay excluded."""
    return keep | bits if keep & _LIFTS else keep


def below_adinplaceorview() -> Guard:
    """While entered, no gradient and no view or version is recorded."""
    return StateChange(excludes=~BELOW_ADINPLACEORVIEW).block()


def _split(keys: Keys) -> tuple[int, int]:
    """The functionality bits of some keys, and the switches of opt-in functionalities. The state never has backend bits."""
    bits = KEYS.mask(keys) & ~KEYS.backend_mask
    opted = [f for f in KEYS.functionalities if f.opt_in and bits & f.bit]
    switches = sum(f.switch for f in opted)
    return bits & ~sum(f.bit for f in opted), switches


# ---- the state of a call

# The builtins of all stubs. They call DISPATCH to read the state: one assignment here changes it for all of them, in every
# thread, and costs nothing while configuration enables no key.
STUB_BUILTINS: dict[str, Any] = {**vars(builtins)}
_hidden = False


def current() -> Sequence[int]:
    """(include, keep) of a call made now: those of the context, and what `keys.enable` includes for the whole process."""
    found: Sequence[int] = STUB_BUILTINS["DISPATCH"]()
    return found


def in_effect(keys: int, by_tensors: bool = False) -> int:
    """The key set of a call made now with tensors that have these keys.

    `by_tensors` says that the operator takes some. Then what a fresh context includes decides nothing, and is left out.
    """
    include, keep = state = STUB_BUILTINS["DISPATCH"]()
    return keys if by_tensors and state is FRESH else (keys | include) & keep


def included(bits: int) -> int:
    """Which of these bits this context includes in every call."""
    return DISPATCH.get()[0] & bits


def is_fresh() -> bool:
    """Whether nothing but tensors decides about calls made now."""
    return STUB_BUILTINS["DISPATCH"]() is FRESH


def questions() -> int:
    """How often was asked which keys configuration enables: for `settle`."""
    return _questions


def settle(included: int, question: int) -> None:
    """Include these bits in the calls of every context that does not exclude them, unless it was asked again since `question`."""
    if question != _questions:
        return
    context = DISPATCH.get

    def with_included() -> tuple[int, int]:
        include, keep = context()
        return include | included, keep

    STUB_BUILTINS["DISPATCH"] = with_included if included or _hidden else context


def unsettle() -> None:
    """Ask again which keys configuration enables, before the next call."""
    global _questions
    _questions += 1
    STUB_BUILTINS["DISPATCH"] = _settled


def hide_fresh(hidden: bool) -> None:
    """Whether what a fresh context includes may decide calls with tensors: then no reader gives out FRESH, but an equal pair.

    So all that is skipped where the state is FRESH itself takes the state into account, in every thread.
    """
    global _hidden
    if hidden is not _hidden:
        _hidden = hidden
        unsettle()


def _settled() -> Sequence[int]:
    included = installed().enabled_keys().include()
    include, keep = state = DISPATCH.get()
    return (include | included, keep) if included or _hidden else state


_questions = 0
unsettle()
