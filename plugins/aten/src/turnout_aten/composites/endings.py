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
LENGTHS: Any = object()  # the list has no negative numbers, but for one that may be -1
OTHER_DTYPE: Any = object()  # the dtype is not that of the first argument
SAME_DTYPE: Any = object()  # it is
SAME_SHAPE: Any = object()  # the tensor has the shape of the first argument
ZERO: Any = object()  # the float is 0.0


class Equal(NamedTuple):
    """As a condition: the argument is this int."""

    number: int


class Inferred(NamedTuple):
    """As an operand: sizes of which one may be -1, the argument of that name or a constant, with that one as it must be for the
    elements of the first argument."""

    sizes: Any


class Ending(NamedTuple):
    """A call of an operator.

    operator   its qualified name; "": the first operand is the result
    operands   names of the kernel's arguments, numbers, tuples and flags, `Inferred` sizes, or other endings
    item       which result is meant, of an operator with several
    when       argument -> what it must be: a number of dims, None, False, "contiguous_format", ROW_MAJOR, LENGTHS,
               OTHER_DTYPE, SAME_DTYPE, SAME_SHAPE, ZERO or `Equal` to an int
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
    """Says in a word what a composite kernel does with few elements. A compiled call path does so for row-major arrays and ints.

    read       the number of its argument
    copy       its second argument into its first, of the same shape
    count      ints from a start to an end
    space      floats from a start to an end; `identity` ones on the diagonal of a matrix
    fill where a number where a mask is true
    stack      tensors along a new dim, of one shape, where nothing records or watches
    uniform    random numbers of the device's generator, without an argument `generator`; `normal` likewise
    """

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
