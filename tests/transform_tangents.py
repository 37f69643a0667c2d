"""More programs like those of `transform_programs`: tangents where functions write, switch modes, call others.

Also functions with gradients of their own, transforms as decorators, and second derivatives by several arguments.
"""

from __future__ import annotations

from typing import Any

from transform_programs import cube, programs, sines, squares, written

# ---- writes and views


def filled(x: Any) -> Any:
    """A tensor of its own, written into piece by piece."""
    y = x.new_zeros((3, 3))
    y[0] = x * 2
    y[1:, 1] = x[:2].sin()
    y[2] += y[0].clone() * x
    y.select(1, 2).mul_(x[0]).add_(y[:, 0])
    y.t()[0].copy_(y[2].clone() * y[1].clone())
    return y


def shifted(x: Any) -> Any:
    """In-place operators one after the other."""
    y = x.clone()
    y.mul_(x).sub_(x).div_(x + 3)
    z = y.view(3, 1)
    y.clamp_(min=0.05)
    z.exp_()
    return y * z.squeeze(1)


def views_as_results_and_as_arguments(t, d):
    def views(q):
        return q.t(), q[0].expand(2, 3), q.diagonal(), q[:, ::2], q.unflatten(0, (3, 1))

    return (
        t.jvp(views, (d.q,), (d.q * 2,)), t.vmap(views, 1)(d.q.unsqueeze(1).expand(3, 2, 3).contiguous()),
        t.grad(squares)(d.q.t()[0]), t.jvp(sines, (d.q[1:],), (d.q[:2],)), t.jacfwd(lambda x: x.expand(2, 3))(d.x),
    )  # fmt: skip


def written_after_it_was_used_as_an_argument(t, d):
    y, pull = t.vjp(lambda x: x * 3, d.x)
    d.x.add_(1)
    return y, pull(d.c), t.grad(cube)(d.x)


# ---- modes


def half_constant(t: Any, x: Any) -> Any:
    with t.no_grad():
        constant = x * x
    return x * constant


def no_grad_outside_of_a_tangent(t, d):
    with t.no_grad():
        return t.jvp(cube, (d.x,), (d.c,)), t.hessian(cube)(d.x), t.vmap(t.jacfwd(sines))(d.m)


def autocast_inside_a_tangent(t, _):
    w, m = t.single([[1.0, 0.5, -2.0], [0.0, 3.0, 1.0]]), t.single([[1.0, 2.0, -1.0], [0.5, -3.0, 4.0]])

    def cast(x):
        with t.cast():
            y = w @ x
        return t.float(y)

    return t.jvp(cast, (m[0],), (m[1],)), t.jacrev(cast)(m[0]), t.vmap(t.grad(lambda x: squares(cast(x))))(m)


# ---- transforms of transforms


def transforms_as_decorators(t, d):
    @t.vmap
    @t.grad
    def per_example(x):
        return cube(x)

    @t.grad
    def total(m):
        @t.vmap
        def each(x):
            return sines(x)

        return squares(each(m))

    by_second = t.vmap(t.grad(lambda a, b: squares(a * b), 1), (0, None))
    return per_example(d.m), total(d.m), by_second(d.m, d.c), t.vmap(by_second, (None, 0))(d.m, d.q)


def second_derivatives_by_two_arguments(t, d):
    def both(a, b):
        return (a.sin() * b * b).sum() + a[0] * b[1]

    return (
        t.hessian(both, (0, 1))(d.x, d.c), t.hessian(both, 1)(d.x, d.c), t.jacrev(t.jacfwd(both, (1, 0)), (0, 1))(d.x, d.c),
        t.vmap(t.hessian(both, (1,)), (0, None))(d.m, d.c),
    )  # fmt: skip


def linear_functions_of_tangents(t, d):
    y, push = t.linearize(lambda p: {"s": p["a"].sin() * p["b"], "t": [p["b"].sum()]}, {"a": d.x, "b": d.c})
    return (
        y, push({"a": d.c, "b": d.x}), t.vmap(lambda v: push({"a": v, "b": v * 2}))(d.m),
    )  # fmt: skip


def structures_of_constants_and_of_arguments(t, d):
    def mixed(x):
        y = x * 2
        return {"same": (y, y), "given": x, "constant": d.c * 1, "zero": x.detach() * 3}

    return t.jvp(mixed, (d.x,), (d.c,)), t.jacrev(mixed)(d.x), t.jacfwd(mixed)(d.x), t.vmap(t.jacrev(mixed))(d.m)


# ---- functions with gradients of their own


def own_functions(t: Any) -> Any:
    class Scaled(t.autograd.Function):
        """scale x^3, and a result that has no gradient."""

        generate_vmap_rule = True

        @staticmethod
        def forward(x, scale):
            return x * x * x * scale, (x > 1).to(x.dtype)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.scale = inputs[1]
            ctx.save_for_backward(inputs[0])
            ctx.mark_non_differentiable(output[1])

        @staticmethod
        def backward(ctx, grad, _):
            (x,) = ctx.saved_tensors
            return grad * 3 * x * x * ctx.scale, None

    class Sine(t.autograd.Function):
        """Whose backward calls another one."""

        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x.sin()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, grad):
            return grad * Cosine.apply(*ctx.saved_tensors)

    class Cosine(t.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x.cos()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, grad):
            return -grad * Sine.apply(*ctx.saved_tensors)

    return Scaled, Sine


def functions_with_gradients_of_their_own(t, d):
    scaled, sine = own_functions(t)

    def function(x):
        y, positive = scaled.apply(x, 2.0)
        return (y * positive).sum() + sine.apply(x).sum() * x[0]

    return (
        t.grad(function)(d.x), t.vjp(function, d.x)[1](d.one), t.vmap(function)(d.m), t.vmap(t.grad(function))(d.m),
        t.jacrev(t.jacrev(function))(d.x), t.vmap(t.jacrev(t.grad(function)))(d.m),
        t.grad(lambda m: squares(t.vmap(t.grad(function))(m)))(d.m),
    )  # fmt: skip


# fmt: off
TANGENTS = programs({
    # ---- writes and views
    "writes into a tensor of its own": lambda t, d: (
        filled(d.x), t.jvp(filled, (d.x,), (d.c,)), t.jacfwd(filled)(d.x), t.jacrev(filled)(d.x),
        t.vmap(lambda x, v: t.jvp(filled, (x,), (v,)))(d.m, d.m * 2), t.grad(lambda m: squares(t.vmap(filled)(m)))(d.m),
    ),
    "in-place operators along tangents": lambda t, d: (
        t.jvp(shifted, (d.x,), (d.c,)), t.jacfwd(t.jacrev(shifted))(d.x), t.vmap(t.jacfwd(shifted))(d.m),
        t.linearize(shifted, d.x)[1](d.c), t.jvp(written, (d.x,), (d.c,)),
    ),
    "views as results and as arguments": views_as_results_and_as_arguments,
    "written after it was used as an argument": written_after_it_was_used_as_an_argument,
    # ---- modes
    "no_grad inside a tangent": lambda t, d: (
        t.jvp(lambda x: half_constant(t, x), (d.x,), (d.c,)), t.jacfwd(lambda x: half_constant(t, x))(d.x),
        t.vmap(t.jacfwd(lambda x: half_constant(t, x)))(d.m), t.linearize(lambda x: half_constant(t, x), d.x)[1](d.c),
    ),
    "no_grad outside of a tangent": no_grad_outside_of_a_tangent,
    "autocast inside a tangent": autocast_inside_a_tangent,
    # ---- transforms of transforms
    "transforms as decorators": transforms_as_decorators,
    "second derivatives by two arguments": second_derivatives_by_two_arguments,
    "linear functions of tangents": linear_functions_of_tangents,
    "derivatives of linear functions of tangents": lambda t, d: (
        t.grad(lambda x: squares(t.linearize(lambda a: a * a * a, x)[1](d.c)))(d.x),
        t.jvp(lambda x: t.linearize(lambda a: a * a, x)[1](x), (d.x,), (d.c,)),
    ),
    "second derivatives by the last argument": lambda t, d: t.hessian(lambda a, b: (a.sin() * b * b).sum(), -1)(d.x, d.c),
    "structures of constants and of arguments": structures_of_constants_and_of_arguments,
    # ---- functions with gradients of their own
    "functions with gradients of their own": functions_with_gradients_of_their_own,
})
# fmt: on
