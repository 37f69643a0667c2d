"""Every operator case's gradient against differences of its values, first and second order, and that every operator is decided.

Gradients are taken with respect to all floating tensors of a sample, in float64: see `operator_cases.differentiable`.
"""

from __future__ import annotations

from typing import Any

import pytest

import turnout
from operator_cases import CASES, OperatorCase
from operator_cases.differentiable import DIFFERENTIABLE, OWN, RANDOM, as_function, is_recorded, sample_calls
from turnout import autograd
from turnout.kernels import FALLTHROUGH
from turnout.registry import REGISTRY


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


def inplace_of(case: OperatorCase) -> Any:
    """The in-place variant with the same arguments, or None."""
    name, _, _overload = case.op.partition(".")
    functional = REGISTRY.find(f"aten::{case.op}").schema
    for candidate in REGISTRY.packets["aten"].get(f"{name}_", ()):
        theirs = [(a.name, str(a.type)) for a in candidate.schema.arguments]
        if theirs == [(a.name, str(a.type)) for a in functional.arguments]:
            return candidate
    return None


# A complex tensor does not become real in place.
INPLACE = [c for c in DIFFERENTIABLE if inplace_of(c) is not None and (c.op != "abs" or "float64" in c.dtypes)]


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
    from turnout_autograd.kernels import standard

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


# ---- the tester tested


def test_a_wrong_formula_fails_gradcheck(monkeypatch: pytest.MonkeyPatch) -> None:
    from turnout_autograd.generated import m as part

    x = turnout.tensor([2.0, 3.0], dtype=turnout.float64).requires_grad_()
    y = turnout.tensor([5.0, 7.0], dtype=turnout.float64).requires_grad_()
    monkeypatch.setattr(part.MulBackward0, "backward", lambda node, grad, edges: (grad, grad))
    with pytest.raises(autograd.GradcheckError) as caught:
        autograd.gradcheck(lambda a, b: a * b, (x, y))
    assert str(caught.value).startswith(
        "gradcheck: the gradient of output 0 with respect to input 0 is wrong\n"
        "  at        element 0 of the input, 0 of the output\n"
    )
    assert not autograd.gradcheck(lambda a, b: a * b, (x, y), raise_exception=False)


def test_a_formula_that_cannot_be_differentiated_again_fails_gradgradcheck(monkeypatch: pytest.MonkeyPatch) -> None:
    from turnout_autograd.generated import e as part

    x = turnout.tensor([2.0, 3.0], dtype=turnout.float64).requires_grad_()
    right = part.ExpBackward0.backward
    monkeypatch.setattr(part.ExpBackward0, "backward", lambda node, grad, edges: right(node, grad, edges).detach())
    assert autograd.gradcheck(lambda a: a.exp() * a, (x,))
    assert not autograd.gradgradcheck(lambda a: a.exp() * a, (x,), raise_exception=False)
