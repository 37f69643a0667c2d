"""Floats of any dtype, in any number and layout: any two of sizes, layouts of two operands and dtypes are together in a sample.

The sizes lie on both sides of the limits from which devices compute with vectors, in pieces, or by programs of their own. The rows
are those of operators that a device computes in more than one way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from typing import Any

from turnout.dtypes import dtype_named
from turnout_conformance.cases.model import Drawn, S, Sample, SampleSet, Seen, T
from turnout_conformance.cases.sets.rows import FLOATS, HALVES, Made, Row
from turnout_conformance.pairwise import pairwise

SIZES = ((1, 7), (5, 7), (34, 33), (3, 2049), (4999, 2), (258, 259))
LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "row-major": lambda x: x,
    "column-major": lambda x: x.t().contiguous().t(),
    "with gaps": lambda x: x.repeat_interleave(2, 1)[:, ::2],
    "between two vectors": lambda x: x.flatten().repeat(2)[1 : 1 + x.numel()].view(x.shape),
    "a row": lambda x: x[:1].expand(x.shape),
    "a number": lambda x: x[:1, :1].expand(x.shape),
}
# Who has three ways to compute takes every third set of samples for each of them.
THIRDS = (0, 1, 2)
SPECIAL = (0.0, -0.0, math.nan, math.inf, -math.inf, 1e-40, -1e15, 0.75, 88.75, -104.0)


@dataclass(frozen=True)
class Operands:
    """Two matrices of one shape that lie in two ways, and what goes with them. `special` says whether some numbers are special."""

    shape: tuple[int, int]
    layouts: tuple[str, str]
    dtype: str
    special: bool

    def seen(self, which: int, view: Callable[[Any], Any] = lambda x: x, **facts: Any) -> Seen:
        """An operand, through one more view."""
        count = math.prod(self.shape)
        places = range(0, count, max(11, count // 50)) if self.special else ()
        marked = tuple((at, SPECIAL[(at + which) % len(SPECIAL)]) for at in places)
        layout = LAYOUTS[self.layouts[which]]
        return Seen(Drawn(self.shape, seed=which, marked=marked, **facts), lambda x: view(layout(x)))

    @property
    def x(self) -> Seen:
        """Numbers of both signs."""
        return self.seen(0)

    @property
    def y(self) -> Seen:
        """Positive numbers, but for special ones."""
        return self.seen(1, low=0.1)

    @property
    def varied(self) -> bool:
        """Whether the first operand has several different numbers in each row and each column."""
        return not self.layouts[0].startswith("a ") and min(self.shape) > 2

    @property
    def near_one(self) -> Seen:
        return self.seen(0, low=0.99, high=1.01)

    def few(self, which: int) -> Seen:
        """An operand of few different numbers."""
        return self.seen(which, step=1.5)

    def mask(self, which: int) -> Seen:
        return self.seen(which, lambda x: x > 0.5)

    def image(self, which: int, low: float = -3.0) -> Seen:
        """Two channels that are the same memory."""
        return self.seen(which, lambda x: x[None, None].expand(1, 2, *x.shape), low=low)

    def batch(self, which: int) -> Seen:
        """The rows as channels of one example."""
        return self.seen(which, lambda x: x[None])

    def places(self, dim: int, *shape: int) -> Drawn:
        """Indices along a dim of an operand, as many as it has elements."""
        return Drawn(shape or self.shape, "int64", 0, self.shape[dim] - 1, 9)

    def vector(self, dim: int, seed: int = 5) -> Drawn:
        """Positive numbers, one for each place along a dim."""
        return Drawn((self.shape[dim],), low=0.5, seed=seed)

    def statistics(self, *shape: int) -> tuple[Drawn, Drawn]:
        """A mean and the reciprocal of a deviation, which are float32 beside two-byte floats."""
        dtype = "float32" if self.dtype in HALVES else None
        return Drawn(shape, dtype, 0.0, 0.5, 6), Drawn(shape, dtype, 0.5, 1.5, 7)

    def factors(self) -> tuple[Seen, Seen]:
        """Matrices whose product has as few elements as there can be."""
        long = self.shape[0] > self.shape[1]
        return (self.seen(0, lambda x: x.t()), self.y) if long else (self.x, self.seen(1, lambda y: y.t(), low=0.1))


Of = Callable[[Operands], Sample | None]


def ends(x: Callable[[Operands], Any], *rest: Any, **named: Any) -> list[Any]:
    """A call along each of two dims."""
    return [lambda o, d=d: S(x(o), d, *rest, **named) for d in (1, 0)]


def repeated(matrix: Seen) -> Seen:
    """A batch of five times the same matrix."""
    return Seen(matrix, lambda t: t.expand(5, *t.shape))


def pairs(*numbers: Any, **named: Any) -> Of:
    return lambda o: S(o.x, o.y, *numbers, **named)


def one(*numbers: Any, **named: Any) -> Of:
    return lambda o: S(o.x, *numbers, **named)


# ruff: noqa: E501 - rows of a table
# fmt: off
# Each number of a result is rounded on its own, and some operands are special. The samples of an operator take turns.
ELEMENTWISE: dict[str, list[Any]] = {
    "neg square sqrt reciprocal exp log tanh abs floor ceil trunc round exp2 rsqrt log1p expm1 mish erf sigmoid silu relu hardsigmoid hardswish hardshrink softshrink elu softplus gelu leaky_relu hardtanh": [one()],
    "elu":                  [one(0.75, 1.0, 0.5)],
    "softplus":             [one(2.0, 4.0)],
    "gelu":                 [one(approximate="tanh")],
    "leaky_relu":           [one(0.25)],
    "hardtanh":             [one(-0.5, 0.25)],
    "threshold":            [one(0.5, -0.25)],
    "clamp":                [one(-0.5, 0.75), one(min=0.25), one(max=0.25)],
    "pow.Tensor_Scalar":    [one(n) for n in (2, 3, -1)],
    "maximum minimum hypot mul.Tensor div.Tensor": [pairs()],
    "add.Tensor sub.Tensor": [pairs(alpha=n) for n in (1, -1, 0.25, 3, 0.0, math.inf)],
    "lerp.Scalar":          [pairs(0.25)],
    "gt.Tensor ge.Tensor lt.Tensor le.Tensor eq.Tensor ne.Tensor": [lambda o: S(o.few(0), o.few(1))],
    "gt.Scalar ge.Scalar lt.Scalar le.Scalar eq.Scalar ne.Scalar": [lambda o: S(o.few(0), 1.5), lambda o: S(o.few(0), 0)],
    "where.self":           [lambda o: S(o.mask(0), o.x, o.y)],
    "sigmoid_backward silu_backward gelu_backward": [pairs()],
    "gelu_backward":        [pairs(approximate="tanh")],
    "threshold_backward":   [pairs(0.75)],
    "leaky_relu_backward":  [pairs(0.25, False)],
    "hardtanh_backward":    [pairs(-1.0, 1.0)],
    "clone":                [one(), one(memory_format="contiguous_format")],
}
# Errors are relative to the largest number of a result.
OTHERS: dict[str, list[Any]] = {
    "cos tan sign sum mean max min": [one()],
    "pow.Tensor_Scalar":     [lambda o: S(o.y, -0.5)],
    "hardswish_backward tanh_backward": [pairs()],
    "addcmul addcdiv":       [lambda o: S(o.y, o.x, o.y, value=0.5)],
    "prod":                  [lambda o: S(o.near_one)],
    "prod.dim_int":          ends(lambda o: o.near_one),
    "sum.dim_IntList mean.dim amax amin logsumexp": [one([1]), one([0]), lambda o: S(o.image(0), [2]), lambda o: S(o.image(0), [1, 3])],
    "var.correction std.correction": [lambda o, d=d: S(o.x, d) if o.varied else None for d in ([1], [0], None)],
    "linalg_vector_norm":    [one(n, [d]) for n in (2, 1, math.inf, -math.inf) for d in (0, 1)],
    "max.dim min.dim argmax argmin cumsum cumprod cummax cummin": [*ends(lambda o: o.x), lambda o: S(o.image(0), 2)],
    "topk":                  [lambda o, k=k: S(o.x, min(k, o.shape[1]), -1, k > 2) if o.varied and o.dtype not in HALVES else None for k in (64, 2)],
    "_softmax _log_softmax": [*ends(lambda o: o.x, False), lambda o: S(o.image(0), 2, False)],
    "_softmax_backward_data _log_softmax_backward_data": [lambda o, d=d: S(o.x, o.y, d, dtype_named(o.dtype)) for d in (1, 0)],
    "mse_loss l1_loss smooth_l1_loss huber_loss": [pairs(n) for n in (0, 1, 2)],
    "smooth_l1_loss huber_loss": [pairs(n, 0.75) for n in (0, 1, 2)],
    "mse_loss_backward":     [lambda o: S(T(0.5), o.x, o.y, 1)],
    "native_layer_norm":     [lambda o: S(o.x, [o.shape[1]], o.vector(1), None, 1e-5) if o.varied else None],
    "native_layer_norm_backward": [lambda o: S(o.x, o.y, [o.shape[1]], *o.statistics(o.shape[0], 1), o.vector(1), o.vector(1, 8), [True, True, True])],
    "rms_norm":              [lambda o: S(o.x, [o.shape[1]], o.vector(1), 1e-5)],
    "native_group_norm":     [lambda o, n=n: S(o.batch(0), o.vector(0), o.vector(0, 8), 1, *o.shape, n(o), 1e-5) if o.varied else None for n in (lambda o: 1, lambda o: o.shape[0])],
    "native_group_norm_backward": [lambda o: S(o.batch(0), o.batch(1), *o.statistics(1, 1), o.vector(0), 1, *o.shape, 1, [True, True, True])],
    "_native_batch_norm_legit.no_stats": [lambda o: S(o.batch(0), o.vector(0), o.vector(0, 8), True, 0.1, 1e-5) if o.varied else None],
    "_native_batch_norm_legit_functional": [lambda o: S(o.batch(0), o.vector(0), o.vector(0, 8), *o.statistics(o.shape[0]), True, 0.1, 1e-5) if o.varied else None],
    "_native_batch_norm_legit_no_training": [lambda o: S(o.batch(0), o.vector(0), o.vector(0, 8), *o.statistics(o.shape[0]), 0.1, 1e-5)],
    "native_batch_norm_backward": [lambda o, t=t: S(o.batch(0), o.batch(1), o.vector(0), *o.statistics(o.shape[0]), *o.statistics(o.shape[0]), t, 1e-5, [True, True, True]) for t in (True, False)],
    "gather":                [lambda o, d=d: S(o.x, d, o.places(d)) for d in (0, 1)],
    "scatter_add":           [lambda o, d=d: S(o.x, d, o.places(d), o.y) for d in (0, 1)],
    "index_select":          [lambda o: S(o.x, 0, o.places(0, 60)), lambda o: S(o.x, 1, o.places(1, 60))],
    "index.Tensor":          [lambda o: S(o.x, [o.places(0, 60)])],
    "index_add":             [lambda o, a=a: S(o.x, 0, o.places(0, o.shape[0]), o.y, alpha=a) for a in (1, -0.5)],
    "index_put":             [lambda o: S(o.x, [o.places(0, o.shape[0])], o.y, True)],
    "embedding_dense_backward": [lambda o: S(o.x, o.places(0, o.shape[0]), o.shape[0], -1, False)],
    "mm linalg_matmul":      [lambda o: S(*o.factors())],
    "addmm":                 [lambda o, n=n: S(Drawn((min(o.shape),)), *o.factors(), **n) for n in ({}, {"alpha": 2, "beta": 0.5})],
    "bmm":                   [lambda o: S(*[repeated(f) for f in o.factors()]) if o.shape != SIZES[-1] else None],
    "slice_backward":        [lambda o: S(o.x, [2 * o.shape[0] + 1, o.shape[1]], 0, 1, 2 * o.shape[0] + 1, 2)],
    "select_backward":       [lambda o: S(o.x, [3, *o.shape], 0, 1)],
    "cat":                   [lambda o, d=d, n=n: S([o.x, o.y, Drawn(o.shape, n)], d) for n in (None, "float64", "int64") for d in (0, 1)],
    "flip":                  [one([1]), one([0])],
    "tril triu":             [one(n) for n in (0, 1, -3)],
    "_to_copy":              [one(dtype=dtype_named(n)) for n in FLOATS],
    "masked_select":         [lambda o: S(o.x, o.mask(1))],
    "nonzero":               [lambda o: S(o.mask(0))],
    "convolution":           [lambda o, g=g: S(o.image(0), Drawn((2, 2 // g, 3, 3)), None, [1, 1], [1, 1], [1, 1], False, [0, 0], g) for g in (1, 2)],
    "convolution_backward":  [lambda o: S(o.image(0, 0.1), o.image(1, 0.1), Drawn((2, 1, 3, 3)), [2], [1, 1], [1, 1], [1, 1], False, [0, 0], 2, [True, True, True])],
    "max_pool2d_with_indices": [lambda o: S(o.image(0), [1, 2], [1, 2], [0, 0], [1, 1])],
    "avg_pool2d":            [lambda o: S(o.image(0), [1, 2], [1, 1], [0, 1])],
    "_adaptive_avg_pool2d":  [lambda o, n=n: S(o.image(0), n) for n in ([2, 3], [1, 1], [7, 5])],
    "upsample_bilinear2d":   [lambda o: S(o.image(0), [2 * o.shape[0], o.shape[1]], False)],
    "upsample_nearest2d":    [lambda o: S(o.image(0), [2 * o.shape[0], o.shape[1]])],
    "upsample_linear1d":     [lambda o: S(o.batch(0), [2 * o.shape[1]], False)],
    "upsample_nearest1d":    [lambda o: S(o.batch(0), [2 * o.shape[1]])],
}
# fmt: on
# What tolerances are multiplied by, those of two-byte floats by the second number: it is large where the error of a sum is compared
# with what is left of it, or few numbers are computed in several steps.
FACTORS = {
    "convolution_backward": (2.0, 1.0),
    "native_layer_norm_backward": (4.0, 4.0),
    "_softmax": (0.5, 0.5),
    "_log_softmax": (0.5, 0.5),
    "mse_loss": (0.25, 2.0),
    "l1_loss": (0.25, 2.0),
    "smooth_l1_loss": (0.25, 2.0),
    "huber_loss": (0.25, 2.0),
}  # fmt: skip


@cache
def _grid() -> list[tuple[Any, ...]]:
    return pairwise(SIZES, list(LAYOUTS), list(LAYOUTS), FLOATS, THIRDS)


def _samples(calls: list[Of], dtype: str, third: int, special: bool) -> Iterator[Sample]:
    """A sample for each row of the grid with that dtype and third; the calls take turns."""
    for i, (shape, first, second, _, at) in enumerate(row for row in _grid() if row[3] == dtype):
        made = calls[i % len(calls)](Operands(shape, (first, second), dtype, special)) if at == third else None
        if made is not None:
            yield made


def _rows() -> Iterator[Row]:
    for table, tolerance in ((ELEMENTWISE, None), (OTHERS, 1.0)):
        calls: dict[str, list[Of]] = {}
        for words, some in table.items():
            for operator in words.split():
                calls.setdefault(operator, []).extend(some)
        for operator, of in calls.items():
            for dtype, third in product(FLOATS, THIRDS):
                samples = Made(partial(_samples, of, dtype, third, tolerance is None))
                limit = tolerance and FACTORS.get(operator, (1.0, 1.0))[dtype in HALVES]
                yield operator, SampleSet(samples, (dtype,), limit)


ROWS = list(_rows())
