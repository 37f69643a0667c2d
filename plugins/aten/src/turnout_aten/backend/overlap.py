"""Whether two arrays over one memory have elements in common, from their shapes and strides alone.

Elements at one address are a solution of a linear equation in their indices, each of which is bounded. The search begins with
the largest stride. For arrays that are views of each other, what the smaller ones can still reach leaves few choices of an index.
The problem is hard for strides that were chosen to make it so: then the answer after `WORK` steps is that they overlap, for a
refused call is better than a wrong result.
"""

from __future__ import annotations

from math import gcd
from operator import index

from turnout.config.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

WORK = 10_000  # choices of an index that are tried
Terms = list[tuple[int, int]]  # (coefficient, how often it can count at most), the largest coefficient first


class Extent(NamedTuple):
    """Where the elements of an array lie, in bytes from the start of its memory."""

    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int

    @property
    def layout(self) -> list[tuple[int, int]]:
        """Length and stride of the dims of several elements."""
        return [(n, s) for n, s in zip(self.shape, self.strides, strict=True) if n != 1]


def of_elements(array: Any) -> Extent:
    """Of an array whose offset and strides count elements, as bytes: all arrays of one memory have the same dtype."""
    return Extent(array.offset, array.shape, array.strides, 1)


def partly_overlap(a: Extent, b: Extent) -> bool:
    """Whether arrays over one memory share some but not all of their elements, or share all in another order.

    True too where that is too hard to find out. Arrays of one offset and layout, dims of length 1 apart, do not overlap partly.
    """
    if 0 in a.shape or 0 in b.shape:
        return False
    return not ((a.offset, a.itemsize) == (b.offset, b.itemsize) and a.layout == b.layout) and share_bytes(a, b)


def share_bytes(a: Extent, b: Extent) -> bool:
    """Whether some byte belongs to an element of each; True too where that is too hard to find out."""
    # a.offset + (indices times strides of a) + (a byte of an element) is the same of b. Where a coefficient would be negative,
    # its index is counted from the end.
    distance = b.offset - a.offset
    counts: dict[int, int] = {}
    for extent, sign in ((a, 1), (b, -1)):
        for length, stride in [*zip(extent.shape, extent.strides, strict=True), (extent.itemsize, 1)]:
            count, step = index(length) - 1, index(stride)
            if count and step:
                distance += count * abs(step) if sign * step < 0 else 0
                counts[abs(step)] = counts.get(abs(step), 0) + count
    return _Search(sorted(counts.items(), reverse=True)).reaches(index(distance))


class _Search:
    """Whether a number is a sum of terms."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self.left = WORK
        self.most, self.common = [0], [0]  # of the terms from each on: their largest sum, their greatest common divisor
        for coefficient, count in reversed(terms):
            self.most.append(self.most[-1] + coefficient * count)
            self.common.append(gcd(self.common[-1], coefficient))
        self.most.reverse()
        self.common.reverse()

    def reaches(self, number: int, at: int = 0) -> bool:
        if not 0 <= number <= self.most[at]:
            return False
        if number in (0, self.most[at]):
            return True
        if at == len(self.terms) or number % self.common[at]:
            return False
        coefficient, count = self.terms[at]
        least = max(0, -((self.most[at + 1] - number) // coefficient))
        for times in range(min(count, number // coefficient), least - 1, -1):
            self.left -= 1
            if self.left < 0 or self.reaches(number - times * coefficient, at + 1):
                return True
        return False
