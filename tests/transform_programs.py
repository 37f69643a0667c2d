"""Programs of nested gradient and batch transforms, written once for several libraries.

Each takes `t`, which has tensors' functions (`tensor`, `where`, ...), `no_grad`, `enable_grad`, `imperative_grad` and the
transforms `vmap`, `grad`, `vjp`, `jvp`, `jacrev`, `jacfwd`, `hessian`; it returns tensors in nested tuples. Turnout runs them
with its own transforms, with transforms that are plain loops, and next to PyTorch. The numbers group programs about one thing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Program = Callable[[Any], Any]


class Data:
    """The tensors of the programs, made anew for each: some programs write into them."""

    def __init__(self, t: Any) -> None:
        def grid(rows: int, columns: int, start: float) -> Any:
            return t.tensor([[start + 0.25 * (i * columns + j) for j in range(columns)] for i in range(rows)])

        self.x = t.tensor([1.0, 2.0, 3.0])
        self.m = grid(2, 3, 0.5)
        self.q = grid(3, 3, -0.75)
        self.c = t.tensor([0.5, -1.0, 2.0])
        self.one, self.two = t.tensor(1.0), t.tensor(2.0)


def programs(table: dict[str, Callable[[Any, Data], Any]]) -> dict[str, Program]:
    """Each with data of its own."""
    return {name: lambda t, function=function: function(t, Data(t)) for name, function in table.items()}


def cube(x: Any) -> Any:
    return (x * x * x).sum()


def squares(x: Any) -> Any:
    return (x * x).sum()


def sines(x: Any) -> Any:
    return x.sin().sum()


# ---- gradients of gradients


def gradient_of_a_tracked_tensor(t, d):
    x = d.x.requires_grad_()
    g = t.grad(sines)(x)
    squares(g).backward()
    return g, x.grad


def third_derivative(t, d):
    def third(x):
        return t.grad(lambda a: t.grad(lambda b: (b * b * b * b).sum())(a).sum())(x).sum()

    return t.grad(third)(d.x)


# ---- vmap alone


def products_of_batches(t, d):
    matrices = t.vmap(t.vmap(t.vmap(lambda a, b: a @ b, (None, 0)), (0, None), 1), (2, None), 2)
    return matrices(t.stack([d.q, d.q * 2]), d.m), t.vmap(lambda a: a @ d.q)(d.m)


# ---- vmap and gradients


def vmap_of_gradient_of_vmap(t, d):
    inner = t.grad(lambda x: t.vmap(lambda r: (r * r * x[0]).sum())(x).sum())
    return t.vmap(inner)(t.stack([d.q, d.q * 2]))


def gradient_of_a_captured_tensor_four_deep(t, d):
    def outer(w):
        def per_row(x):
            return squares(t.grad(lambda y: t.vmap(lambda e: (w * e * e * y).sum())(x).sum())(x))

        return t.vmap(per_row)(d.m).sum()

    return t.grad(outer)(d.c)


def derivatives_along_tangents(t, d):
    x, v = d.x, d.c
    mapped = t.vmap(sines)
    return (
        t.jvp(t.grad(cube), (x,), (v,)),
        t.grad(lambda a: t.jvp(cube, (a,), (v,))[1])(x),
        t.jvp(lambda a: t.jvp(cube, (a,), (v,))[1], (x,), (v,)),
        t.vmap(lambda u: t.jvp(cube, (x,), (u,))[1])(d.m),
        t.jvp(mapped, (d.m,), (d.m * 2,)),
        t.vmap(lambda a: t.jvp(t.grad(lambda b: t.vmap(sines)(b).sum()), (a,), (a,))[1])(t.stack([d.q, d.q + 1])),
    )


def tangents_are_not_confused(t, d):
    three = d.two + 1
    return t.jvp(lambda x: x * t.jvp(lambda y: x * y, (d.one,), (d.one,))[1], (three,), (d.one,))


def learning_to_learn(t, d):
    def loss(w, x):
        return squares((w * x).sin())

    def adapted(w, x):
        return loss(w - 0.01 * t.grad(loss)(w, x), x)

    return (
        t.grad(lambda w: t.vmap(lambda x: adapted(w, x))(d.m).sum())(d.x),
        t.vmap(lambda x: t.grad(lambda w: adapted(w, x))(d.x))(d.m),
    )


def backward_through_vmap(t, d):
    w = d.c.requires_grad_()
    y = t.vmap(lambda x: (x * w).sum())(d.m)
    y.sum().backward()
    return y, w.grad


def backward_through_gradients_of_examples(t, d):
    w = d.c.requires_grad_()
    g = t.vmap(t.grad(lambda x: (x * x * w).sum()))(d.m)
    squares(g).backward()
    return g, w.grad


# ---- modes


def no_grad_inside(t, d):
    def function(x):
        with t.no_grad():
            constant = x * x
        return (x - constant).sum()

    return t.grad(function)(d.x)


def no_grad_outside(t, d):
    w = d.c.requires_grad_()
    with t.no_grad():
        return t.grad(lambda x: (x * x * w).sum())(d.x)


def enable_grad_inside_a_transform_inside_no_grad(t, d):
    def function(x):
        with t.no_grad():
            constant = x * x
            with t.enable_grad():
                y = x * x
        return (constant * y).sum()

    with t.no_grad():
        return t.grad(function)(d.x)


def gradient_inside_no_grad_inside_a_gradient(t, d):
    def function(x):
        with t.no_grad():
            g = t.grad(cube)(x)
        return (g * x).sum()

    return t.grad(function)(d.x)


def pullbacks_and_no_grad(t, d):
    with t.no_grad():
        y, pull = t.vjp(sines, d.x)
    first = pull(d.one)
    z, pull = t.vjp(sines, d.x)
    with t.no_grad():
        return y, first, z, pull(d.two)


def pullbacks(t, d):
    y, pull = t.vjp(lambda x: x.sin() * x.sum(), d.x)

    def inner(x):
        _, back = t.vjp(lambda a: a.sin() * a.sum(), x)
        return t.vmap(lambda v: back(v)[0])(d.m)

    return (
        y, pull(d.c)[0], pull(d.x)[0], t.vmap(lambda v: pull(v)[0])(d.m), t.vmap(inner)(d.m),
        t.grad(lambda v: squares(pull(v)[0]))(d.c),
    )  # fmt: skip


def imperative_gradients_of_a_batch_of_cotangents(t, d):
    x = d.x.requires_grad_()
    y = x.sin() * x.sum()
    rows = t.vmap(lambda v: t.imperative_grad(y, x, v))(d.q)
    (g,) = (t.imperative_grad(y.sum(), x, None),)
    return rows, t.vmap(lambda v: t.imperative_grad(g, x, v))(d.q)


def imperative_gradients_of_examples(t, d):
    m, q = d.m.requires_grad_(), d.q.requires_grad_()
    both = t.stack([d.q, d.q + 1])

    def one(x, u):
        y = x.sin() * x.sum() * u
        return t.imperative_grad(y, x, d.c), t.imperative_grad(squares(y), x, None)

    def shared(x):
        return t.imperative_grad((x * m.sum() * x).sum(), x, None)

    def twice(x):
        return t.imperative_grad(squares(t.imperative_grad(cube(x) * x[0], x, None)), x, None)

    def elementwise(x):
        return t.vmap(lambda a: t.imperative_grad(a * a * a, a, None))(x)

    def with_cotangents(x):
        y = x.sin() * x.sum()
        return t.vmap(lambda v: t.imperative_grad(y, x, v))(d.q)

    rows = t.vmap(one)(m, m * 2), t.vmap(one, (1, 0), 1)(q, both[0]), t.vmap(twice, 1)(q), t.vmap(shared)(m)
    return rows, t.vmap(t.vmap(elementwise, 1))(both.requires_grad_()), t.vmap(with_cotangents, 1)(q)


# ---- in place


def written(x: Any) -> Any:
    """Views of a clone, written into again and again."""
    y = x.clone()
    v = y[0]
    v.mul_(x[1])
    y[2].copy_(x[1] * x[0])
    v.mul_(2)
    return (y * y * x * v).sum()


def argument_written_into(t, d):
    t.vmap(lambda r: r[1].mul_(r[0] + 10))(d.q)
    return d.q


def backward_through_a_write_into_a_view(t, d):
    w = d.c.requires_grad_()
    base = t.zeros(2, 3)
    v = base[0]
    v.copy_(w * w)
    squares(base).backward()
    return w.grad


def view_made_before_its_base_was_tracked(t, d):
    w = d.c.requires_grad_()
    base = t.zeros(2, 3) + 2
    v = base[1]
    base.mul_(w)
    squares(v).backward()
    return w.grad


def fresh_tensor_written_into_with_an_older_view(t, d):
    def function(x):
        y = t.zeros_like(x)
        v = y[0]
        y.copy_(x * x)
        return (y * v).sum()

    return t.vmap(t.grad(function))(d.m)


def captured_tensor_written_into_not_tracked(t, d):
    def function(x):
        d.c.add_(1)
        return cube(x)

    return t.grad(function)(d.x), d.c


def nested_structures(t, d):
    def loss(p, x):
        return squares(p["w"] * x + p["b"][0])

    p = {"w": d.c, "b": (d.one,)}
    g = t.vmap(t.grad(loss), (None, 0))(p, d.m)
    rows = t.jacrev(lambda p: (p["w"] * 2, p["b"][0] * d.c))(p)
    return g["w"], g["b"][0], rows[0]["w"], rows[1]["b"][0]


# fmt: off
PROGRAMS = programs({
    # ---- gradients of gradients
    "1 gradient": lambda t, d: t.grad(sines)(d.x),
    "2 gradient of a tracked tensor": gradient_of_a_tracked_tensor,
    "3 third derivative": third_derivative,
    # ---- vmap alone
    "4 dims of arguments and results": lambda t, d: (
        t.vmap(lambda a, b: a + b, (1, 0))(d.m, d.q[:, :2]),
        t.vmap(lambda a: a * 2, out_dims=1)(d.m),
        t.vmap(lambda a: (a.sum(), a * 2), out_dims=(0, 1))(d.m),
        t.vmap(lambda a, b: (a + b, {"sum": a.sum()}), (-1, None), (1, 0))(d.q, d.c),
    ),
    "5 products of batches": products_of_batches,
    "6 a result that is not batched": lambda t, d: t.vmap(lambda a: d.c * 2)(d.m),
    "7 views": lambda t, d: t.vmap(lambda a: a.transpose(0, 1).select(0, 1).unsqueeze(1).expand(3, 2))(t.stack([d.q, d.q + 1])),
    "8 a choice": lambda t, d: t.vmap(lambda a: t.where(a > 0.8, a, -a))(d.m),
    # ---- vmap and gradients
    "9 gradients of examples": lambda t, d: t.vmap(t.grad(cube))(d.m),
    "10 gradient through vmap": lambda t, d: t.grad(lambda x: t.vmap(cube)(x).sum())(d.m),
    "11 vmap of gradient of vmap": vmap_of_gradient_of_vmap,
    "12 gradient through gradients of examples": lambda t, d: t.grad(lambda x: squares(t.vmap(t.grad(cube))(x)))(d.m),
    "13 gradient of a captured tensor, four deep": gradient_of_a_captured_tensor_four_deep,
    "14 jacobian of jacobian": lambda t, d: t.jacrev(t.jacrev(lambda x: x.sin() * x.sum()))(d.x),
    "15 hessians of examples": lambda t, d: (t.vmap(t.hessian(cube))(d.m), t.jacfwd(t.jacrev(lambda x: x.sin() * x.sum()))(d.x)),
    "16 derivatives along tangents": derivatives_along_tangents,
    "17 perturbations are not confused": lambda t, d: t.grad(lambda x: x * t.grad(lambda y: x + y)(d.one))(d.two),
    "18 a gradient of both": lambda t, d: t.grad(lambda x: x * t.grad(lambda y: x * y * y)(x))(d.two),
    "19 tangents are not confused": tangents_are_not_confused,
    "20 gradient, vmap, gradient":
        lambda t, d: t.grad(lambda x: t.vmap(lambda b: x * t.grad(lambda y: x * y * b)(x))(d.x).sum())(d.two),
    "21 a shared tensor has a gradient for each example":
        lambda t, d: t.vmap(lambda x: t.grad(lambda v: (v * x).sin().sum())(d.c))(d.m),
    "22 gradients of examples for shared parameters":
        lambda t, d: t.vmap(t.grad(lambda v, x: squares(v @ x)), (None, 0))(d.q, d.m),
    "23 gradient penalty":
        lambda t, d: t.grad(lambda w: t.vmap(lambda x: squares(t.grad(lambda a: sines(w @ a))(x)))(d.m).sum())(d.q),
    "24 learning to learn": learning_to_learn,
    "25 backward through vmap": backward_through_vmap,
    "26 backward through gradients of examples": backward_through_gradients_of_examples,
    "27 no dependence, and the identity":
        lambda t, d: (t.grad(lambda x: d.c.sum())(d.x), t.grad(lambda x: x)(d.two), t.jvp(lambda x: d.c * 1, (d.x,), (d.x,))),
    "28 aux, and one tensor twice":
        lambda t, d: (
            t.grad(lambda x: (cube(x), x * 2), has_aux=True)(d.x), t.grad(lambda a, b: (a * b * b).sum(), (0, 1))(d.x, d.x),
        ),
    # ---- modes
    "29 no_grad inside": no_grad_inside,
    "30 no_grad outside": no_grad_outside,
    "31 enable_grad inside a transform inside no_grad": enable_grad_inside_a_transform_inside_no_grad,
    "32 detach at two levels": lambda t, d: t.grad(lambda x: t.grad(lambda y: (y * y * x.detach()).sum())(x).sum())(d.x),
    "33 a gradient inside no_grad inside a gradient": gradient_inside_no_grad_inside_a_gradient,
    "34 pullbacks and no_grad": pullbacks_and_no_grad,
    "35 pullbacks": pullbacks,
    "36 imperative gradients of a batch of cotangents": imperative_gradients_of_a_batch_of_cotangents,
    "36 imperative gradients of examples": imperative_gradients_of_examples,
    # ---- in place
    "37 views written into": lambda t, d: (
        t.grad(written)(d.x),
        t.vmap(t.grad(written))(d.m),
        t.grad(lambda m: t.vmap(written)(m).sum())(d.m),
        t.hessian(written)(d.x),
        t.jvp(t.grad(written), (d.x,), (d.c,)),
        t.vmap(t.jacrev(t.grad(written)))(d.m),
    ),
    "38 an argument written into": argument_written_into,
    "39 backward through a write into a view": backward_through_a_write_into_a_view,
    "40 a view made before its base was tracked": view_made_before_its_base_was_tracked,
    "41 a fresh tensor written into, with an older view": fresh_tensor_written_into_with_an_older_view,
    "47 a captured tensor written into, not tracked": captured_tensor_written_into_not_tracked,
    "57 nested structures": nested_structures,
})
# fmt: on
