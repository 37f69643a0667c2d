"""Calls of the functional transforms with all kinds of arguments, for several libraries: what they give, or that they refuse.

Each takes a `Library`: tensors to call with, and the transforms of `func` and of `autograd.functional` (those with `old_` in front).
"""

# ruff: noqa: E501 - rows of tables

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple


class Library:
    """turnout or torch."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.x, self.y, self.one = self.tensor([1.0, 2.0]), self.tensor([3.0, 4.0]), self.tensor(1.0)
        self.short = self.tensor([1.0])
        self.single = module.tensor([3.0, 4.0], dtype=module.float32)
        self.ints, self.number = module.tensor([1, 2]), module.tensor(0)
        self.complex = module.tensor([1 + 2j, 3 - 1j], dtype=module.complex128)
        self.tracked, self.weight = self.tensor([1.0, 2.0]).requires_grad_(), self.tensor([5.0, 6.0]).requires_grad_()

    def tensor(self, data: Any) -> Any:
        return self.module.tensor(data, dtype=self.module.float64)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("old_"):
            return getattr(self.module.autograd.functional, name.removeprefix("old_"))
        return getattr(self.module.func, name)

    def kept(self) -> Any:
        """A pullback made inside of a gradient that is over."""
        made: list[Any] = []
        self.grad(lambda a: (made.append(self.vjp(lambda b: b * a, a)[1]), a.sum())[1])(self.x)
        return made[0]

    def without(self, call: Callable[[], Any]) -> Any:
        with self.module.no_grad():
            return call()


class Pair(NamedTuple):
    a: Any
    b: Any


def product(a: Any, b: Any) -> Any:
    return (a * b).sum()


def squares(a: Any) -> Any:
    return (a * a).sum()


def double(a: Any) -> Any:
    return a * 2


def both(a: Any) -> Any:
    return a * 2, a.sum()


class Reading:
    """A function whose backward looks at the numbers of its gradient."""

    @staticmethod
    def of(d: Library) -> Any:
        members = {
            "forward": staticmethod(lambda a: a * 2),
            "setup_context": staticmethod(lambda ctx, inputs, output: None),
            "backward": staticmethod(lambda ctx, g: g * (3.0 if float(g.sum()) > 0 else 5.0)),
        }
        return type("Reading", (d.module.autograd.Function,), members).apply


# fmt: off
CALLS: dict[str, Callable[[Library], Any]] = {
    # ---- which arguments
    "argnums negative": lambda d: d.grad(product, -1)(d.x, d.y),
    "argnums a bool": lambda d: d.grad(product, True)(d.x, d.y),
    "argnums a tuple of one": lambda d: d.grad(product, (0,))(d.x, d.y),
    "argnums in another order": lambda d: d.grad(product, (1, 0))(d.x, d.y),
    "argnums too large": lambda d: d.grad(product, 2)(d.x, d.y),
    "argnums too small": lambda d: d.grad(product, -3)(d.x, d.y),
    "argnums twice": lambda d: d.grad(product, (0, 0))(d.x, d.y),
    "argnums twice, from both ends": lambda d: d.jacrev(product, (0, -2))(d.x, d.y),
    "argnums none": lambda d: d.grad(product, ())(d.x, d.y),
    "argnums no number": lambda d: d.jacfwd(product, 1.0)(d.x, d.y),
    "argnums a name": lambda d: d.hessian(product, "a")(d.x, d.y),
    "argnums of hessian, negative": lambda d: d.hessian(product, -1)(d.x, d.y),
    "argnums of hessian, two": lambda d: d.hessian(product, (0, 1))(d.x, d.y),
    "argnums of Jacobians, two": lambda d: [j(lambda a, b: (a * b, [a.sum()]), (0, 1))(d.x, d.y) for j in (d.jacrev, d.jacfwd)],
    "keyword arguments": lambda d: d.grad(lambda a, scale=None: (a * scale).sum())(d.x, scale=d.y),
    "keyword arguments alone": lambda d: d.grad(squares)(a=d.x),
    "no arguments": lambda d: d.grad(lambda: d.x.sum())(),
    # ---- what arguments are
    "a dict": lambda d: d.grad(lambda p: product(p["a"], p["b"]))({"a": d.x, "b": d.y}),
    "an ordered dict": lambda d: d.grad(lambda p: product(p["a"], p["b"]))(OrderedDict(b=d.x, a=d.y)),
    "a list": lambda d: d.grad(lambda p: product(*p))([d.x, d.y]),
    "a named tuple": lambda d: d.grad(lambda p: product(p.a, p.b))(Pair(d.x, d.y)),
    "an empty tuple": lambda d: d.grad(lambda p, q: squares(q))((), d.x),
    "a number": lambda d: d.grad(double)(3.0),
    "a number beside a tensor": lambda d: d.grad(lambda p: product(*p))((d.x, 3)),
    "None beside a tensor": lambda d: d.vjp(lambda p: p[0] * 2, (d.x, None)),
    "None that is not differentiated": lambda d: d.grad(lambda p, q: squares(p))(d.x, None),
    "integers for grad": lambda d: d.grad(lambda a: (a * 1.5).sum())(d.ints),
    "integers for vjp": lambda d: d.vjp(lambda a: a * 1.5, d.ints),
    "integers for jvp": lambda d: d.jvp(double, (d.ints,), (d.ints,)),
    "integers for jvp, beside floats": lambda d: d.jvp(product, (d.x, d.ints), (d.x, d.ints)),
    "integers for jacrev": lambda d: d.jacrev(lambda a: a * 1.5)(d.ints),
    "integers for jacfwd": lambda d: d.jacfwd(lambda a: a * 1.5)(d.ints),
    "complex numbers for grad": lambda d: d.grad(lambda a: a.abs().sum())(d.complex),
    "complex numbers for vjp and jvp": lambda d: (d.vjp(lambda a: a * 1j, d.complex)[1](d.complex), d.jvp(lambda a: a * 1j, (d.complex,), (d.complex,))),
    "complex numbers for jacrev": lambda d: d.jacrev(lambda a: a * 1j)(d.complex),
    "complex numbers for hessian": lambda d: d.hessian(lambda a: a.abs().sum())(d.complex),
    "complex results for jacrev": lambda d: d.jacrev(lambda a: a * 1j)(d.x),
    "complex results for jacfwd": lambda d: d.jacfwd(lambda a: a * 1j)(d.x),
    # ---- results of grad
    "grad of a constant": lambda d: d.grad(lambda a: d.y.sum())(d.x),
    "grad of the argument": lambda d: d.grad(lambda a: a)(d.one),
    "grad of a number": lambda d: d.grad(lambda a: 3.0)(d.x),
    "grad of one element": lambda d: d.grad(lambda a: a.sum().reshape(1))(d.x),
    "grad of a tuple": lambda d: d.grad(lambda a: (a.sum(),))(d.x),
    "grad of a complex number": lambda d: d.grad(lambda a: a.sum() * 1j)(d.x),
    "grad of a whole number": lambda d: d.grad(lambda a: a.argmax())(d.x),
    "aux": lambda d: (d.grad(lambda a: (squares(a), {"k": [a, a * 2]}), has_aux=True)(d.x), d.grad_and_value(lambda a: (squares(a), a), has_aux=True)(d.x)),
    "aux of integers": lambda d: d.grad(lambda a: (squares(a), d.ints), has_aux=True)(d.x),
    "aux for Jacobians": lambda d: (d.jacrev(both, has_aux=True)(d.x), d.jacfwd(both, has_aux=True)(d.x)),
    "aux for vjp and jvp": lambda d: (d.vjp(both, d.x, has_aux=True)[2], d.jvp(both, (d.x,), (d.y,), has_aux=True)),
    "aux that is missing": lambda d: d.grad(squares, has_aux=True)(d.x),
    "aux in a list": lambda d: d.grad(lambda a: [squares(a), a], has_aux=True)(d.x),
    "aux twice": lambda d: d.vjp(lambda a: (a, a, a), d.x, has_aux=True),
    "aux missing for jvp": lambda d: d.jvp(double, (d.x,), (d.y,), has_aux=True),
    "aux missing for jacfwd": lambda d: d.jacfwd(double, has_aux=True)(d.x),
    # ---- pullbacks
    "pullback twice": lambda d: [d.vjp(double, d.x)[1](v) for v in (d.x, d.y)],
    "pullback of a dict": lambda d: d.vjp(lambda a: {"u": a * 2, "v": a.sum()}, d.x)[1]({"u": d.x, "v": d.one}),
    "pullback of a dict in another order": lambda d: d.vjp(lambda a: {"u": a * 2, "v": a}, d.x)[1]({"v": d.x, "u": d.x}),
    "pullback of a named tuple": lambda d: d.vjp(lambda a: Pair(a * 2, a.sum()), d.x)[1](Pair(d.x, d.one)),
    "pullback of a named tuple, of a tuple": lambda d: d.vjp(lambda a: Pair(a * 2, a.sum()), d.x)[1]((d.x, d.one)),
    "pullback of a list": lambda d: d.vjp(lambda a: [a, a * 2], d.x)[1]([d.y, d.y]),
    "pullback of a list, of a tuple": lambda d: d.vjp(lambda a: [a, a * 2], d.x)[1]((d.y, d.y)),
    "pullback of a constant": lambda d: d.vjp(lambda a: d.y, d.x)[1](d.y),
    "pullback of the argument": lambda d: d.vjp(lambda a: a, d.x)[1](d.y),
    "pullback of one tensor twice": lambda d: d.vjp(lambda a: (lambda b: (b, b))(a * 2), d.x)[1]((d.x, d.y)),
    "pullback of nothing": lambda d: d.vjp(lambda a: (), d.x),
    "pullback of None": lambda d: d.vjp(lambda a: (a, None), d.x),
    "pullback of a number": lambda d: d.vjp(lambda a: 3.0, d.x),
    "pullback of integers": lambda d: d.vjp(lambda a: (a * 2, a.argmax()), d.x),
    "pullback of two with one": lambda d: d.vjp(lambda a: (a, a), d.x)[1](d.y),
    "pullback with a wrong shape": lambda d: d.vjp(double, d.x)[1](d.short),
    "pullback with another dtype": lambda d: d.vjp(double, d.x)[1](d.single),
    "pullback with integers": lambda d: d.vjp(double, d.x)[1](d.ints),
    "pullback with complex numbers": lambda d: d.vjp(double, d.x)[1](d.complex),
    "pullback with None": lambda d: d.vjp(double, d.x)[1](None),
    "pullback with numbers": lambda d: d.vjp(double, d.x)[1](1.0),
    "pullback without its graph": lambda d: d.vjp(double, d.x)[1](d.x, retain_graph=False),
    "pullback recorded or not": lambda d: [d.vjp(squares, d.tracked)[1](d.one, create_graph=c)[0].requires_grad for c in (False, True, None)],
    "pullback after its level": lambda d: d.kept()(d.y),
    # ---- tangents
    "tangents of a dict": lambda d: d.jvp(lambda p: {"r": p["a"] * p["b"]}, ({"a": d.x, "b": d.y},), ({"a": d.y, "b": d.x},)),
    "tangents in another order": lambda d: d.jvp(lambda p: p["a"] * p["b"], ({"a": d.x, "b": d.y},), ({"b": d.x, "a": d.y},)),
    "tangents of the argument": lambda d: d.jvp(lambda a: a, (d.x,), (d.y,)),
    "tangents of a list": lambda d: d.jvp(lambda a: [a, a * 2], (d.x,), (d.y,)),
    "tangents of a constant": lambda d: d.jvp(lambda a: d.y * 1, (d.x,), (d.x,)),
    "tangents of integers": lambda d: d.jvp(lambda a: (a * 2, a.argmax()), (d.x,), (d.x,)),
    "tangents, strictly": lambda d: d.jvp(double, (d.x,), (d.x,), strict=True),
    "tangents of a constant, strictly": lambda d: d.jvp(lambda a: d.y * 1, (d.x,), (d.x,), strict=True),
    "tangents that are no tuple": lambda d: d.jvp(double, d.x, d.x),
    "tangents that are missing": lambda d: d.jvp(double, (d.x,), None),
    "tangents of nothing": lambda d: d.jvp(lambda: d.x, (), ()),
    "tangents that are too many": lambda d: d.jvp(double, (d.x,), (d.x, d.x)),
    "tangents of a wrong shape": lambda d: d.jvp(double, (d.x,), (d.short,)),
    "tangents of another dtype": lambda d: d.jvp(double, (d.x,), (d.single,)),
    "tangents of nothing returned": lambda d: d.jvp(lambda a: (), (d.x,), (d.x,)),
    "tangents that do not fit, before the function runs": lambda d: d.jvp(lambda a: 1 / 0, ((d.x, d.x),), (d.x,)),
    "tangents of a number": lambda d: d.jvp(lambda a: 3.0, (d.x,), (d.x,)),
    "linearized": lambda d: (lambda r: (r[0], r[1](d.y), r[1](d.x)))(d.linearize(lambda a: a.sin(), d.x)),
    "linearized, nested": lambda d: d.linearize(lambda p: (p["a"] * 2, [p["a"].sum()]), {"a": d.x})[1]({"a": d.y}),
    "linearized constant": lambda d: d.linearize(lambda a: d.y * 1, d.x)[1](d.y),
    "linearized with a wrong shape": lambda d: d.linearize(lambda a: a.sin(), d.x)[1](d.short),
    "linearized with too many": lambda d: d.linearize(lambda a: a.sin(), d.x)[1](d.y, d.y),
    # ---- Jacobians
    "rows one by one": lambda d: [d.jacrev(both, chunk_size=n)(d.x) for n in (1, 2, 100, None)],
    "rows one by one, whose backward reads values": lambda d: d.jacrev(Reading.of(d), chunk_size=1)(d.x),
    "rows two at a time, whose backward reads values": lambda d: d.jacrev(Reading.of(d), chunk_size=2)(d.x),
    "rows one by one of gradients": lambda d: d.vmap(d.jacrev(d.grad(lambda a: (a**3).sum()), chunk_size=1))(d.module.stack([d.x, d.y])),
    "rows none at a time, not called": lambda d: d.jacrev(double, chunk_size=0) and None,
    "rows none at a time": lambda d: d.jacrev(double, chunk_size=0)(d.x),
    "rows a negative number at a time": lambda d: d.jacrev(double, chunk_size=-1)(d.x),
    "Jacobian of a dict by a dict": lambda d: [j(lambda p: {"r": p["a"] * p["b"]})({"a": d.x, "b": d.y}) for j in (d.jacrev, d.jacfwd)],
    "Jacobian of a constant": lambda d: [j(lambda a: d.y * 1)(d.x) for j in (d.jacrev, d.jacfwd)],
    "Jacobian of the argument, twice": lambda d: [j(lambda a: [a, a])(d.x) for j in (d.jacrev, d.jacfwd)],
    "Jacobian by nothing": lambda d: [j(double)(d.x[:0]) for j in (d.jacrev, d.jacfwd)],
    "Jacobian of nothing": lambda d: [j(lambda a: a[:0] * 2)(d.x) for j in (d.jacrev, d.jacfwd)],
    "Jacobian of integers": lambda d: d.jacrev(lambda a: a.argmax())(d.x),
    "Jacobian of integers, by columns": lambda d: d.jacfwd(lambda a: a.argmax())(d.x),
    "Jacobian of nothing returned": lambda d: d.jacrev(lambda a: ())(d.x),
    "Jacobian of nothing returned, by columns": lambda d: d.jacfwd(lambda a: ())(d.x),
    "Jacobian of None": lambda d: d.jacrev(lambda a: None)(d.x),
    "Jacobian of a number": lambda d: d.jacfwd(lambda a: 3.0)(d.x),
    "randomness of an unknown kind": lambda d: d.jacfwd(double, randomness="some")(d.x),
    "hessian of several numbers": lambda d: d.hessian(lambda a: a * a * a)(d.x),
    "names are kept": lambda d: d.tensor([len(f.__name__) for f in (d.grad(squares), d.vmap(d.jacrev(squares)))]),
    "vmap with keywords and None": lambda d: (d.vmap(d.grad(product, (0, 1)), in_dims=(0, None))(d.module.stack([d.x, d.y]), d.y), d.vmap(lambda a, k=1: a * k)(d.x, k=3)),
}

OLD_CALLS: dict[str, Callable[[Library], Any]] = {
    "jacobian": lambda d: d.old_jacobian(lambda a: a * a, d.x),
    "jacobian of two by two": lambda d: [d.old_jacobian(lambda a, b: (a * b, b.sum()), (d.x, d.y), vectorize=v) for v in (False, True)],
    "jacobian by columns": lambda d: d.old_jacobian(both, d.x, strategy="forward-mode", vectorize=True),
    "jacobian of tuples of one": lambda d: d.old_jacobian(lambda a: (a * a,), (d.x,)),
    "jacobian of a constant": lambda d: d.old_jacobian(lambda a: d.y * 1, d.x),
    "jacobian of tracked tensors": lambda d: d.old_jacobian(lambda a: a * a * d.weight, d.tracked),
    "jacobian that is recorded": lambda d: d.old_jacobian(lambda a: a * a * d.weight, d.tracked, create_graph=True),
    "jacobian differentiated": lambda d: d.module.autograd.grad(d.old_jacobian(lambda a: a * a * d.weight, d.tracked, create_graph=True).sum(), (d.tracked, d.weight)),
    "jacobian inside no_grad": lambda d: d.without(lambda: (d.old_jacobian(squares, d.x), d.old_jacobian(squares, d.tracked, create_graph=True))),
    "jacobian, strictly": lambda d: (d.old_jacobian(lambda a, b: a * b, (d.x, d.y), strict=True), d.old_jacobian(lambda a: a * a, d.tracked, strict=True, create_graph=True)),
    "jacobian of integers": lambda d: d.old_jacobian(lambda a: a.argmax(), d.x),
    "jacobian by a list": lambda d: d.old_jacobian(squares, [d.x]),
    "jacobian of a list": lambda d: d.old_jacobian(lambda a: [a], d.x),
    "jacobian by a number": lambda d: d.old_jacobian(double, 3.0),
    "jacobian by integers": lambda d: d.old_jacobian(double, d.ints),
    "jacobian of complex numbers": lambda d: d.old_jacobian(lambda a: a * 1j, d.complex),
    "jacobian of real numbers by complex ones": lambda d: [d.old_jacobian(lambda a: a.abs(), d.complex, vectorize=v) for v in (False, True)],
    "jacobian of a constant, strictly": lambda d: d.old_jacobian(lambda a: d.y * 1, d.x, strict=True),
    "jacobian of a part, strictly": lambda d: d.old_jacobian(lambda a, b: a * 2, (d.x, d.y), strict=True),
    "jacobian of a linear function, strictly": lambda d: d.old_jacobian(double, d.tracked, strict=True, create_graph=True),
    "jacobian strictly and at once": lambda d: d.old_jacobian(double, d.x, strict=True, vectorize=True),
    "jacobian by columns, one by one": lambda d: d.old_jacobian(double, d.x, strategy="forward-mode"),
    "jacobian by columns, recorded": lambda d: d.old_jacobian(double, d.x, strategy="forward-mode", vectorize=True, create_graph=True),
    "hessian": lambda d: [d.old_hessian(lambda a: (a**3).sum(), d.x, vectorize=v) for v in (False, True)],
    "hessian by columns": lambda d: d.old_hessian(lambda a: (a**3).sum(), d.x, vectorize=True, outer_jacobian_strategy="forward-mode").detach(),
    "hessian by two": lambda d: d.old_hessian(lambda a, b: (a * a * b).sum(), (d.x, d.y)),
    "hessian of one element": lambda d: d.old_hessian(lambda a: (a**3).sum().reshape(1), d.x),
    "hessian of a constant": lambda d: d.old_hessian(lambda a: d.y.sum(), d.x),
    "hessian differentiated": lambda d: d.module.autograd.grad(d.old_hessian(lambda a: (a**3).sum(), d.tracked, create_graph=True).sum(), d.tracked),
    "hessian, strictly": lambda d: d.old_hessian(lambda a, b: (a * a * b * b).sum(), (d.x, d.y), strict=True),
    "hessian by complex numbers": lambda d: d.old_hessian(lambda a: a.abs().sum(), d.complex),
    "hessian of several elements": lambda d: d.old_hessian(lambda a: a * a, d.x),
    "hessian of a tuple": lambda d: d.old_hessian(lambda a: (a.sum(),), d.x),
    "hessian of a linear function, strictly": lambda d: d.old_hessian(lambda a: a.sum(), d.x, strict=True),
    "hessian of separate parts, strictly": lambda d: d.old_hessian(lambda a, b: squares(a) + squares(b), (d.x, d.y), strict=True),
    "hessian by an unknown strategy": lambda d: d.old_hessian(squares, d.x, outer_jacobian_strategy="x"),
    "vjp": lambda d: (d.old_vjp(lambda a: a * a, d.x, d.y), d.old_vjp(lambda a: a * a, d.x, (d.y,))),
    "vjp of two by two": lambda d: d.old_vjp(lambda a, b: (a * b, a.sum()), (d.x, d.y), (d.x, d.one)),
    "vjp of one number": lambda d: (d.old_vjp(squares, d.x), d.old_vjp(lambda a: (a.sum(),), d.x)),
    "vjp that is recorded": lambda d: d.old_vjp(lambda a: a * a, d.tracked, d.y, create_graph=True, strict=True),
    "vjp without v": lambda d: d.old_vjp(double, d.x),
    "vjp with v of a wrong shape": lambda d: d.old_vjp(double, d.x, d.short),
    "vjp with v of another dtype": lambda d: (d.old_vjp(double, d.x, d.single), d.old_vjp(double, d.single, d.x), d.old_vhp(squares, d.single, d.x)),
    "vjp with v of integers": lambda d: d.old_vjp(double, d.x, d.ints),
    "vjp with complex v": lambda d: d.old_vjp(double, d.x, d.complex),
    "jvp with v of another dtype": lambda d: (d.old_jvp(double, d.x, d.single), d.old_jvp(double, d.single, d.x)),
    "vjp with two v": lambda d: d.old_vjp(double, d.x, (d.x, d.x)),
    "vjp with a list": lambda d: d.old_vjp(double, d.x, [d.y]),
    "vjp of a part, strictly": lambda d: d.old_vjp(lambda a, b: a * 1, (d.x, d.y), d.y, strict=True),
    "jvp": lambda d: (d.old_jvp(lambda a: a * a, d.x, d.y), d.old_jvp(squares, d.short)),
    "jvp of two by two": lambda d: d.old_jvp(lambda a, b: (a * b, a.sum()), (d.x, d.y), (d.y, d.x)),
    "jvp of a constant": lambda d: d.old_jvp(lambda a: d.y * 1, d.x, d.y),
    "jvp that is recorded": lambda d: d.old_jvp(lambda a: a * a, d.tracked, d.y, create_graph=True),
    "jvp of a constant, strictly": lambda d: d.old_jvp(lambda a: d.y * 1, d.x, d.y, strict=True),
    "jvp of a part, strictly": lambda d: d.old_jvp(lambda a, b: a * 1, (d.x, d.y), (d.y, d.x), strict=True),
    "jvp of a linear function, strictly": lambda d: d.old_jvp(double, d.tracked, d.y, create_graph=True, strict=True),
    "jvp without v": lambda d: d.old_jvp(double, d.x),
    "hvp and vhp": lambda d: [p(lambda a: (a**3).sum(), d.x, d.y) for p in (d.old_hvp, d.old_vhp)],
    "hvp and vhp of two": lambda d: [p(lambda a, b: (a**2 * b).sum(), (d.x, d.y), (d.y, d.x)) for p in (d.old_hvp, d.old_vhp)],
    "hvp and vhp that are recorded": lambda d: [p(lambda a: (a**3).sum(), d.tracked, d.y, create_graph=True) for p in (d.old_hvp, d.old_vhp)],
    "hvp of a constant": lambda d: d.old_hvp(lambda a: d.y.sum(), d.x, d.y),
    "vhp of a linear function, strictly": lambda d: d.old_vhp(lambda a, b: squares(a) + b.sum(), (d.x, d.y), (d.x, d.y), strict=True),
    "hvp of several elements": lambda d: d.old_hvp(double, d.x, d.y),
    "vhp without v": lambda d: d.old_vhp(squares, d.x),
}
# fmt: on
