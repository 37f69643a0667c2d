"""Every operator case's gradient against differences of its values, first and second order, and that every operator is decided.

Gradients are taken with respect to all floating tensors of a sample, in float64: see `turnout_conformance.cases.differentiable`.
"""

from __future__ import annotations

from typing import Any

import pytest
from formulas import INPLACE, inplace_of

import turnout
from turnout import autograd
from turnout.operators.kernels import FALLTHROUGH
from turnout.registry import REGISTRY
from turnout_conformance.cases import CASES, OperatorCase
from turnout_conformance.cases.differentiable import DIFFERENTIABLE, OWN, RANDOM, as_function, is_recorded, sample_calls


@pytest.mark.parametrize("case", DIFFERENTIABLE, ids=str)
def test_gradients_are_what_differences_of_the_values_say(case: OperatorCase) -> None:
    op = REGISTRY.find(f"aten::{case.op}")
    for args, kwargs in sample_calls(case):
        function, given = as_function(op, args, kwargs)
        if given and is_recorded(function(*given)):
            assert autograd.gradcheck(function, given)


@pytest.mark.parametrize("case", DIFFERENTIABLE, ids=str)
def test_second_gradients_are_what_differences_of_the_first_say(case: OperatorCase) -> None:
    op = REGISTRY.find(f"aten::{case.op}")
    for args, kwargs in sample_calls(case):
        function, given = as_function(op, args, kwargs)
        if given and is_recorded(function(*given)):
            assert autograd.gradgradcheck(function, given)


@pytest.mark.parametrize("case", INPLACE, ids=str)
def test_gradients_of_the_in_place_variant_are_those_of_the_functional_one(case: OperatorCase) -> None:
    op, inplace = REGISTRY.find(f"aten::{case.op}"), inplace_of(case)
    for args, kwargs in sample_calls(case):
        if op(*args, **kwargs).shape != args[0].shape:
            continue

        def written(x: turnout.Tensor, *rest: Any, **named: Any) -> turnout.Tensor:
            return inplace(x.clone(), *rest, **named)

        expected, given = as_function(op, args, kwargs)
        found, _ = as_function(written, args, kwargs)
        theirs, ours = expected(*given), found(*given)
        seed = turnout.ones_like(theirs)
        pair = [autograd.grad(end, given, seed, allow_unused=True) for end in (theirs, ours)]
        for a, b in zip(*pair, strict=True):
            assert (a is None) == (b is None)
            assert a is None or a.tolist() == b.tolist()


@pytest.mark.parametrize("case", INPLACE, ids=str)
def test_a_write_through_a_view_has_the_gradient_that_differences_say(case: OperatorCase) -> None:
    inplace = inplace_of(case)
    for args, kwargs in sample_calls(case):
        if not args[0].shape or REGISTRY.find(f"aten::{case.op}")(*args, **kwargs).shape != args[0].shape:
            continue

        def through_a_view(x: turnout.Tensor, *rest: Any, **named: Any) -> turnout.Tensor:
            base = turnout.cat([x, x * 2])
            inplace(base[: x.shape[0]], *rest, **named)
            return base * base

        function, given = as_function(through_a_view, args, kwargs)
        assert autograd.gradcheck(function, given)


# ---- every operator is decided


def decision(name: str) -> str:
    """How gradients of a standard operator are dealt with."""
    from turnout_autograd.recording.standard_kernels import standard

    op = REGISTRY.find(name)
    if "CompositeImplicitAutograd" in op.kernels:
        return "decomposes"
    made = standard(op)
    if made is not None:
        return "not differentiable" if made is FALLTHROUGH else "formula"
    if op.schema.kind == "out":
        return "out: refused"
    if not any(str(a.type).startswith("Tensor") for a in op.schema.arguments):
        return "factory"
    if not any(str(r.type).startswith("Tensor") for r in op.schema.returns):
        return "no tensor comes out"
    return "special" if name in ("aten::resize_", "aten::resize_as_") else "undecided"


def test_nobody_left_an_operator_undecided() -> None:
    turnout.ones(1).requires_grad_()
    names = [op.qualified_name for op in REGISTRY.operators.values() if op.namespace == "aten" and op.is_defined]
    assert len(names) > 300
    assert [name for name in names if decision(name) == "undecided"] == []


def test_every_operator_with_a_formula_has_a_case() -> None:
    turnout.ones(1).requires_grad_()
    cased = {f"aten::{name}" for name in RANDOM | {case.op for case in (*CASES, *OWN)}}
    missing = [
        op.qualified_name
        for op in REGISTRY.operators.values()
        if op.namespace == "aten" and op.is_defined and decision(op.qualified_name) == "formula"
        and op.schema.kind == "functional" and op.qualified_name not in cased
    ]  # fmt: skip
    assert missing == []
