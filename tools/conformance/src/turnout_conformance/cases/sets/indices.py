"""Reading and writing at indices and masks, repeated ones and none."""

from __future__ import annotations

from turnout_conformance.cases.model import Drawn, S, Seen, T
from turnout_conformance.cases.sets.rows import Row, row

MASKED = tuple(
    Drawn(shape, low=0, high=4.5, step=1.5)
    for shape in ((2000,), (3, 5, 700), (0, 4), (), (1, 1, 1, 1, 2, 1, 1, 1, 1, 3), (7, 10_001))
)
MANY = Drawn((7, 10_001), low=1, high=4.5, step=1.5)  # more places than 65,536
X, NONE = Drawn((5,), step=1.0), Drawn((2, 0), "int64")
PLACES, VALUES = T([2, 0, 2], "int64"), T([1, 2, 3])
SQUARE = Drawn((3, 3))
AT = T([2, 0, 1], "int64")
EACH = Seen(AT, lambda x: x.expand(3, 3))
DTYPES = ("float32", "int64", "complex64", "bool")

# ruff: noqa: E501 - rows of a table
# fmt: off
ROWS: list[Row] = [
    *row("nonzero", *[S(x) for x in (*MASKED, MANY)], dtypes=("float64", "int32", "bool")),
    *row("masked_select", *[S(x, Seen(x, lambda v: v > 2)) for x in MASKED], dtypes=("float64", "int32")),
    *row("masked_fill.Scalar", *[S(x, Seen(x, lambda v: v > 2), -1) for x in MASKED], dtypes=("float64", "int32")),
    *row("gather", S(X, 0, NONE), S(SQUARE, 1, EACH), dtypes=DTYPES),
    *row("scatter.value", S(X, 0, NONE, 1), dtypes=DTYPES),
    *row("scatter_add", S(X, 0, NONE, Seen(NONE, lambda x: x.double())), S(Drawn((3,)), 0, PLACES, Drawn((3,), seed=2)), dtypes="float64", tolerance=1.0),
    *row("scatter_reduce.two", S(X, 0, NONE, Seen(NONE, lambda x: x.double()), "prod"), dtypes="float64"),
    *row("scatter_reduce.two", S(Seen(MANY, lambda x: x.reshape(-1)), 0, PLACES, VALUES, "mean"), dtypes="int64"),
    *row("index_put", S(Drawn((3,)), [PLACES], Drawn((3,), seed=2), True), S(Drawn((3,)), [PLACES], Drawn((3,), seed=2)), dtypes="float32", tolerance=1.0),
    *row("flip", S(SQUARE, [0, 1]), dtypes=DTYPES),
    *row("cat", S([SQUARE, Seen(SQUARE, lambda x: x[1:])], 0), dtypes=DTYPES),
    *row("where.self", S(T([[True, False, True]], "bool"), SQUARE, Seen(SQUARE, lambda x: x.mT)), dtypes=DTYPES),
    *row("tril", S(SQUARE, -1), dtypes=DTYPES),
    *row("index.Tensor", S(SQUARE, [AT, Seen(AT, lambda x: x.flip(0))]), dtypes=DTYPES),
    *row("index_select", S(SQUARE, 1, AT), dtypes=DTYPES),
    *row("index_put", S(SQUARE, [AT, AT], Seen(SQUARE, lambda x: x[0])), dtypes=DTYPES),
    *row("scatter.src", S(SQUARE, 0, EACH, Seen(SQUARE, lambda x: x.mT)), dtypes=DTYPES),
]
# fmt: on
