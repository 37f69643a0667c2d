"""Long lines, which are reduced in pieces: the first of equal extremes, and nan wherever it stands.

opencl cuts lines from 8,192 elements on, in pieces of a multiple of 4,096, and large arrays are those from 65,536 elements on. Where a
piece has 65,536 bytes for each of four vectors, they stand apart in it.
"""

from __future__ import annotations

import math

import turnout
from turnout_conformance.cases.model import Drawn, S, Sample, Seen, T
from turnout_conformance.cases.sets.rows import MANY, Row, row

LONG, LONGER = 270_003, 600_007  # vectors are apart in half a line: of four bytes, of one byte
PAIRS = ((0, 1), (1, 2), (4095, 4096), (8192, 30_000), (33_788, 67_576), (65_533, 65_536), (101_364, 135_167), (135_168, 200_000), (LONG - 3, LONG - 2))  # fmt: skip
ODD = tuple(Drawn((n,), marked=((place, math.nan),)) for n in (1 << 16, LONG) for place in (0, 5, 37, 4095, 4096, 65_535, n // 2, n - 4097, n - 40, n - 9, n - 1))  # fmt: skip
# Lines below the size of large arrays, in two pieces or many, too many for pieces, and with vectors apart.
LINES = ((3, 9001), (1, MANY), (40, 8203), (3, 30_001), (66, 1100), (3, 66_001))
DTYPES = ("float32", "float64", "int8", "float16", "int64", "uint8")


def two(first: int, second: int, size: int, top: float) -> Seen:
    """A line of zeros with two equal extremes, seen from its second element on."""
    return Seen(Drawn((size,), low=0.0, high=0.0, marked=((first + 1, top), (second + 1, top))), lambda x: x[1:])


def equal(*parts: tuple[float, int]) -> Seen:
    """Equal numbers in parts of some lengths."""
    lengths = [count for _, count in parts]
    return Seen(T([value for value, _ in parts]), lambda x: turnout.cat([x[i : i + 1].repeat(n) for i, n in enumerate(lengths)]))


EQUAL = tuple(equal((v, MANY - 1), end) for v in (math.inf, -math.inf, math.nan, 0.0) for end in ((v, 1), (1.0, 1)))
ZEROS = (equal((0.0, 40_000), (-0.0, 30_001)), equal((-0.0, 40_000), (0.0, 30_001)))
TIED = Drawn((MANY,), step=1.0), Drawn((MANY,), step=1.0, marked=((60_000, math.nan), (65_000, math.nan)))
ROWS_TIED = Drawn((70, 1500), step=1.0, marked=((3 * 1500 + 200, math.nan), (3 * 1500 + 1200, math.nan)))
COARSE = Drawn((LONG + 1,), step=0.5)


def with_dim(found: tuple[Sample, ...], *rest: object) -> list[Sample]:
    return [S(*s.args, *rest) for s in found]


def extremes(top: float) -> tuple[Sample, ...]:
    return tuple(S(two(i, j, LONG + 1, top)) for i, j in PAIRS)


ANY = tuple(S(x) for x in (*EQUAL, *ZEROS, *TIED))
OF_LINES = tuple(Drawn(shape, low=-9, high=9, step=0.25) for shape in LINES)

# ruff: noqa: E501 - rows of a table
# fmt: off
ROWS: list[Row] = [
    *row("argmax argmin amax amin", *[S(x) for x in ODD], *ANY, dtypes="float32"), *row("max min", S(ODD[-1]), *ANY, dtypes="float32"),
    *row("max.dim min.dim", *with_dim(ANY, 0), *with_dim((S(ROWS_TIED),), 1), *with_dim((S(ROWS_TIED),), 0), dtypes="float32"),
    *row("argmax argmin", *with_dim((S(ROWS_TIED),), 1), *with_dim((S(ROWS_TIED),), 0), dtypes="float32"),
    *row("sum linalg_vector_norm", *[S(x) for x in ODD[::3]], dtypes="float32", tolerance=1.0),
    *row("linalg_vector_norm", *[S(x, order) for x in ODD[::3] for order in (math.inf, -math.inf)], dtypes="float32", tolerance=1.0),
    *row("argmax", *extremes(1), dtypes=DTYPES, in_turn=True), *row("max.dim", *with_dim(extremes(1), 0), dtypes=DTYPES[::-1], in_turn=True),
    *row("argmin", *extremes(-1), dtypes=("float64", "int32", "float32", "int8", "int64", "float16"), in_turn=True),
    *row("min.dim", *with_dim(extremes(-1), 0), dtypes=("int32", "float16", "int8", "float64", "float32", "int64"), in_turn=True),
    *row("argmax", *[S(two(i, j, LONGER + 1, 1)) for i, j in ((0, 75_776), (75_775, 151_552), (227_329, 303_103), (303_104, 600_000))], dtypes=("int8", "uint8")),
    *row("argmax argmin max min", S(Seen(COARSE, lambda x: x[1:])), dtypes=DTYPES),
    *row("amax argmax argmin", *[S(Seen(x, lambda v: v[:, 1:]), 1) for x in OF_LINES], dtypes=DTYPES, in_turn=True),
    *row("amin max.dim min.dim", *[S(x, 1) for x in OF_LINES], dtypes=DTYPES, in_turn=True),
    *row("any.dim all.dim", *[S(Seen(x, lambda v: v[:, 3:]), 1) for x in OF_LINES], dtypes=DTYPES, in_turn=True),
    *row("sum.dim_IntList mean.dim std.dim", *[S(Seen(x, lambda v: v[:, 1:]), [1]) for x in OF_LINES], dtypes=("float32", "float64", "float16"), in_turn=True, tolerance=1.0),
    *row("linalg_vector_norm", *[S(x, order, [1]) for x in OF_LINES for order in (3, math.inf)], dtypes=("float32", "float64", "float16"), in_turn=True, tolerance=1.0),
]
# fmt: on
