"""Complex numbers: arithmetic at infinities and zeros, sums, products and questions."""

from __future__ import annotations

import math

from turnout.dtypes import bool_, complex64, float32
from turnout_conformance.cases.model import Drawn, S, Seen, T
from turnout_conformance.cases.sets.rows import Row, row

DTYPES = ("complex64", "complex128")
PARTS = [0.0, 1.0, -2.5, math.inf, -math.inf, math.nan, -0.0]
NUMBERS = [complex(a, b) for a in PARTS for b in PARTS]
FIRST = Seen(T(NUMBERS), lambda x: x.repeat_interleave(len(NUMBERS)))
SECOND = Seen(T(NUMBERS), lambda x: x.repeat(len(NUMBERS)))
NONE = ((0, 0.0), (1, 0.0), (2, 0.0))
X, Y = Drawn((3, 4, 5), marked=NONE), Drawn((3, 4, 5), seed=2, marked=NONE)
ROWS_OF_X, ROWS_OF_Y = Seen(X, lambda x: x[0]), Seen(Y, lambda x: x[0].t())

# ruff: noqa: E501 - rows of a table
# fmt: off
ROWS: list[Row] = [
    *row("add.Tensor mul.Tensor div.Tensor eq.Tensor ne.Tensor", S(FIRST, SECOND), S(Seen(FIRST, lambda x: x[:8, None]), Seen(SECOND, lambda x: x[None, ::3])), dtypes=DTYPES),
    *row("sub.Tensor", S(FIRST, SECOND, alpha=2 - 1j), dtypes=DTYPES), *row("rsub.Tensor", S(FIRST, SECOND, alpha=3), dtypes=DTYPES),
    *row("rsub.Scalar", S(FIRST, 2 - 3j), dtypes=DTYPES), *row("mul.Scalar", S(FIRST, 2.5), S(FIRST, 1j), dtypes=DTYPES),
    *row("_to_copy", *[S(T(NUMBERS[:-14]), dtype=dtype) for dtype in (bool_, complex64)], S(T([0j, 1 + 2j, -0.5]), dtype=float32), dtypes=DTYPES, wide=False),
    *row("neg conj_physical reciprocal abs isnan isinf logical_not", S(T(NUMBERS)), dtypes=DTYPES),
    *row("sum mean prod", S(X), S(Seen(X, lambda x: x[:, :1, :1])), dtypes=DTYPES, tolerance=1.0),
    *row("sum.dim_IntList mean.dim", S(X, [0]), S(X, [0, 2], True), S(Seen(X, lambda x: x.transpose(0, 2)), [1]), dtypes=DTYPES, tolerance=1.0),
    *row("sum.dim_IntList", S(Seen(X, lambda x: x[:0]), [0]), dtypes=DTYPES),
    *row("cumsum cumprod prod.dim_int", S(X, 1), S(X, 2), dtypes=DTYPES, tolerance=1.0),
    *row("any.dim all.dim", S(X, 2), dtypes=DTYPES), *row("any", S(Seen(X, lambda x: x[:, :, ::2] * 0)), dtypes=DTYPES),
    *row("logical_and logical_xor", S(X, Y), S(X, Seen(Y, lambda x: x.flip(0))), dtypes=DTYPES),
    *row("mm", S(ROWS_OF_X, ROWS_OF_Y), dtypes=DTYPES, tolerance=1.0), *row("bmm", S(X, Seen(Y, lambda x: x.mT)), dtypes=DTYPES, tolerance=1.0),
    *row("addmm", S(Seen(X, lambda x: x[0, :4, :4]), ROWS_OF_X, ROWS_OF_Y, beta=2, alpha=0.5 + 1j), dtypes=DTYPES, tolerance=1.0),
    *row("baddbmm", S(Seen(X, lambda x: x[:, :, :1]), X, Seen(Y, lambda x: x.transpose(1, 2)), beta=0), dtypes=DTYPES, tolerance=1.0),
    *row("mv", S(ROWS_OF_X, Seen(Y, lambda x: x[0, 0])), dtypes=DTYPES, tolerance=1.0), *row("dot", S(Seen(X, lambda x: x[0, 0]), Seen(Y, lambda x: x[0, 0])), dtypes=DTYPES, tolerance=1.0),
    *row("where.ScalarOther", S(T([[[True]], [[False]], [[True]]], "bool"), X, 2 - 1j), dtypes=DTYPES),
    *row("constant_pad_nd", S(X, [1, 2], 3), dtypes=DTYPES), *row("nonzero", S(X), S(T([0, 1, 1j, -0.0])), dtypes=DTYPES),
]
# fmt: on
