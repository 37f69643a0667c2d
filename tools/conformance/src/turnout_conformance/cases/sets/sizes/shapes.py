"""What the rows of all sizes are made of."""

from __future__ import annotations

from typing import Any

from turnout_conformance.cases.model import Drawn, Sample
from turnout_conformance.cases.sets.rows import Row, row

FLOATS = ("float32", "float16", "float64", "bfloat16")
ALL = [True, True, True]
Shape = tuple[int, ...]


def rows(operators: str, *samples: Sample, **facts: Any) -> list[Row]:
    """Rows whose samples are tried in two dtypes each, with errors relative to the largest number."""
    return row(operators, *samples, **{"dtypes": FLOATS, "in_turn": 2, "tolerance": 1.0, **facts})


def places(shape: Shape, length: int, low: int = 0) -> Drawn:
    """Indices of a dim."""
    return Drawn(shape, "int64", low, length - 1, seed=5)
