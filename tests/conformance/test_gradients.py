"""Every operator case's gradient against differences of its values, first and second order, and that every formula has a case.

Gradients are taken with respect to all floating tensors of a sample, in float64: see `turnout_conformance.cases.differentiable`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from formulas import INPLACE, on_a_copy, recorded_calls

import turnout
from turnout import autograd
from turnout.keys import IMPLICIT
from turnout.operators.kernels import FALLTHROUGH
from turnout.registry import REGISTRY
from turnout_conformance.cases import CASES, OperatorCase
from turnout_conformance.cases.differentiable import DIFFERENTIABLE, OWN, RANDOM, as_function
from turnout_conformance.comparing import find, form


@pytest.mark.parametrize("case", DIFFERENTIABLE, ids=str)
@pytest.mark.parametrize("check", [autograd.gradcheck, autograd.gradgradcheck])
def test_gradients_are_what_differences_say(check: Callable[..., bool], case: OperatorCase) -> None:
    for call in recorded_calls(case):
        assert check(call.function, call.given)


@pytest.mark.parametrize("case", INPLACE, ids=str)
def test_a_write_has_the_gradients_of_the_functional_operator_and_through_a_view_what_differences_say(case: OperatorCase) -> None:
    inplace = form(find(case.op), "inplace")

    def through_a_view(x: turnout.Tensor, *rest: Any, **named: Any) -> turnout.Tensor:
        base = turnout.cat([x, x * 2])
        inplace(base[: x.shape[0]], *rest, **named)
        return base * base

    for call in recorded_calls(case):
        x = call.args[0]
        if call.result.shape != x.shape:
            continue
        written, given = as_function(on_a_copy(inplace), call.args, call.kwargs)
        seed = turnout.ones_like(call.result)
        expected, found = (autograd.grad(end, given, seed, allow_unused=True) for end in (call.result, written(*given)))
        assert [g if g is None else g.tolist() for g in found] == [g if g is None else g.tolist() for g in expected]
        if x.shape:
            assert autograd.gradcheck(as_function(through_a_view, call.args, call.kwargs)[0], given)


def test_every_operator_with_a_formula_has_a_case() -> None:
    turnout.ones(1).requires_grad_()
    from turnout_autograd.recording.standard_kernels import standard

    cased = {f"aten::{name}" for name in RANDOM | {case.op for case in (*CASES, *OWN)}}
    missing = [
        op.qualified_name
        for op in REGISTRY.operators.values()
        if op.namespace == "aten" and op.is_defined and IMPLICIT not in op.kernels and standard(op) not in (None, FALLTHROUGH)
        and op.schema.kind == "functional" and op.qualified_name not in cased
    ]  # fmt: skip
    assert missing == []
