"""What a composite kernel usually comes down to, as data: one call of another operator.

A compiled call path makes that call without the kernel's frame. It does so only where the call ends there; anything else, a wrong
argument included, runs the kernel. So an ending says nothing that the kernel does not do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Function = TypeVar("Function")
ROW_MAJOR: Any = object()  # the tensor is in row-major order
LENGTHS: Any = object()  # the list has no negative numbers


class Ending(NamedTuple):
    """A call of an operator.

    operator   its qualified name
    operands   names of the kernel's arguments, numbers and flags, or other endings
    item       which result is meant, of an operator with several
    when       argument -> what it must be: a number of dims, None, ROW_MAJOR or LENGTHS
    """

    operator: str
    operands: tuple[Any, ...]
    item: int | None = None
    when: Mapping[str, Any] = {}


def copies(fn: Function) -> Function:
    """Says of a composite kernel that it copies its first argument, if that is row-major and all others are None."""
    marked: Any = fn
    marked.copies = True
    return fn


def ends_in(operator: str, *operands: Any, item: int | None = None, **when: Any) -> Callable[[Function], Function]:
    """Says of a composite kernel what it ends in. May be given several times; the first that applies is taken."""

    def mark(fn: Function) -> Function:
        marked: Any = fn
        marked.endings = (Ending(operator, operands, item, when), *getattr(fn, "endings", ()))
        return fn

    return mark
