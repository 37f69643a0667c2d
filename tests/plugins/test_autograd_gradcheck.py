"""gradcheck and gradgradcheck as users meet them: what they take, notice, refuse and leave behind.

That they notice every wrong formula of the operators is checked in tests/conformance.
"""

from __future__ import annotations

import re

import pytest

import own_functions
import turnout
from outcomes import refused
from turnout import autograd
from turnout_aten.tensor.levels import LEVELS


@pytest.fixture
def x():
    return turnout.tensor([1.0, 2.0], dtype=turnout.float64).requires_grad_()


@pytest.fixture
def y():
    return turnout.tensor([5.0, 7.0], dtype=turnout.float64).requires_grad_()


def function(forward, backward, **others):
    return own_functions.function(forward, backward, **others).apply


wrong = function(lambda ctx, x: x * 2, lambda ctx, grad: grad * 2.1)


def test_the_first_difference_is_shown_with_both_numbers(x, y):
    lines = refused(autograd.GradcheckError, autograd.gradcheck, lambda a, b: (a * b, a + wrong(b)), (x, y)).split("\n")
    assert lines[:2] == [
        "gradcheck: the gradient of output 1 with respect to input 1 is wrong",
        "  at        element 0 of the input, 0 of the output",
    ]
    assert lines[2].startswith("  numeric   2")
    assert lines[3] == "  formula   2.1"
    assert autograd.gradcheck(wrong, x, raise_exception=False) is False
    assert autograd.gradgradcheck(function(lambda ctx, x: x**2, lambda ctx, g: g.detach()), x, raise_exception=False) is False


def test_tolerances_and_the_step_are_the_users(x):
    assert autograd.gradcheck(wrong, x, rtol=0.1)
    assert autograd.gradcheck(wrong, x, atol=0.2)
    assert not autograd.gradcheck(turnout.exp, x, eps=1.0, raise_exception=False)
    assert autograd.gradcheck(turnout.exp, x, eps=1e-5, rtol=1e-7)


def test_complex_numbers_count_as_two(x):
    z = turnout.complex(x.detach(), x.detach() * 0.5).requires_grad_()
    assert autograd.gradcheck(lambda z: z * z.conj() * z, z)
    assert autograd.gradgradcheck(lambda z: z.exp(), z)
    without_conj = function(lambda ctx, z: ctx.save_for_backward(z) or z * z, lambda ctx, grad: grad * 2 * ctx.saved_tensors[0])
    assert not autograd.gradcheck(without_conj, z, raise_exception=False)


def test_outputs_without_a_gradient_are_left_out_unless_there_is_no_other(x):
    assert autograd.gradcheck(lambda a: (a * 2, a.detach() * 3, a > 0), x)
    assert autograd.gradcheck(lambda a: a.detach() * 0 + 1, x)
    assert refused(autograd.GradcheckError, autograd.gradcheck, lambda a: a.detach() * 3, x).startswith(
        "gradcheck: the gradient of output 0 with respect to input 0 is wrong\n"
    )


def test_a_gradient_without_a_history_must_be_constant(x):
    square = function(
        lambda ctx, x: ctx.save_for_backward(x) or x * x, lambda ctx, grad: (grad * 2 * ctx.saved_tensors[0]).detach()
    )
    assert autograd.gradcheck(square, x)
    assert not autograd.gradgradcheck(square, x, raise_exception=False)
    assert autograd.gradgradcheck(lambda a: a.floor() + a, x)


def test_backward_passes_that_differ_are_noticed(x):
    calls = []
    unsteady = function(lambda ctx, x: x * 2, lambda ctx, grad: calls.append(1) or grad * (2 + 1e-8 * len(calls)))
    assert refused(autograd.GradcheckError, autograd.gradcheck, unsteady, x) == (
        "gradcheck: the gradients of output 0 differ between two backward passes"
    )
    assert autograd.gradcheck(unsteady, x, nondet_tol=1e-6)


def test_one_output_alone_must_not_change_its_gradient(x):
    both = function(
        lambda ctx, x: ctx.set_materialize_grads(False) or (x * 2, x * 3),
        lambda ctx, a, b: a * 2 + 3 * b if a is not None and b is not None else (a * 2 if b is None else b * 3.0),
    )
    assert autograd.gradcheck(both, x)
    careless = function(
        lambda ctx, x: ctx.set_materialize_grads(False) or (x * 2, x * 3),
        lambda ctx, a, b: a * 2 + 3 * b if a is not None and b is not None else (a if a is not None else b) * 1.00001,
    )
    assert refused(autograd.GradcheckError, autograd.gradcheck, careless, x, check_undefined_grad=True, rtol=10) == (
        "gradcheck: input 0 gets another gradient when only output 0 is used"
    )
    assert autograd.gradcheck(careless, x, check_undefined_grad=False, rtol=10)


def test_the_fast_mode_notices_what_the_slow_one_does(x, y):
    for check in (autograd.gradcheck, autograd.gradgradcheck):
        assert check(lambda a, b: (a * b.exp(), a.sum()), (x, y), fast_mode=True)
    found = refused(autograd.GradcheckError, autograd.gradcheck, wrong, x, fast_mode=True)
    numeric, formula = re.findall(r"-?\d\.\d+", found)
    assert float(formula) == pytest.approx(float(numeric) * 1.05)
    assert found == (
        "gradcheck: the gradient of output 0 with respect to input 0 is wrong\n"
        f"  at        a random direction through both\n  numeric   {numeric}\n  formula   {formula}"
    )
    off_diagonal = function(lambda ctx, x: x * 2, lambda ctx, grad: grad * 2 + grad.flip(0) * 0.01)
    assert not autograd.gradcheck(off_diagonal, x, fast_mode=True, raise_exception=False)
    detached = function(
        lambda ctx, x: ctx.save_for_backward(x) or x * x, lambda ctx, grad: grad * 2 * ctx.saved_tensors[0].detach()
    )
    assert not autograd.gradgradcheck(detached, x, fast_mode=True, raise_exception=False)


def test_gradients_inside_vmap_are_compared_on_demand(x):
    assert autograd.gradcheck(lambda a: (a * a).exp(), x, check_batched_grad=True)
    seen_inside = function(lambda ctx, x: x * 2, lambda ctx, grad: grad * (2 if not LEVELS.get() else 3))
    assert autograd.gradcheck(seen_inside, x)
    assert refused(autograd.GradcheckError, autograd.gradcheck, seen_inside, x, check_batched_grad=True) == (
        "gradcheck: input 0 gets another gradient of output 0 inside vmap than outside"
    )


def test_derivatives_along_tangents_are_compared_on_demand(x, y):
    z = turnout.tensor([1 + 2j, 0.5j], dtype=turnout.complex128).requires_grad_()
    for fast in (False, True):
        assert autograd.gradcheck(lambda a, n: (a**n, a.sum(), a.detach()), (x, 3), check_forward_ad=True, fast_mode=fast)
        assert autograd.gradcheck(lambda a, b: (a * b)[:1], (x, y), check_forward_ad=True, fast_mode=fast)
        assert autograd.gradcheck(lambda a: a * a, z, check_forward_ad=True, fast_mode=fast)
    constant = function(lambda ctx, x: x * 2, lambda ctx, grad: grad.detach() * 2)
    assert autograd.gradcheck(constant, x)
    for options in ({}, {"check_backward_ad": False}):
        found = refused(autograd.GradcheckError, autograd.gradcheck, constant, x, check_forward_ad=True, **options)
        lines = found.split("\n")
        assert lines[:2] == [
            "gradcheck: the derivative of output 0 along a tangent is wrong",
            "  at        element 0 of input 0, element 0 of the output",
        ]
        assert lines[2].startswith("  numeric   2")
        assert lines[3] == "  formula   0"
    found = refused(autograd.GradcheckError, autograd.gradcheck, constant, x, check_forward_ad=True, fast_mode=True)
    assert "a random direction of input 0, element 0 of the output" in found
    assert x.tolist() == [1.0, 2.0]


def forward_only(forward, tangent):
    """A function with a right gradient for x * y, and a derivative along tangents of its own."""

    def remembered(ctx, x, y):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x, y)
        ctx.save_for_forward(x, y)
        return forward(x, y)

    gradient = lambda ctx, g: (g * ctx.saved_tensors[1], g * ctx.saved_tensors[0])  # noqa: E731
    return function(remembered, gradient, jvp=lambda ctx, a, b: tangent(*ctx.saved_tensors, a, b))


def product_rule(x, y, a, b):
    if a is None or b is None:
        return a * y if b is None else x * b
    return a * y + x * b


def test_derivatives_along_tangents_inside_vmap_are_compared_on_demand(x, y):
    options = {"check_forward_ad": True, "check_batched_forward_grad": True}
    right = forward_only(lambda x, y: x * y, product_rule)
    assert autograd.gradcheck(right, (x, y), **options)
    for fast in (False, True):
        assert autograd.gradcheck(lambda a, b: (a * b.exp(), a.sum()), (x, y), fast_mode=fast, **options)

    def seen_inside(x, y, a, b):
        return product_rule(x, y, a, b) * (2 if LEVELS.get() else 1)

    wrong_inside = forward_only(lambda x, y: x * y, seen_inside)
    assert autograd.gradcheck(wrong_inside, (x, y), check_forward_ad=True)
    assert refused(autograd.GradcheckError, autograd.gradcheck, wrong_inside, (x, y), **options) == (
        "gradcheck: output 0 gets another derivative along a tangent of input 0 inside vmap than outside"
    )


def test_a_tangent_of_one_input_alone_must_not_change_its_derivative(x, y):
    def careless(x, y, a, b):
        return a * y * 1.001 if b is None else product_rule(x, y, a, b)

    wrong_alone = forward_only(lambda x, y: x * y, careless)
    assert refused(autograd.GradcheckError, autograd.gradcheck, wrong_alone, (x, y), check_forward_ad=True) == (
        "gradcheck: output 0 gets another derivative when only input 0 has a tangent"
    )
    assert autograd.gradcheck(wrong_alone, (x, y), check_forward_ad=True, check_undefined_grad=False)


def test_derivatives_of_gradients_are_compared_in_both_modes(x, y):
    for options in ({}, {"check_rev_over_rev": False}, {"fast_mode": True}):
        assert autograd.gradgradcheck(lambda a, b: (a * b.exp(), a.sum()), (x, y), check_fwd_over_rev=True, **options)
    square = function(
        lambda ctx, x: ctx.save_for_backward(x) or x * x, lambda ctx, grad: grad * 2 * ctx.saved_tensors[0].detach()
    )
    assert autograd.gradcheck(square, x, check_forward_ad=True)
    found = refused(autograd.GradcheckError, autograd.gradgradcheck, square, x, check_fwd_over_rev=True, check_rev_over_rev=False)
    assert found.startswith(
        "gradcheck: the derivative of output 0 along a tangent is wrong\n"
        "  at        element 0 of input 0, element 0 of the output\n"
    )
    assert refused(autograd.GradcheckError, autograd.gradgradcheck, square, x, check_fwd_over_rev=True).startswith(
        "gradcheck: the gradient of output 0"
    )
    z = turnout.tensor([1 + 2j, 0.5j], dtype=turnout.complex128).requires_grad_()
    assert autograd.gradgradcheck(lambda z: z * z.conj() * z, z, check_fwd_over_rev=True)


def test_an_input_without_influence_has_no_gradient_inside_vmap_either(x, y):
    seeds = turnout.eye(2, dtype=turnout.float64)
    rows, none = autograd.grad(x * 3, [x, y], seeds, is_grads_batched=True, allow_unused=True, retain_graph=True)
    assert (rows.tolist(), none) == ([[3.0, 0.0], [0.0, 3.0]], None)
    assert autograd.grad(x * 3, y, seeds, is_grads_batched=True, allow_unused=True) == (None,)
    assert autograd.gradcheck(lambda a, b: a * 3, (x, y), check_batched_grad=True)


def test_output_gradients_may_be_given_and_spread_in_memory(x):
    assert autograd.gradgradcheck(turnout.exp, x, turnout.ones(2, dtype=turnout.float64))
    assert autograd.gradgradcheck(turnout.exp, x, gen_non_contig_grad_outputs=True)
    refused(turnout.errors.ShapeError, lambda: autograd.gradgradcheck(turnout.exp, x, turnout.ones(3, dtype=turnout.float64)))


PAIR = turnout.ones(2, dtype=turnout.float64)
WIDE = turnout.ones(1, dtype=turnout.float64).expand(2).requires_grad_()
# fmt: off
REFUSED = [
    ("gradcheck", PAIR, {}, "gradcheck: no input requires a gradient"),
    ("gradcheck", (), {}, "gradcheck: no input requires a gradient"),
    ("gradgradcheck", PAIR, {}, "gradgradcheck: no input requires a gradient"),
    ("gradcheck", WIDE, {}, "gradcheck: elements of input 0 share memory, so that they cannot be changed one by one; clone() it"),
    ("gradcheck", None, {"check_backward_ad": False},
     "gradcheck: with neither check_backward_ad nor check_forward_ad there is nothing to check"),
    ("gradcheck", None, {"check_backward_ad": False, "check_forward_ad": True, "check_batched_grad": True},
     "gradcheck: check_batched_grad needs check_backward_ad"),
    ("gradcheck", None, {"check_batched_forward_grad": True}, "gradcheck: check_batched_forward_grad needs check_forward_ad"),
    ("gradgradcheck", None, {"check_rev_over_rev": False},
     "gradgradcheck: with neither check_rev_over_rev nor check_fwd_over_rev there is nothing to check"),
    ("gradgradcheck", None, {"check_rev_over_rev": False, "check_fwd_over_rev": True, "check_batched_grad": True},
     "gradgradcheck: check_batched_grad needs check_rev_over_rev"),
]
# fmt: on


@pytest.mark.parametrize(("check", "inputs", "options", "text"), REFUSED)
def test_what_they_refuse(x, check, inputs, options, text):
    call = getattr(autograd, check)
    assert refused(ValueError, call, turnout.exp, x if inputs is None else inputs, **options) == text


def test_a_function_without_a_gradient_has_no_second_one(x):
    assert refused(autograd.GradcheckError, autograd.gradgradcheck, lambda a: a.detach(), x) == (
        "gradgradcheck: no output requires a gradient"
    )


def test_inputs_of_few_digits_are_warned_of():
    single = turnout.ones(2).requires_grad_()
    with pytest.warns(UserWarning, match="^gradcheck: input 0 is float32; differences need float64 to mean something$"):
        autograd.gradcheck(lambda a: a * 2, single, raise_exception=False)


@pytest.mark.parametrize("fast", [False, True])
def test_a_graph_that_was_recorded_before_can_still_be_used(x, fast):
    y = (x * x).sum()
    assert autograd.gradcheck(turnout.exp, x, fast_mode=fast)
    y.backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_what_the_function_raises_is_raised_and_its_inputs_are_restored(x):
    calls = []

    def fails(a):
        calls.append(1)
        if len(calls) > 4:
            raise KeyError("stop")
        return a * 2

    refused(KeyError, autograd.gradcheck, fails, x, raise_exception=False)
    assert x.tolist() == [1.0, 2.0]
    assert autograd.gradcheck(lambda a: a * 2, x)
    assert x.tolist() == [1.0, 2.0]
    assert x.grad is None
