"""Layers and sums in floats of two bytes, which are computed in four bytes and rounded once, and in those of four bytes."""

from __future__ import annotations

import turnout
from turnout_conformance.cases.model import Drawn, S, Seen
from turnout_conformance.cases.sets.rows import HALVES, MANY, Row, row

IMAGE, SCALE = Drawn((2, 6, 9, 9)), Drawn((6,), low=0.5, high=1.5)
HUNDREDS = Drawn((MANY,), low=100.0, high=100.0)  # partial sums of many of them are above all float16
FLOATS = ("float32", *HALVES)

# ruff: noqa: E501 - rows of a table
# fmt: off
ROWS: list[Row] = [
    *row("mean", S(HUNDREDS), dtypes=HALVES, tolerance=1.0),
    *row("mean.dim", S(Seen(HUNDREDS, lambda x: x[:70_000].view(700, 100) * 5), [0]), dtypes=HALVES, tolerance=1.0),
    *row("sum", S(Seen(HUNDREDS, lambda x: turnout.cat([x[:35_001], -x[:35_000]]))), S(Drawn((9, 300))), dtypes=HALVES, tolerance=1.0),
    *row("_softmax _log_softmax", S(Drawn((9, 300)), 1, False), S(Drawn((9, 300)), 0, False), dtypes=FLOATS, tolerance=1.0),
    *row("max_pool2d_with_indices", S(IMAGE, [3]), S(IMAGE, [3], [2], [1]), dtypes=FLOATS),
    *row("avg_pool2d", S(IMAGE, [3], [2], [1]), dtypes=FLOATS, tolerance=1.0),
    *row("_adaptive_avg_pool2d", S(IMAGE, [4, 5]), dtypes=FLOATS, tolerance=1.0),
    *row("upsample_bilinear2d", S(IMAGE, [18, 18], False), S(IMAGE, [5, 7], True), dtypes=FLOATS, tolerance=1.0),
    *row("native_group_norm", S(IMAGE, SCALE, SCALE, 2, 6, 81, 3, 1e-5), dtypes=FLOATS, tolerance=1.0),
    *row("native_layer_norm", S(IMAGE, [9], None, None, 1e-5), dtypes=FLOATS, tolerance=1.0),
    *row("linalg_vector_norm", S(IMAGE, 3, [2, 3]), dtypes=FLOATS, tolerance=1.0),
    *row("constant_pad_nd", S(IMAGE, [1, 2]), dtypes=FLOATS),
]
# fmt: on
