"""`turnout.func.functionalize` with the other transforms, gradients, tangents, casts and modes, inside and around it."""

from __future__ import annotations

import pytest
from turnout.func import functionalize, grad, hessian, jacfwd, jvp, linearize, vmap

import turnout
from own_functions import function as own_function
from turnout import Tensor, autograd
from turnout_functionalize.transform import REMOVE

kinds = pytest.mark.parametrize("remove", REMOVE)


def square():
    return turnout.arange(9.0).reshape(3, 3) + 1


def cubes(x):
    y = x.clone()
    y[0].mul_(x[1])
    y.mul_(x)
    return (y * x).sum()


@kinds
@pytest.mark.parametrize(
    "transform",
    [
        lambda f, wrap: grad(wrap(f)),
        lambda f, wrap: wrap(grad(f)),
        lambda f, wrap: vmap(grad(wrap(f))),
        lambda f, wrap: wrap(vmap(grad(f))),
        lambda f, wrap: vmap(wrap(grad(f))),
        lambda f, wrap: grad(wrap(lambda x: vmap(f)(x).sum())),
        lambda f, wrap: hessian(wrap(f)),
        lambda f, wrap: wrap(hessian(f)),
        lambda f, wrap: lambda x: jvp(wrap(f), (x,), (x,)),
        lambda f, wrap: wrap(lambda x: jvp(f, (x,), (x,))),
        lambda f, wrap: jacfwd(lambda x: wrap(lambda y: f(x * y))(x.detach() + 1)),
        lambda f, wrap: wrap(lambda x: jvp(grad(f), (x,), (x,))),
        lambda f, wrap: wrap(lambda x: grad(lambda x: jvp(f, (x,), (x,))[1])(x)),
        lambda f, wrap: wrap(lambda x: jvp(lambda y: jvp(f, (y,), (x * y,))[1], (x,), (x,))),
        lambda f, wrap: wrap(vmap(lambda x: jvp(f, (x,), (x,)))),
        lambda f, wrap: wrap(lambda x: linearize(f, x)[1](x)),
        lambda f, wrap: linearize(wrap(grad(f)), square().reshape(3, 3, 1))[1],
        lambda f, wrap: wrap(lambda x: [each.mul_(2) for each in jvp(f, (x,), (x,))]),
        lambda f, wrap: wrap(wrap(grad(wrap(f)))),
    ],
)
def test_it_nests_with_every_other_transform(transform, remove):
    x = square().reshape(3, 3, 1)
    expected = transform(cubes, lambda f: f)(x)
    found = transform(cubes, lambda f: functionalize(f, remove=remove))(x)
    for a, b in zip(*([each] if isinstance(each, Tensor) else each for each in (found, expected)), strict=True):
        assert type(a) is Tensor
        assert turnout.allclose(a, b)


def test_tangents_follow_writes_into_inputs():
    def scaled(x):
        x[0].mul_(x[1])
        x.mul_(2)
        return (x * x).sum()

    x, y = square(), square()
    expected = jvp(scaled, (x,), (square(),))
    found = functionalize(lambda x: jvp(scaled, (x,), (square(),)))(y)
    assert [t.item() for t in found] == [t.item() for t in expected]
    assert x.tolist() == y.tolist()


@kinds
def test_functions_and_blocks_without_gradients_keep_tangents(remove):
    Cube = own_function(
        lambda x: x**3,
        setup_context=lambda ctx, inputs, output: ctx.save_for_forward(inputs[0]),
        jvp=lambda ctx, tangent: 3 * tangent * ctx.saved_tensors[0] ** 2,
    )

    def function(x):
        y = Cube.apply(x)
        with turnout.no_grad():
            y[0].mul_(x[1])
        return (y * x).sum()

    x = square()
    for derivative in (lambda f: lambda x: jvp(f, (x,), (x,))[1], lambda f: lambda x: linearize(f, x)[1](x)):
        assert turnout.allclose(functionalize(derivative(function), remove=remove)(x), derivative(function)(x))


def test_a_write_into_a_tangent_is_not_traced():
    traced = turnout.trace(functionalize(lambda x: jvp(turnout.sin, (x,), (x,))[1].mul_(2)))(square())
    assert "_." not in str(traced)


def test_vmap_around_it_writes_into_the_mapped_argument():
    x = square()
    found = vmap(functionalize(lambda row: row.mul_(row[0] * 1)))(x)
    assert x.tolist() == found.tolist() == [[1, 2, 3], [16, 20, 24], [49, 56, 63]]


def test_a_value_that_an_outer_vmap_batches_meets_one_that_it_does_not():
    x = square()
    found = vmap(lambda row: functionalize(lambda y: y.clone().add_(row))(turnout.zeros(3) + row))(x)
    assert found.tolist() == (2 * x).tolist()


def test_gradients_pass_through_it():
    x = square().requires_grad_()
    expected = autograd.grad(cubes(x), x)[0]
    assert turnout.allclose(autograd.grad(functionalize(cubes)(x), x)[0], expected)
    y = (x * 1).requires_grad_()
    z = functionalize(lambda y: y.mul_(y).sum())(y)
    assert turnout.allclose(autograd.grad(z, x, retain_graph=True)[0], 2 * x)
    assert turnout.allclose(autograd.grad(y.sum(), x)[0], 2 * x)


def test_casts_are_made_for_the_functional_operators():
    def function(x, y):
        z = x.clone()
        z[0].mul_(2)
        with turnout.autocast("cpu", enabled=False):
            plain = z @ y
        return z @ y, plain, turnout.quantile(z @ y, 0.5)

    for around in (lambda f: f, functionalize):
        with turnout.autocast("cpu"):
            found = around(function)(square(), square())
        assert [each.dtype.name for each in found] == ["bfloat16", "float32", "float32"]
    inside = functionalize(lambda x: _cast(function, x))(square())
    assert [each.dtype.name for each in inside] == ["bfloat16", "float32", "float32"]


def _cast(function, x):
    with turnout.autocast("cpu"):
        return function(x, x)


def test_a_dispatch_mode_sees_functional_operators():
    seen = []

    class Log(turnout.DispatchMode):
        def dispatch(self, op, ks, args):
            seen.append(op.qualified_name)
            return op.redispatch(ks, *args)

    x = square()
    with Log():
        functionalize(lambda x: x.clone().mul_(2))(x)
    assert seen == ["aten::clone", "aten::mul.Scalar"]
