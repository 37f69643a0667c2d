"""Reductions of many elements along every dim, across lines that begin anywhere, of all dtypes."""

from __future__ import annotations

import math
from collections.abc import Iterator

from turnout_conformance.cases.model import Drawn, S, Sample, Seen
from turnout_conformance.cases.sets.rows import FLOATS, MANY, Row, row

SHAPES = ((MANY,), (220, 301), (3, 75, 301), (75, 301, 3), (2, 35_000), (35_000, 2), (65, 1100), (2000, 33), (0,), (3, 0))
NONE_EMPTY = SHAPES[:-2]
ACROSS = tuple(Drawn((n, m), step=0.5) for n, m in ((3000, 34), (3001, 36), (200, 1027), (130, 2052), (65, 1103)))
ALL = ("float32", "float64", "float16", "int64", "int8", "uint8", "bool")
ORDERS = (0, 1, 2, 3.5, math.inf, -math.inf)


def along(shapes: tuple[tuple[int, ...], ...], *, both: bool = True) -> Iterator[Sample]:
    """Calls with each dim, and in lists with the first two together and dims of transposed views."""
    for shape in shapes:
        x = Drawn(shape, low=-1)
        for dim in range(len(shape)):
            yield S(x, [dim] if both else dim)
        if len(shape) > 1 and both:
            yield S(x, [0, 1])
            yield S(Seen(x, lambda v: v.t() if v.dim() == 2 else v[:, 1:, 1:]), [1])


ALONG, FULL = tuple(along(SHAPES)), tuple(along(NONE_EMPTY))


def norms(shape: tuple[int, ...]) -> Iterator[Sample]:
    for order in ORDERS:
        yield S(Drawn(shape), order)
        yield from (S(Drawn(shape), order, [dim]) for dim in range(len(shape)))


# ruff: noqa: E501 - rows of a table
# fmt: off
ROWS: list[Row] = [
    *row("sum.dim_IntList", *ALONG, dtypes="float64", tolerance=1.0),
    *row("var.dim", *FULL, dtypes="float64", tolerance=1.0),
    *row("mean.dim std.dim", *FULL[1::2], dtypes="float64", tolerance=1.0),
    *row("amax", *FULL, dtypes="float64"), *row("amin", *FULL[::2], dtypes="float64"),
    *row("sum mean var std", *[S(Drawn(shape, low=-1)) for shape in NONE_EMPTY], S(Seen(Drawn((220, 301), low=-1), lambda x: x[..., 1:])), dtypes="float64", tolerance=1.0),
    *row("max min argmax argmin", *[S(Drawn(shape)) for shape in NONE_EMPTY], dtypes="float32"),
    *row("prod.dim_int", *[S(Seen(s.args[0], lambda x: 1 + x / 1000), s.args[1]) for s in along(NONE_EMPTY, both=False)], dtypes="float64", tolerance=1.0),
    *row("prod", *[S(Seen(Drawn(shape), lambda x: 1 + x / 1000)) for shape in NONE_EMPTY], dtypes="float64", tolerance=10.0),
    *row("linalg_vector_norm", *norms((MANY,)), *norms((220, 301)), *norms((35_000, 2)), dtypes="float32", tolerance=1.0),
    *row("sum.dim_IntList", S(Drawn((220, 301), step=1.0), [0]), S(Drawn((220, 301), step=1.0), [1]), dtypes=(*ALL, "bfloat16"), tolerance=1.0),
    *row("sum any all", S(Drawn((220, 301), step=1.0)), dtypes=ALL, tolerance=1.0),
    *row("any.dim all.dim", S(Drawn((220, 301), step=1.0), 0), S(Drawn((220, 301), step=1.0), 1), dtypes=ALL),
    *row("amax amin", S(Drawn((220, 301), step=1.0), [0]), S(Drawn((220, 301), step=1.0), [1]), dtypes=ALL),
    *row("sum.dim_IntList", *[S(Seen(x, lambda v: v[:, 1:-2]), [0]) for x in ACROSS], dtypes=ALL, tolerance=1.0, in_turn=3),
    *row("amax", *[S(Seen(x, lambda v: v[:, 1:-2]), [0]) for x in ACROSS], dtypes=ALL, in_turn=3),
    *row("amin", *[S(Seen(x, lambda v: v[:, 2:-1]), [0]) for x in ACROSS], dtypes=ALL, in_turn=3),
    *row("any.dim", *[S(Seen(x, lambda v: v[1:, 3:]), 0) for x in ACROSS], dtypes=ALL, in_turn=3),
    *row("var.dim mean.dim", *[S(Seen(x, lambda v: v[:, 1:-2]), [0]) for x in ACROSS], dtypes=FLOATS, tolerance=1.0),
]
# fmt: on
