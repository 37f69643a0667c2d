"""Forward levels: one derivative along tangents each. `ACTIVE` are those that run, outermost first.

A tensor holds at most one tangent for each level. A call takes part in the innermost level of which an argument has a tangent;
its tangent is computed by operators of the levels outside of that one, which therefore differentiate it again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from turnout.guards import during
from turnout.keys import KEYS
from turnout.state import DISPATCH
from turnout_aten.tensor.levels import LEVELS

FORWARD = KEYS.bit("Forward")
FUNCTIONALIZE = KEYS.bit("Functionalize")
ACTIVE: ContextVar[tuple[ForwardLevel, ...]] = ContextVar("turnout_autograd.forward_levels", default=())


class ForwardLevel:
    """One derivative along tangents.

    vmaps        the vmaps that were active when it was made: inputs are lowered to them, as for gradients
    recorded     the gradient levels that may differentiate its tangents: all, or only those around it where nobody inside can
                 see a tangent. Levels inside then record values only
    columns      None, or a vmap that only tangents are inside of: many directions at once, for one run of the function
    is_deferred  whether tangents are numbers, and what is computed of them is noted: see `transforms.deferred`
    """

    __slots__ = ("columns", "recorded", "vmaps")
    is_deferred = False

    def __init__(self, columns: Any = None, recorded: int = -1) -> None:
        self.vmaps = LEVELS.get()
        self.columns = columns
        self.recorded = recorded

    def run(self, function: Callable[..., Any], *args: Any) -> Any:
        """`function(*args)` inside the level, and inside those around it unless tangents are switched off here."""
        include, keep = DISPATCH.get()
        around = active() if keep & FORWARD or include & keep & FUNCTIONALIZE else ()  # see `kept_at`
        return at_levels((*around, self), function, *args)

    def outside(self) -> tuple[ForwardLevel, ...]:
        """The active levels around this one."""
        levels = active()
        return levels[: levels.index(self)] if self in levels else levels

    def defer(self, compute: Callable[..., Any], given: Any, result: Any, args: Any, one: bool) -> Any:
        """At a deferred level: note a rule, and return the numbers of its tangents."""
        raise NotImplementedError("only a deferred level notes rules")

    def protect(self, targets: Any) -> None:
        """At a deferred level: keep what is needed of memory that will be written."""
        raise NotImplementedError("only a deferred level notes rules")

    def compute(self, function: Callable[..., Any], *tangents: Any) -> Any:
        """`function(*tangents)`, a tangent, where this level and those inside of it are inactive."""
        return at_levels(self.outside(), in_columns, self, function, *tangents)


def active() -> tuple[ForwardLevel, ...]:
    """The levels that calls made now take part in."""
    return ACTIVE.get()


def at_levels(levels: tuple[ForwardLevel, ...], function: Callable[..., Any], *args: Any) -> Any:
    """`function(*args)` where these levels are active, and no others."""
    include, keep = DISPATCH.get()
    return during(ACTIVE, levels, during, DISPATCH, (include, kept_at(levels, include, keep)), function, *args)


def kept_at(levels: Any, include: int, keep: int) -> int:
    """The keys that are not excluded where these levels are active. Inside functionalize, that gives values the key itself."""
    if not levels:
        return keep & ~FORWARD
    return keep if include & keep & FUNCTIONALIZE else keep | FORWARD


def in_columns(level: ForwardLevel, function: Callable[..., Any], *args: Any) -> Any:
    """`function(*args)` where the vmap of a level's tangents is active."""
    if level.columns is None:
        return function(*args)
    return during(LEVELS, (*LEVELS.get(), level.columns), function, *args)
