"""Some combinations of values, in place of a whole product: any two values of two factors are together in one of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import combinations, product
from typing import Any


def pairwise(*factors: Sequence[Any]) -> list[tuple[Any, ...]]:
    """The combinations, always the same ones, in the order of the product."""
    return [tuple(factor[at] for factor, at in zip(factors, places, strict=True)) for places in _places(*map(len, factors))]


@cache
def _places(*counts: int) -> list[tuple[int, ...]]:
    pairs = {places: frozenset(combinations(enumerate(places), 2)) for places in product(*map(range, counts))}
    left, chosen = set[Any]().union(*pairs.values()), []
    while left:
        chosen.append(best := max(pairs, key=lambda places: len(pairs[places] & left)))
        left -= pairs[best]
    return sorted(chosen)
