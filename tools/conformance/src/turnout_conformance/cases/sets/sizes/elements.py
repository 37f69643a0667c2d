"""Element by element, products, and attention."""

from __future__ import annotations

from typing import Any

import turnout
from turnout_conformance.cases.model import Drawn, S, Seen
from turnout_conformance.cases.sets.rows import Row
from turnout_conformance.cases.sets.sizes.shapes import Shape, rows

# ruff: noqa: E501 - rows of a table

# Arrays that begin anywhere in 16 bytes, and end so.
STARTS = [(1, 0), (3, 1), (4, 2), (5, 0), (8, 1), (31, 2), (260, 1)]
REPEATED = [(4, 6, 8), (8,), (6, 8), (1, 6, 8), (4, 1, 1), (4, 6, 1), (6, 1), (1,), (1, 6, 1)]  # beside 4 x 6 x 8 elements
HALVES = Drawn((4, 6, 8), step=0.5)


def part(n: int, first: int, seed: int = 1, **drawn: Any) -> Seen:
    """So many elements of an array, from one on."""
    return Seen(Drawn((n + 5,), seed=seed, **drawn), lambda x: x[first : first + n])


def of_one(operators: str, *numbers: Any, low: float = -3.0, **options: Any) -> list[Row]:
    """Functions of one array."""
    given = (part(13, 1, low=low), part(13, 2, low=low), Drawn((7, 13), low=low), Drawn((), low=low))
    return rows(operators, *[S(x, *numbers, **options) for x in given])


def slope(operators: str, *numbers: Any, **options: Any) -> list[Row]:
    """Gradients of functions, from those of their results."""
    given = ((Drawn((6, 11), seed=2), Drawn((6, 11))), (part(9, 1, 2), part(9, 3)))
    return rows(operators, *[S(x, y, *numbers, **options) for x, y in given])


# ---- products and attention

PRODUCTS = ("float32", "float16", "complex64", "float64", "bfloat16", "complex128")
MATRICES: list[tuple[Shape, Shape]] = [
    ((3, 4), (4, 5)), ((1, 4), (4, 1)), ((3, 1), (1, 5)), ((4,), (4, 5)), ((3, 4), (4,)), ((4,), (4,)),
    ((2, 3, 4), (2, 4, 5)), ((2, 3, 4), (4, 5)), ((3, 4), (2, 4, 5)), ((2, 1, 3, 4), (5, 4, 2)), ((2, 6, 3, 4), (2, 6, 4, 2)),
    ((2, 1, 3, 4), (1, 1, 4, 2)), ((2, 3, 4), (4,)), ((0, 4), (4, 5)), ((3, 0), (0, 5)), ((0, 3, 4), (0, 4, 5)),
]  # fmt: skip
A, B = Drawn((4, 6)), Drawn((4, 7), seed=2)
VIEWS: list[tuple[str, Any, Any]] = [  # matrices of any layout
    ("mm", lambda a: a.t(), lambda b: b), ("mm", lambda a: a.t(), lambda b: b.t().contiguous().t()),
    ("mm", lambda a: a[:, ::2].t(), lambda b: b), ("mm", lambda a: a[1:3].t(), lambda b: b[1:3]),
    ("mm", lambda a: a[:, 1:].t(), lambda b: b[:, 2:]), ("mm", lambda a: a[:, :1].t(), lambda b: b),
    ("mm", lambda a: a[:1].t(), lambda b: b[:1]),
    ("bmm", lambda a: a.expand(3, 4, 6).transpose(1, 2), lambda b: b.expand(3, 4, 7)),
    ("bmm", lambda a: a.view(2, 2, 6), lambda b: b[:2].view(2, 7, 1)[:, :6]),
    ("bmm", lambda a: a.view(4, 2, 3)[::2], lambda b: b.view(4, 7, 1)[::2, :3]),
    ("matmul", lambda a: a.view(2, 2, 2, 3).transpose(0, 1), lambda b: b.view(2, 2, 7, 1)[:, :, :3]),
]  # fmt: skip
SUMS: list[tuple[str, tuple[Shape, ...]]] = [
    ("addmm", ((5,), (3, 4), (4, 5))), ("addmm", ((3, 5), (3, 0), (0, 5))), ("addmv", ((3,), (3, 4), (4,))),
    ("baddbmm", ((3, 5), (2, 3, 4), (2, 4, 5))),
]  # fmt: skip
HEADS = [((2, 3, 5, 4), 7, 3), ((6, 4), 6, 4), ((2, 40, 8), 40, 8), ((1, 3, 16), 1_100, 5)]  # queries, keys, width of values
MASKS: list[Shape] = [(5, 9), (2, 1, 1, 9), (3, 5, 1), (2, 3, 5, 9), (2, 1, 5, 9)]

# fmt: off
ROWS: list[Row] = [
    *of_one("abs neg square floor ceil trunc round exp expm1 sin cos tan sinh cosh tanh atan erf relu sigmoid silu mish hardswish leaky_relu softplus elu gelu selu"),
    *of_one("sqrt rsqrt reciprocal log log1p log2 log10", low=0.1),
    *of_one("gelu", approximate="tanh"),
    *[each for bounds in ((-0.5, 0.75), (None, 0.5), (0.25, None), (1.0, -1.0)) for each in of_one("clamp", *bounds)],
    *[each for exponent in (3, -1, -2, 0.5, 1.7, 4) for each in of_one("pow.Tensor_Scalar", exponent, low=0.3)],
    *rows("add.Tensor sub.Tensor mul.Tensor div.Tensor maximum minimum gt.Tensor ge.Tensor lt.Tensor le.Tensor eq.Tensor ne.Tensor", *[S(HALVES, Drawn(shape, step=0.5, low=1.0, seed=2)) for shape in REPEATED], S(Drawn((5, 3)), Drawn((3,), low=1.0, seed=2))),
    *rows("add.Scalar sub.Scalar mul.Scalar div.Scalar gt.Scalar ge.Scalar lt.Scalar le.Scalar eq.Scalar ne.Scalar", S(HALVES, 1.5), S(part(13, 1, step=0.5), 1.5)),
    *rows("add.Tensor sub.Tensor", S(HALVES, Drawn((4, 6, 8), seed=2), alpha=0.5), S(part(31, 1), part(31, 3, 2), alpha=-2)),
    *rows("exp neg", *[S(part(*start)) for start in STARTS], in_turn=0),
    *rows("add.Tensor gt.Tensor", *[S(part(n, first), part(n, 1, 2)) for n, first in STARTS], in_turn=0),
    *rows("where.self", *[S(part(n, first, dtype="bool"), part(n, first, 2), part(n, 1, 3)) for n, first in STARTS], in_turn=0),
    *rows("where.ScalarSelf", S(Drawn((5, 9), "bool"), 2.0, Drawn((5, 9))), in_turn=0),
    *rows("where.ScalarOther", S(Drawn((5, 9), "bool"), Drawn((5, 9)), 2.0), in_turn=0),
    *slope("sigmoid_backward tanh_backward silu_backward gelu_backward"),
    *slope("gelu_backward", approximate="tanh"),
    *slope("threshold_backward", 0.5),
    *rows("_to_copy", *[S(Drawn((n,)), dtype=turnout.float32) for n in (3, 260)], dtypes=("float16", "bfloat16", "float64"), in_turn=0),
    *rows("_to_copy", *[S(Drawn((n,), "float32"), dtype=dtype) for n in (3, 260) for dtype in (turnout.float16, turnout.bfloat16, turnout.float64)], dtypes="float32", in_turn=0),
    *rows("matmul", *[S(Drawn(a), Drawn(b, seed=2)) for a, b in MATRICES], dtypes=PRODUCTS, in_turn=3, tolerance=4.0),
    *[each for name, a, b in VIEWS for each in rows(name, S(Seen(A, a), Seen(B, b)), dtypes=("float32", "bfloat16"), in_turn=0, tolerance=4.0)],
    *[each for name, shapes in SUMS for each in rows(name, *[S(*[Drawn(shape, seed=i) for i, shape in enumerate(shapes)], beta=beta, alpha=alpha) for beta, alpha in ((1, 1), (0.5, 2), (0, 1), (0, 0.5))], dtypes=PRODUCTS, in_turn=0, tolerance=4.0)],
    *rows("linear", S(Drawn((6, 4)), Drawn((5, 4), seed=2), Drawn((5,), seed=3)), dtypes=PRODUCTS, in_turn=0, tolerance=4.0),
    *rows("scaled_dot_product_attention", *[S(Drawn((2, 3, 5, 4)), Drawn((2, 3, 9, 4), seed=2), Drawn((2, 3, 9, 6), seed=3), Drawn(shape, dtype, seed=4)) for shape in MASKS for dtype in (None, "bool", "float32")], tolerance=4.0),
    *rows("scaled_dot_product_attention", *[S(Drawn(q), Drawn((*q[:-2], keys, q[-1]), seed=2), Drawn((*q[:-2], keys, width), seed=3), None, 0.0, causal, scale=0.4) for causal in (False, True) for q, keys, width in HEADS], tolerance=4.0),
]
# fmt: on
