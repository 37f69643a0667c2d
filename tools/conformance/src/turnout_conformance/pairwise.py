"""Some combinations of values, in place of a whole product: any two values of two factors are together in one of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import combinations
from random import Random
from typing import Any

Allowed = Callable[[tuple[Any, ...]], bool]
_TRIES = 40  # combinations that are drawn for each that is taken


def pairwise(*factors: Sequence[Any], allowed: Allowed = lambda row: True, most: int | None = None) -> list[tuple[Any, ...]]:
    """The combinations, always the same ones, of those that are allowed; with `most`, that many of them at most."""

    def values(places: tuple[int, ...]) -> tuple[Any, ...]:
        return tuple(factor[at] for factor, at in zip(factors, places, strict=True))

    return [values(places) for places in _places(tuple(map(len, factors)), lambda places: allowed(values(places)), most)]


def _places(counts: tuple[int, ...], allowed: Callable[[tuple[int, ...]], bool], most: int | None) -> list[tuple[int, ...]]:
    """Each combination has the first pair that is missing, and of those drawn with it, it has most of the others."""
    draw, chosen = Random(len(counts)), list[tuple[int, ...]]()
    missing = {
        ((i, a), (j, b)) for (i, m), (j, n) in combinations(enumerate(counts), 2) for a in range(m) for b in range(n)
    }  # fmt: skip
    while missing and (most is None or len(chosen) < most):
        (i, a), (j, b) = pair = min(missing)
        drawn = [[draw.randrange(count) for count in counts] for _ in range(_TRIES)]
        tries = [places for r in drawn if allowed(places := (*r[:i], a, *r[i + 1 : j], b, *r[j + 1 :]))]
        if not tries:  # no combination may have it
            missing.remove(pair)
            continue
        chosen.append(best := max(tries, key=lambda places: len(missing.intersection(_pairs(places)))))
        missing.difference_update(_pairs(best))
    return chosen


@cache
def _pairs(places: tuple[int, ...]) -> tuple[Any, ...]:
    return tuple(combinations(enumerate(places), 2))
