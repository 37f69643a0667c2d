"""Tangent rules: every operator case's rule is the derivative that gradients imply, and what differences of the values say.

The judge is the pullback of the pullback: a gradient is linear in what comes in, and its own gradient along a tangent is the
derivative along that tangent. It uses no rule.
"""

from __future__ import annotations

import ast
import copy
import inspect
import textwrap
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple, cast

import numpy as np
import pytest
from formulas import INPLACE, formulas, inplace_of

import turnout
from turnout import autograd, func
from turnout.registry import REGISTRY
from turnout_aten import trees
from turnout_conformance.cases import OperatorCase
from turnout_conformance.cases.differentiable import CONSTANTS, DIFFERENTIABLE, as_function, leaf, leaves, replaced
from turnout_conformance.cases.model import S, T, calls, values

PRECISE = ("float64", "complex128")


def rule_of(op: Any) -> Any:
    turnout.ones(1).requires_grad_()
    from turnout_autograd.tangents import rule

    return rule(op)


def random_like(tensors: list[turnout.Tensor], seed: int) -> list[turnout.Tensor]:
    draw = np.random.default_rng(seed)
    made = []
    for t in tensors:
        values = draw.uniform(-1, 1, t.shape) + (1j * draw.uniform(-1, 1, t.shape) if t.is_complex() else 0)
        made.append(turnout.from_numpy(np.asarray(values, t.dtype.name)))
    return made


def flat(found: Any) -> list[Any]:
    """The results of a call, or their tangents."""
    if isinstance(found, (list, tuple)):
        return [t for each in found for t in flat(each)]
    return [found]


class Sample(NamedTuple):
    """A call of one operator that has a gradient, with a tangent for each of its leaves."""

    case: OperatorCase
    op: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    @property
    def inputs(self) -> list[turnout.Tensor]:
        return leaves((self.args, self.kwargs))

    def detached(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        found = {id(t): t.detach() for t in self.inputs}
        return replaced(self.args, found), replaced(self.kwargs, found)


# Gradients of functions that are defined for real numbers only: they are not asked about complex ones.
REAL_ONLY = {
    "gelu_backward", "mse_loss_backward", "nll_loss_backward", "nll_loss_forward", "_softmax_backward_data",
    "_log_softmax_backward_data", "upsample_linear1d_backward", "upsample_bilinear2d_backward", "upsample_trilinear3d_backward",
    "_upsample_bilinear2d_aa_backward", "_upsample_bicubic2d_aa_backward", "_upsample_lanczos2d_aa_backward",
    "_adaptive_avg_pool2d_backward", "_adaptive_avg_pool3d_backward",
}  # fmt: skip


def complex_leaf(data: Any, dtype: str) -> turnout.Tensor:
    """A leaf of complex numbers where the sample has real ones."""
    made = leaf(data, "float64" if dtype == "complex128" else dtype).detach()
    if made.dtype is not turnout.float64:
        return made
    return turnout.complex(made, made.flip(tuple(range(made.ndim))) * 0.7 + 0.3).requires_grad_()


def hermitian_leaf(data: Any, dtype: str) -> turnout.Tensor:
    """The same as a positive definite matrix."""
    made = complex_leaf(data, dtype).detach()
    return (made @ made.mH + turnout.eye(made.shape[-1])).requires_grad_()


def given_to(case: OperatorCase) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """The calls of a case in float64, and in complex128 where the operator accepts it."""
    if "float64" in case.dtypes:
        yield from calls(case, "float64", leaf)
    if "complex128" in case.dtypes:
        yield from calls(case, "complex128", leaf)
    elif case.op not in REAL_ONLY:
        yield from calls(case, "complex128", hermitian_leaf if case.op in ONE_TRIANGLE else complex_leaf)


def samples(case: OperatorCase) -> Iterator[Sample]:
    """Every call of a case whose results have gradients."""
    op = REGISTRY.find(f"aten::{case.op}")
    names = [a.name for a in op.schema.arguments]
    constant = (CONSTANTS | REFUSED).get(case.op)
    for args, kwargs in given_to(case):
        given = tuple(a.detach() if n == constant and a is not None else a for n, a in zip(names, args, strict=False))
        sample = Sample(case, op, given, kwargs)
        try:
            has_gradients = bool(sample.inputs) and bool(leaves(flat(op(*given, **kwargs))))
        except turnout.TurnoutError:
            assert any(t.is_complex() for t in sample.inputs)
            assert "complex128" not in case.dtypes
            continue
        if has_gradients:
            yield sample


# Operators whose cases are not differentiable where differences are taken, and those that random calls stand for elsewhere.
LOW, HIGH, SQUARE = values(3, low=0.2, high=0.8), values(3, low=1.1, high=3.0, seed=3), values(3, 3, seed=2)
POSITIVE = (np.asarray(SQUARE) @ np.asarray(SQUARE).T + np.eye(3)).tolist()
REFUSED = {"igamma": "self", "igammac": "self", "special_zeta": "self"}
OWN = [
    OperatorCase(op, samples, lambda np, *args, **kwargs: None, dtypes=("float64",))
    for op, samples in {
        "igamma": (S(T(LOW), T(HIGH)),),
        "igammac": (S(T(LOW), T(HIGH)),),
        "special_zeta": (S(T(HIGH), T(values(3, low=1.2, high=2.5))),),
        "clamp.Tensor": (S(T(LOW), T(HIGH), T([0.5, 0.9, 4.0])),),
        "xlogy.Scalar_Self": (S(2.0, T(HIGH)),),
        "log_sigmoid_forward": (S(T(SQUARE)),),
        "nan_to_num": (S(T(SQUARE), 0.0, 1.0, 2.0),),
        "nextafter": (S(T(LOW), T(HIGH)),),
        "mode": (S(T(SQUARE), 0), S(T(SQUARE), 1, True)),
        "sort.stable": (S(T(SQUARE), stable=True), S(T(SQUARE), stable=False, dim=0, descending=True)),
        "linalg_cholesky_ex": (S(T(POSITIVE)), S(T(POSITIVE), upper=True), S(T([POSITIVE, POSITIVE]))),
        "_linalg_eigh": (S(T(POSITIVE)), S(T(POSITIVE), "U"), S(T(POSITIVE), "L", False)),
        "div.Tensor_mode": (S(T(LOW), T(HIGH), rounding_mode=None),),
        "div.Scalar_mode": (S(T(LOW), 3.0, rounding_mode=None), S(T(LOW), 2.0 + 1.0j, rounding_mode=None)),
        "index_add": (S(T(values(5)), 0, T([0, 2, 0], "int64"), T(LOW)),),
        "scatter_reduce.two": (
            S(T(LOW), 0, T([0, 2, 0], "int64"), T(values(3, seed=5)), "prod"),
            S(T(values()), 0, T(0, "int64"), T(values(seed=5)), "prod"),
        ),
    }.items()
]  # fmt: skip
CASES = [case for case in (*DIFFERENTIABLE, *OWN) if rule_of(REGISTRY.find(f"aten::{case.op}")) is not None]


def tangents_for(sample: Sample, tangents: list[turnout.Tensor | None]) -> tuple[Any, ...]:
    """What a rule is given: one for each argument that may hold tensors."""
    found = {id(p): t for p, t in zip(sample.inputs, tangents, strict=True)}
    given: list[Any] = []
    bound: Any = sample.op.bind(sample.args, sample.kwargs)
    for argument, value in zip(sample.op.schema.arguments, bound, strict=True):
        if str(argument.type).startswith("Tensor"):
            if not isinstance(value, (list, tuple)):
                given.append(found.get(id(value)))
                continue
            each = tuple(found.get(id(t)) for t in value)
            given.append(each if any(t is not None for t in each) else None)
    return tuple(given)


def differentiable_places(sample: Sample, results: list[Any]) -> list[int]:
    """The results of a recorded call that have gradients."""
    return [i for i, t in enumerate(results) if isinstance(t, turnout.Tensor) and t.requires_grad]


def by_rule(rule: Any, sample: Sample, tangents: list[turnout.Tensor | None]) -> list[turnout.Tensor]:
    """The tangents that the rule says, of the results that have gradients; zeros for None."""
    args, kwargs = sample.detached()
    with turnout.no_grad():
        result = sample.op(*args, **kwargs)
        made = rule(args, kwargs, tangents_for(sample, tangents), result)
    recorded = flat(sample.op(*sample.args, **sample.kwargs))
    results = flat(result)
    made = flat(made)
    places = differentiable_places(sample, recorded)
    assert len(made) == len(places)
    return [turnout.zeros_like(results[i]) if t is None else t for i, t in zip(places, made, strict=True)]


def by_pullbacks(sample: Sample, tangents: list[turnout.Tensor | None]) -> list[turnout.Tensor]:
    """The pullback of the pullback."""
    call, given = as_function(sample.op, sample.args, sample.kwargs)
    inputs = [t.detach() for t in given]
    places = differentiable_places(sample, flat(call(*given)))

    def function(*tensors: turnout.Tensor) -> list[turnout.Tensor]:
        results = trees.flatten(call(*tensors))[0]
        return [results[i] for i in places]

    results, pull = func.vjp(function, *inputs)
    _, push = func.vjp(lambda *cotangents: pull(list(cotangents)), *[turnout.zeros_like(r) for r in results])
    found: Any = push(tuple(turnout.zeros_like(x) if t is None else t for x, t in zip(inputs, tangents, strict=True)))
    return flat(found)


def same(found: list[Any], expected: list[Any], tolerance: float = 1e-8) -> None:
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert a.shape == b.shape
        assert a.dtype is b.dtype
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=tolerance, atol=tolerance)


def without_phases(sample: Sample, made: list[turnout.Tensor]) -> list[turnout.Tensor]:
    """What is determined of complex singular vectors: U dS Vh + dU S Vh + U S dVh, and dS."""
    if sample.case.op != "_linalg_svd" or not made[0].is_complex() or not made[0].numel():
        return made
    args, kwargs = sample.detached()
    U, S_, Vh = sample.op(*args, **kwargs)
    k = S_.shape[-1]
    U, dU, Vh, dVh = U[..., :k], made[0][..., :k], Vh[..., :k, :], made[2][..., :k, :]
    s, ds = S_.to(U.dtype).unsqueeze(-2), made[1].to(U.dtype).unsqueeze(-2)
    return [(U * ds) @ Vh + (dU * s) @ Vh + (U * s) @ dVh, made[1]]


def tangents_of(sample: Sample, seed: int = 5) -> list[turnout.Tensor]:
    return random_like([t.detach() for t in sample.inputs], seed)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_rule_is_the_pullback_of_the_pullback(case: OperatorCase) -> None:
    rule = rule_of(REGISTRY.find(f"aten::{case.op}"))
    for sample in samples(case):
        tangents = tangents_of(sample)
        given = [tangents]
        if len(tangents) > 1:
            given += [[t if i == alone else None for i, t in enumerate(tangents)] for alone in range(len(tangents))]
        for each in given:
            found, expected = by_rule(rule, sample, each), by_pullbacks(sample, each)
            same(without_phases(sample, found), without_phases(sample, expected))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_rule_is_what_differences_of_the_values_say(case: OperatorCase) -> None:
    rule = rule_of(REGISTRY.find(f"aten::{case.op}"))
    for sample in samples(case):
        if case.op in OPEN_VECTORS and any(t.is_complex() for t in (*sample.inputs, *flat(sample.op(*sample.args)))):
            continue
        tangents = tangents_of(sample)
        if case.op in ONE_TRIANGLE:
            tangents = [(t + t.mH) / 2 for t in tangents]
        call, given = as_function(sample.op, sample.args, sample.kwargs)
        places = differentiable_places(sample, flat(call(*given)))
        step = 1e-6
        with turnout.no_grad():
            above, below = (
                flat(call(*[x.detach() + sign * step * v for x, v in zip(given, tangents, strict=True)])) for sign in (1, -1)
            )
        same(by_rule(rule, sample, tangents), [(above[i] - below[i]) / (2 * step) for i in places], 2e-5)


# Vectors whose phase is open: LAPACK may choose another one at each side of the difference.
OPEN_VECTORS = {"_linalg_svd", "_linalg_eigh", "linalg_eig"}
ONE_TRIANGLE = {"_linalg_eigh", "linalg_cholesky_ex"}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_tangent_is_in_memory_of_its_own_unless_it_is_that_of_a_view(case: OperatorCase) -> None:
    op = REGISTRY.find(f"aten::{case.op}")
    if "Tensor(a" in str(op.schema) or "unsafe" in case.op:
        return
    for sample in samples(case):
        tangents = tangents_of(sample)
        before = [t.tolist() for t in tangents]
        for made in by_rule(rule_of(op), sample, tangents):
            made.fill_(7)
        assert [t.tolist() for t in tangents] == before


def laid_out_otherwise(t: turnout.Tensor) -> turnout.Tensor:
    """The same values with other strides, and not from the start of the memory."""
    wide = turnout.zeros((t.numel() * 2 + 1,), dtype=t.dtype)[1::2]
    made = wide.reshape(t.shape[::-1]).permute(list(range(t.ndim - 1, -1, -1)))
    return made.copy_(t)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_tangent_may_lie_in_memory_in_another_way_than_its_tensor(case: OperatorCase) -> None:
    rule = rule_of(REGISTRY.find(f"aten::{case.op}"))
    for sample in samples(case):
        tangents = tangents_of(sample)
        same(by_rule(rule, sample, [laid_out_otherwise(t) for t in tangents]), by_rule(rule, sample, tangents), 1e-12)


# ---- rules are written in operators


def smallest(case: OperatorCase, dtype: str = "float64") -> list[Sample]:
    """The smallest sample of real numbers that has elements."""
    found = [s for s in samples(case) if all(t.dtype.name == dtype and t.numel() for t in s.inputs)]
    return sorted(found, key=lambda s: sum(t.numel() for t in s.inputs))[:1]


def as_number(sample: Sample, rule: Any) -> tuple[Any, list[turnout.Tensor]]:
    """The rule as a function of the inputs and the tangents."""
    count = len(sample.inputs)

    def function(*given: turnout.Tensor) -> list[turnout.Tensor]:
        found = {id(old): new for old, new in zip(sample.inputs, given[:count], strict=True)}
        args, kwargs = replaced(sample.args, found), replaced(sample.kwargs, found)
        made = rule(args, kwargs, tangents_for(sample, list(given[count:])), sample.op(*args, **kwargs))
        return [t for t in flat(made) if t is not None and t.requires_grad]

    return function, [*(t.detach() for t in sample.inputs), *tangents_of(sample)]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_tangent_has_the_gradients_that_differences_say(case: OperatorCase) -> None:
    rule = rule_of(REGISTRY.find(f"aten::{case.op}"))
    for sample in smallest(case):
        function, given = as_number(sample, rule)
        leaves_ = [t.clone().requires_grad_() for t in given]
        if function(*leaves_):
            assert autograd.gradcheck(symmetric_in(function, case), leaves_)


def symmetric_in(function: Any, case: OperatorCase) -> Any:
    if case.op not in ONE_TRIANGLE:
        return function
    return lambda *given: function(*[(t + t.mT) / 2 for t in given])


@pytest.mark.parametrize("case", CASES, ids=str)
def test_tangents_of_examples_are_those_of_the_loop(case: OperatorCase) -> None:
    rule = rule_of(REGISTRY.find(f"aten::{case.op}"))
    for sample in smallest(case):
        count = len(sample.inputs)

        def pushed(*given: turnout.Tensor, sample: Sample = sample, count: int = count) -> tuple[turnout.Tensor, ...]:
            found = {id(old): new for old, new in zip(sample.inputs, given[:count], strict=True)}
            args, kwargs = replaced(sample.args, found), replaced(sample.kwargs, found)
            result = sample.op(*args, **kwargs)
            made = flat(rule(args, kwargs, tangents_for(sample, list(given[count:])), result))
            return tuple(t for t in made if t is not None)

        first = [*(t.detach() for t in sample.inputs), *tangents_of(sample)]
        second = [*(t.detach() * 0.9 for t in sample.inputs), *tangents_of(sample, 6)]
        with turnout.no_grad():
            loop = [pushed(*each) for each in (first, second)]
            columns = [turnout.stack([a, b]) for a, b in zip(first, second, strict=True)]
            if case.op in UNMAPPED:
                with pytest.raises(turnout.TurnoutError):
                    func.vmap(pushed)(*columns)
                continue
            same(flat(func.vmap(pushed)(*columns)), [turnout.stack(list(c)) for c in zip(*loop, strict=True)])


# vmap refuses the operator itself.
UNMAPPED = {"bincount"}


# ---- every operator is decided, and every rule is checked

WHOLE = "takes whole numbers only, which have no tangent"
DRAWN = "what is drawn is constant: see test_what_is_drawn_has_a_tangent_of_zeros"
WRITTEN = "writes a constant: see test_a_write_of_constants_leaves_a_tangent_of_zeros"
# Rules that no sample runs.
UNREACHED = {
    **dict.fromkeys(
        ("bitwise_and__Scalar", "bitwise_and__Tensor", "bitwise_left_shift__Tensor", "bitwise_left_shift__Tensor_Scalar",
         "bitwise_not_", "bitwise_or__Scalar", "bitwise_or__Tensor", "bitwise_right_shift__Tensor",
         "bitwise_right_shift__Tensor_Scalar", "bitwise_xor__Scalar", "bitwise_xor__Tensor", "gcd_", "lcm_"),
        WHOLE,
    ),
    **dict.fromkeys(
        ("bernoulli", "bernoulli__Tensor", "bernoulli__float", "bernoulli_p", "cauchy_", "exponential_", "geometric_",
         "log_normal_", "normal_", "normal_Tensor_Tensor", "normal_Tensor_float", "normal_float_Tensor", "normal_functional",
         "poisson", "random_", "random__from", "random__to", "uniform_"),
        DRAWN,
    ),
    **dict.fromkeys(
        (*(f"{op}__{other}" for op in ("eq", "ne", "lt", "le", "gt", "ge") for other in ("Tensor", "Scalar")),
         "logical_and_", "logical_or_", "logical_xor_", "logical_not_"),
        WRITTEN,
    ),
    "native_dropout": "see test_dropout_is_its_mask_for_tangents",
    "copy_": "see test_a_copy_into_a_tensor_has_the_tangent_of_its_source",
}  # fmt: skip


def table() -> Any:
    rule_of(REGISTRY.find("aten::mul.Tensor"))
    from turnout_autograd.generated.tangents import MISSING, RULES

    return RULES, MISSING


def test_a_sample_runs_every_rule() -> None:
    rules, _ = table()
    reached = {rules[sample.op.qualified_name][1] for case in CASES for sample in samples(case)}
    every = {name for _, name in rules.values()}
    assert len(every) > 350
    assert every - reached == {f"tangent_of_{name}" for name in UNREACHED}


def test_every_operator_with_a_formula_has_a_rule_or_no_derivatives_at_all() -> None:
    from turnout_autograd.generated import FAMILIES
    from turnout_autograd.tangents import missing

    rules, without = table()
    assert not rules.keys() & without.keys()
    assert FAMILIES.keys() <= rules.keys() | without.keys()
    for formula in formulas():
        if not formula.refused:
            assert formula.node.op_name in rules
    assert {formula.node.op_name for formula in formulas()} <= rules.keys() | without.keys()
    assert missing(REGISTRY.find("aten::heaviside")) == "it is a step function"
    assert missing(REGISTRY.find("aten::mul.Tensor")) is None
    assert missing(REGISTRY.find("aten::eq.Tensor")) is None
    assert rule_of(REGISTRY.find("aten::eq.Tensor")) is None


def test_in_place_and_out_variants_have_the_rule_of_the_functional_operator() -> None:
    for name in ("add.Tensor", "exp", "clamp", "addmm", "scatter_reduce.two"):
        base, _, overload = name.partition(".")
        functional = rule_of(REGISTRY.find(f"aten::{name}"))
        assert rule_of(REGISTRY.find(f"aten::{base}_{'.' if overload else ''}{overload}")).compute is functional.compute
        out = "two_out" if overload == "two" else "out"
        assert rule_of(REGISTRY.find(f"aten::{base}.{out}")).compute is functional.compute


def test_an_out_variant_gives_the_tangent_of_what_it_wrote() -> None:
    x, t = turnout.tensor([1.0, 2.0], dtype=turnout.float64), turnout.tensor([3.0, 5.0], dtype=turnout.float64)
    op = REGISTRY.find("aten::mul.out")
    out = turnout.empty(2, dtype=turnout.float64)
    result = op(x, x, out=out)
    assert rule_of(op)((x, x), {"out": out}, (t, None, None), result).tolist() == [3.0, 10.0]


def test_an_in_place_rule_says_whether_it_reads_what_is_overwritten() -> None:
    assert rule_of(REGISTRY.find("aten::sin_")).reads == {"self"}
    assert rule_of(REGISTRY.find("aten::exp_")).reads == {"result"}
    assert rule_of(REGISTRY.find("aten::add_.Tensor")).reads == set()
    assert rule_of(REGISTRY.find("aten::mul_.Tensor")).reads == {"self", "other"}
    assert rule_of(REGISTRY.find("aten::masked_fill_.Scalar")).reads == {"mask"}


@pytest.mark.parametrize("case", [case for case in INPLACE if case in CASES], ids=str)
def test_an_in_place_operator_has_the_tangent_of_the_functional_one(case: OperatorCase) -> None:
    inplace = inplace_of(case)
    rule = rule_of(inplace)
    for sample in smallest(case):
        args, kwargs = sample.detached()
        if not isinstance(args[0], turnout.Tensor) or sample.op(*args, **kwargs).shape != args[0].shape:
            continue
        tangents = tangents_for(sample, list(tangents_of(sample)))
        expected = rule_of(sample.op)(args, kwargs, tangents, sample.op(*args, **kwargs))
        written = args[0].clone()
        result = inplace(written, *args[1:], **kwargs)
        before = args[0] if "self" in rule.reads else written
        same([rule((before, *args[1:]), kwargs, tangents, result)], [expected])


X, V = turnout.tensor([0.25, 0.5, 0.75], dtype=turnout.float64), turnout.tensor([1.0, -2.0, 3.0], dtype=turnout.float64)


@pytest.mark.parametrize("name", [n for n, why in UNREACHED.items() if why in (DRAWN, WRITTEN)])
def test_what_is_drawn_or_written_as_a_constant_has_a_tangent_of_zeros(name: str) -> None:
    rules, _ = table()
    for op in (REGISTRY.find(op) for op, (_, function) in rules.items() if function == f"tangent_of_{name}"):
        if op.schema.kind == "out":
            continue
        amounts = {"Tensor": X, "Scalar": 1.0, "float": 0.5, "int": 1, "int?": 5}
        required = [str(a.type) for a in op.schema.arguments if a.default_text is None]
        given = [amounts[kind].clone() if kind == "Tensor" else amounts[kind] for kind in required]
        tangents = tuple(V for a in op.schema.arguments if str(a.type) == "Tensor")
        made = rule_of(op)(tuple(given), {}, tangents, op(*given))
        assert made.tolist() == [0.0, 0.0, 0.0]


def test_dropout_is_its_mask_for_tangents() -> None:
    op = REGISTRY.find("aten::native_dropout")
    turnout.manual_seed(1)
    result = op(X, 0.5, True)
    made = rule_of(op)((X, 0.5, True), {}, (V,), result)
    assert made.tolist() == (V * result[1] * 2).tolist()
    assert rule_of(op)((X, 0.5, False), {}, (V,), op(X, 0.5, False)).tolist() == V.tolist()


def test_a_copy_into_a_tensor_has_the_tangent_of_its_source() -> None:
    op = REGISTRY.find("aten::copy_")
    into = turnout.zeros((2, 3))
    rule = rule_of(op)
    result = op(into, X)
    assert rule((into, X), {}, (None, V), result).tolist() == [V.tolist(), V.tolist()]
    assert rule((into, X), {}, (None, V), result).dtype is turnout.float32
    assert rule((into, X), {}, (turnout.ones((2, 3)), None), result).tolist() == [[0.0] * 3, [0.0] * 3]


def test_a_tangent_of_an_argument_without_a_derivative_is_refused() -> None:
    op = REGISTRY.find("aten::igamma")
    with pytest.raises(autograd.GradientError) as caught:
        rule_of(op)((X, X), {}, (V, None), op(X, X))
    assert str(caught.value) == (
        "aten::igamma: no derivative along a tangent of 'self' is implemented: it has no closed form\n"
        "  to fix  pass self.detach(), which has no tangent"
    )


def test_terms_without_a_tangent_are_left_out() -> None:
    """The product with a tangent that is not there would be infinite times zero."""
    op = REGISTRY.find("aten::mul.Tensor")
    infinite = turnout.tensor([float("inf")], dtype=turnout.float64)
    one = turnout.ones(1, dtype=turnout.float64)
    assert rule_of(op)((infinite, one), {}, (one, None), op(infinite, one)).tolist() == [1.0]
    assert rule_of(op)((infinite, one), {}, (None, None), op(infinite, one)) is None


# ---- mutants: rules changed in their source


class Mutation(ast.NodeTransformer):
    """Changes the place of a rule that has a given number, and leaves the others."""

    def __init__(self, number: int, names: list[str], is_complex: bool) -> None:
        self.left = number
        self.names = names
        self.is_complex = is_complex
        self.done = ""

    def visit(self, node: ast.AST) -> ast.AST:
        for made in self.changed(node):
            if self.left == 0 and not self.done:
                self.done = f"{ast.unparse(node)} -> {ast.unparse(made)}"
                return made
            self.left -= 1
        return super().generic_visit(node)

    def changed(self, node: ast.AST) -> Iterator[ast.AST]:
        """Another sign, a missing part, another operand, another operator."""
        text = ast.unparse(node)
        if isinstance(node, ast.IfExp) and text.endswith("is not None else None") and not text.startswith("aten.zeros_like"):
            yield ast.IfExp(node.test, ast.UnaryOp(ast.USub(), node.body), node.orelse)
            yield ast.IfExp(node.test, ast.BinOp(node.body, ast.Mult(), ast.Constant(0)), node.orelse)
        if isinstance(node, ast.BinOp):
            others = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
            for old, new in others.items():
                if isinstance(node.op, old):
                    yield ast.BinOp(node.left, new(), node.right)
            yield node.left
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "conj" and self.is_complex:
            yield node.args[0]
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in self.names:
            at = self.names.index(node.id)
            yield ast.Name(self.names[at - 1], ast.Load())


def mutants(compute: Any, is_complex: bool) -> Iterator[tuple[str, Any]]:
    """What was changed, and the rule with that change; a missing conjugate where complex numbers can show it."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(compute))).body
    assert isinstance(tree, ast.FunctionDef)
    arguments = [a.arg for a in tree.args.args[2:] if any(f"{a.arg}_t" in ast.unparse(s) for s in tree.body)]
    number = 0
    while True:
        mutation = Mutation(number, arguments if len(arguments) > 1 else [], is_complex)
        changed = copy.deepcopy(tree)
        unpacking = sum(isinstance(s, ast.Assign) and ast.unparse(s.value) in ("tangents", "result") for s in changed.body)
        changed.body[unpacking:] = [cast(ast.stmt, mutation.visit(s)) for s in changed.body[unpacking:]]
        if not mutation.done:
            return
        number += 1
        scope = dict(compute.__globals__)
        module = ast.Module([ast.fix_missing_locations(changed)], [])
        exec(compile(module, "<mutant>", "exec"), scope)
        yield mutation.done, scope[tree.name]


def is_noticed(case: OperatorCase, compute: Any) -> bool:
    """Whether the test of the rule fails with another one."""
    rule = rule_of(REGISTRY.find(f"aten::{case.op}"))
    for sample, given, expected in judged(case.op):
        rule.compute = compute
        try:
            same(without_phases(sample, by_rule(rule, sample, given)), expected)
        except Exception:  # noqa: BLE001 - a mutant may compute nonsense, and any refusal is one
            return True
        except AssertionError:
            return True
    return False


@cache
def judged(op: str) -> list[tuple[Sample, list[Any], list[Any]]]:
    """What the test compares, of every case of an operator."""
    found = []
    for case in CASES:
        for sample in samples(case) if case.op == op else ():
            tangents = tangents_of(sample)
            alone = [[t if i == at else None for i, t in enumerate(tangents)] for at in range(len(tangents))]
            for given in (tangents, *alone):
                found.append((sample, given, without_phases(sample, by_pullbacks(sample, given))))
    return found


SHAPE = "only its shape is read"
KIND = "only whether it is bool, or whether it has a tangent, is read"
MASKED = "differs only where a logarithm is masked because it is not finite"
# Operands whose change changes nothing.
EQUIVALENT = {
    ("pow.Tensor_Tensor", "exponent -> self"): KIND,
    ("float_power.Tensor_Tensor", "exponent -> self"): KIND,
    ("where.self", "self -> condition"): SHAPE,
    ("where.self", "other -> self"): SHAPE,
    ("xlogy.Tensor", "self -> other"): MASKED,
    ("xlogy.Tensor", "other -> self"): MASKED,
    ("special_xlog1py", "self -> other"): MASKED,
    ("special_xlog1py", "other -> self"): MASKED,
    ("binary_cross_entropy", "target -> self"): "the slope by the target does not depend on the target",
    ("binary_cross_entropy_with_logits", "target -> self"): "the slope by the target does not depend on the target",
    ("_linalg_solve_ex", "A -> B"): SHAPE,
    ("_linalg_solve_ex", "B -> A"): SHAPE,
    ("mse_loss_backward", "target -> self"): SHAPE,
}


def test_every_change_in_the_source_of_a_rule_is_noticed() -> None:
    noticed, missed = 0, set()
    for op, case in {case.op: case for case in CASES}.items():
        is_complex = any(t.is_complex() for sample, _, _ in judged(op) for t in sample.inputs)
        for what, compute in mutants(rule_of(REGISTRY.find(f"aten::{op}")).compute, is_complex):
            if is_noticed(case, compute):
                noticed += 1
            else:
                missed.add((op, what))
    assert missed == EQUIVALENT.keys()
    assert noticed > 1000
