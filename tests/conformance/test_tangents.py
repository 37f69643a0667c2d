"""Tangent rules: every operator case's rule is the derivative that gradients imply, and what differences of the values say.

The judge is the pullback of the pullback: a gradient is linear in what comes in, and its own gradient along a tangent is the
derivative along that tangent. It uses no rule. `test_tangent_mutants` shows that it notices wrong rules.
"""

from __future__ import annotations

from typing import Any

import pytest
from formulas import INPLACE, formulas
from tangent_samples import (
    CASES,
    ONE_TRIANGLE,
    UNMAPPED,
    Sample,
    by_pullbacks,
    by_rule,
    random_like,
    rule_of,
    said,
    same,
    samples,
    tangents_for,
    without_phases,
)

import turnout
from outcomes import refused
from turnout import autograd, func
from turnout.operators.values import flat
from turnout_conformance.cases import OperatorCase
from turnout_conformance.comparing import about, find, form

# Vectors whose phase is open: LAPACK may choose another one at each side of the difference.
OPEN_VECTORS = {"_linalg_svd", "_linalg_eigh", "linalg_eig"}


def is_the_pullback_of_the_pullback(sample: Sample, made: list[turnout.Tensor]) -> None:
    for tangents in sample.combinations():
        found = made if tangents is sample.tangents else by_rule(sample, tangents)
        same(without_phases(sample, found), without_phases(sample, by_pullbacks(sample, tangents)))


def is_what_differences_of_the_values_say(sample: Sample, made: list[turnout.Tensor]) -> None:
    if sample.case.op in OPEN_VECTORS and any(t.is_complex() for t in (*sample.inputs, *made)):
        return
    tangents, step = sample.tangents, 1e-6
    if sample.case.op in ONE_TRIANGLE:
        tangents = [(t + t.mH) / 2 for t in tangents]
        made = by_rule(sample, tangents)
    with turnout.no_grad():
        above, below = (
            sample.results([x + sign * step * v for x, v in zip(sample.detached(), tangents, strict=True)]) for sign in (1, -1)
        )
    same(made, [(above[i] - below[i]) / (2 * step) for i in sample.places], 2e-5)


def laid_out_otherwise(t: turnout.Tensor) -> turnout.Tensor:
    """The same values with other strides, and not from the start of the memory."""
    wide = turnout.zeros((t.numel() * 2 + 1,), dtype=t.dtype)[1::2]
    made = wide.reshape(t.shape[::-1]).permute(list(range(t.ndim - 1, -1, -1)))
    return made.copy_(t)


def is_the_same_wherever_tangents_lie_in_memory(sample: Sample, made: list[turnout.Tensor]) -> None:
    same(by_rule(sample, [laid_out_otherwise(t) for t in sample.tangents]), made, 1e-12)


def is_in_memory_of_its_own_unless_it_is_that_of_a_view(sample: Sample, made: list[turnout.Tensor]) -> None:
    if "Tensor(a" in str(sample.op.schema) or "unsafe" in sample.case.op:
        return
    before = [t.tolist() for t in sample.tangents]
    for tangent in made:
        tangent.fill_(7)
    assert [t.tolist() for t in sample.tangents] == before


# The last one writes into what the rule made.
CHECKS = (
    is_the_pullback_of_the_pullback,
    is_what_differences_of_the_values_say,
    is_the_same_wherever_tangents_lie_in_memory,
    is_in_memory_of_its_own_unless_it_is_that_of_a_view,
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_a_rule_says_is_right(case: OperatorCase) -> None:
    for sample in samples(case):
        made = by_rule(sample, sample.tangents)
        for check in CHECKS:
            with about(check.__name__, sample.args, sample.kwargs):
                check(sample, made)


# ---- rules are written in operators


def smallest(case: OperatorCase) -> list[Sample]:
    """The smallest sample of real numbers that has elements."""
    found = [s for s in samples(case) if all(t.dtype is turnout.float64 and t.numel() for t in s.inputs)]
    return sorted(found, key=lambda s: sum(t.numel() for t in s.inputs))[:1]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_tangent_has_the_gradients_that_differences_say_and_examples_have_those_of_the_loop(case: OperatorCase) -> None:
    for sample in smallest(case):
        count, inputs = len(sample.inputs), sample.detached()

        def pushed(*given: turnout.Tensor, sample: Sample = sample, count: int = count) -> tuple[turnout.Tensor, ...]:
            """The rule as a function of the inputs and the tangents."""
            return tuple(t for t in said(sample, given[:count], given[count:])[1] if t is not None)

        def number(*given: turnout.Tensor) -> list[turnout.Tensor]:
            if case.op in ONE_TRIANGLE:
                given = tuple((t + t.mT) / 2 for t in given)
            return [t for t in pushed(*given) if t.requires_grad]

        first = [*inputs, *sample.tangents]
        tracked = [t.clone().requires_grad_() for t in first]
        if number(*tracked):
            assert autograd.gradcheck(number, tracked)
        second = [*(t * 0.9 for t in inputs), *random_like(inputs, 6)]
        with turnout.no_grad():
            loop = [pushed(*each) for each in (first, second)]
            columns = [turnout.stack([a, b]) for a, b in zip(first, second, strict=True)]
            if case.op in UNMAPPED:
                with pytest.raises(turnout.TurnoutError):
                    func.vmap(pushed)(*columns)
            else:
                same(flat(func.vmap(pushed)(*columns)), [turnout.stack(list(c)) for c in zip(*loop, strict=True)])


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
    rule_of(find("mul.Tensor"))
    from turnout_autograd.generated.tangents import MISSING, RULES

    return RULES, MISSING


def test_a_sample_runs_every_rule() -> None:
    rules, _ = table()
    reached = {rules[f"aten::{case.op}"][1] for case in CASES if next(samples(case), None) is not None}
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
    assert missing(find("heaviside")) == "it is a step function"
    assert missing(find("mul.Tensor")) is None
    assert missing(find("eq.Tensor")) is None
    assert rule_of(find("eq.Tensor")) is None


def test_in_place_and_out_variants_have_the_rule_of_the_functional_operator() -> None:
    for name in ("add.Tensor", "exp", "clamp", "addmm", "scatter_reduce.two"):
        base, _, overload = name.partition(".")
        functional = rule_of(find(f"{name}"))
        assert rule_of(find(f"{base}_{'.' if overload else ''}{overload}")).compute is functional.compute
        out = "two_out" if overload == "two" else "out"
        assert rule_of(find(f"{base}.{out}")).compute is functional.compute


def test_an_out_variant_gives_the_tangent_of_what_it_wrote() -> None:
    x, t = turnout.tensor([1.0, 2.0], dtype=turnout.float64), turnout.tensor([3.0, 5.0], dtype=turnout.float64)
    op = find("mul.out")
    out = turnout.empty(2, dtype=turnout.float64)
    result = op(x, x, out=out)
    assert rule_of(op)((x, x), {"out": out}, (t, None, None), result).tolist() == [3.0, 10.0]


def test_an_in_place_rule_says_whether_it_reads_what_is_overwritten() -> None:
    assert rule_of(find("sin_")).reads == {"self"}
    assert rule_of(find("exp_")).reads == {"result"}
    assert rule_of(find("add_.Tensor")).reads == set()
    assert rule_of(find("mul_.Tensor")).reads == {"self", "other"}
    assert rule_of(find("masked_fill_.Scalar")).reads == {"mask"}


@pytest.mark.parametrize("case", [case for case in INPLACE if case in CASES], ids=str)
def test_an_in_place_operator_has_the_tangent_of_the_functional_one(case: OperatorCase) -> None:
    inplace = form(find(case.op), "inplace")
    rule = rule_of(inplace)
    for sample in smallest(case):
        args, kwargs = sample.of(sample.detached())
        if not isinstance(args[0], turnout.Tensor) or sample.op(*args, **kwargs).shape != args[0].shape:
            continue
        tangents = tangents_for(sample, sample.tangents)
        expected = sample.rule(args, kwargs, tangents, sample.op(*args, **kwargs))
        written = args[0].clone()
        result = inplace(written, *args[1:], **kwargs)
        before = args[0] if "self" in rule.reads else written
        same([rule((before, *args[1:]), kwargs, tangents, result)], [expected])


X, V = turnout.tensor([0.25, 0.5, 0.75], dtype=turnout.float64), turnout.tensor([1.0, -2.0, 3.0], dtype=turnout.float64)


@pytest.mark.parametrize("name", [n for n, why in UNREACHED.items() if why in (DRAWN, WRITTEN)])
def test_what_is_drawn_or_written_as_a_constant_has_a_tangent_of_zeros(name: str) -> None:
    rules, _ = table()
    for op in (find(op.removeprefix("aten::")) for op, (_, function) in rules.items() if function == f"tangent_of_{name}"):
        if op.schema.kind == "out":
            continue
        amounts = {"Tensor": X, "Scalar": 1.0, "float": 0.5, "int": 1, "int?": 5}
        required = [str(a.type) for a in op.schema.arguments if a.default_text is None]
        given = [amounts[kind].clone() if kind == "Tensor" else amounts[kind] for kind in required]
        tangents = tuple(V for a in op.schema.arguments if str(a.type) == "Tensor")
        made = rule_of(op)(tuple(given), {}, tangents, op(*given))
        assert made.tolist() == [0.0, 0.0, 0.0]


def test_dropout_is_its_mask_for_tangents() -> None:
    op = find("native_dropout")
    turnout.manual_seed(1)
    result = op(X, 0.5, True)
    made = rule_of(op)((X, 0.5, True), {}, (V,), result)
    assert made.tolist() == (V * result[1] * 2).tolist()
    assert rule_of(op)((X, 0.5, False), {}, (V,), op(X, 0.5, False)).tolist() == V.tolist()


def test_a_copy_into_a_tensor_has_the_tangent_of_its_source() -> None:
    op = find("copy_")
    into = turnout.zeros((2, 3))
    rule = rule_of(op)
    result = op(into, X)
    assert rule((into, X), {}, (None, V), result).tolist() == [V.tolist(), V.tolist()]
    assert rule((into, X), {}, (None, V), result).dtype is turnout.float32
    assert rule((into, X), {}, (turnout.ones((2, 3)), None), result).tolist() == [[0.0] * 3, [0.0] * 3]


def test_a_tangent_of_an_argument_without_a_derivative_is_refused() -> None:
    op = find("igamma")
    assert refused(autograd.GradientError, lambda: rule_of(op)((X, X), {}, (V, None), op(X, X))) == (
        "aten::igamma: no derivative along a tangent of 'self' is implemented: it has no closed form\n"
        "  to fix  pass self.detach(), which has no tangent"
    )


def test_terms_without_a_tangent_are_left_out() -> None:
    """The product with a tangent that is not there would be infinite times zero."""
    op = find("mul.Tensor")
    infinite = turnout.tensor([float("inf")], dtype=turnout.float64)
    one = turnout.ones(1, dtype=turnout.float64)
    assert rule_of(op)((infinite, one), {}, (one, None), op(infinite, one)).tolist() == [1.0]
    assert rule_of(op)((infinite, one), {}, (None, None), op(infinite, one)) is None
