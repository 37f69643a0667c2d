"""Programs of transforms together with autocast, traces and custom operators; see `transform_programs`."""

from __future__ import annotations

from typing import Any

from transform_programs import cube, programs, sines, squares, written

# ---- autocast: small whole numbers and halves, so that lower precision rounds nothing


def autocast_outside_inside_and_off_inside(t, _):
    w, m = layer(t)

    def plain(x):
        return squares(t.float(w @ x))

    def cast(x):
        with t.cast():
            return plain(x)

    def off(x):
        with t.cast(enabled=False):
            y = w @ x
        return t.code(y), squares(y)

    def dtypes(x):
        with t.cast():
            y = w @ x
            return t.code(y), t.code(x @ x), t.code(t.vmap(lambda r: r @ x)(w)), t.code(y + x)

    inside = t.vmap(cast)(m), t.vmap(t.grad(cast))(m), t.grad(lambda m: t.vmap(cast)(m).sum())(m), t.vmap(dtypes)(m)
    with t.cast():
        around = t.vmap(plain)(m), t.vmap(t.grad(plain))(m), t.vmap(off)(m), t.code(t.vmap(lambda x: w @ x)(m))
    return inside, around


def autocast_with_backward(t, _):
    w, m = layer(t)
    w.requires_grad_()
    with t.cast():
        y = t.vmap(lambda x: w @ x)(m)
        g = t.vmap(t.grad(lambda x: squares(t.float(w @ x))))(m)
    (squares(t.float(y)) + g.sum()).backward()
    return t.code(y), t.code(g), t.code(w.grad), g, w.grad


def layer(t: Any) -> Any:
    """A weight and rows in float32."""
    return t.single([[1.0, 0.5, -2.0], [0.0, 3.0, 1.0], [-1.0, 2.0, 0.5]]), t.single([[1.0, 2.0, -1.0], [0.5, -3.0, 4.0]])


# ---- traces: recorded with the first inputs, replayed on others


def replays_of_traces(t, d):
    first, other = (d.q,), (d.q * 0.5 + 0.25,)

    def cast(m):
        with t.cast():
            return t.jvp(lambda a: squares(t.float(a @ a)), (m,), (m * 2,))[1]

    w, _ = layer(t)
    return (
        t.traced(t.vmap(lambda x: x.sin() * x.sum()), first)(*other),
        t.traced(t.grad(cube), first)(*other),
        t.traced(t.vmap(t.grad(lambda x: t.vmap(lambda e: e * e * x.sum())(x).sum())), first)(*other),
        t.traced(t.hessian(sines), first)(*other),
        t.traced(t.vmap(t.grad(written)), first)(*other),
        t.vmap(t.traced(t.grad(cube), first))(t.stack([d.q, *other])),
        t.traced(cast, (w,))(w * 2),
    )


def step_of_gradients_of_examples(t, d):
    def step(w, m):
        return w - 0.1 * t.vmap(t.grad(lambda w, x: squares((w * x).sin())), (None, 0))(w, m).sum(0)

    return t.traced(step, (d.c, d.m))(d.x, d.m * 0.5)


def step_of_backward_and_an_update_in_place(t, d):
    def step(w, m):
        t.vmap(lambda x: squares((w * x).sin()))(m).sum().backward()
        with t.no_grad():
            w.add_(-0.1 * w.grad)
        return w * 1

    graph = t.traced(step, (t.leaf(d.c), d.m))
    leaf = t.leaf(d.x)
    return graph(leaf, d.m * 0.5).detach(), leaf.detach()


# ---- custom operators


def custom_operators(t, d):
    found = []
    for cubed in t.cubes():

        def total(x, cubed=cubed):
            return cubed(x).sum()

        both = t.stack([d.m, d.m + 1])
        found.append((
            t.vmap(cubed, 1)(d.m), t.vmap(t.grad(total))(d.m), t.grad(lambda m, f=total: t.vmap(f)(m).sum())(d.m),
            t.vmap(t.grad(lambda x, f=total: squares(t.grad(f)(x))))(d.m), t.vmap(t.vmap(t.grad(total)))(both),
            t.vmap(lambda x, f=cubed: f(d.c) * x)(d.m),
            t.grad(lambda c, f=cubed: t.vmap(lambda x: (f(c) * x).sum())(d.m).sum())(d.c),
        ))  # fmt: skip
        leaf = t.leaf(d.m)
        t.vmap(cubed)(leaf).sum().backward()
        found.append(leaf.grad)
    return found


# fmt: off
WITH_OTHERS = programs({
    # ---- autocast: small whole numbers and halves, so that lower precision rounds nothing
    "48 autocast outside, inside, and off inside": autocast_outside_inside_and_off_inside,
    "48 autocast with backward": autocast_with_backward,
    # ---- traces: recorded with the first inputs, replayed on others
    "49 replays of traces": replays_of_traces,
    "50 a step of gradients of examples": step_of_gradients_of_examples,
    "50 a step of backward and an update in place": step_of_backward_and_an_update_in_place,
    # ---- custom operators
    "51 custom operators": custom_operators,
})
# fmt: on
