"""`turnout.nn.functional`: reductions as words, and defaults that the operators do not have."""

from __future__ import annotations

import math

import pytest

import turnout
from turnout_aten.nn import functional

LOGITS = [[2.0, 1.0, 0.0], [0.0, 0.0, 0.0]]


def expected(reduction):
    losses = [math.log(sum(math.exp(v) for v in row)) - row[t] for row, t in zip(LOGITS, (0, 2), strict=True)]
    return {"none": losses, "sum": sum(losses), "mean": sum(losses) / 2}[reduction]


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_cross_entropy_and_nll_loss_take_the_reduction_as_a_word(reduction):
    logits, target = turnout.tensor(LOGITS), turnout.tensor([0, 2])
    for loss in (
        functional.cross_entropy(logits, target, reduction=reduction),
        functional.nll_loss(functional.log_softmax(logits, 1), target, reduction=reduction),
    ):
        assert loss.tolist() == pytest.approx(expected(reduction), rel=1e-6)


def test_mse_loss_sums_means_or_keeps_the_squares():
    x, y = turnout.tensor([1.0, 2.0]), turnout.tensor([0.0, 4.0])
    assert functional.mse_loss(x, y).item() == 2.5
    assert functional.mse_loss(x, y, "sum").item() == 5.0
    assert functional.mse_loss(x, y, "none").tolist() == [1.0, 4.0]


def test_gumbel_softmax_draws_categories_and_hard_draws_have_the_gradient_of_soft_ones():
    turnout.manual_seed(0)
    logits = turnout.tensor([0.2, 0.3, 0.5]).log().expand(4000, 3).clone().requires_grad_()
    soft, hard = functional.gumbel_softmax(logits, tau=0.5), functional.gumbel_softmax(logits, hard=True, dim=-1)
    assert soft.sum(-1).tolist() == pytest.approx([1.0] * 4000, abs=1e-5)
    assert set(hard.round(decimals=6).flatten().tolist()) == {0.0, 1.0}
    assert hard.mean(0).tolist() == pytest.approx([0.2, 0.3, 0.5], abs=0.03)
    (hard * turnout.tensor([1.0, 0.0, 0.0])).sum().backward()
    assert (logits.grad != 0).all().item()


def test_dropout_keeps_the_input_outside_of_training_and_scales_what_it_keeps():
    x = turnout.ones(1000)
    assert functional.dropout(x, training=False).tolist() == x.tolist()
    turnout.manual_seed(0)
    kept = functional.dropout(x, 0.25)
    assert {round(v, 4) for v in kept.tolist()} == {0.0, 1.3333}
    assert 0.2 < (kept == 0).float().mean().item() < 0.3
