"""Pointwise operators, where the table of cases does not say it all: errors, aliases, activations, conversions, formats."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

import turnout
from outcomes import refused
from turnout.errors import ArgumentError, DTypeError, ShapeError
from turnout_aten.nn import functional as F

X = turnout.tensor([1.5, -0.5, 2.0])
X64 = X.double()
Z = turnout.tensor([0.5 + 1j, -1 - 0.5j, 0.25 - 2j], dtype=turnout.complex128)
WHOLE = turnout.tensor([1, 2])


NOT_A_BOOL = "subtraction is not defined for bool operands; use logical_xor, or ~x to invert a mask"
REFUSED: list[tuple[Callable[[], object], type[Exception], str]] = [
    (lambda: WHOLE - True, DTypeError, f"sub: {NOT_A_BOOL}"),
    (lambda: True - WHOLE, DTypeError, f"rsub: {NOT_A_BOOL}"),
    (lambda: X - True, DTypeError, f"sub: {NOT_A_BOOL}"),
    (lambda: turnout.rsub(WHOLE, True), DTypeError, f"rsub: {NOT_A_BOOL}"),
    (lambda: WHOLE.clone().sub_(True), DTypeError, f"sub_: {NOT_A_BOOL}"),
    (lambda: turnout.add(WHOLE, WHOLE, alpha=True), DTypeError, "add: a bool alpha needs a bool result, this one is int64"),
    (lambda: turnout.add(X, X, alpha=False), DTypeError, "add: a bool alpha needs a bool result, this one is float32"),
    (lambda: turnout.sub(WHOLE, 2, alpha=True), DTypeError, "sub: a bool alpha needs a bool result, this one is int64"),
    (lambda: X[:0].clone().add_(True, alpha=False), DTypeError, "add_: a bool alpha needs a bool result, this one is float32"),
    (lambda: F.hardtanh(X, 1, 0), ArgumentError, "hardtanh: min_val must not be above max_val, got 1 and 0"),
    (lambda: F.softshrink(X, -1), ArgumentError, "softshrink: lambd must not be negative, got -1"),
    (lambda: F.glu(X), ShapeError, "glu: the length along dim -1 must be even, got 3 of shape [3]"),
    (lambda: turnout.polygamma(-1, X), ArgumentError, "polygamma: n must not be negative, got -1"),
    (lambda: turnout.tensor([3]).polygamma_(1), DTypeError,
     "aten::polygamma_: the result has dtype float32, which cannot be written into int64"),
    (lambda: turnout.heaviside(X, X64), DTypeError, "heaviside: self and values must have one dtype, got float32 and float64"),
    (lambda: turnout.addcdiv(WHOLE, WHOLE, WHOLE), DTypeError,
     "addcdiv: tensor1 and tensor2 are integers; divide with div and its rounding_mode instead"),
    (lambda: turnout.view_as_complex(X), ShapeError, "view_as_complex: the last dim must have length 2, got shape [3]"),
    (lambda: turnout.tensor([1 + 1j]).abs_(), DTypeError,
     ("aten::abs_: the result is real, but self is complex and cannot become real in place; "
      "call the variant that returns a new tensor")),
    (lambda: turnout.complex(X.half(), X.half()), DTypeError, "complex: real must be a float32 or float64 tensor, got float16"),
    (lambda: X.contiguous(memory_format="channels_last"), turnout.TurnoutError,
     "contiguous: channels_last needs 4 dimensions, got shape [3]"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "text"), REFUSED)
def test_the_error_says_what_is_wrong(call, kind, text):
    assert refused(kind, call) == text


def test_a_bool_alpha_is_for_bools():
    mask = turnout.tensor([True, False])
    assert turnout.add(mask, mask, alpha=True).tolist() == [True, False]


def test_closeness_and_equality_are_answered_with_a_bool():
    near = X + 1e-7
    assert turnout.allclose(X, near) is True
    assert turnout.allclose(X, near, rtol=0.0, atol=0.0) is False
    assert turnout.equal(X, X.clone()) is True
    assert turnout.equal(X, X[:2]) is False
    nothing = turnout.tensor([math.nan])
    assert (turnout.allclose(nothing, nothing), turnout.allclose(nothing, nothing, equal_nan=True)) == (False, True)


def test_an_alias_is_the_operator_that_it_stands_for():
    out = turnout.empty(3)
    assert turnout.multiply(X, 2).tolist() == (X * 2).tolist()
    assert turnout.multiply(X, X, out=out) is out
    assert X.clone().arctan_().tolist() == X.atan().tolist()
    assert turnout.special.expit(X).tolist() == X.sigmoid().tolist()
    leaf = X.clone().requires_grad_()
    turnout.true_divide(leaf, 4).sum().backward()
    assert leaf.grad.tolist() == [0.25, 0.25, 0.25]


def test_activations_write_into_the_tensor_where_they_are_told_to():
    for name in ("relu", "relu6", "elu", "selu", "celu", "leaky_relu", "hardtanh", "hardsigmoid", "silu", "mish"):
        x = X.clone()
        assert getattr(F, name)(x, inplace=True) is x
        assert x.tolist() == pytest.approx(getattr(F, name)(X).tolist(), rel=1e-6)
    x = X.clone()
    assert F.threshold(x, 0.0, 7.0, inplace=True).tolist() == x.tolist() == [1.5, 7.0, 2.0]


def test_rrelu_draws_its_slopes_from_the_limits_while_training():
    x = turnout.full((1000,), -1.0)
    turnout.manual_seed(0)
    slopes = -F.rrelu(x, 0.2, 0.4, training=True)
    assert 0.2 <= float(slopes.min()) < 0.21
    assert 0.39 < float(slopes.max()) < 0.4
    turnout.manual_seed(0)
    assert F.rrelu(x.clone(), 0.2, 0.4, training=True, inplace=True).tolist() == (-slopes).tolist()
    assert F.rrelu(x[:1], 0.2, 0.4).tolist() == turnout.tensor([-0.3]).tolist()


INF, NAN, LOG_2 = float("inf"), float("nan"), math.log(2)


@pytest.mark.parametrize(
    ("call", "values", "gradients"),
    [
        (lambda x: turnout.xlogy(x, turnout.tensor([2.0, 0.0, -1.0, INF])), [0.0, 0.0, 0.0, 0.0], [LOG_2, 0.0, 0.0, INF]),
        (lambda x: turnout.xlogy(x, 2), [0.0, 1.0], [LOG_2, LOG_2]),
        (lambda x: turnout.xlogy(x, 0), [0.0, 1.0], [0.0, -INF]),
        (lambda x: turnout.special.xlog1py(x, turnout.tensor([1.0, -1.0])), [0.0, 0.0], [LOG_2, 0.0]),
        (lambda x: turnout.special.xlog1py(x, 1), [0.0, 1.0], [LOG_2, LOG_2]),
        (lambda x: turnout.logaddexp(x, turnout.tensor([0.0, INF, -800.0])), [INF, 0.0, 800.0], [1.0, 0.0, 1.0]),
        (lambda x: turnout.logaddexp2(x, turnout.tensor([0.0, INF, -800.0])), [INF, 0.0, 800.0], [1.0, 0.0, 1.0]),
        (lambda x: turnout.sinc(x), [0.0, 1e-30, -1e-30], [0.0, 0.0, 0.0]),
        (lambda x: F.elu(x), [NAN, 1.0], [NAN, 1.0]),
        (lambda x: turnout.float_power(x, turnout.tensor([True, False])), [3.0, 3.0], [1.0, 0.0]),
        (lambda x: F.smooth_l1_loss(x, turnout.zeros(3), "sum"), [INF, -INF, 0.5], [1.0, -1.0, 0.5]),
        (lambda x: F.huber_loss(x, turnout.zeros(3), "sum", 2.0), [INF, -INF, 0.5], [2.0, -2.0, 0.5]),
        (lambda x: turnout.pdist(x.reshape(1, 2)), [3.0, 4.0], [0.0, 0.0]),
    ],
)  # fmt: skip
def test_gradients_at_the_ends_of_what_a_function_is_defined_for(call, values, gradients):
    x = turnout.tensor(values, requires_grad=True)
    call(x).sum().backward()
    assert x.grad.tolist() == pytest.approx(gradients, nan_ok=True)


def test_derivatives_along_tangents_are_the_gradients_where_there_are_none():
    x = turnout.tensor([-1.0, 0.5, 2.0])
    for options, slopes in (({}, [NAN, 4.0, NAN]), ({"eps": 0.1}, [0.0, 4.0, 0.0])):
        found = turnout.func.jvp(lambda x, o=options: turnout.logit(x, **o), (x,), (turnout.ones(3),))[1]
        assert found.tolist() == pytest.approx(slopes, nan_ok=True)
    ends = turnout.tensor([INF, 1.5, -INF])
    assert turnout.func.jvp(F.hardswish, (ends,), (turnout.ones(3),))[1].tolist() == [1.0, 1.0, 0.0]


def test_lgamma_is_infinite_at_both_infinities():
    assert turnout.lgamma(turnout.tensor([-INF, INF, 3.0])).tolist() == pytest.approx([INF, INF, LOG_2])


@pytest.mark.parametrize(
    ("base", "exponent"),
    [(X64, 0.5 + 1j), (X64, Z), (-1.5, Z), (1j, X64), (2 - 1j, X64)],
    ids=["real, number", "real, tensor", "negative number, tensor", "1j, real", "number, real"],
)
def test_powers_of_real_and_complex_numbers_have_the_gradients_of_complex_powers(base, exponent):
    leaves = [v.clone().requires_grad_() for v in (base, exponent) if isinstance(v, turnout.Tensor)]

    def power(*values):
        left = list(values)
        return turnout.pow(*[left.pop(0) if isinstance(v, turnout.Tensor) else v for v in (base, exponent)])

    assert turnout.autograd.gradcheck(power, leaves)
    assert turnout.autograd.gradgradcheck(power, leaves)
