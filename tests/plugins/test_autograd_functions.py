"""`autograd.Function`, operators without a gradient, options."""

from __future__ import annotations

import pytest

import turnout
from outcomes import refused
from own_functions import Doubled, Exp, function
from turnout import autograd, config, func
from turnout.registry import Registrations

# ---- Function


class Cube(autograd.Function):
    @staticmethod
    def forward(ctx, x, scale=1.0):
        ctx.save_for_backward(x)
        ctx.scale = scale
        return x * x * x * scale

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 3 * x * x * ctx.scale, None


def test_both_forms_of_a_function_differentiate_twice(x):
    assert autograd.gradcheck(lambda t: Cube.apply(t, 2.0), (x,))
    assert autograd.gradgradcheck(Cube.apply, (x,))
    assert autograd.gradcheck(Exp.apply, (x,))
    assert autograd.gradgradcheck(Exp.apply, (x,))
    node = Cube.apply(x).grad_fn
    assert (node.name(), repr(node)) == ("CubeBackward", "<CubeBackward>")


def test_forward_runs_without_recording_and_untracked_calls_have_no_node(x):
    seen = []

    class Look(Cube):
        @staticmethod
        def forward(ctx, x):
            seen.append((turnout.is_grad_enabled(), ctx.needs_input_grad))
            return x * 1

    assert Look.apply(x).requires_grad
    assert not Look.apply(x.detach()).requires_grad
    with turnout.no_grad():
        assert not Look.apply(x).requires_grad
    assert seen == [(False, (True,)), (False, (False,)), (False, (True,))]


def test_several_outputs_unused_ones_get_zeros_or_none(x):
    given = []

    class Two(autograd.Function):
        @staticmethod
        def forward(ctx, x, flag):
            ctx.set_materialize_grads(flag)
            whole = x > 1
            ctx.mark_non_differentiable(whole)
            return x * 2, x * 3, whole

        @staticmethod
        def backward(ctx, a, b, c):
            given.append((a.tolist(), None if b is None else b.tolist()))
            return a * 2, None

    for flag in (True, False):
        a, _b, whole = Two.apply(x, flag)
        assert not whole.requires_grad
        a.sum().backward()
    assert given == [([1.0] * 3, [0.0] * 3), ([1.0] * 3, None)]


def test_an_input_that_is_returned_is_another_tensor_with_the_function_as_its_history(x):
    y = function(lambda ctx, x: x, lambda ctx, grad: grad * 7).apply(x)
    assert y is not x
    assert x.is_leaf
    assert autograd.grad(y.sum(), x)[0].tolist() == [7.0] * 3


def test_an_input_that_an_unrecorded_call_returns_is_another_tensor_without_history(x):
    Same = function(lambda ctx, x: [x, x * 1], name="Same")
    with turnout.no_grad():
        y, _ = Same.apply(x)
    assert (y is x, y.requires_grad, y.grad_fn) == (False, False, None)
    plain = turnout.ones(3)
    y, _ = Same.apply(plain)
    assert (y is plain, y._base is plain) == (False, True)
    y.add_(1)
    assert plain.tolist() == [2.0] * 3
    assert refused(RuntimeError, lambda: y.mul_(x.float())) == (
        "aten::mul_.Tensor: self is a view that Same made in its own forward; a write would bypass its gradient\n"
        "  to fix  clone() it inside the forward, or before the write"
    )


def test_a_dirty_input_gets_the_function_as_its_history(x):
    y = x * 1
    assert Doubled.apply(y) is y
    assert autograd.grad(y.sum(), x)[0].tolist() == [2.0] * 3
    assert refused(RuntimeError, lambda: Doubled.apply(x)).startswith("Doubled: self is a leaf that requires a gradient")


def test_a_node_shows_what_forward_left_on_its_ctx(x):
    class Times(Cube):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.factor = factor
            ctx.save_for_backward(x)
            return x * factor

    node = Times.apply(x, 3).grad_fn
    assert (node.factor, node.needs_input_grad, node.saved_tensors) == (3, (True, False), (x,))
    refused(AttributeError, lambda: node.divisor)
    refused(AttributeError, lambda: node._to_save)


def test_what_was_saved_outlives_the_graph_with_its_ctx_unless_backward_freed_it(x):
    kept = []

    class Keep(Cube):
        @staticmethod
        def forward(ctx, x, of_output):
            y = x.exp()
            ctx.save_for_backward(y if of_output else x)
            kept.append(ctx)
            return y

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.saved_tensors[0], None

    for of_output in (False, True):
        Keep.apply(x, of_output).sum().backward(retain_graph=True)
    Keep.apply(x, False).sum().backward()
    assert kept[0].saved_tensors == (x,)
    assert refused(RuntimeError, lambda: kept[1].saved_tensors) == (
        "saved_tensors[0] is an output of forward, but its graph no longer exists; keep the output itself"
    )
    assert refused(RuntimeError, lambda: kept[2].saved_tensors) == (
        "autograd.Function: an earlier backward pass freed the values saved for it\n"
        "  to fix  pass retain_graph=True to the earlier backward() or grad(), or compute the result again"
    )


def test_a_backward_that_is_once_differentiable_cannot_be_differentiated(x):
    class Once(Cube):
        @staticmethod
        @autograd.once_differentiable
        def backward(ctx, grad):
            return grad * 3, None

    (g,) = autograd.grad(Once.apply(x, 1.0).sum(), x, create_graph=True)
    text = refused(RuntimeError, g.sum().backward)
    assert text.endswith("Once: its backward is marked once_differentiable and cannot be differentiated again")


def test_a_view_from_a_function_cannot_be_written(x):
    Head = function(lambda ctx, x: x[:2], lambda ctx, grad: turnout.cat([grad, grad[:1] * 0]), "Head")
    head = Head.apply(x * 1)
    assert autograd.grad(head.sum(), x, retain_graph=True)[0].tolist() == [1.0, 1.0, 0.0]
    assert refused(RuntimeError, lambda: head.mul_(2)).startswith(
        "aten::mul_.Scalar: self is a view that Head made in its own forward"
    )


def test_views_of_a_view_from_a_function_cannot_be_written_nor_follow_a_base_that_was(x):
    Whole = function(lambda ctx, x: x.view(3), lambda ctx, grad: grad * 2, "Whole")
    y = x * 1
    part = Whole.apply(y).view(3, 1)[:2]
    assert autograd.grad(part.sum(), x, retain_graph=True)[0].tolist() == [2.0, 2.0, 0.0]
    assert refused(RuntimeError, lambda: part.mul_(2)).startswith(
        "aten::mul_.Scalar: self is a view that Whole made in its own forward"
    )
    y.mul_(3)
    for use in (part.sum, part.t_):
        assert refused(RuntimeError, use) == (
            "a view that Whole made in its own forward was used after aten::mul.Scalar wrote into its base; "
            "its gradient cannot follow that write\n"
            "  to fix  write before the view is made, or clone() the view"
        )


# ---- operators without a rule


@pytest.fixture
def library():
    with Registrations("gradless") as made:
        made.define("twice(Tensor x) -> Tensor", namespace="gradless")
        made.impl("gradless::twice", "CPU", lambda x: x * 2)
        yield made


def test_a_missing_gradient_is_an_error_at_backward_that_names_the_operator(library, x):
    y = turnout.ops.gradless.twice(x)
    assert y.requires_grad
    assert y.tolist() == [2.0, 4.0, 6.0]
    assert refused(RuntimeError, y.sum().backward) == (
        "gradless::twice: no gradient is implemented\n"
        "  to fix  turnout.library.register_autograd('gradless::twice', backward), or .detach() its inputs"
    )


def test_a_missing_gradient_does_not_matter_to_others(library, x):
    other = turnout.ones(3, dtype=turnout.float64).requires_grad_()
    total = (turnout.ops.gradless.twice(x) * 0 + other).sum()
    assert autograd.grad(total, other)[0].tolist() == [1.0] * 3


# ---- options, outputs, keywords


def test_an_option_makes_a_missing_gradient_a_warning_or_nothing(library, x):
    other = turnout.ones(3, dtype=turnout.float64).requires_grad_()
    with config.override({"plugin.autograd.missing": "nothing"}):
        assert not turnout.ops.gradless.twice(x).requires_grad
    with config.override({"plugin.autograd.missing": "warn"}):
        y = turnout.ops.gradless.twice(x) + other
    with pytest.warns(UserWarning, match="gradless::twice") as caught:
        y.sum().backward()
    assert str(caught[0].message) == (
        "gradless::twice: no gradient is implemented, so the inputs of this call get none\n"
        '  to fix  turnout.library.register_autograd, or the option plugin.autograd.missing = "error"'
    )
    assert x.grad is None
    assert other.grad.tolist() == [1.0] * 3


@pytest.mark.parametrize(
    "call",
    [
        lambda x, out: turnout.matmul(x, x, out=out),
        lambda x, out: turnout.softmax(x, 1, out=out),
        lambda x, out: turnout.outer(x[0], x[0], out=out),
        lambda x, out: turnout.mm(x, x, out=out),
    ],
)
def test_out_variants_of_composites_refuse_tracked_arguments_like_the_others(call):
    x = turnout.ones(2, 2, requires_grad=True)
    out = turnout.zeros(2, 2)
    assert "operators with out= do not record gradients" in refused(turnout.autograd.GradientError, call, x, out)
    assert out.tolist() == [[0.0, 0.0], [0.0, 0.0]]
    with turnout.no_grad():
        assert call(x, out) is out


def test_arguments_by_keyword_are_those_of_their_places(x):
    class Scale(autograd.Function):
        @staticmethod
        def forward(x, k=2):
            return x * k

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.k = inputs[1]
            seen.append((len(inputs), ctx.needs_input_grad))

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.k, None

    seen = []
    for arguments, keywords in (((x,), {}), ((x,), {"k": 2}), ((), {"k": 2, "x": x})):
        (found,) = autograd.grad(Scale.apply(*arguments, **keywords).sum(), x)
        assert found.tolist() == [2.0] * 3
    assert func.grad(lambda a: Scale.apply(x=a, k=3).sum())(x.detach()).tolist() == [3.0] * 3
    assert turnout.vmap(lambda a: Scale.apply(k=3, x=a))(x.detach()).tolist() == (x.detach() * 3).tolist()
    assert seen[:4] == [(2, (True, False))] * 4
    assert refused(TypeError, Scale.apply, x, scale=3) == "got an unexpected keyword argument 'scale'"


def test_a_tensor_that_forward_takes_by_keyword_alone_has_no_gradient_to_get(x):
    nothing = lambda ctx, inputs, output: None  # noqa: E731
    Shift = function(lambda x, *, by: x + by, lambda ctx, grad: grad, "Shift", setup_context=nothing)
    text = (
        "Shift: forward takes 'by' by keyword only, and it is a tensor that requires a gradient or is inside vmap: only "
        "positional arguments have gradients and batches\n  to fix  take it without the '*' in front"
    )
    (found,) = autograd.grad(Shift.apply(x, by=x.detach()).sum(), x)
    assert found.tolist() == [1.0] * 3
    for call in (lambda: Shift.apply(x, by=x), lambda: turnout.vmap(lambda a: Shift.apply(x, by=a))(x.detach())):
        assert refused(turnout.errors.CallError, call) == text
