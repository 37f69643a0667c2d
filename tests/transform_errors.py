"""Programs of transforms that must raise; see `transform_programs`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from transform_programs import Data, Program, program

ERRORS: dict[str, Program] = {}


def error(name: str) -> Callable[[Program], Program]:
    """A program that must raise."""
    return program(name, ERRORS)


@error("42 examples written into a shared tensor")
def _(t):
    d = Data(t)
    return t.vmap(lambda x: d.c.copy_(x))(d.m)


@error("42 inner examples written into an outer one")
def _(t):
    d = Data(t)
    return t.vmap(lambda x: t.vmap(lambda y: x.mul_(y))(d.x))(d.x)


@error("43 an input of a gradient written into")
def _(t):
    return t.grad(lambda x: x.mul_(2).sum())(Data(t).x)


@error("43 a view of an input written into")
def _(t):
    def function(x):
        x[0].mul_(2)
        return x.sum()

    return t.grad(function)(Data(t).x)


@error("43 a leaf written into by its examples")
def _(t):
    return t.vmap(lambda x: x.mul_(2))(Data(t).m.requires_grad_())


def spoiled(x: Any) -> Any:
    """A factor that its gradient needs is changed."""
    y = x * 1
    z = y * y
    y.mul_(2)
    return z.sum()


@error("44 a saved tensor written into, gradient")
def _(t):
    return t.grad(spoiled)(Data(t).x)


@error("44 a saved tensor written into, gradients of examples")
def _(t):
    return t.vmap(t.grad(spoiled))(Data(t).m)


@error("44 a saved tensor written into, gradient of vmap")
def _(t):
    return t.grad(lambda m: t.vmap(spoiled)(m).sum())(Data(t).m)


@error("45 a captured tensor written before the pullback")
def _(t):
    d = Data(t)
    _, pull = t.vjp(lambda a: a * d.c, d.x)
    d.c.mul_(2)
    return pull(d.x)


@error("46 an expanded input written into")
def _(t):
    return t.vmap(lambda x: x.mul_(2))(Data(t).x.expand(2, 3))


@error("47 a captured tensor written into, tracked")
def _(t):
    d = Data(t)
    return t.grad(lambda x: d.c.copy_(x).sum())(d.x)


@error("53 a Python number of an example")
def _(t):
    return t.vmap(lambda x: x * x.sum().item())(Data(t).m)


@error("53 a Python condition on an example")
def _(t):
    return t.vmap(lambda x: x if x.sum() > 0 else -x)(Data(t).m)


@error("53 batches of different sizes")
def _(t):
    d = Data(t)
    return t.vmap(lambda a, b: a + b)(d.m, d.q)


@error("53 the gradient of something that is not one number")
def _(t):
    return t.grad(lambda x: x * 2)(Data(t).x)


@error("53 no out_dims for a batched result")
def _(t):
    return t.vmap(lambda x: x * 2, out_dims=None)(Data(t).m)


@error("53 requires_grad_ of an example")
def _(t):
    return t.vmap(lambda x: x.requires_grad_())(Data(t).m)


def leaking(t: Any) -> Any:
    """An example of a vmap that is over."""
    kept = []
    t.vmap(lambda x: (kept.append(x), x)[1])(Data(t).m)
    return kept[0]


@error("54 an example used after its vmap")
def _(t):
    return leaking(t) * 2


@error("54 an example used in the next vmap")
def _(t):
    kept = leaking(t)
    return t.vmap(lambda x: x + kept)(Data(t).m)


@error("54 an example used in another thread")
def _(t):
    def elsewhere(x):
        found = []

        def run():
            try:
                x * 2
            except Exception as error:  # noqa: BLE001 - raised again below
                found.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        if found:
            raise found[0]
        return x

    return t.vmap(elsewhere)(Data(t).m)


@error("55 random numbers that nobody asked for")
def _(t):
    return t.vmap(lambda x: x + t.rand(3))(Data(t).m)


@error("55 random numbers that differ, for a shared tensor")
def _(t):
    d = Data(t)
    return t.vmap(lambda x: d.c.uniform_() + x, randomness="different")(d.m)
