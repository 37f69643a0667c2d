"""Programs of transforms that must raise; see `transform_programs`."""

from __future__ import annotations

from typing import Any

from outcomes import in_threads
from transform_programs import Data, programs


def view_of_an_input_written_into(t, d):
    def function(x):
        x[0].mul_(2)
        return x.sum()

    return t.grad(function)(d.x)


def spoiled(x: Any) -> Any:
    """A factor that its gradient needs is changed."""
    y = x * 1
    z = y * y
    y.mul_(2)
    return z.sum()


def captured_tensor_written_before_the_pullback(t, d):
    _, pull = t.vjp(lambda a: a * d.c, d.x)
    d.c.mul_(2)
    return pull(d.x)


def leaking(t: Any, d: Data) -> Any:
    """An example of a vmap that is over."""
    kept = []
    t.vmap(lambda x: (kept.append(x), x)[1])(d.m)
    return kept[0]


def example_used_in_the_next_vmap(t, d):
    kept = leaking(t, d)
    return t.vmap(lambda x: x + kept)(d.m)


def example_used_in_another_thread(t, d):
    def elsewhere(x):
        found = []

        def run():
            try:
                x * 2
            except Exception as error:  # noqa: BLE001 - raised again below
                found.append(error)

        in_threads(run)
        if found:
            raise found[0]
        return x

    return t.vmap(elsewhere)(d.m)


# fmt: off
ERRORS = programs({
    "42 examples written into a shared tensor": lambda t, d: t.vmap(lambda x: d.c.copy_(x))(d.m),
    "42 inner examples written into an outer one": lambda t, d: t.vmap(lambda x: t.vmap(lambda y: x.mul_(y))(d.x))(d.x),
    "43 an input of a gradient written into": lambda t, d: t.grad(lambda x: x.mul_(2).sum())(d.x),
    "43 a view of an input written into": view_of_an_input_written_into,
    "43 a leaf written into by its examples": lambda t, d: t.vmap(lambda x: x.mul_(2))(d.m.requires_grad_()),
    "44 a saved tensor written into, gradient": lambda t, d: t.grad(spoiled)(d.x),
    "44 a saved tensor written into, gradients of examples": lambda t, d: t.vmap(t.grad(spoiled))(d.m),
    "44 a saved tensor written into, gradient of vmap": lambda t, d: t.grad(lambda m: t.vmap(spoiled)(m).sum())(d.m),
    "45 a captured tensor written before the pullback": captured_tensor_written_before_the_pullback,
    "46 an expanded input written into": lambda t, d: t.vmap(lambda x: x.mul_(2))(d.x.expand(2, 3)),
    "47 a captured tensor written into, tracked": lambda t, d: t.grad(lambda x: d.c.copy_(x).sum())(d.x),
    "53 a Python number of an example": lambda t, d: t.vmap(lambda x: x * x.sum().item())(d.m),
    "53 a Python condition on an example": lambda t, d: t.vmap(lambda x: x if x.sum() > 0 else -x)(d.m),
    "53 batches of different sizes": lambda t, d: t.vmap(lambda a, b: a + b)(d.m, d.q),
    "53 the gradient of something that is not one number": lambda t, d: t.grad(lambda x: x * 2)(d.x),
    "53 no out_dims for a batched result": lambda t, d: t.vmap(lambda x: x * 2, out_dims=None)(d.m),
    "53 requires_grad_ of an example": lambda t, d: t.vmap(lambda x: x.requires_grad_())(d.m),
    "54 an example used after its vmap": lambda t, d: leaking(t, d) * 2,
    "54 an example used in the next vmap": example_used_in_the_next_vmap,
    "54 an example used in another thread": example_used_in_another_thread,
    "55 random numbers that nobody asked for": lambda t, d: t.vmap(lambda x: x + t.rand(3))(d.m),
    "55 random numbers that differ, for a shared tensor":
        lambda t, d: t.vmap(lambda x: d.c.uniform_() + x, randomness="different")(d.m),
})
# fmt: on
