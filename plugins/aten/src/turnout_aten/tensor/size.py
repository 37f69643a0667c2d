"""`Size`: the shape of a tensor, a tuple of ints that knows the number of elements."""

from __future__ import annotations

import math
from operator import index

from turnout.errors import CallError
from turnout.operators import shorten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Self, SupportsIndex, overload

new = tuple.__new__  # `new(Size, shape)` takes an array's shape as it is: 100 ns less than a call of `Size`, which checks it
_get = tuple.__getitem__

# A comparison of sizes -> the one that holds where it does not.
NEGATIONS = {"==": "!=", "!=": "==", ">=": "<", "<": ">=", "<=": ">", ">": "<="}


class Size(tuple[int, ...]):
    """The shape of a tensor: a tuple of ints. A part of one, a sum with a tuple and a multiple are a `Size` too.

    Raises TypeError for elements that are not ints. A class with `symbolic_length = True` stands for an int that is not known.

    Arguments:
        lengths: the length of each dimension

    Example:
        >>> turnout.zeros(2, 3).shape
        turnout.Size([2, 3])
        >>> turnout.Size([2, 3, 4])[1:].numel()
        12
    """

    __module__ = "turnout"
    __unwrapped__ = ("*",)
    __slots__ = ()

    def __new__(cls, lengths: Iterable[SupportsIndex] = ()) -> Self:
        made: list[Any] = []
        try:
            if not hasattr(lengths, "__iter__") and not hasattr(lengths, "__getitem__"):
                raise CallError(f"Size: expected ints in a sequence, got {type(lengths).__name__}")
            for length in lengths:
                try:
                    made.append(length if getattr(type(length), "symbolic_length", False) else index(length))
                except TypeError:
                    raise CallError(f"Size: expected ints, got {type(length).__name__} at position {len(made)}") from None
        except Exception as error:
            shorten(error)
            raise
        return new(cls, made)

    def numel(self) -> int:
        """The number of elements of a tensor of this shape.

        Example:
            >>> turnout.Size([2, 3]).numel()
            6
        """
        return math.prod(self)

    if TYPE_CHECKING:

        @overload
        def __getitem__(self, key: SupportsIndex) -> int: ...

        @overload
        def __getitem__(self, key: slice) -> Size: ...

    def __getitem__(self, key: Any) -> Any:
        found = _get(self, key)
        return new(Size, found) if found.__class__ is tuple else found

    def __add__(self, other: Any) -> Size:
        if not isinstance(other, tuple):
            return NotImplemented
        return new(Size, tuple.__add__(self, Size(other)))

    def __radd__(self, other: Any) -> Size:
        if not isinstance(other, tuple):
            return NotImplemented
        return new(Size, tuple.__add__(Size(other), self))

    def __mul__(self, times: SupportsIndex) -> Size:
        return new(Size, tuple.__mul__(self, times))

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"turnout.Size({list(self)})"


if TYPE_CHECKING:
    _ByShape = dict[tuple[Any, ...], Size]
else:
    _ByShape = dict


class _Sizes(_ByShape):
    """`sizes[shape]` is the `Size` of an array's shape, 50 ns instead of the 130 of making one. Bounded."""

    __slots__ = ()

    def __missing__(self, shape: tuple[Any, ...]) -> Size:
        made = new(Size, shape)
        if _INT.issuperset(map(type, shape)):  # what else equals an int is not kept for it
            if len(self) >= _KEPT:
                self.clear()
            self[shape] = made
        return made


_INT = frozenset({int})
_KEPT = 1024
sizes = _Sizes()
