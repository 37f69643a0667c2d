"""Forward mode: dual tensors, what writes and views do with tangents, held against differences; and what is refused.

`tests/oracle/test_forward_mode_torch.py` holds the same programs against PyTorch.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from turnout.autograd import forward_ad

import turnout
from forward_programs import PROGRAMS, data
from outcomes import refused
from own_functions import function
from turnout import func, library, state
from turnout.errors import TurnoutError
from turnout_aten import trees
from turnout_aten.tensor.levels import GRAD, LEVELS
from turnout_autograd.duals.levels import ACTIVE

FRESH = (*state.DISPATCH.get(),)


def clean() -> bool:
    return ((*state.DISPATCH.get(),), LEVELS.get(), (*GRAD.get(),), tuple(ACTIVE.get())) == (FRESH, (), (1, 1), ())


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_with_dual_tensors_run_and_leave_no_state(name: str) -> None:
    for value in trees.flatten(PROGRAMS[name](turnout))[0]:
        assert np.isfinite(value.detach().numpy()).all()
    assert clean()


WRITING = [name for name in PROGRAMS if name.startswith(("write", "fill", "turn", "strides"))]


@pytest.mark.parametrize("name", WRITING)
def test_tangents_of_functions_that_write_are_difference_quotients(name: str) -> None:
    import forward_programs

    function = getattr(forward_programs, name)
    x, v = data(turnout)
    eps = 1e-6
    expected = (function(x + eps * v) - function(x - eps * v)) / (2 * eps)
    each = turnout.vmap(lambda a: func.jvp(function, (a,), (a - x + v,))[1])
    found = [
        func.jvp(function, (x.clone(),), (v,))[1], func.linearize(function, x.clone())[1](v),
        func.jacfwd(function)(x.clone()) @ v, each(turnout.stack([x, x]))[1],
    ]  # fmt: skip
    if name == "write_a_tangent_into_a_constant":  # values differ where the constant is a copy of x: there is no quotient
        expected = func.jacfwd(function)(x) @ v
    for tangent in found:
        np.testing.assert_allclose(tangent.numpy(), expected.numpy(), rtol=1e-7, atol=1e-8)
    assert v.tolist() == data(turnout)[1].tolist()


def test_no_grad_does_not_stop_tangents_in_any_transform() -> None:
    def function(x: turnout.Tensor) -> turnout.Tensor:
        with turnout.no_grad():
            square = x * x
        return x * square

    x, v = data(turnout)
    expected = (3 * x * x * v).tolist()
    assert func.jvp(function, (x,), (v,))[1].tolist() == pytest.approx(expected)
    assert (func.jacfwd(function)(x) @ v).tolist() == pytest.approx(expected)
    assert func.linearize(function, x)[1](v).tolist() == pytest.approx(expected)


def test_linearize_keeps_what_is_written_later_and_runs_the_function_once() -> None:
    calls = []

    def function(x: turnout.Tensor) -> turnout.Tensor:
        calls.append(1)
        y = x.sin()
        z = y * y
        y.mul_(3)
        return z + y

    x, v = data(turnout)
    _, push = func.linearize(function, x)
    expected = func.jvp(function, (x,), (v,))[1]
    assert push(v).tolist() == pytest.approx(expected.tolist())
    assert push(v * 2).tolist() == pytest.approx((expected * 2).tolist())
    assert len(calls) == 2  # one of them for jvp


def test_linearize_keeps_what_is_written_through_detach() -> None:
    def function(x: turnout.Tensor) -> turnout.Tensor:
        y = x * x
        z = y.sin()
        y[1:].detach().mul_(3)
        return z * y

    x, v = data(turnout)
    assert func.linearize(function, x)[1](v).tolist() == func.jvp(function, (x,), (v,))[1].tolist()


def test_a_write_inside_no_grad_leaves_the_tangent_the_history_that_it_had() -> None:
    def function(y: turnout.Tensor) -> turnout.Tensor:
        square = y * y * 0.5
        with turnout.no_grad():
            square[1:].add_(y[1:], alpha=0.25)
        return (y * square + y).sum()

    x, v = data(turnout)
    found = func.grad(lambda x: func.jvp(function, (x * 1,), (v,))[1])(x)
    expected = (3 * x + turnout.tensor([0.0, 0.25, 0.25])) * v  # the values of the square, and its tangent's, are constants
    np.testing.assert_allclose(found.numpy(), expected.numpy())
    cleared = func.grad(lambda x: func.jvp(zeroed, (x * 1,), (v,))[1].sum())(x)
    assert cleared.tolist() == (2 * v).tolist()


def zeroed(y: turnout.Tensor) -> turnout.Tensor:
    """2 y in the tangent's history, and zeros in its values."""
    double = y * y
    with turnout.no_grad():
        double.zero_()
    return double


def test_views_of_what_is_written_have_the_tangents_of_every_level() -> None:
    def function(y: turnout.Tensor) -> turnout.Tensor:
        older = y[:2]
        y[1:][:1].add_(y[1:][:1] * 0.5, alpha=0.5)
        older.mul_(0.5)
        return y * older.sum().sin()

    def number(x: turnout.Tensor) -> turnout.Tensor:
        return (func.jacfwd(function)(x * 1) @ v).sin().sum()

    x, v = data(turnout)
    expected = func.jacrev(func.grad(number))(x)
    np.testing.assert_allclose(func.jacfwd(func.grad(number))(x).numpy(), expected.numpy(), rtol=1e-10)
    np.testing.assert_allclose(func.jvp(func.grad(number), (x,), (v,))[1].numpy(), (expected @ v).numpy(), rtol=1e-10)


@pytest.mark.parametrize("view", [lambda x: x[1:], lambda x: x.reshape(3, 1).t()[0], lambda x: x.unsqueeze(0)[0]])
def test_an_input_may_be_a_view_and_written_where_outer_levels_differentiate_its_base(view: Any) -> None:
    def write(y: turnout.Tensor) -> turnout.Tensor:
        y[0].sin_()
        y.sin_()
        return y * y

    def number(x: turnout.Tensor, views: Any = view) -> turnout.Tensor:
        base = x * 1
        given, older = views(base), base[:2]
        value, tangent = func.jvp(write, (given,), ((x * x)[: given.shape[0]],))
        return (base**3).sum() + (value * tangent).sum() + given.cos().sum() + older.exp().sum()

    x, v = data(turnout)
    eps = 1e-6
    gradient = func.grad(number)
    slope = (number(x + eps * v) - number(x - eps * v)) / (2 * eps)
    curve = (gradient(x + eps * v) - gradient(x - eps * v)) / (2 * eps)
    assert (gradient(x) @ v).item() == pytest.approx(slope.item(), rel=1e-6)
    assert func.jvp(number, (x,), (v,))[1].item() == pytest.approx(slope.item(), rel=1e-6)
    np.testing.assert_allclose(func.jvp(gradient, (x,), (v,))[1].numpy(), curve.numpy(), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose((func.jacrev(gradient)(x) @ v).numpy(), curve.numpy(), rtol=1e-6, atol=1e-7)


def test_an_input_that_a_vmap_does_not_batch_may_be_written_and_stays_as_it_is() -> None:
    def write(y: turnout.Tensor) -> turnout.Tensor:
        y[1:].mul_(y[:1])
        return y * y

    x, v = data(turnout)
    expected = [t.tolist() for t in func.jvp(write, (x.clone(),), (v,))]
    rows = turnout.ones(4, 3)
    shared = turnout.vmap(lambda r: func.jvp(write, (x * 1,), (v * 1,)), out_dims=None)(rows)
    assert [t.tolist() for t in shared] == expected
    matrix = turnout.vmap(lambda r: func.jacfwd(write)(x * 1), out_dims=None)(rows)
    assert matrix.tolist() == func.jacfwd(write)(x * 1).tolist()
    each = turnout.vmap(lambda t: func.jvp(write, (x * 1,), (t,))[1])(turnout.stack([v, v * 2]))
    assert each[1].tolist() == pytest.approx([2 * t for t in expected[1]])
    pushed = turnout.vmap(lambda t: func.linearize(write, x * 1)[1](t))(turnout.stack([v, v * 2]))
    assert pushed.tolist() == each.tolist()


def test_a_linear_function_refuses_values_that_were_written_since() -> None:
    x, v = data(turnout)
    factor = x * 2
    _, push = func.linearize(lambda y: y * factor, x)
    factor.add_(1)
    assert refused(TurnoutError, push, v) == (
        "linearize: a tensor that the linear function needs, float64 [3], was changed in place later\n"
        "  to fix  write into a clone(), or linearize again"
    )


def test_forward_jacobians_compute_values_once() -> None:
    calls = []

    counted = function(lambda ctx, x: calls.append(x.shape) or x * 1, jvp=lambda ctx, tangent: tangent * 1)
    assert func.jacfwd(counted.apply)(data(turnout)[0]).tolist() == turnout.eye(3).tolist()
    assert calls == [(3,)]


def test_random_numbers_of_a_forward_jacobian_are_drawn_once() -> None:
    x = turnout.ones(3)
    found = func.jacfwd(lambda y: y.sum() * turnout.rand(2))(x)
    assert found[0].tolist() == [found[0, 0].item()] * 3


def test_a_custom_operator_has_the_tangents_that_its_gradient_implies() -> None:
    op = turnout.library.custom_op(
        "forward::cubed", lambda x: turnout.from_numpy(x.numpy() ** 3), mutates_args=(), schema="(Tensor x) -> Tensor"
    )
    op.register_autograd(
        lambda ctx, g: g * 3 * ctx.saved_tensors[0] ** 2,
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]),
    )
    try:
        x, v = data(turnout)
        assert func.jvp(op, (x,), (v,))[1].tolist() == pytest.approx((3 * x * x * v).tolist())
    finally:
        op.undo()


def test_tangents_stop_where_forward_mode_is_switched_off() -> None:
    x, v = data(turnout)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, v)
        with forward_ad.set_fwd_grad_enabled(False):
            assert not forward_ad.is_fwd_grad_enabled()
            for value in (dual, dual * 2, forward_ad.make_dual(x, v)):
                assert forward_ad.unpack_dual(value).tangent is None
            with forward_ad.set_fwd_grad_enabled(True):
                assert forward_ad.unpack_dual(dual * 2).tangent.tolist() == (v * 2).tolist()
            seen: list[bool] = []
            pushed = func.jvp(lambda y: seen.append(forward_ad.is_fwd_grad_enabled()) or y * 2, (x,), (v,))
            assert (pushed[1].tolist(), seen) == ((v * 2).tolist(), [True])
        assert forward_ad.is_fwd_grad_enabled()
    with turnout.inference_mode():
        assert not forward_ad.is_fwd_grad_enabled()
    with forward_ad.set_fwd_grad_enabled(False), forward_ad.dual_level():
        assert forward_ad.unpack_dual(forward_ad.make_dual(x, v)).tangent is None
    assert clean()


def test_levels_end_when_their_block_raises() -> None:
    x, v = data(turnout)
    with pytest.raises(KeyError), forward_ad.dual_level():
        {}[0]
    assert clean()
    for transform in (lambda f: func.jvp(f, (x,), (v,)), lambda f: func.jacfwd(f)(x), lambda f: func.linearize(f, x)):
        refused(KeyError, transform, lambda y: {}[0])
        assert clean()


def test_a_tensor_that_leaks_out_of_a_forward_transform_has_no_tangent() -> None:
    x, v = data(turnout)
    leaked = []
    func.jvp(lambda y: leaked.append(y * 2) or y, (x,), (v,))
    assert func.jvp(lambda y: leaked[0] * 1, (x,), (v,))[1].tolist() == [0, 0, 0]


def test_calls_without_tangents_do_not_have_the_key() -> None:
    x, v = data(turnout)
    seen = []
    func.jvp(lambda y: seen.append((x * 2).keys) or y, (x,), (v,))
    assert seen == [x.keys]


LEVEL = "\n  to fix  call it inside `with turnout.autograd.forward_ad.dual_level():`"
OTHER = "unpack_dual: the dual level has the number 0, got level=1"
NESTED = (
    "dual_level: there is a dual level already, and dual levels do not nest\n"
    "  to fix  use turnout.func.jvp for tangents of tangents"
)
OUT = "aten::add.Scalar_out: an argument has a tangent, and results cannot be written to out= in forward mode; leave out= away"
INTEGERS = "make_dual: the tensor must be floating-point or complex to be differentiated; got int64 [1]"
TWICE = "make_dual: the tensor has a tangent already\n  to fix  take the primal of unpack_dual(tensor)"
NUMBER = "make_dual: the tangent must be a tensor, or nested tuples, lists and dicts of tensors; got float"
REFUSED: dict[str, tuple[Any, bool, str]] = {
    "outside": (lambda x, v: forward_ad.make_dual(x, v), False, "make_dual: there is no dual level here" + LEVEL),
    "left twice": (lambda x, v: forward_ad.exit_dual_level(), False, "exit_dual_level: there is no dual level here" + LEVEL),
    "number": (lambda x, v: forward_ad.unpack_dual(x, level=1), True, OTHER),
    "nested": (lambda x, v: forward_ad.enter_dual_level(), True, NESTED),
    "shape": (
        lambda x, v: forward_ad.make_dual(x, v[:2]), True,
        "make_dual: the tangent has shape [2]; it belongs to a tensor float64 [3]",
    ),
    "a number": (lambda x, v: forward_ad.make_dual(x, 1.0), True, NUMBER),
    "integers": (lambda x, v: forward_ad.make_dual(turnout.tensor([1]), v), True, INTEGERS),
    "twice": (lambda x, v: forward_ad.make_dual(forward_ad.make_dual(x, v), v), True, TWICE),
    "out": (lambda x, v: turnout.add(forward_ad.make_dual(x, v), 1, out=v), True, OUT),
    "resized": (
        lambda x, v: forward_ad.make_dual(x, v).resize_(2), True,
        "aten::resize_: a tensor with a tangent cannot change its shape",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_forward_mode_refuses_is_named(name: str) -> None:
    call, inside, text = REFUSED[name]
    x, v = data(turnout)
    with forward_ad.dual_level() if inside else nullcontext(), pytest.raises(TurnoutError) as caught:
        call(x, v)
    assert str(caught.value) == text
    assert clean()


def test_a_random_operator_without_a_tangent_of_its_own_is_refused() -> None:
    with library.Library("forward_mode", "DEF") as lib:
        lib.define("noisy(Tensor x) -> Tensor", tags=("nondeterministic_seeded",))
        lib.impl("noisy", turnout.rand_like, "CompositeExplicitAutograd")
        library.register_autograd("forward_mode::noisy", lambda ctx, g: g, lib=lib)
        assert refused(TurnoutError, func.jvp, turnout.ops.forward_mode.noisy, *[data(turnout)[:1]] * 2) == (
            "forward_mode::noisy: forward mode is not implemented for this operator\n"
            "  to fix  use reverse mode (turnout.func.grad, vjp or jacrev)"
        )


@pytest.mark.parametrize(
    ("jvp", "text"),
    [
        (lambda ctx, t: (t, t), "Wrong.jvp returned 2 tangents; forward returned 1 tensors"),
        (lambda ctx, t: 3.0, "Wrong.jvp: the tangent of output 0 must be a tensor or None, got float"),
        (lambda ctx, t: t[:2], "Wrong.jvp: the tangent of output 0 has shape [2]; the output has shape [3]"),
    ],
)
def test_what_a_function_s_jvp_must_return_is_named(jvp: Any, text: str) -> None:
    members = {"forward": staticmethod(lambda ctx, x: x * 1), "jvp": staticmethod(jvp)}
    wrong: Any = type("Wrong", (turnout.autograd.Function,), members)
    x, v = data(turnout)
    assert refused(TurnoutError, func.jvp, wrong.apply, (x,), (v,)) == text
    assert clean()


def test_a_write_that_is_not_recorded_leaves_a_leaf_its_gradient() -> None:
    x = turnout.ones(2, requires_grad=True)
    with turnout.no_grad(), forward_ad.dual_level():
        forward_ad.make_dual(x, turnout.ones(2)).mul_(2.0)
        assert x.requires_grad
        x.mul_(forward_ad.make_dual(turnout.ones(2), turnout.ones(2)))
        assert forward_ad.unpack_dual(x).tangent.tolist() == [2.0, 2.0]
    assert x.requires_grad
    y = x * 1
    with forward_ad.dual_level():
        with turnout.no_grad():
            made = forward_ad.make_dual(y, turnout.ones(2))
        made.mul_(2.0)
        assert y.requires_grad
