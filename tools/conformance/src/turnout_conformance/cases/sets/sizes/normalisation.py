"""Normalisation of rows, of groups of channels and of batches, and its gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any

from turnout_conformance.cases.model import Drawn, S, Sample
from turnout_conformance.cases.sets.rows import Row
from turnout_conformance.cases.sets.sizes.shapes import ALL, Shape, rows

# ruff: noqa: E501 - rows of a table

Layer = tuple[Any, ...]
Groups = list[tuple[Shape, int]]


def layers(shape: Shape, inner: int = 1, *, weight: bool = True) -> Layer:
    """(input, shape of its last dims, weight, bias)"""
    last = shape[-inner:]
    return (Drawn(shape), list(last), *((Drawn(last, seed=2), Drawn(last, seed=3)) if weight else (None, None)))


LAYERS = [
    layers((1, 1)), layers((6, 33)), layers((3, 2, 5), 2), layers((70, 3), weight=False), layers((2, 1300)), layers((100, 65)),
    layers((3, 64)), layers((2, 1024)), layers((96, 5)),
]  # fmt: skip
# Images, and how many groups their channels make.
GROUPS: Groups = [((2, 6, 5), 3), ((1, 4, 3, 11), 1), ((7, 2), 2), ((3, 2, 150), 1), ((2, 4, 8, 16), 2), ((2, 3, 24), 3)]
LONG: Groups = [((9, 2, 1000), 2), ((9, 2, 1001), 1), ((3, 2, 4104), 1)]  # channels that are cut into parts


def positive(*shape: int) -> Drawn:
    """Reciprocal deviations and variances."""
    return Drawn(shape, low=0.5, high=2.0, seed=6)


def means(x: Drawn, last: list[int]) -> tuple[Drawn, Drawn]:
    """The mean and the reciprocal deviation of each row."""
    kept = (*x.shape[: -len(last)], *(1 for _ in last))
    return Drawn(kept, low=-0.5, high=0.5, seed=5), positive(*kept)


def of_groups(given: Groups, call: Callable[..., Sample]) -> Iterator[Sample]:
    """`call(input, weight, bias, (N, C, HxW), groups)`"""
    for shape, groups in given:
        n, c = shape[:2]
        yield call(Drawn(shape), Drawn((c,), seed=2), Drawn((c,), seed=3), (n, c, prod(shape[2:])), groups)


def of_batches(given: Groups, call: Callable[..., Sample]) -> Iterator[Sample]:
    """`call(input, weight, bias, running mean, running variance)`"""
    return of_groups(given, lambda x, weight, bias, *_: call(x, weight, bias, Drawn(bias.shape, seed=5), positive(*bias.shape)))


def trained(given: Groups, train: bool) -> Iterator[Sample]:
    """Gradients of batches: with the statistics of the batch, or the running ones."""
    return of_batches(given, lambda x, weight, _, *stats: S(Drawn(x.shape, seed=4), x, weight, *stats, *stats, train, 1e-5, ALL))


# fmt: off
def normalised(rows_of: list[Layer], groups: Groups) -> list[Row]:
    """Normalisation of rows, and of groups and batches of channels."""
    return [
        *rows("native_layer_norm", *[S(*given, 1e-5) for given in rows_of]),
        *rows("rms_norm", *[S(x, last, weight, 1e-5) for x, last, weight, _ in rows_of]),
        *rows("native_layer_norm_backward", *[S(Drawn(x.shape, seed=4), x, last, *means(x, last), weight, bias, ALL) for x, last, weight, bias in rows_of]),
        *rows("native_group_norm", *of_groups(groups + LONG, lambda x, weight, bias, sizes, n: S(x, weight, bias, *sizes, n, 1e-5))),
        *rows("native_group_norm_backward", *of_groups(groups, lambda x, weight, _, sizes, n: S(Drawn(x.shape, seed=4), x, Drawn((sizes[0], n), seed=5), positive(sizes[0], n), weight, *sizes, n, ALL))),
        *rows("_native_batch_norm_legit.no_stats", *of_batches(groups + LONG, lambda x, weight, bias, *_: S(x, weight, bias, True, 0.1, 1e-5))),
        *rows("_native_batch_norm_legit_functional", *of_batches(groups + LONG, lambda *given: S(*given, True, 0.1, 1e-5))),
        *rows("_native_batch_norm_legit_no_training", *of_batches(groups, lambda *given: S(*given, 0.1, 1e-5))),
        *rows("native_batch_norm_backward", *trained(groups, True), *trained(groups, False)),
    ]
# fmt: on


ROWS: list[Row] = normalised(LAYERS, GROUPS)
