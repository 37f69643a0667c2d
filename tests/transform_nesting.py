"""Random nestings of transforms, for the libraries that `transform_programs` are written for; a seed always gives one program.

A program is a vector function of vectors: an expression over those in scope (a captured one, the input, and one for each
transform around), in which some parts are transforms of inner functions. Values stay small, so that results compare closely.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

Vectors = tuple[Any, ...]
Expression = Callable[[Any, Vectors], Any]


class Nesting:
    """The program of a seed, up to `depth` transforms deep.

    names    what it is made of, for people
    forward  whether it has what only forward mode can do: writes into inputs and into what a gradient needs, views of those, and
             no_grad that does not stop tangents. The plain loops cannot, as their tangents are those of gradients
    """

    def __init__(self, seed: int, depth: int = 3, forward: bool = False) -> None:
        self.draw = random.Random(seed)
        self.names: list[str] = []
        self.forward = forward
        self._forward = 0
        self._input: int | None = None  # the vector that is the input of the innermost transform, if that is in forward mode
        self.body = self._expression(2, depth)
        self.backward = self.draw.random() < 0.4
        self.is_traced = self.draw.random() < 0.3

    def __call__(self, t: Any) -> Any:
        """The results: the value, and the gradients of the leaves where the program ends with backward()."""
        c, x = t.tensor([0.5, -0.75, 1.25]), t.tensor([0.25, 1.0, -0.5])
        if self.backward:
            c, x = c.requires_grad_(), x.requires_grad_()

        def function(c: Any, x: Any) -> Any:
            return self.body(t, (c, x))

        if self.is_traced:
            function = t.traced(function, (t.leaf(c) if self.backward else c * 2, t.leaf(x) if self.backward else x - 1))
        made = function(c, x)
        if not self.backward or not made.requires_grad:
            return (made,)
        (made * made).sum().backward()
        return made, *[t.zeros(3) if leaf.grad is None else leaf.grad for leaf in (c, x)]

    # ---- expressions

    def _expression(self, size: int, depth: int) -> Expression:
        """With `size` vectors in scope, and at most `depth` transforms inside of one another."""
        kinds = PLAIN + TRANSFORMS * 2 if depth else PLAIN
        if self.forward:
            kinds += FORWARD + SECOND if depth else FORWARD
        kind = self.draw.choice(kinds)
        self.names.append(kind)
        made: Expression = getattr(self, f"_{kind}")(size, depth)
        return made

    def _vector(self, size: int) -> Expression:
        """One in scope, often the newest."""
        at = self.draw.choice([size - 1, size - 1, self.draw.randrange(size)])
        return lambda t, scope: scope[at]

    def _part(self, size: int, depth: int) -> Expression:
        return self._expression(size, depth) if self.draw.random() < 0.4 else self._vector(size)

    def _product(self, size: int, depth: int) -> Expression:
        a, b = self._part(size, depth), self._vector(size)
        return lambda t, scope: a(t, scope).sin() * b(t, scope)

    def _sum(self, size: int, depth: int) -> Expression:
        a, b = self._part(size, depth), self._part(size, depth)
        return lambda t, scope: a(t, scope) * 0.5 - b(t, scope)

    def _total(self, size: int, depth: int) -> Expression:
        a, b = self._part(size, depth), self._vector(size)
        return lambda t, scope: b(t, scope) * a(t, scope).cos().sum() * 0.25

    def _choice(self, size: int, depth: int) -> Expression:
        a, b = self._part(size, depth), self._vector(size)

        def choose(t: Any, scope: Vectors) -> Any:
            y, z = a(t, scope), b(t, scope)
            return t.where(y > 0.1, y * z, z)

        return choose

    def _running(self, size: int, depth: int) -> Expression:
        a = self._part(size, depth)
        return lambda t, scope: a(t, scope).sin().cumsum(0) * 0.5

    def _softmax(self, size: int, depth: int) -> Expression:
        a = self._part(size, depth)
        return lambda t, scope: a(t, scope).softmax(0)

    def _writes(self, size: int, depth: int) -> Expression:
        """Into views of something new, which is batched and tracked wherever what is written is."""
        a, b = self._part(size, depth), self._vector(size)

        def write(t: Any, scope: Vectors) -> Any:
            y, z = a(t, scope), b(t, scope)
            base = y + z * 0
            view = base[0]
            view.mul_(z[1])
            base[1:].add_(z[:2])
            base[2].copy_(z[1] * y[0])
            base.sin_()
            return base * view

        return write

    def _constant(self, size: int, depth: int) -> Expression:
        a, b = self._vector(size), self._vector(size)
        # Tangents do not stop at no_grad, but at detach.
        detached = (self._forward > 0 and not self.forward) or self.draw.random() < 0.5

        def keep(t: Any, scope: Vectors) -> Any:
            y = a(t, scope)
            if detached:
                return b(t, scope) * (y * y).detach()
            with t.no_grad():
                fixed = y * y
            return b(t, scope) * fixed

        return keep

    def _itself(self, size: int, depth: int) -> Expression:
        """A vector as it is: transforms may return what they were given, and aliases of it."""
        a, view = self._vector(size), self.draw.choice(["all", "row"])
        return lambda t, scope: VIEWS[view](a(t, scope)).reshape(3)

    def _target(self) -> tuple[int | None, str]:
        """What to write into: the place of a transform's input, or None for something new; and by which operator."""
        on_input = self._input is not None and self.draw.random() < 0.6
        return self._input if on_input else None, self.draw.choice([*WRITES])

    def _overwrites(self, size: int, depth: int) -> Expression:
        """Writes into the input of a transform in forward mode, or into something new, after it was used or before."""
        a, b, (at, how) = self._part(size, depth), self._vector(size), self._target()
        view, late, recorded = self.draw.choice([*VIEWS]), self.draw.random() < 0.4, self.draw.random() < 0.8
        self.names.append(f"({how} into {view} of {'something new' if at is None else 'an input'}, {late=}, {recorded=})")

        def overwrite(t: Any, scope: Vectors) -> Any:
            y, z = a(t, scope), b(t, scope) * 0.5
            target = y * z if at is None else scope[at]
            before = target * target if late else y
            with nullcontext() if recorded else t.no_grad():
                WRITES[how](VIEWS[view](target), VIEWS[view](z))
            target[0].sin_()
            return before * target + y

        return overwrite

    def _viewed(self, size: int, depth: int) -> Expression:
        """Views that are older than a write into their base, or into another view of it, and are used after it."""
        a, b, (at, how) = self._part(size, depth), self._vector(size), self._target()
        older, written, newer = [self.draw.choice([*VIEWS]) for _ in range(3)]
        recorded, again = self.draw.random() < 0.8, self.draw.random() < 0.3
        which = f"{how} into {written} of {'something new' if at is None else 'an input'}"
        self.names.append(f"({which}, {older=}, {newer=}, {recorded=}, {again=})")

        def look(t: Any, scope: Vectors) -> Any:
            y, z = a(t, scope), b(t, scope) * 0.5
            base = y + z * 0 if at is None else scope[at]
            with nullcontext() if recorded else t.no_grad():
                view = VIEWS[older](base)
            WRITES[how](VIEWS[written](base), VIEWS[written](z))
            if again:
                view.mul_(0.5)
            return base * view.sum().sin() + VIEWS[newer](base).sum().cos() * z

        return look

    def _cast(self, size: int, depth: int) -> Expression:
        a, on = self._part(size, depth), self.draw.random() < 0.7

        def inside(t: Any, scope: Vectors) -> Any:
            with t.cast(enabled=on):
                return a(t, scope) * 1

        return inside

    # ---- transforms

    def _inner(self, size: int, depth: int, input: int | None = None) -> Expression:
        """The function that a transform is of; `input` is the input's place if the transform is in forward mode."""
        around = self._input
        self._input = input
        self._forward += input is not None
        made = self._expression(size, depth - 1)
        self._forward -= input is not None
        self._input = around
        return made

    def _grad(self, size: int, depth: int) -> Expression:
        inner, a = self._inner(size + 1, depth), self._part(size, depth - 1)
        return lambda t, scope: t.grad(lambda y: inner(t, (*scope, y)).sin().sum())(a(t, scope))

    def _vmap(self, size: int, depth: int) -> Expression:
        inner = self._inner(size + 2, depth)
        a, b, shared = self._part(size, depth - 1), self._vector(size), self._vector(size)
        first, out, both = self.draw.choice([0, 1]), self.draw.choice([0, 1]), self.draw.random() < 0.5

        def mapped(t: Any, scope: Vectors) -> Any:
            rows = t.stack([a(t, scope), b(t, scope) * 0.5], first)
            other = t.stack([shared(t, scope), a(t, scope)], -1) if both else shared(t, scope)
            dims = (first, 1 if both else None)
            found = t.vmap(lambda r, s: inner(t, (*scope, s, r)), dims, out)(rows, other)
            return found.sum(out)

        return mapped

    def _vjp(self, size: int, depth: int) -> Expression:
        inner, a, v = self._inner(size + 1, depth), self._vector(size), self._part(size, depth - 1)
        rows = self.draw.random() < 0.5

        def pulled(t: Any, scope: Vectors) -> Any:
            y, pull = t.vjp(lambda y: inner(t, (*scope, y)), a(t, scope))
            u = v(t, scope)
            if rows:
                return t.vmap(lambda u: pull(u)[0])(t.stack([u, y, u * y])).sum(0)
            return pull(u)[0] + pull(y)[0]

        return pulled

    def _jvp(self, size: int, depth: int) -> Expression:
        inner = self._inner(size + 1, depth, size)
        a, v = self._vector(size), self._vector(size)

        def pushed(t: Any, scope: Vectors) -> Any:
            y, tangent = t.jvp(lambda y: inner(t, (*scope, y)), (a(t, scope) * 1,), (v(t, scope) * 1,))
            return y * tangent

        return pushed

    def _jacobian(self, size: int, depth: int) -> Expression:
        kind = self.draw.choice(["jacrev", "jacfwd"])
        inner = self._inner(size + 1, depth, size if kind == "jacfwd" else None)
        a, v = self._vector(size), self._vector(size)

        def multiplied(t: Any, scope: Vectors) -> Any:
            matrix = getattr(t, kind)(lambda y: inner(t, (*scope, y)).sin())(a(t, scope) * 1)
            return matrix.cos() @ v(t, scope)

        return multiplied

    def _hessian(self, size: int, depth: int) -> Expression:
        inner = self._inner(size + 1, depth)
        a, v = self._vector(size), self._vector(size)

        def multiplied(t: Any, scope: Vectors) -> Any:
            return t.hessian(lambda y: (inner(t, (*scope, y)) * 0.5).sin().sum())(a(t, scope)).sin() @ v(t, scope)

        return multiplied

    def _linearize(self, size: int, depth: int) -> Expression:
        inner = self._inner(size + 1, depth, size)
        a, v = self._vector(size), self._vector(size)

        def pushed(t: Any, scope: Vectors) -> Any:
            y, push = t.linearize(lambda y: inner(t, (*scope, y)), a(t, scope) * 1)
            return y * push(v(t, scope) * 1)

        return pushed


PLAIN = ("product", "sum", "total", "choice", "running", "softmax", "writes", "constant", "cast")
TRANSFORMS = ("grad", "vmap", "vjp", "jvp", "jacobian")
FORWARD = ("overwrites", "overwrites", "viewed", "itself")
SECOND = ("hessian", "linearize")

# Views of three numbers that may be written into.
VIEWS: dict[str, Callable[[Any], Any]] = {
    "all": lambda x: x.view(3),
    "head": lambda x: x[:2],
    "element": lambda x: x[1],
    "row": lambda x: x.unsqueeze(0),
    "column": lambda x: x.view(3, 1),
    "turned": lambda x: x.view(3, 1).transpose(0, 1),
    "chain": lambda x: x.unsqueeze(1)[1:].squeeze(1),
    "part of a part": lambda x: x[1:][:1],
}
WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "product": lambda view, z: view.mul_(z),
    "sum": lambda view, z: view.add_(z, alpha=0.5),
    "copy": lambda view, z: view.copy_(z),
    "function": lambda view, z: view.sin_(),
    "zeros": lambda view, z: view.zero_(),
    "constant": lambda view, z: view.fill_(0.5),
    "constants": lambda view, z: view.copy_(z.detach()),
    "unseen": lambda view, z: view.detach().mul_(0.5),
}
