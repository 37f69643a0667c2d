"""Tensors of more dims than a library or a fixed array in C may expect: Turnout's tensors have up to 64."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import turnout
from turnout.errors import ShapeError, TurnoutError
from turnout.registry import find_operator
from turnout_conformance.cases import CASES, build

LEADING = (1,) * 40


def many(data: Any, dtype: str) -> turnout.Tensor:
    x = turnout.tensor(data, dtype=getattr(turnout, dtype))
    x = x.reshape(*LEADING, *x.shape)
    return x.requires_grad_() if x.is_floating_point() else x


def test_every_operator_computes_with_many_dims_or_says_why_not() -> None:
    """A fixed array that is too short ends the process, or changes what lies behind it."""
    served = 0
    for case in CASES:
        sample, dtype = case.samples[0], case.dtypes[0]
        args = [build(a, dtype, many) for a in sample.args]
        kwargs = {name: build(a, dtype, many) for name, a in sample.kwargs.items()}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                made = find_operator(f"aten::{case.op}")(*args, **kwargs)
                served += 1
                if isinstance(made, turnout.Tensor) and made.requires_grad:
                    made.sum().backward()
        except TurnoutError:
            continue
    assert served > 400


i = turnout.tensor([[1, 0, 1]])
x = turnout.tensor([[1.0, 2.0, 4.0]])


# fmt: off
@pytest.mark.parametrize("call", [
    lambda x, i: turnout.ones_like(x, dtype=turnout.bool),
    lambda x, i: x.softmax(-1),
    lambda x, i: x.log_softmax(-1),
    lambda x, i: x.logsumexp(-1),
    lambda x, i: turnout.nn.functional.layer_norm(x, (3,)),
    lambda x, i: x.gather(-1, i),
    lambda x, i: x.scatter_add(-1, i, x),
    lambda x, i: x.mT.scatter_add(-2, i.mT, x.mT),
    lambda x, i: x.scatter_reduce(-1, i, x, "mean"),
    lambda x, i: x.half().scatter_reduce(-1, i, x.half(), "amax"),
    lambda x, i: x.index_add(-1, i.reshape(-1), x),
    lambda x, i: x.reshape(-1).index_put((i,), x, accumulate=True),
])  # fmt: skip
def test_what_many_dims_give_is_what_few_give(call: Any) -> None:
    expected, made = call(x, i), call(x.reshape(*LEADING, *x.shape), i.reshape(*LEADING, *i.shape))
    turnout.testing.assert_close(made.reshape(expected.shape), expected)


@pytest.mark.parametrize("part", [turnout.tensor([True]), turnout.tensor([0])], ids=["mask", "index"])
def test_the_gradient_of_a_part_of_many_dims(part: turnout.Tensor) -> None:
    y = turnout.ones(LEADING, requires_grad=True)
    y[part].sum().backward()
    grad = y.grad
    assert grad is not None
    assert (grad.shape, grad.item()) == (LEADING, 1.0)


def test_dims_that_a_function_of_numpy_cannot_take_are_named() -> None:
    with pytest.raises(ShapeError, match=r"^aten::mode: this function only supports up to 32 dimensions but the array has 41\."):
        turnout.ones(*LEADING, 3).mode()
