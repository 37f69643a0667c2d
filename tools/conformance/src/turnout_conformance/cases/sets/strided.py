"""Operands that lie anyhow in memory: gaps, other orders of dims, repeated elements, lines that begin between two vectors.

Most are so large that devices go along lines, see `large`.
"""

from __future__ import annotations

from turnout.dtypes import float32
from turnout_conformance.cases.model import Drawn, S, Seen
from turnout_conformance.cases.sets.rows import Row, row

M, W = Drawn((220, 301)), Drawn((284, 700), step=0.25)
KINDS = ("float32", "float64", "float16")
GAPS, OTHERS, ROWS_APART, LEFT, RIGHT = (
    Seen(W, lambda x: x[:, ::2]), Seen(W, lambda x: x[:, 1::2]), Seen(W, lambda x: x[::2, 5::2]),
    Seen(W, lambda x: x.reshape(-1, 10)[:, :8]), Seen(W, lambda x: x.reshape(-1, 10)[:, 2:]),
)  # fmt: skip
ACROSS = Seen(W, lambda x: x.t())
FIRST_ROW, FIRST_COLUMN, FIRST = Seen(M, lambda x: x[:1]), Seen(M, lambda x: x[:, :1]), Seen(W, lambda x: x[0, 0])

# ruff: noqa: E501 - rows of a table
# fmt: off
ROWS: list[Row] = [
    *row("add.Tensor mul.Tensor", S(M, Seen(M, lambda x: x[0])), S(M, FIRST_COLUMN), S(FIRST_COLUMN, FIRST_ROW), S(Seen(FIRST_ROW, lambda x: x.expand(220, 301)), M), dtypes="float32"),
    *row("add.Scalar mul.Scalar", S(Seen(FIRST_ROW, lambda x: x.expand(220, 301)), 1), S(Seen(M, lambda x: x.unsqueeze(1).expand(220, 2, 301)), 2), S(Seen(M, lambda x: x[::2]), 1), dtypes="float32"),
    *row("add.Tensor mul.Tensor sub.Tensor", S(ACROSS, ACROSS), S(GAPS, OTHERS), S(Seen(W, lambda x: x.t()[::2]), FIRST), dtypes=(*KINDS, "int32"), in_turn=2),
    *row("gt.Tensor", S(GAPS, OTHERS), dtypes=("bool", *KINDS, "int32"), in_turn=3),
    *row("where.self", S(Seen(W, lambda x: x.t() > 0), ACROSS, Seen(W, lambda x: x.t()[:1])), dtypes=("float16", "int32", "bool", "float32", "float64"), in_turn=3),
    *row("clone", S(GAPS), S(ACROSS), dtypes=(*KINDS, "int32", "bool")),
    *row("flip", S(W, [1]), dtypes=(*KINDS, "int32", "bool")),
    *row("_to_copy", S(ROWS_APART, dtype=float32), dtypes=(*KINDS, "int32", "bool"), wide=False),
    *row("exp sin tanh cos", S(GAPS), S(Seen(W, lambda x: x.t()[:, ::2])), S(Seen(W, lambda x: x[:, ::3])), S(ACROSS), dtypes=KINDS, in_turn=True),
    *row("exp", S(Seen(M, lambda x: x[:, 1:].reshape(22, 10, 300)[:, 1:, 3:])), S(Seen(W, lambda x: x.view(28_400, 7).t())), dtypes=KINDS),
    *row("atan2", S(LEFT, RIGHT), dtypes=KINDS),
]
# fmt: on
