"""Programs with dual tensors, written once for Turnout and PyTorch.

Each takes `t`, a library with `forward_ad`, `func`, `autograd` and tensors' functions, and returns tensors in nested tuples.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

PROGRAMS: dict[str, Callable[[Any], Any]] = {}


def program(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    PROGRAMS[function.__name__] = function
    return function


def data(t: Any) -> tuple[Any, Any]:
    return t.tensor([0.5, -1.0, 2.0], dtype=t.float64), t.tensor([1.0, 2.0, -0.5], dtype=t.float64)


def pushed(t: Any, function: Callable[[Any], Any]) -> Any:
    """The primal and the tangent of a function of a dual tensor, and what is in the memory of its primal then."""
    ad = t.autograd.forward_ad
    x, v = data(t)
    with ad.dual_level():
        primal, tangent = ad.unpack_dual(function(ad.make_dual(x, v)))
    return primal, t.zeros(()) if tangent is None else tangent, x


def write_into_input(x: Any) -> Any:
    y = x * 2
    x.mul_(y)
    return x + y


def write_into_view(x: Any) -> Any:
    y = x * 1
    first, rest = y[0], y[1:]
    first.mul_(y[2])
    y.sin_()
    rest.add_(first)
    return y * first


def write_what_a_gradient_needs(x: Any) -> Any:
    y = x.sin()
    z = y * y
    y.exp_()
    return z * y


def write_a_tangent_into_a_constant(x: Any) -> Any:
    y = x.detach() * 0
    older = y[:2]
    y[1:].copy_(x[:2])
    return older * y[1:]


def write_a_constant(x: Any) -> Any:
    y = x * 3
    y[0] = 5.0
    y[1:].zero_()
    return y + x


def fill_all(x: Any) -> Any:
    y = x * 3
    view = y[:2]
    y.fill_(2.0)
    return view * y[:2]


def turn_in_place(x: Any) -> Any:
    y = x.reshape(1, 3) * x.reshape(3, 1)
    y.t_()
    y[0].mul_(2)
    return y


def strides(x: Any) -> Any:
    y = x * 1
    window = y.as_strided((2, 2), (1, 1))
    y.mul_(x)
    window[0].mul_(3)
    return y.sum() * window


for _function in (
    write_into_input, write_into_view, write_what_a_gradient_needs, write_a_tangent_into_a_constant, write_a_constant, fill_all,
    turn_in_place, strides,
):  # fmt: skip

    def _run(t: Any, function: Callable[[Any], Any] = _function) -> Any:
        x, v = data(t)
        both = lambda y: function(y * 1)  # noqa: E731
        return (
            pushed(t, function), t.func.jvp(function, (x.clone(),), (v.clone(),)), t.func.jacfwd(both)(x),
            t.vmap(lambda a: t.func.jvp(both, (a,), (a,))[1])(t.stack([x, v])),
        )  # fmt: skip

    PROGRAMS[_function.__name__] = _run


@program
def tangents_of_several_results(t: Any) -> Any:
    return [pushed(t, lambda x: x.sort()[0]), pushed(t, lambda x: x.max(0)[0]), pushed(t, lambda x: x.split(2)[0] * 2)]


@program
def no_grad_does_not_stop_tangents(t: Any) -> Any:
    def function(x: Any) -> Any:
        with t.no_grad():
            return x * x.detach() + x.sin()

    return pushed(t, function)


@program
def integers_have_no_tangent(t: Any) -> Any:
    return pushed(t, lambda x: x.argmax())[0], pushed(t, lambda x: (x > 0) * 1.0)


@program
def gradient_of_a_tangent(t: Any) -> Any:
    ad = t.autograd.forward_ad
    x, v = data(t)
    x.requires_grad_()
    with ad.dual_level():
        y = ad.unpack_dual((ad.make_dual(x, v) ** 3).sin())
    y.tangent.sum().backward()
    return x.grad, y.primal.detach()


@program
def tangent_of_a_gradient(t: Any) -> Any:
    ad = t.autograd.forward_ad
    x, v = data(t)
    x.requires_grad_()
    with ad.dual_level():
        dual = ad.make_dual(x, v)
        gradient = t.autograd.grad((dual.exp() * dual.sin()).sum(), x, create_graph=True)[0]
        return tuple(part.detach() for part in ad.unpack_dual(gradient))


@program
def transforms_inside_a_dual_level(t: Any) -> Any:
    return [
        pushed(t, lambda x: t.func.grad(lambda y: (y * y * x).sum())(x)),
        pushed(t, lambda x: t.vmap(lambda a: a.sin() * x)(x)),
        pushed(t, lambda x: t.func.jacrev(lambda y: y.sin() * x)(x)),
    ]


@program
def a_tensor_unpacked_outside_has_no_tangent(t: Any) -> Any:
    ad = t.autograd.forward_ad
    x, v = data(t)
    with ad.dual_level():
        y = ad.make_dual(x, v) * 2
    after = ad.unpack_dual(y)
    assert after.tangent is None
    with ad.dual_level():
        assert ad.unpack_dual(y * 3).tangent is None
    return after.primal


@program
def function_with_jvp(t: Any) -> Any:
    class Twice(t.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(x: Any, factor: Any) -> Any:
            return x * factor, (x > 0) * 1.0

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_forward(*inputs)
            ctx.mark_non_differentiable(output[1])

        @staticmethod
        def jvp(ctx: Any, x_t: Any, factor_t: Any) -> Any:
            x, factor = ctx.saved_tensors
            return 10 * (x_t * factor + x * factor_t), None

    return pushed(t, lambda x: Twice.apply(x, x.detach() * 3)[0]), pushed(t, lambda x: Twice.apply(x, x)[0].sin())


def seen(t: Any, tensor: Any) -> Any:
    """The tangent of a tensor, minus ones where it has none."""
    tangent = t.autograd.forward_ad.unpack_dual(tensor).tangent
    return t.zeros(()) - 1 if tangent is None else tangent


@program
def inference_mode_keeps_no_tangents(t: Any) -> Any:
    ad = t.autograd.forward_ad
    x, v = data(t)
    with ad.dual_level():
        dual = ad.make_dual(x, v)
        with t.inference_mode():
            inside = seen(t, dual * dual), seen(t, dual), seen(t, dual[1:])
            view, made = dual[1:], ad.make_dual(x.clone(), v)
            with t.inference_mode(False):
                again = seen(t, dual * dual)
            dual.mul_(2)
        return inside, again, seen(t, view * 2), seen(t, made * 1), seen(t, dual), dual.detach() * 1


@program
def a_dual_level_inside_inference_mode_has_no_tangents(t: Any) -> Any:
    ad = t.autograd.forward_ad
    x, v = data(t)
    with t.inference_mode(), ad.dual_level():
        dual = ad.make_dual(x, v)
        return seen(t, dual), seen(t, dual * dual)


@program
def transforms_work_inside_inference_mode_without_tangents_from_outside(t: Any) -> Any:
    x, v = data(t)

    def inside(run: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def function(y: Any) -> Any:
            with t.inference_mode():
                made = run(y)
            return made, y * 2

        return function

    functions = [
        lambda y: y * y,
        lambda y: t.func.jvp(lambda z: z * y, (x * 1,), (v * 1,)),
        lambda y: t.func.jvp(lambda z: z * z, (y,), (v * 1,)),
        lambda y: t.func.grad(lambda z: (z * z * z).sum())(y),
    ]
    with t.inference_mode():
        alone = t.func.jvp(lambda y: y * y, (x,), (v,)), t.func.jacfwd(lambda y: y * y)(x)
        hessian = t.func.hessian(lambda y: (y * y * y).sum())(x)
        given = x * 1, v * 1
    pushed = [t.func.jvp(inside(f), (x,), (v,)) for f in functions]
    return alone, hessian, t.func.jvp(lambda y: y * y, *[(g,) for g in given]), pushed
