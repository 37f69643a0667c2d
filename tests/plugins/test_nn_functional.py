"""`turnout.nn.functional`: reductions as words, and defaults that the operators do not have."""

from __future__ import annotations

import inspect
import math

import pytest

import turnout
from turnout_aten.nn import activations, functional, images, layers, losses, normalisation, pooling
from turnout_aten.nn.losses import REDUCTIONS

LOGITS = [[2.0, 1.0, 0.0], [0.0, 0.0, 0.0]]


def expected(reduction):
    losses = [math.log(sum(math.exp(v) for v in row)) - row[t] for row, t in zip(LOGITS, (0, 2), strict=True)]
    return {"none": losses, "sum": sum(losses), "mean": sum(losses) / 2}[reduction]


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_cross_entropy_and_nll_loss_take_the_reduction_as_a_word(reduction):
    logits, target = turnout.tensor(LOGITS), turnout.tensor([0, 2])
    for loss in (
        functional.cross_entropy(logits, target, reduction=reduction),
        functional.nll_loss(functional.log_softmax(logits, 1), target, reduction=reduction),
    ):
        assert loss.tolist() == pytest.approx(expected(reduction), rel=1e-6)


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
    assert functional.dropout(x, training=False) is x
    turnout.manual_seed(0)
    kept = functional.dropout(x, 0.25)
    assert {round(v, 4) for v in kept.tolist()} == {0.0, 1.3333}
    assert 0.2 < (kept == 0).float().mean().item() < 0.3


# What adds up many numbers: a function of x [rows, classes], targets and signs, with only one rounding of two bytes at its end.
ROUNDED_ONCE = {
    "log_softmax": lambda x, target, signs: functional.log_softmax(x, 1),
    "softmax": lambda x, target, signs: functional.softmax(x, 1),
    "logsumexp": lambda x, target, signs: x.logsumexp(1),
    "mean": lambda x, target, signs: x.abs().mean(),
    "var": lambda x, target, signs: x.var(1),
    "vector_norm": lambda x, target, signs: turnout.linalg.vector_norm(x, 2, 1),
    "layer_norm": lambda x, target, signs: functional.layer_norm(x, x.shape[1:]),
    "nll_loss": lambda x, target, signs: functional.nll_loss(x, target),
    "mse_loss": lambda x, target, signs: functional.mse_loss(x, signs),
    "cross_entropy": lambda x, target, signs: functional.cross_entropy(0 * x, signs, reduction="sum"),
    "weighted cross_entropy": lambda x, target, signs: functional.cross_entropy(
        0 * x, signs, 2.0 * abs(signs[0]), reduction="sum"
    ),
}


@pytest.mark.parametrize("name", ROUNDED_ONCE)
def test_two_byte_floats_are_rounded_once_where_many_are_added(name, seeds):
    for seed in seeds(3, many=500):
        turnout.manual_seed(seed)
        for dtype in (turnout.bfloat16, turnout.float16):
            x = (2 * turnout.randn(40, 11)).to(dtype)
            target, signs = turnout.randint(0, 11, (40,)), (2 * turnout.randint(0, 2, (40, 11)) - 1).to(dtype)
            found = ROUNDED_ONCE[name](x, target, signs).double()
            exact = ROUNDED_ONCE[name](x.double(), target, signs.double())
            if "cross_entropy" in name:  # its logarithms are rounded on their way
                exact = exact * (turnout.zeros(11, dtype=dtype).log_softmax(0)[0].item() / -math.log(11))
            assert ((found - exact).abs() <= turnout.finfo(dtype).eps * exact.abs() + 1e-6).all(), seed


def test_a_function_has_the_default_numbers_of_its_operator():
    compared = 0
    written = {name for module in (activations, images, layers, losses, normalisation, pooling) for name in module.__all__}
    for name in written & set(dir(turnout.ops.aten)):
        packet, own = getattr(turnout.ops.aten, name), inspect.signature(getattr(functional, name)).parameters
        for argument in [a for overload in packet.overloads() for a in getattr(packet, overload).schema.arguments]:
            if argument.has_default and argument.name in own:
                said, default = own[argument.name].default, argument.default
                if isinstance(said, (int, float)) and isinstance(default, (int, float)):  # not "mean", which is 1
                    assert said == default, f"{name}: {argument.name}"
                    compared += 1
    assert compared > 50
