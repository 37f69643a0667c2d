"""What a kernel says of itself, in one value beside it, for whoever can do the same in another way."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from turnout.config.tuples import NamedTuple

if TYPE_CHECKING:
    from turnout_aten.composites.endings import Ending

Function = TypeVar("Function")
NOTHING: Any = object()


class Facts(NamedTuple):
    """All that a kernel may say.

    endings   what it comes down to: the first that applies is taken (`composites.endings`)
    element   the word for what it does (`composites.endings.element`), or ""
    copies    of a copy, the argument that is its dtype, or ""; None of any other kernel
    fills     of a factory, what it fills with: a number, the name of an argument, None for memory as it is; else NOTHING
    shortcut  what makes the callable that is called in its place, or None
    """

    endings: tuple[Ending, ...] = ()
    element: str = ""
    copies: str | None = None
    fills: Any = NOTHING
    shortcut: Callable[[Callable[..., Any]], Callable[..., Any]] | None = None


def facts_of(fn: Any) -> Facts:
    """What a kernel says of itself."""
    return getattr(fn, "facts", _NONE)


def fact(**facts: Any) -> Callable[[Function], Function]:
    """A decorator that adds to what a kernel says."""

    def mark(fn: Function) -> Function:
        marked: Any = fn
        marked.facts = facts_of(fn)._replace(**facts)
        return fn

    return mark


_NONE = Facts()
