"""PyTorch's second names of arguments: NumPy's `axis`, `keepdims`, `x`, `a`, `x1`, `x2`, in functions and in methods."""

from __future__ import annotations

import pytest

import turnout
from outcomes import refused
from second_names import CALLS, REFUSED, run
from turnout.errors import CallError


@pytest.mark.parametrize(("call", "plain"), CALLS)
def test_a_second_name_means_the_first(call, plain):
    assert run(call, turnout).tolist() == run(plain, turnout).tolist()


@pytest.mark.parametrize(("call", "text"), REFUSED)
def test_other_names_are_refused(call, text):
    assert refused(CallError, run, call, turnout) == text


def test_what_an_operator_takes_by_name_is_not_remembered_for_the_function():
    assert run("torch.ops.aten.add(self=t, other=t)", turnout).shape == (2, 2)
    refused(CallError, run, "torch.add(self=t, other=t)", turnout)


def test_functions_that_make_tensors_take_requires_grad_beside_second_names():
    assert turnout.zeros_like(x=turnout.ones(2), requires_grad=True).requires_grad


def test_operators_have_their_schemas_names_only():
    for call in ("torch.ops.aten.sum.dim_IntList(t, axis=[1])", "torch.ops.aten.abs.default(input=t)"):
        refused(TypeError, run, call, turnout)
    assert run("torch.ops.aten.abs.default(self=t)", turnout).shape == (2, 2)
