"""Every differentiable operator under the functional transforms, and under `vmap` of them.

What one transform says is held against another, against `autograd.grad` and against differences of values, on the two smallest
samples of each operator; an operator is a function of all floating tensors of the sample to the list of its floating results.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
from tangent_samples import UNMAPPED, random_like, same

import turnout
from turnout import autograd, func
from turnout.operators.values import flat
from turnout_conformance.cases import CASES, OperatorCase
from turnout_conformance.cases.differentiable import DIFFERENTIABLE, PRECISE, as_function, leaves, sample_calls
from turnout_conformance.comparing import about, find

Function = Callable[..., Any]
SAMPLES = 2


class Run:
    """A sample of a case: its inputs, and the operator as a function of them to a list of results that have gradients."""

    def __init__(self, op: str, args: Any, kwargs: Any, function: Function | None = None) -> None:
        operator = function or find(op)
        self.args = args
        self.kwargs = kwargs
        self.call, given = as_function(of_symmetric(operator) if op in SYMMETRIC else operator, args, kwargs)
        self.inputs = [t.detach() for t in given]
        results = flat(self.call(*given))
        self.places = [i for i, t in enumerate(results) if t.requires_grad]
        self.outputs = [results[i].detach() for i in self.places]
        self.every = tuple(range(len(given)))

    def __call__(self, *tensors: turnout.Tensor) -> list[turnout.Tensor]:
        results = flat(self.call(*tensors))
        return [results[i] for i in self.places]

    def number(self, *tensors: turnout.Tensor) -> turnout.Tensor:
        """One real number that depends on every element of every result differently."""
        return pairing(random_like(self.outputs, 7), self(*tensors))


def of_symmetric(operator: Function) -> Function:
    """The operator as a function of a matrix that need not be Hermitian."""
    return lambda x, *args, **kwargs: operator((x + x.mH) / 2, *args, **kwargs)


def runs_of(case: OperatorCase) -> list[Run]:
    """The smallest samples that have elements and gradients."""
    found = [Run(case.op, *call) for call in sample_calls(case) if any(t.numel() for t in leaves(call))]
    return sorted((run for run in found if run.outputs), key=lambda run: sum(x.numel() for x in run.inputs))[:SAMPLES]


def pairing(left: list[turnout.Tensor], right: list[turnout.Tensor]) -> turnout.Tensor:
    """The real part of the inner product, under which a pullback is the adjoint of a push."""
    terms = [(a.conj() * b).sum() for a, b in zip(left, right, strict=True)]
    total = turnout.zeros((), dtype=turnout.float64)
    for term in terms:
        total = total + (term.real if term.is_complex() else term)
    return total


def difference(function: Function, inputs: list[turnout.Tensor], tangents: list[turnout.Tensor]) -> list[Any]:
    """The central difference quotient along the tangents."""
    eps = 1e-6
    above = function(*[x + eps * v for x, v in zip(inputs, tangents, strict=True)])
    below = function(*[x - eps * v for x, v in zip(inputs, tangents, strict=True)])
    return [(a - b) / (2 * eps) for a, b in zip(above, below, strict=True)]


CHECKS: dict[str, Callable[[Run], None]] = {}


def check(function: Callable[[Run], None]) -> Callable[[Run], None]:
    CHECKS[function.__name__] = function
    return function


@check
def vjp_is_what_autograd_says(run: Run) -> None:
    tracked = [x.clone().requires_grad_() for x in run.inputs]
    outputs = run(*tracked)
    cotangents = random_like(run.outputs, 3)
    recorded = [(o, c) for o, c in zip(outputs, cotangents, strict=True) if o.requires_grad]
    expected = [None] * len(tracked)
    if recorded:
        ends, given = zip(*recorded, strict=True)
        expected = autograd.grad(ends, tracked, given, allow_unused=True)
    results, pull = func.vjp(run, *run.inputs)
    same(results, run.outputs)
    same(list(pull(cotangents)), [turnout.zeros_like(x) if g is None else g for x, g in zip(tracked, expected, strict=True)])


@check
def jvp_is_what_differences_say_and_the_adjoint_of_vjp(run: Run) -> None:
    tangents, cotangents = random_like(run.inputs, 5), random_like(run.outputs, 3)
    results, pushed = func.jvp(run, tuple(run.inputs), tuple(tangents))
    same(results, run.outputs)
    same(pushed, difference(run, run.inputs, tangents), 2e-5)
    pulled = func.vjp(run, *run.inputs)[1](cotangents)
    same(pairing(cotangents, pushed), pairing(list(pulled), tangents))
    same(func.linearize(run, *run.inputs)[1](*tangents), pushed)


@check
def gradients_by_argnums_and_with_aux(run: Run) -> None:
    pulled = func.vjp(run.number, *run.inputs)[1](turnout.ones((), dtype=turnout.float64))
    found, (value, aux) = func.grad_and_value(lambda *xs: (run.number(*xs), run(*xs)), run.every, has_aux=True)(*run.inputs)
    same(list(found), list(pulled))
    same(value, run.number(*run.inputs))
    same(aux, run.outputs)
    same(func.grad(run.number, -1)(*run.inputs), pulled[-1])
    if len(run.inputs) > 1:
        same(func.grad(run.number, (-1, 0))(*run.inputs), (pulled[-1], pulled[0]))


@check
def jacobians_of_both_modes_agree(run: Run) -> None:
    function, inputs = in_real_numbers(run, run.inputs)
    rows, columns = func.jacrev(function, run.every)(*inputs), func.jacfwd(function, run.every)(*inputs)
    same(rows, columns)
    tangents = random_like(inputs, 5)
    pushed = func.jvp(function, tuple(inputs), tuple(tangents))[1]
    for row, expected in zip(rows, pushed, strict=True):
        parts = [turnout.tensordot(j, v, v.ndim) for j, v in zip(row, tangents, strict=True)]
        same(sum(parts[1:], parts[0]), expected)


@check
def hessian_is_symmetric_and_that_of_the_other_order(run: Run) -> None:
    function, inputs = in_real_numbers(run, run.inputs)
    weights = random_like(function(*inputs), 7)

    def number(*xs: turnout.Tensor) -> turnout.Tensor:
        return pairing(weights, function(*xs))

    found = func.hessian(number, run.every)(*inputs)
    same(found, func.jacrev(func.jacfwd(number, run.every), run.every)(*inputs))
    for i, x in enumerate(inputs):
        for j, y in enumerate(inputs):
            order = (*range(x.ndim, x.ndim + y.ndim), *range(x.ndim))
            same(found[j][i], found[i][j].permute(order))


@check
def gradients_of_examples_are_those_of_the_loop(run: Run) -> None:
    examples = [run.inputs, [x.flip(tuple(range(x.ndim))) for x in run.inputs]]
    gradient = func.grad(run.number, run.every)
    found = func.vmap(gradient)(*[turnout.stack(list(column)) for column in zip(*examples, strict=True)])
    loops = [gradient(*example) for example in examples]
    same(list(found), [turnout.stack(list(column)) for column in zip(*loops, strict=True)])


@check
def tangents_of_examples_are_those_of_the_loop(run: Run) -> None:
    examples = [run.inputs, [x.flip(tuple(range(x.ndim))) for x in run.inputs]]
    tangents = [random_like(run.inputs, 5), random_like(run.inputs, 6)]

    def pushed(*tensors: turnout.Tensor) -> list[turnout.Tensor]:
        return func.jvp(run, tensors[: len(run.inputs)], tensors[len(run.inputs) :])[1]

    columns = [turnout.stack(list(c)) for c in zip(*[e + t for e, t in zip(examples, tangents, strict=True)], strict=True)]
    loops = [pushed(*e, *t) for e, t in zip(examples, tangents, strict=True)]
    expected = [turnout.stack(list(column)) for column in zip(*loops, strict=True)]
    same(func.vmap(pushed)(*columns), expected)
    inputs = tuple(columns[: len(run.inputs)])
    same(func.jvp(func.vmap(run), inputs, tuple(columns[len(run.inputs) :]))[1], expected)


def in_real_numbers(function: Function, inputs: list[turnout.Tensor]) -> tuple[Function, list[turnout.Tensor]]:
    """The function between real tensors: complex ones are their real and imaginary parts, in a last dim."""

    def of_parts(*tensors: turnout.Tensor) -> list[turnout.Tensor]:
        pairs = zip(tensors, inputs, strict=True)
        results = function(*[turnout.view_as_complex(t) if x.is_complex() else t for t, x in pairs])
        return [turnout.view_as_real(t) if t.is_complex() else t for t in results]

    return of_parts, [turnout.view_as_real(x) if x.is_complex() else x for x in inputs]


# Operators that record, but not where the samples of the table are: for each a reason why some check fails.
IRREGULAR = {
    "xlogy.Scalar_Self": "the sample has zeros",
    "mode": "the sample has ties",
    "linalg_cholesky_ex": "one sample is not positive definite",
    "sort.stable": "the sample has ties",
} | dict.fromkeys(
    ("linspace.Tensor_Tensor", "linspace.Tensor_Scalar",
     "logspace.Tensor_Tensor", "logspace.Tensor_Scalar", "logspace.Scalar_Tensor"),
    "results are float32, of whose differences nothing follows",
)  # fmt: skip
# They read one triangle of their matrix.
SYMMETRIC = {"linalg_cholesky", "cholesky", "_linalg_eigh", "linalg_eigh", "linalg_eigvalsh"}

DEPENDS = "the shape of its result depends on values"  # what vmap says of UNMAPPED

REGULAR = [*DIFFERENTIABLE, *(case for case in CASES if case.op in SYMMETRIC)]
OTHERS = [c for c in CASES if not any(c is r for r in REGULAR) and set(PRECISE) & set(c.dtypes)]


# Both modes, of the second sample; what is made of them does not depend on the sample.
OF_THE_SECOND = {name: each for name, each in CHECKS.items() if "vjp" in name}


@pytest.mark.parametrize("case", REGULAR, ids=str)
def test_transforms_agree(case: OperatorCase) -> None:
    runs = runs_of(case)
    assert runs
    for run, checks in zip(runs, (CHECKS, OF_THE_SECOND), strict=False):
        for name, each in checks.items():
            refused = case.op in UNMAPPED and name.endswith("_of_the_loop")
            with about(name), pytest.raises(turnout.TurnoutError, match=DEPENDS) if refused else nullcontext():
                each(run)


def written_through_a_view(case: OperatorCase) -> Function | None:
    """The operator's in-place method on a view of a copy of its first argument; None where there is no such method."""
    method = getattr(turnout.Tensor, case.op.partition(".")[0] + "_", None)
    if method is None:
        return None

    def call(x: turnout.Tensor, *rest: Any, **named: Any) -> turnout.Tensor:
        base = x.clone()
        method(base[...], *rest, **named)
        return base

    return call


def second_derivatives(gradient: Function, inputs: list[turnout.Tensor]) -> Any:
    function, parts = in_real_numbers(gradient, inputs)
    return func.jacrev(function)(*parts)


WRITTEN = [case for case in DIFFERENTIABLE if written_through_a_view(case) is not None]


@pytest.mark.parametrize("case", WRITTEN, ids=str)
def test_writes_through_views_transform_as_the_functional_operator_does(case: OperatorCase) -> None:
    for plain in runs_of(case):
        x = plain.args[0]
        if not isinstance(x, turnout.Tensor) or (plain.outputs[0].shape, plain.outputs[0].dtype) != (x.shape, x.dtype):
            continue
        run = Run(case.op, plain.args, plain.kwargs, written_through_a_view(case))
        tangents = tuple(random_like(run.inputs, 5))
        found, expected = (
            [
                func.jvp(each, tuple(each.inputs), tangents)[1],
                func.jvp(func.grad(each.number, run.every), tuple(each.inputs), tangents)[1],
                second_derivatives(func.grad(each.number, run.every), each.inputs),
                func.vmap(func.grad(each.number, run.every))(*[turnout.stack([x, x * 0.5]) for x in each.inputs]),
            ]
            for each in (run, plain)
        )
        same(found, expected)


@pytest.mark.parametrize("case", OTHERS, ids=str)
def test_an_operator_without_gradients_records_nothing_refuses_or_has_a_reason(case: OperatorCase) -> None:
    outcome = outcome_of(case)
    if case.op in IRREGULAR:
        assert outcome, "it holds now: take it out of IRREGULAR"
    else:
        assert outcome in ("", "refused")


def outcome_of(case: OperatorCase) -> str:
    """What is wrong with the operator; "refused" where its formula says that there is none."""
    try:
        for run in runs_of(case):
            for each in CHECKS.values():
                each(run)
    except autograd.GradientError as error:
        return "refused" if "is implemented: " in str(error) else str(error)
    except AssertionError as error:
        return str(error)
    return ""


def test_the_tables_name_operators_that_have_cases() -> None:
    assert IRREGULAR.keys() | SYMMETRIC <= {case.op for case in CASES}


def test_a_gradient_that_is_not_the_adjoint_of_the_tangent_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    from turnout_autograd.generated import pointwise

    case = next(case for case in DIFFERENTIABLE if case.op == "sinh")
    right = pointwise.SinhBackward0.backward
    monkeypatch.setattr(pointwise.SinhBackward0, "backward", lambda node, grad, edges: right(node, grad * 1.001, edges))
    CHECKS["vjp_is_what_autograd_says"](runs_of(case)[0])
    with pytest.raises(AssertionError):
        CHECKS["jvp_is_what_differences_say_and_the_adjoint_of_vjp"](runs_of(case)[0])
