"""Softmax, running values, extremes, variances, norms and sorting along lines of all lengths."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf, nan, prod
from typing import Any

from turnout_conformance.cases.model import UNDER_TEST, Drawn, S, Sample, Seen, T, nested
from turnout_conformance.cases.sets.rows import Row
from turnout_conformance.cases.sets.sizes.shapes import Shape, places, rows

# ruff: noqa: E501 - rows of a table
LINES: list[tuple[Shape, int]] = [
    ((1,), -1), ((3, 5), -1), ((2, 33), -1), ((5, 37), 0), ((2, 7, 3), 1), ((2, 1100), -1), ((300, 2), 0), ((3, 64), -1),
    ((2, 1024), -1), ((1, 4096), -1), ((3, 2, 40), 0),
]  # fmt: skip
SUMMED: list[tuple[Shape, int]] = [
    ((1,), -1), ((3, 5), -1), ((2, 128), -1), ((5, 37), 0), ((300, 2), 0), ((2, 7, 3), 1), ((2, 1100), -1), ((2, 2049), -1),
    ((3, 201), -1),
]  # fmt: skip
SORTED: list[tuple[Shape, int]] = [
    ((1,), -1), ((3, 5), -1), ((2, 33), -1), ((2, 200), -1), ((1, 256), 1), ((9, 4), 0), ((2, 7, 3), 1),
]  # fmt: skip
# Dims that are neighbours, or all; those of two long rows are cut into parts.
SEVERAL: list[tuple[Shape, Any]] = [((3, 4, 5), [-1, 1]), ((3, 4, 5), [0, 1]), ((2, 1, 4, 3), [0, 2]), ((3, 4), None)]
PARTS: list[tuple[Shape, Any]] = [((2, 20_000), None), ((3, 33_001), [1]), ((1100, 40), [0]), ((2, 1300, 3), [1])]
FOLDED: list[tuple[Shape, Any]] = [*[(shape, [dim]) for shape, dim in LINES], *SEVERAL]


def along(call: Callable[..., Sample], lines: list[tuple[Shape, Any]] = LINES, **drawn: Any) -> Iterator[Sample]:
    """A sample for each line: `call(tensor, dim)`."""
    return (call(Drawn(shape, **drawn), dim) for shape, dim in lines)


def marked(call: Any) -> Iterator[Sample]:
    """Samples of rows of which one is all infinite or nan, others begin or end so, and the half of one is -inf."""
    for n in (1, 3, 40, 1200):
        for value in (inf, -inf, nan):
            ends, half = (*range(n + 1), 2 * n - 1, 3 * n - 1), range(3 * n + n // 2, 4 * n)
            yield call(Drawn((4, n), marked=(*((i, value) for i in ends), *((i, -inf) for i in half))))


def down(x: Any) -> Any:
    """The rows of a matrix as columns."""
    return Seen(x, lambda t: t.t().contiguous())


def different(shape: Shape, dim: int) -> T:
    """Lines of whole numbers of which none are equal; their length is no multiple of 13."""
    length, inner = shape[dim], prod(shape[dim % len(shape) + 1 :])
    return T(nested([(13 * (i // inner % length) + i // (inner * length)) % length - 3 for i in range(prod(shape))], shape))


# ---- lines that lie anyhow in memory

SIX = Drawn((6, 6))
LYING = [(6, lambda x: x.t()), (5, lambda x: x[::2, 1:]), (6, lambda x: x[:1].expand(6, 6)), (5, lambda x: x[1:, 1:].t())]
DENSE = [*LYING[:2], LYING[3], (6, lambda x: x.reshape(2, 3, 6).permute(0, 2, 1))]  # no elements repeat
AT = places((7,), 3)


def lying(operator: str, call: Callable[..., Sample], views: list[Any] = LYING) -> list[Row]:
    """The row of `call(matrix, length of its rows)`."""
    return rows(operator, *[call(Seen(SIX, view), length) for length, view in views], in_turn=1)


def running(lines: list[tuple[Shape, int]]) -> list[Row]:
    """Softmax and running values, and their gradients."""
    gradients = [S(Drawn(shape, seed=2), Drawn(shape), dim, UNDER_TEST) for shape, dim in lines]
    return [
        *rows("_softmax _log_softmax", *along(lambda x, dim: S(x, dim, False), lines)),
        *rows("_softmax_backward_data _log_softmax_backward_data", *gradients, tolerance=4.0),
        *rows("cummax cummin", *along(S, lines, step=1.0)),
        *rows("logcumsumexp", *along(S, lines)),
    ]


# fmt: off
ROWS: list[Row] = [
    *running(LINES),
    *rows("_softmax _log_softmax", *[S(Drawn(shape), dim, False) for shape, dim in (((1300, 5), 0), ((2, 1100, 3), 1), ((2, 31, 300), 1), ((40, 33), 0))]),
    *rows("_softmax _log_softmax", *marked(lambda x: S(x, -1, False))),
    *rows("_softmax _log_softmax", *marked(lambda x: S(down(x), 0, False)), in_turn=1),
    *rows("cummax cummin logcumsumexp", *marked(lambda x: S(x, 1))),
    *rows("max.dim min.dim argmax argmin", *along(S, step=1.0), *along(lambda x, dim: S(x, dim, True), LINES[2:6], step=1.0)),
    *rows("max.dim min.dim argmax argmin", *marked(lambda x: S(x, 1)), *marked(lambda x: S(down(x), 0)), in_turn=1),
    *rows("var.correction std.correction", *[S(Drawn(shape, low=1.0, high=5.0), [dim], correction=less) for shape, dim in LINES for less in (0, 1)], *along(S, SEVERAL, low=1.0, high=5.0)),
    *rows("var.correction std.correction", *[S(Drawn(shape), [dim], correction=less, keepdim=True) for shape in ((4, 3), (5, 1)) for dim in (0, 1) for less in (0, 1, 2.5, 3, 7)], S(Drawn((2, 3), high=0.0, low=0.0), [1]), *marked(lambda x: S(x, [1])), in_turn=1),
    *rows("linalg_vector_norm", *[S(Drawn(shape), order, dim) for order in (1, 2, inf) for shape, dim in FOLDED]),
    *rows("linalg_vector_norm", *[S(Drawn(shape), order, dim) for order, (shape, dim) in zip((1, 2, inf, 2, 1, inf, 2, 1), PARTS + PARTS[2:] + PARTS[:2], strict=True)], in_turn=1),
    *rows("sum.dim_IntList", *along(S, [*FOLDED, *PARTS])), *rows("mean.dim logsumexp", *along(S, FOLDED[:-1])), *rows("amax amin", *along(S, FOLDED[:-1], step=1.0)),
    *rows("sum mean max min", *[S(Drawn(shape)) for shape in ((1,), (7, 5), (64, 64), (3, 37, 11))]),
    *rows("sum.dim_IntList mean.dim amax amin logsumexp", *[each for dim in (1, 0) for each in marked(lambda x, dim=dim: S(x if dim else down(x), [dim], True))], in_turn=1),
    *rows("linalg_vector_norm", *[each for order in (1, 2, inf) for dim in (1, 0) for each in marked(lambda x, order=order, dim=dim: S(x, order, [dim], True))], in_turn=1),
    *rows("cumsum cumprod", *along(S, SUMMED, low=0.8, high=1.2), tolerance=20.0),
    *rows("cumsum cumprod", *along(S, SUMMED, low=-8, high=8), dtypes="int64", in_turn=0),
    *rows("cumsum cumprod", *marked(lambda x: S(x, 1)), in_turn=1),
    *rows("sort.stable", *[S(Drawn(shape, step=1.0), stable=True, dim=dim, descending=last) for last in (False, True) for shape, dim in SORTED]),
    *rows("topk", *[S(different(shape, dim), k, dim, last) for last in (False, True) for shape, dim in SORTED for k in sorted({1, min(shape[dim], 5), shape[dim]})]),
    *rows("topk", *marked(lambda x: S(x, x.shape[1], 1)), *marked(lambda x: S(x, x.shape[1], 1, False)), in_turn=1),
    *rows("sort.stable", *marked(lambda x: S(x, stable=True)), *marked(lambda x: S(down(x), stable=True, dim=0, descending=True)), in_turn=1),
    *lying("_softmax", lambda x, _: S(x, 1, False)), *lying("cummax", lambda x, _: S(x, 0)), *lying("triu", lambda x, _: S(x)),
    *lying("native_layer_norm", lambda x, n: S(x, [n], None, None, 1e-5)), *lying("index.Tensor", lambda x, _: S(x, [AT])),
    *lying("index.Tensor", lambda x, _: S(x, [None, AT])), *lying("index_select", lambda x, _: S(x, 1, AT)),
    *lying("gather", lambda x, _: S(x, 0, places((12, 5), 3))), *lying("gather", lambda x, _: S(x, 1, places((3, 12), 3))),
    *lying("max.dim", lambda x, _: S(x, 0)), *lying("argmin", lambda x, _: S(x, 1)), *lying("var.correction", lambda x, _: S(x, [1])),
    *lying("sum.dim_IntList", lambda x, _: S(x, [0]), DENSE), *lying("amax", lambda x, _: S(x, [1]), DENSE), *lying("logsumexp", lambda x, _: S(x, [1])), *lying("linalg_vector_norm", lambda x, _: S(x)), *lying("cumsum", lambda x, _: S(x, 0)), *lying("cumprod", lambda x, _: S(x, 1)),
    *lying("sort.stable", lambda x, _: S(x, stable=True, dim=0)), *lying("sort.stable", lambda x, _: S(x, stable=True, dim=1)),
]
# fmt: on
