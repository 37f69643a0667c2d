"""Which gradient levels record: the switch for the time of a call, when each functional level was entered, and whose hooks run.

A level is a bit of the tensors' `gmask`; 1 is the bit of imperative autograd.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from turnout.guards import during
from turnout_aten.tensor.levels import GRAD

Result = TypeVar("Result")


def recording(enabled: int, run: Callable[..., Result], *args: Any, **kwargs: Any) -> Result:
    """`run(*args, **kwargs)` where the levels whose bits are given record, and no others."""
    return during(GRAD, (enabled, GRAD.get()[1]), run, *args, **kwargs)


class LevelEpochs(dict[int, int]):
    """Live bit of a functional level -> the clock's epoch when it was entered.

    Levels of other threads, and those that the collector frees, end at any time: what reads all of them reads a copy.
    """


EPOCHS = LevelEpochs()
# Live bit of a functional level -> the level.
LIVE: WeakValueDictionary[int, Any] = WeakValueDictionary()
# When the level whose pullback runs was entered; 0 where none does.
PULLED: ContextVar[int] = ContextVar("the gradient level that is pulled", default=0)


def for_its_level(hook: Callable[..., Any], levels: int) -> Callable[..., Any]:
    """A hook on what some levels track that runs only for the gradients of the innermost of them.

    The gradients of outer levels differentiate what the hook made of that gradient: run again, it would change them twice.
    """
    own = innermost(levels)
    if not own:
        return hook
    return lambda *grads: hook(*grads) if (PULLED.get() or innermost(GRAD.get()[1])) == own else None


def innermost(levels: int) -> int:
    """When the innermost of some levels was entered; 0 where none is functional."""
    return max((epoch for bit, epoch in EPOCHS.copy().items() if bit & levels), default=0)
