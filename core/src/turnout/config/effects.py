"""What a call reads or changes beside what its operators show: a file, a setting, a hook, the state of a generator.

A public function that does so says it by `effect`. What keeps the operators of a call and runs them again, as a compiler does,
asks to be told, because another run would not do the rest.
"""

from __future__ import annotations

from contextvars import ContextVar

from turnout.guards import during

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    T = TypeVar("T")

__all__ = ["effect", "told_of_effects"]

_LISTENER: ContextVar[Callable[[str, bool, bool], None] | None] = ContextVar("turnout.effects", default=None)


def effect(what: str, *, of_first_use: bool = False, of_gradients: bool = False) -> None:
    """Tell who keeps the operators of this call that it reads or changes something else.

    Arguments:
        what: how the program says it
        of_first_use: whether it may be how an object makes its state when it is first used
        of_gradients: whether it is only that gradients of the results are not those of the operators
    """
    listener = _LISTENER.get()
    if listener is not None:
        listener(what, of_first_use, of_gradients)


def told_of_effects(listener: Callable[[str, bool, bool], None], call: Callable[[], T]) -> T:
    """`call()`; in it, and in its context alone, `listener` is called with the arguments of `effect`."""
    made: T = during(_LISTENER, listener, call)
    return made
