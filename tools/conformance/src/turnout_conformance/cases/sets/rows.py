"""What the rows of a set are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

from turnout_conformance.cases.model import Sample, SampleSet

HALVES = ("float16", "bfloat16")
INTEGERS = ("int64", "int32", "int8", "uint8")
FLOATS = ("float32", "float64", *HALVES)
MANY = 70_001  # above 2**16, and no multiple of anything
Row = tuple[str, SampleSet]


def row(operators: str, *samples: Sample, dtypes: tuple[str, ...] | str = FLOATS, **facts: Any) -> list[Row]:
    """The same samples for each of some operators, given as words. `facts` are those of `SampleSet`: where samples take dtypes in
    turn, the next operator begins with the next dtype."""
    names = (dtypes,) if isinstance(dtypes, str) else dtypes
    turn = facts.get("in_turn", False)
    return [
        (operator, SampleSet(samples, names[i % len(names) :] + names[: i % len(names)] if turn else names, **facts))
        for i, operator in enumerate(operators.split())
    ]


class Made(Sequence[Sample]):
    """Many samples, which are made when they are asked for."""

    def __init__(self, make: Callable[[], Iterable[Sample]]) -> None:
        self._make = make

    @cached_property
    def _all(self) -> tuple[Sample, ...]:
        return tuple(self._make())

    def __getitem__(self, at: Any) -> Any:
        return self._all[at]

    def __len__(self) -> int:
        return len(self._all)
