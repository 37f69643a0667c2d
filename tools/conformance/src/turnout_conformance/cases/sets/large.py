"""Arrays above the sizes from which devices compute in pieces, with vectors, or by programs of their own.

Where one text serves all dtypes, each operator takes some of them in turn.
"""

from __future__ import annotations

import math

from turnout.dtypes import bfloat16, bool_, float16, float32, int32
from turnout_aten.shapes.activations import GELU
from turnout_conformance.cases.model import Drawn, S, Seen
from turnout_conformance.cases.sets.rows import INTEGERS, MANY, Row, row

NUMBERS = ("float32", "float64", "float16", *INTEGERS)
MARKS = (math.nan, math.inf, -math.inf, 0.0, -0.0, 1e-40, 3e38, 2e4)
X = Drawn((MANY,), low=-9, high=9, marked=tuple(enumerate(MARKS)))
A, B = Drawn((MANY,), low=-60, high=60), Drawn((MANY,), low=-60, high=60, seed=2)
P, Q = Drawn((MANY,)), Drawn((MANY,), seed=2)
COPIES = tuple(S(Seen(A, lambda x: x.abs()), dtype=dtype) for dtype in (float32, float16, int32, bool_, bfloat16))

# ruff: noqa: E501 - rows of a table
# fmt: off
ROWS: list[Row] = [
    *row("exp expm1 log log1p sqrt rsqrt tanh erf sigmoid neg abs floor ceil trunc round relu sign isnan logical_not acos acosh asin asinh atan atanh cosh sinh exp2 log2 log10 erfc reciprocal square frac signbit isinf silu mish softplus elu", S(X), dtypes="float32"),
    *row("sin cos tan", S(X), dtypes="float32"), *row("sinc", S(P), dtypes="float32"),
    *row("gelu", *[S(P, approximate=word) for word in GELU], dtypes="float32"),
    *row("gelu_backward", *[S(Q, P, approximate=word) for word in GELU], dtypes="float32"),
    *row("silu_backward sigmoid_backward tanh_backward", S(P, Q), dtypes="float32"),
    *row("glu", S(Seen(P, lambda x: x[1:])), dtypes="float32"),
    *row("atan2 hypot", S(P, Q), dtypes="float32"),
    *row("pow.Tensor_Tensor", S(Seen(P, lambda x: x.abs()), Q), dtypes="float32"),
    *row("pow.Tensor_Scalar", S(Seen(P, lambda x: x.abs()), 1.5), dtypes="float32"),
    *row("add.Tensor mul.Tensor sub.Tensor maximum minimum lt.Tensor eq.Tensor ne.Tensor gt.Tensor", S(A, B), dtypes=NUMBERS, in_turn=3),
    *row("sub.Scalar eq.Scalar gt.Scalar", S(A, 2), dtypes=NUMBERS, in_turn=True),
    *row("clamp", S(A, 0, 20), dtypes=("float16", "int32", "float32", "float64", "int64", "int8", "uint8"), in_turn=3),
    *row("where.self", S(Seen(A, lambda x: x > 3), A, B), dtypes=("float32", "int8", "float64", *NUMBERS[2:4], "int32", "uint8"), in_turn=3),
    *row("where.ScalarOther", S(Seen(A, lambda x: x > 3), A, 3), dtypes=("int8", "float16", "float64")),
    *row("_to_copy", *COPIES, dtypes=NUMBERS, in_turn=3, wide=False),
]
# fmt: on
