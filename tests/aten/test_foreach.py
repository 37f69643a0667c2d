"""Operators on lists of tensors, and steps of optimisers."""

from __future__ import annotations

from typing import Any

import pytest

import turnout
from outcomes import refused
from turnout import tensor
from turnout.errors import ArgumentError

aten = turnout.ops.aten


def pair() -> list[Any]:
    return [tensor([1.0, 2.0]), tensor([3.0])]


def numbers(tensors: list[Any]) -> list[Any]:
    return [t.tolist() for t in tensors]


def test_an_operator_on_lists_calls_the_operator_of_its_name_for_each_element():
    assert numbers(aten._foreach_add.List(pair(), pair(), alpha=2)) == [[3.0, 6.0], [9.0]]
    assert numbers(aten._foreach_mul.ScalarList(pair(), [2, 3])) == [[2.0, 4.0], [9.0]]
    assert numbers(aten._foreach_maximum.Scalar(pair(), 2)) == [[2.0, 2.0], [3.0]]
    assert numbers(aten._foreach_pow.ScalarAndTensor(2, pair())) == [[2.0, 4.0], [8.0]]
    assert numbers(aten._foreach_addcdiv.Tensor(pair(), pair(), pair(), tensor([1.0, 2.0]))) == [[2.0, 3.0], [5.0]]
    assert numbers(aten._foreach_norm(pair(), 1)) == [3.0, 3.0]
    assert numbers(aten._foreach_zero(pair())) == [[0.0, 0.0], [0.0]]


def test_an_operator_on_lists_writes_into_the_tensors_and_returns_nothing():
    given = pair()
    assert aten._foreach_sub_.Scalar(given, 1) is None
    assert aten._foreach_maximum_.List(given, [tensor([0.5, 0.5]), tensor([4.0])]) is None
    assert numbers(given) == [[0.5, 1.0], [4.0]]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (
            lambda: aten._foreach_add.List(pair(), pair()[:1]),
            "_foreach_add: expected lists of one length, which is at least 1, got 2 in 'self' and 1 in 'other'",
        ),
        (lambda: aten._foreach_exp([]), "_foreach_exp: expected lists of one length, which is at least 1, got 0 in 'self'"),
        (
            lambda: aten._fused_sgd_(
                pair(), pair()[:1], [], weight_decay=0.0, momentum=0.0, lr=0.1, dampening=0.0, nesterov=False, maximize=False,
                is_first_step=True,
            ),
            "_fused_sgd_: 'grads' has 1 tensors, expected one for each of the 2 parameters",
        ),
    ],
)  # fmt: skip
def test_lists_of_different_lengths_are_refused(call: Any, says: str):
    assert refused(ArgumentError, call) == says


def step(parameter: Any, gradient: Any) -> Any:
    aten._foreach_mul_.Scalar([parameter], 0.5)
    aten._foreach_add_.List([parameter], [gradient], alpha=-1)
    return parameter


def test_writes_into_lists_become_values_and_are_batched():
    given, gradient = tensor([[2.0, 4.0], [6.0, 8.0]]), turnout.ones(2)
    expected = [[0.0, 1.0], [2.0, 3.0]]
    assert turnout.vmap(lambda x: step(x.clone(), gradient))(given).tolist() == expected
    assert turnout.func.functionalize(step)(given.clone(), gradient).tolist() == expected


def test_an_optimiser_whose_gradient_is_not_finite_writes_nothing():
    parameters, gradients = pair(), pair()
    aten._fused_adagrad_(
        parameters, gradients, pair(), [tensor(1.0)] * 2, lr=0.1, lr_decay=0.0, weight_decay=0.0, eps=1e-10, maximize=False,
        grad_scale=tensor(2.0), found_inf=tensor(1.0),
    )  # fmt: skip
    assert numbers(parameters) == numbers(gradients) == [[1.0, 2.0], [3.0]]
