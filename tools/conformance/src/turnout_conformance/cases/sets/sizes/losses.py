"""Losses of classes, and their gradients."""

from __future__ import annotations

from turnout_aten.shapes.losses import MEAN, NONE, SUM
from turnout_conformance.cases.model import Drawn, S
from turnout_conformance.cases.sets.rows import Row
from turnout_conformance.cases.sets.sizes.shapes import Shape, places, rows

# ruff: noqa: E501 - rows of a table
# Log-probabilities [N, C], or [C]; 256 rows are a block's. Class 1 is ignored, or none is.
SHAPES: list[Shape] = [(1, 1), (5, 3), (7,), (3, 1_100), (300, 4), (600, 2), (6, 40)]
# None, the mean and the sum, with weights of the classes, without
KINDS = [
    (weighted, reduction, ignored)
    for weighted in (False, True)
    for reduction, ignored in ((MEAN, -100), (NONE, 1), (SUM, 1), (MEAN, 1), (NONE, -100))
]


def weights(shape: Shape, weighted: bool) -> Drawn | None:
    return Drawn(shape[-1:], low=0.5, high=2.0, seed=3) if weighted else None


# fmt: off
def likelihoods(shapes: list[Shape]) -> list[Row]:
    """Negative log-likelihood of these log-probabilities, and its gradient."""
    return [row for weighted, reduction, ignored in KINDS for row in [
        *rows("nll_loss_forward", *[S(Drawn(s), places(s[:-1], s[-1]), weights(s, weighted), reduction, ignored) for s in shapes if s[-1] > 1 or ignored < 0]),
        *rows("nll_loss_backward", *[S(Drawn(s[:-1] if reduction == NONE else (), seed=2), Drawn(s), places(s[:-1], s[-1]), weights(s, weighted), reduction, ignored, Drawn((), low=1.0, seed=4)) for s in shapes]),
    ]]
# fmt: on


SQUARES = [S(Drawn(shape), Drawn(shape, seed=2), kind) for shape in [(1,), (5, 37), (64, 64), (40_003,)] for kind in (MEAN, SUM)]
ROWS: list[Row] = [*likelihoods(SHAPES), *rows("mse_loss", *SQUARES)]
