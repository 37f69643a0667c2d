"""Sorting, which is stable and puts nan last, and the first elements in order."""

from __future__ import annotations

import math

from turnout_conformance.cases.model import Drawn, S, Seen
from turnout_conformance.cases.sets.rows import Row, row

SHAPES = (((1000,), 0), ((5, 333), 1), ((67, 3, 2), 0), ((4, 2, 9), 1), ((3, 1), 1))
DTYPES = ("float32", "float16", "int64", "uint8", "bool")


def tied(shape: tuple[int, ...], *, odd: bool = True) -> Seen:
    """Few different numbers, each seventh a nan if `odd`, with the dims in reverse order in memory."""
    count = math.prod(shape)
    marked = tuple((i, math.nan) for i in range(0, count, 7)) if odd else ()
    return Seen(Drawn(shape[::-1], low=0, high=9, step=1.0, marked=marked), lambda x: x.permute(*reversed(range(x.dim()))))


# ruff: noqa: E501 - rows of a table
# fmt: off
ROWS: list[Row] = [
    *row("sort.stable", *[S(tied(shape), stable=True, dim=dim, descending=down) for shape, dim in SHAPES for down in (False, True)], dtypes=("float32", "float16")),
    *row("sort.stable", *[S(tied(shape, odd=False), stable=True, dim=dim, descending=down) for shape, dim in SHAPES for down in (False, True)], dtypes=("int64", "uint8", "bool")),
    *row("topk", *[S(Seen(Drawn(shape, low=-500, high=500), lambda x: x), min(3, shape[dim]), dim, down) for shape, dim in SHAPES for down in (False, True)], dtypes=("float32", "float64")),
]
# fmt: on
