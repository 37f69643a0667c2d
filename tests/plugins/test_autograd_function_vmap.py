"""`autograd.Function` inside of vmap: one example at a time, or by a rule of its own; under gradients inside and outside."""

from __future__ import annotations

import pytest

import turnout
from outcomes import refused
from own_functions import Exp, function
from turnout import autograd, func
from turnout.registry import REGISTRY


@pytest.fixture
def m():
    return turnout.tensor([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]], dtype=turnout.float64)


class OldScale(autograd.Function):
    """The older form, with an argument that is no tensor."""

    @staticmethod
    def forward(ctx, x, k):
        ctx.save_for_backward(x, None)
        ctx.k = k
        return x * x * k

    @staticmethod
    def backward(ctx, grad):
        return 2 * grad * ctx.saved_tensors[0] * ctx.k, None


class Sums(autograd.Function):
    """Computes along the last dim; its rule moves the batch to the front and calls the Function again."""

    seen: list = []

    @staticmethod
    def forward(x, k):
        return (x * k).cumsum(-1), x.ndim

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.k = inputs[1]

    @staticmethod
    def backward(ctx, grad, _):
        return grad.flip(-1).cumsum(-1).flip(-1) * ctx.k, None

    @staticmethod
    def vmap(info, in_dims, x, k):
        Sums.seen.append((info.batch_size, in_dims, info.randomness))
        made, count = Sums.apply(x.movedim(in_dims[0], 0), k)
        return (made, count), (0, None)


@pytest.fixture(autouse=True)
def forget():
    Sums.seen.clear()


@pytest.mark.parametrize("apply", [Exp.apply, lambda x: OldScale.apply(x, 3.0)], ids=["new form", "old form"])
def test_without_a_rule_each_example_is_differentiated_twice(apply, m):
    leaf = m.clone().requires_grad_()
    mapped = turnout.vmap(apply)
    assert mapped(leaf).tolist() == apply(m).tolist()
    assert autograd.gradcheck(mapped, leaf)
    assert autograd.gradgradcheck(mapped, leaf)
    assert autograd.gradcheck(turnout.vmap(apply, 1, 1), leaf)
    inside = turnout.vmap(func.grad(lambda x: apply(x).sum()))
    outside = func.grad(lambda x: mapped(x).sum())
    assert inside(m).flatten().tolist() == pytest.approx(outside(m).flatten().tolist())
    assert turnout.vmap(func.hessian(lambda x: apply(x).sum()))(m).shape == (2, 3, 3)


def test_a_saved_tensor_that_was_changed_is_noticed_there_too(m):
    y = m.clone().requires_grad_() * 1
    made = turnout.vmap(lambda x: OldScale.apply(x, 3.0))(y)
    y.add_(1)
    text = refused(turnout.errors.AliasError, made.sum().backward)
    assert text.startswith("OldScale: its saved 'saved_tensors[0]', a tensor float64 [2, 3], was changed in place")


def test_a_rule_is_called_once_for_all_examples(m):
    made = turnout.vmap(lambda x: Sums.apply(x, 2)[0])(m)
    assert made.tolist() == (m * 2).cumsum(-1).tolist()
    assert Sums.seen == [(2, (0, None), "error")]
    columns = turnout.vmap(lambda x: Sums.apply(x, 2)[0], 1, 1, "same")(m.t())
    assert columns.tolist() == made.t().tolist()
    assert Sums.seen[1:] == [(2, (1, None), "same")]


def test_nested_maps_call_the_rule_of_the_rule(m):
    cube = turnout.stack([m, m * 2])
    made = turnout.vmap(turnout.vmap(lambda x: Sums.apply(x, 2)[0]))(cube[:, :, None, :])
    assert made.tolist() == (cube * 2).cumsum(-1)[:, :, None, :].tolist()
    assert [size for size, _, _ in Sums.seen] == [2, 2]


def test_gradients_outside_go_through_the_rule_and_those_inside_through_backward(m):
    # A rule that computes something else, so that it shows which one is differentiated.
    others = {"setup_context": lambda ctx, inputs, output: None, "vmap": lambda info, in_dims, x: (x * 5, in_dims[0])}
    Lies = function(lambda x: x * 2, lambda ctx, grad: grad * 7, **others)
    leaf = m.clone().requires_grad_()
    assert turnout.vmap(Lies.apply)(m).tolist() == (m * 5).tolist()
    assert autograd.grad(turnout.vmap(Lies.apply)(leaf).sum(), leaf)[0].tolist() == [[5.0] * 3] * 2
    assert func.grad(lambda x: turnout.vmap(Lies.apply)(x).sum())(m).tolist() == [[5.0] * 3] * 2
    inside, value = turnout.vmap(func.grad_and_value(lambda x: Lies.apply(x).sum()))(m)
    assert inside.tolist() == [[7.0] * 3] * 2
    assert value.tolist() == pytest.approx((m * 5).sum(1).tolist())


def test_gradients_of_a_true_rule_are_those_of_a_loop(m):
    leaf = m.clone().requires_grad_()
    mapped = turnout.vmap(lambda x: Sums.apply(x, 2)[0])
    assert autograd.gradcheck(mapped, leaf)
    assert autograd.gradgradcheck(mapped, leaf)
    inside = turnout.vmap(func.grad(lambda x: (Sums.apply(x, 2)[0] ** 2).sum()))(m)
    rows = [func.grad(lambda x: (Sums.apply(x, 2)[0] ** 2).sum())(row) for row in m]
    assert inside.tolist() == turnout.stack(rows).tolist()


def with_rule(rule, **members):
    return type("Made", (Exp,), {"vmap": staticmethod(rule), **members})


def test_what_a_rule_may_not_be(m):
    turnout.vmap(Exp.apply)(m)
    mapped = lambda function: lambda: turnout.vmap(function.apply)(m)  # noqa: E731
    vmap_error = REGISTRY.services["Batched"].VmapError
    assert refused(vmap_error, mapped(with_rule(lambda info, dims, x: x))) == (
        "Made: its vmap rule must return a tuple (result, out_dims); it returned Tensor"
    )
    assert refused(vmap_error, mapped(with_rule(lambda info, dims, x: (x, (0, 0))))) == (
        "Made: the out_dims of its vmap rule do not fit the result; they are (0, 0)"
    )
    for dim in (2, -3):
        assert refused(vmap_error, mapped(with_rule(lambda info, dims, x, dim=dim: (x, dim)))) == (
            f"Made: the out_dims of its vmap rule do not fit the result; they are {dim}"
        )
    assert refused(autograd.GradientError, mapped(with_rule(lambda info, dims, x: (x, 0), generate_vmap_rule=True))) == (
        "Made: has a vmap rule, but generate_vmap_rule=True says that it has none; remove one of them"
    )
    assert turnout.vmap(with_rule(lambda info, dims, x: (turnout.ones(2), None)).apply)(m).tolist() == [[1.0, 1.0]] * 2


def test_a_rule_sees_nested_arguments_as_they_are_given(m):
    seen = []

    class Weighted(autograd.Function):
        @staticmethod
        def forward(parts, options, x):
            return parts[0] * options["w"] + x, [x]

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def vmap(info, in_dims, parts, options, x):
            seen.append(in_dims)
            return (parts[0] * options["w"] + x, [x]), (0, [None])

    c = turnout.ones(3, dtype=turnout.float64)
    made, (same,) = turnout.vmap(lambda a, b: Weighted.apply([a, 3], {"w": b, "n": 1}, c), (0, 0), (0, None))(m, m * 2)
    assert seen == [([0, None], {"w": 0, "n": None}, None)]
    assert made.tolist() == (m * m * 2 + 1).tolist()
    assert same.tolist() == [1.0] * 3
