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
OTHER_DTYPE: Any = object()  # the dtype is not that of the first argument
SAME_DTYPE: Any = object()  # it is


class Ending(NamedTuple):
    """A call of an operator.

    operator   its qualified name; "": the first operand is the result
    operands   names of the kernel's arguments, numbers and flags, or other endings
    item       which result is meant, of an operator with several
    when       argument -> what it must be: a number of dims, None, False, "contiguous_format", ROW_MAJOR, LENGTHS,
               OTHER_DTYPE or SAME_DTYPE
    keywords   how many of the last operands are the first keyword-only arguments
    """

    operator: str
    operands: tuple[Any, ...]
    item: int | None = None
    when: Mapping[str, Any] = {}
    keywords: int = 0


def copies(into: str = "") -> Callable[[Function], Function]:
    """Says of a composite kernel that it copies its first argument, if that is row-major and all others are None or False.

    The argument `into` is the dtype of the copy. The kernel calls no operator.
    """

    def mark(fn: Function) -> Function:
        marked: Any = fn
        marked.copies = into
        return fn

    return mark


def element(what: str) -> Callable[[Function], Function]:
    """Says of a composite kernel that it reads the number of its argument ("read"), copies its second argument into its first
    ("copy"), or counts from a start to an end ("count"). A compiled call path does so for few elements: of row-major arrays of
    one shape, and for ints."""

    def mark(fn: Function) -> Function:
        marked: Any = fn
        marked.element = what
        return fn

    return mark


def ends_in(
    operator: str, *operands: Any, item: int | None = None, keywords: int = 0, **when: Any
) -> Callable[[Function], Function]:
    """Says of a composite kernel what it ends in. May be given several times; the first that applies is taken."""

    def mark(fn: Function) -> Function:
        marked: Any = fn
        marked.endings = (Ending(operator, operands, item, when, keywords), *getattr(fn, "endings", ()))
        return fn

    return mark


def shortcut(around: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Callable[[Function], Function]:
    """Says what to call in place of a composite kernel: `around(call)`, of the internal convention, for usual arguments.

    It must end in what cannot raise, and pass everything else on to `call`, which runs the kernel.
    """

    def mark(fn: Function) -> Function:
        marked: Any = fn
        marked.shortcut = around
        return fn

    return mark
