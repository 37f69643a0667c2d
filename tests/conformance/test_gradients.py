"""Every operator case's gradient against differences of its values, first and second order, and that every operator is decided.

Gradients are taken with respect to all floating tensors of a sample, in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import turnout
from operator_cases import CASES, OperatorCase, S, T, calls, values
from turnout import autograd
from turnout.dtypes import dtype_named
from turnout.kernels import FALLTHROUGH
from turnout.registry import REGISTRY

# Operators that cannot be called by name in the shared table: those for gradients, and those that only copy.
M, N, V = values(2, 3), values(2, 3, seed=3), values(3, seed=5)
OWN = [
    OperatorCase(op, samples, lambda np, *args, **kwargs: None)
    for op, samples in {
        "threshold_backward": (S(T(M), T(N), 0.5),),
        "sigmoid_backward": (S(T(M), T(N)),),
        "tanh_backward": (S(T(M), T(N)),),
        "gelu_backward": (S(T(M), T(N)), S(T(M), T(N), approximate="tanh")),
        "select_backward": (S(T(V), (2, 3), 0, 1), S(T(values(2)), (2, 3), 1, -1)),
        "slice_backward": (S(T(M), (5, 3), 0, 1, 5, 2), S(T(M), (2, 4), 1, 0, 3, 1)),
        "diagonal_backward": (S(T(values(2)), (2, 3), 0, 0, 1), S(T(values(2)), (2, 3), 1, 0, 1)),
        "unfold_backward": (S(T(values(2, 3)), (5,), 0, 3, 2), S(T(values(4, 2)), (5,), 0, 2, 1)),
        "_softmax_backward_data": (S(T(M), T(N), 1, turnout.float64), S(T(V), T(values(3)), 0, turnout.float64)),
        "_log_softmax_backward_data": (S(T(M), T(N), 1, turnout.float64), S(T(V), T(values(3)), 0, turnout.float64)),
        "nll_loss_backward": tuple(
            S(T(grad), T(M), T([2, 0], "int64"), None, reduction, -100, T(total))
            for grad, reduction, total in ((values(2), 0, 0.0), (values(), 1, 2.0), (values(), 2, 2.0))
        ),
        "mse_loss_backward": (
            S(T(M), T(N), T(V), 0), S(T(values()), T(M), T(N), 1), S(T(values()), T(N), T(V), 1), S(T(values()), T(M), T(N), 2)
        ),
        "native_dropout_backward": (S(T(M), T([[1, 0, 1], [0, 1, 1]], "bool"), 2.0),),
        "_unsafe_view": (S(T(M), (3, 2)),),
        "_to_copy": (S(T(M)), S(T(M), dtype=turnout.float64)),
        "zero": (S(T(M)),),
    }.items()
]  # fmt: skip

# Where the value is not differentiable, so that differences say nothing.
TIED = {"sort.stable", "sort"}
# Arguments whose gradient is refused, by operator.
CONSTANTS = dict.fromkeys(("nll_loss", "nll_loss_forward", "cross_entropy_loss"), "weight")
CONSTANTS["nll_loss_backward"] = "total_weight"
CONSTANTS["binary_cross_entropy"] = "weight"
CONSTANTS["binary_cross_entropy_with_logits"] = "pos_weight"
# Random results; what is checked of them stands in tests/plugins.
RANDOM = {
    "native_dropout", "bernoulli", "bernoulli.p", "bernoulli.Tensor", "uniform", "random", "random.from", "random.to", "cauchy",
    "exponential", "geometric", "log_normal", "normal", "normal_functional", "normal.Tensor_float", "normal.float_Tensor",
    "normal.Tensor_Tensor", "poisson",
}  # fmt: skip

PRECISE = ("float64", "complex128")
DIFFERENTIABLE = [case for case in (*CASES, *OWN) if case.differentiable and set(PRECISE) & set(case.dtypes)]
DIFFERENTIABLE = [case for case in DIFFERENTIABLE if case.op not in TIED]


def leaf(data: Any, dtype: str) -> turnout.Tensor:
    """A float or complex tensor as a leaf that requires a gradient, any other as it is."""
    made = turnout.tensor(data, dtype=dtype_named(dtype))
    return made.requires_grad_() if made.is_floating_point() or made.is_complex() else made


def leaves(value: Any) -> list[turnout.Tensor]:
    """The leaves in an argument structure."""
    if isinstance(value, (list, tuple)):
        return [t for each in value for t in leaves(each)]
    if isinstance(value, dict):
        return leaves(list(value.values()))
    return [value] if isinstance(value, turnout.Tensor) and value.requires_grad else []


def replaced(value: Any, found: dict[int, turnout.Tensor]) -> Any:
    """The structure with other tensors in the places of its leaves."""
    if isinstance(value, (list, tuple)):
        return type(value)(replaced(v, found) for v in value)
    if isinstance(value, dict):
        return {k: replaced(v, found) for k, v in value.items()}
    return found.get(id(value), value) if isinstance(value, turnout.Tensor) else value


def as_function(call: Callable[..., Any], args: Any, kwargs: Any) -> tuple[Callable[..., Any], list[turnout.Tensor]]:
    """A call as a function of its leaves."""
    given = leaves((args, kwargs))

    def function(*tensors: turnout.Tensor) -> Any:
        found = {id(old): new for old, new in zip(given, tensors, strict=True)}
        return call(*replaced(args, found), **replaced(kwargs, found))

    return function, given


def sample_calls(case: OperatorCase) -> list[tuple[Any, Any]]:
    """The calls with every floating tensor a leaf, but for arguments whose gradient is refused."""
    names = [a.name for a in REGISTRY.find(f"aten::{case.op}").schema.arguments]
    constant = CONSTANTS.get(case.op)
    found = []
    for args, kwargs in calls(case, next(d for d in PRECISE if d in case.dtypes), leaf):
        given = tuple(a.detach() if n == constant and a is not None else a for n, a in zip(names, args, strict=False))
        found.append((given, kwargs))
    return found


def is_recorded(result: Any) -> bool:
    return bool(leaves(result if isinstance(result, (list, tuple)) else [result]))


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
