"""Programs of nested gradient and batch transforms, written once for several libraries.

Each takes `t`, which has tensors' functions (`tensor`, `where`, ...), `no_grad`, `enable_grad`, `imperative_grad` and the
transforms `vmap`, `grad`, `vjp`, `jvp`, `jacrev`, `jacfwd`, `hessian`; it returns tensors in nested tuples. Turnout runs them
with its own transforms, with transforms that are plain loops, and next to PyTorch. The numbers group programs about one thing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Program = Callable[[Any], Any]
PROGRAMS: dict[str, Program] = {}


def program(name: str, table: dict[str, Program] = PROGRAMS) -> Callable[[Program], Program]:
    def add(function: Program) -> Program:
        assert name not in table
        table[name] = function
        return function

    return add


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


def cube(x: Any) -> Any:
    return (x * x * x).sum()


def squares(x: Any) -> Any:
    return (x * x).sum()


def sines(x: Any) -> Any:
    return x.sin().sum()


# ---- gradients of gradients


@program("1 gradient")
def _(t):
    return t.grad(sines)(Data(t).x)


@program("2 gradient of a tracked tensor")
def _(t):
    x = Data(t).x.requires_grad_()
    g = t.grad(sines)(x)
    squares(g).backward()
    return g, x.grad


@program("3 third derivative")
def _(t):
    def third(x):
        return t.grad(lambda a: t.grad(lambda b: (b * b * b * b).sum())(a).sum())(x).sum()

    return t.grad(third)(Data(t).x)


# ---- vmap alone


@program("4 dims of arguments and results")
def _(t):
    d = Data(t)
    return (
        t.vmap(lambda a, b: a + b, (1, 0))(d.m, d.q[:, :2]),
        t.vmap(lambda a: a * 2, out_dims=1)(d.m),
        t.vmap(lambda a: (a.sum(), a * 2), out_dims=(0, 1))(d.m),
        t.vmap(lambda a, b: (a + b, {"sum": a.sum()}), (-1, None), (1, 0))(d.q, d.c),
    )


@program("5 products of batches")
def _(t):
    d = Data(t)
    matrices = t.vmap(t.vmap(t.vmap(lambda a, b: a @ b, (None, 0)), (0, None), 1), (2, None), 2)
    return matrices(t.stack([d.q, d.q * 2]), d.m), t.vmap(lambda a: a @ d.q)(d.m)


@program("6 a result that is not batched")
def _(t):
    d = Data(t)
    return t.vmap(lambda a: d.c * 2)(d.m)


@program("7 views")
def _(t):
    d = Data(t)
    return t.vmap(lambda a: a.transpose(0, 1).select(0, 1).unsqueeze(1).expand(3, 2))(t.stack([d.q, d.q + 1]))


@program("8 a choice")
def _(t):
    return t.vmap(lambda a: t.where(a > 0.8, a, -a))(Data(t).m)


# ---- vmap and gradients


@program("9 gradients of examples")
def _(t):
    return t.vmap(t.grad(cube))(Data(t).m)


@program("10 gradient through vmap")
def _(t):
    return t.grad(lambda x: t.vmap(cube)(x).sum())(Data(t).m)


@program("11 vmap of gradient of vmap")
def _(t):
    d = Data(t)
    inner = t.grad(lambda x: t.vmap(lambda r: (r * r * x[0]).sum())(x).sum())
    return t.vmap(inner)(t.stack([d.q, d.q * 2]))


@program("12 gradient through gradients of examples")
def _(t):
    return t.grad(lambda x: squares(t.vmap(t.grad(cube))(x)))(Data(t).m)


@program("13 gradient of a captured tensor, four deep")
def _(t):
    d = Data(t)

    def outer(w):
        def per_row(x):
            return squares(t.grad(lambda y: t.vmap(lambda e: (w * e * e * y).sum())(x).sum())(x))

        return t.vmap(per_row)(d.m).sum()

    return t.grad(outer)(d.c)


@program("14 jacobian of jacobian")
def _(t):
    return t.jacrev(t.jacrev(lambda x: x.sin() * x.sum()))(Data(t).x)


@program("15 hessians of examples")
def _(t):
    d = Data(t)
    return t.vmap(t.hessian(cube))(d.m), t.jacfwd(t.jacrev(lambda x: x.sin() * x.sum()))(d.x)


@program("16 derivatives along tangents")
def _(t):
    d = Data(t)
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


@program("17 perturbations are not confused")
def _(t):
    d = Data(t)
    return t.grad(lambda x: x * t.grad(lambda y: x + y)(d.one))(d.two)


@program("18 a gradient of both")
def _(t):
    return t.grad(lambda x: x * t.grad(lambda y: x * y * y)(x))(Data(t).two)


@program("19 tangents are not confused")
def _(t):
    d = Data(t)
    three = d.two + 1
    return t.jvp(lambda x: x * t.jvp(lambda y: x * y, (d.one,), (d.one,))[1], (three,), (d.one,))


@program("20 gradient, vmap, gradient")
def _(t):
    d = Data(t)
    return t.grad(lambda x: t.vmap(lambda b: x * t.grad(lambda y: x * y * b)(x))(d.x).sum())(d.two)


@program("21 a shared tensor has a gradient for each example")
def _(t):
    d = Data(t)
    return t.vmap(lambda x: t.grad(lambda v: (v * x).sin().sum())(d.c))(d.m)


@program("22 gradients of examples for shared parameters")
def _(t):
    d = Data(t)
    return t.vmap(t.grad(lambda v, x: squares(v @ x)), (None, 0))(d.q, d.m)


@program("23 gradient penalty")
def _(t):
    d = Data(t)
    return t.grad(lambda w: t.vmap(lambda x: squares(t.grad(lambda a: sines(w @ a))(x)))(d.m).sum())(d.q)


@program("24 learning to learn")
def _(t):
    d = Data(t)

    def loss(w, x):
        return squares((w * x).sin())

    def adapted(w, x):
        return loss(w - 0.01 * t.grad(loss)(w, x), x)

    return (
        t.grad(lambda w: t.vmap(lambda x: adapted(w, x))(d.m).sum())(d.x),
        t.vmap(lambda x: t.grad(lambda w: adapted(w, x))(d.x))(d.m),
    )


@program("25 backward through vmap")
def _(t):
    d = Data(t)
    w = d.c.requires_grad_()
    y = t.vmap(lambda x: (x * w).sum())(d.m)
    y.sum().backward()
    return y, w.grad


@program("26 backward through gradients of examples")
def _(t):
    d = Data(t)
    w = d.c.requires_grad_()
    g = t.vmap(t.grad(lambda x: (x * x * w).sum()))(d.m)
    squares(g).backward()
    return g, w.grad


@program("27 no dependence, and the identity")
def _(t):
    d = Data(t)
    return t.grad(lambda x: d.c.sum())(d.x), t.grad(lambda x: x)(d.two), t.jvp(lambda x: d.c * 1, (d.x,), (d.x,))


@program("28 aux, and one tensor twice")
def _(t):
    d = Data(t)
    return t.grad(lambda x: (cube(x), x * 2), has_aux=True)(d.x), t.grad(lambda a, b: (a * b * b).sum(), (0, 1))(d.x, d.x)


# ---- modes


@program("29 no_grad inside")
def _(t):
    def function(x):
        with t.no_grad():
            constant = x * x
        return (x - constant).sum()

    return t.grad(function)(Data(t).x)


@program("30 no_grad outside")
def _(t):
    d = Data(t)
    w = d.c.requires_grad_()
    with t.no_grad():
        return t.grad(lambda x: (x * x * w).sum())(d.x)


@program("31 enable_grad inside a transform inside no_grad")
def _(t):
    d = Data(t)

    def function(x):
        with t.no_grad():
            constant = x * x
            with t.enable_grad():
                y = x * x
        return (constant * y).sum()

    with t.no_grad():
        return t.grad(function)(d.x)


@program("32 detach at two levels")
def _(t):
    return t.grad(lambda x: t.grad(lambda y: (y * y * x.detach()).sum())(x).sum())(Data(t).x)


@program("33 a gradient inside no_grad inside a gradient")
def _(t):
    def function(x):
        with t.no_grad():
            g = t.grad(cube)(x)
        return (g * x).sum()

    return t.grad(function)(Data(t).x)


@program("34 pullbacks and no_grad")
def _(t):
    d = Data(t)
    with t.no_grad():
        y, pull = t.vjp(sines, d.x)
    first = pull(d.one)
    z, pull = t.vjp(sines, d.x)
    with t.no_grad():
        return y, first, z, pull(d.two)


@program("35 pullbacks")
def _(t):
    d = Data(t)
    y, pull = t.vjp(lambda x: x.sin() * x.sum(), d.x)

    def inner(x):
        _, back = t.vjp(lambda a: a.sin() * a.sum(), x)
        return t.vmap(lambda v: back(v)[0])(d.m)

    return (
        y, pull(d.c)[0], pull(d.x)[0], t.vmap(lambda v: pull(v)[0])(d.m), t.vmap(inner)(d.m),
        t.grad(lambda v: squares(pull(v)[0]))(d.c),
    )  # fmt: skip


@program("36 imperative gradients of a batch of cotangents")
def _(t):
    d = Data(t)
    x = d.x.requires_grad_()
    y = x.sin() * x.sum()
    rows = t.vmap(lambda v: t.imperative_grad(y, x, v))(d.q)
    (g,) = (t.imperative_grad(y.sum(), x, None),)
    return rows, t.vmap(lambda v: t.imperative_grad(g, x, v))(d.q)


@program("36 imperative gradients of examples")
def _(t):
    d = Data(t)
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


@program("37 views written into")
def _(t):
    d = Data(t)
    return (
        t.grad(written)(d.x),
        t.vmap(t.grad(written))(d.m),
        t.grad(lambda m: t.vmap(written)(m).sum())(d.m),
        t.hessian(written)(d.x),
        t.jvp(t.grad(written), (d.x,), (d.c,)),
        t.vmap(t.jacrev(t.grad(written)))(d.m),
    )


@program("38 an argument written into")
def _(t):
    d = Data(t)
    t.vmap(lambda r: r[1].mul_(r[0] + 10))(d.q)
    return d.q


@program("39 backward through a write into a view")
def _(t):
    d = Data(t)
    w = d.c.requires_grad_()
    base = t.zeros(2, 3)
    v = base[0]
    v.copy_(w * w)
    squares(base).backward()
    return w.grad


@program("40 a view made before its base was tracked")
def _(t):
    d = Data(t)
    w = d.c.requires_grad_()
    base = t.zeros(2, 3) + 2
    v = base[1]
    base.mul_(w)
    squares(v).backward()
    return w.grad


@program("41 a fresh tensor written into, with an older view")
def _(t):
    def function(x):
        y = t.zeros_like(x)
        v = y[0]
        y.copy_(x * x)
        return (y * v).sum()

    return t.vmap(t.grad(function))(Data(t).m)


@program("47 a captured tensor written into, not tracked")
def _(t):
    d = Data(t)

    def function(x):
        d.c.add_(1)
        return cube(x)

    return t.grad(function)(d.x), d.c


@program("57 nested structures")
def _(t):
    d = Data(t)

    def loss(p, x):
        return squares(p["w"] * x + p["b"][0])

    p = {"w": d.c, "b": (d.one,)}
    g = t.vmap(t.grad(loss), (None, 0))(p, d.m)
    rows = t.jacrev(lambda p: (p["w"] * 2, p["b"][0] * d.c))(p)
    return g["w"], g["b"][0], rows[0]["w"], rows[1]["b"][0]
