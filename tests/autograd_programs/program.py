"""A whole program: leaves, steps, and the gradients that are taken at the end."""

from __future__ import annotations

from typing import Any

from autograd_programs import functions, views, writes
from autograd_programs.draw import Draw, Made, Shape, Var
from autograd_programs.steps import Step, Steps, size, squares
from autograd_programs.tape import TAPE

STEPS = 20
SHAPES = [(3, 3), (2, 3), (4,), (3,), (2, 1, 3), (2, 2, 2), (3, 2)]


class Program:
    """The program of a seed; `str()` gives its text.

    leaves  the first steps, which make one leaf each
    starts  the names of those leaves that gradients are taken of
    steps   what follows
    ends    the names of what gradients are taken from at the end

    A `smooth` program is a function of its leaves: nothing stops, changes or takes gradients on the way.
    """

    def __init__(self, seed: int, smooth: bool = False, steps: int = STEPS) -> None:
        d = Draw(seed, smooth)
        s = Steps(d)
        self.leaves = [_leaf(s, name, *kind) for name, kind in zip("abcdef", _kinds(d), strict=False)]
        self.starts = s.starts
        for x in list(d.scope):
            if x.tracked or d.chance(0.5):
                _copy(s, x)
        kinds = [(28, _view), (45, _write), (18, _function), (4, _several), (3, _turn)] + TAPE * (not smooth)
        weights, makers = zip(*kinds, strict=True)
        while len(s.done) < steps:
            d.used.clear()
            if not smooth and d.chance(0.03 if s.recording else 0.2):
                s.switch()
            else:
                d.choices(makers, weights)[0](s)
        ends = [v for v in d.scope if v.dtype != "int64" and d.chance(0.9 if v.tracked and not v.memory.leaf else 0.1)]
        self.ends = [v.name for v in d.sample(ends, min(len(ends), 5))]
        if not smooth:
            _finish(s, self.ends)
        self.steps = s.done

    def __str__(self) -> str:
        return "\n".join(["import torch as t", "ends = []", *[step.code for step in [*self.leaves, *self.steps]]])


def _kinds(d: Draw) -> list[tuple[str, bool]]:
    """Of each leaf, the dtype, and whether it requires a gradient."""
    kinds = [("float64", True), ("float64", True), ("float64", False)]
    if not d.smooth:
        kinds += [("float32", d.chance(0.7))] * d.chance(0.15) + [("complex128", d.chance(0.7))] * d.chance(0.2)
        kinds += [("int64", False)] * d.chance(0.2)
    return kinds


def _leaf(s: Steps, name: str, dtype: str, tracked: bool) -> Step:
    shape = s.draw.choice(SHAPES)
    s.declare(name, shape, dtype, tracked).memory.leaf = tracked
    if tracked:
        s.starts.append(name)
    text = f"t.tensor({_values(s.draw, shape, dtype)}, dtype=t.{dtype})"
    return Step(f"{name} = {text}{'.requires_grad_()' * tracked}", (name,))


def _values(d: Draw, shape: Shape, dtype: str) -> Any:
    if shape:
        return [_values(d, shape[1:], dtype) for _ in range(shape[0])]
    if dtype == "int64":
        return d.randint(-3, 3)
    real = round(d.uniform(-1, 1), 3)
    return complex(real, round(d.uniform(-1, 1), 3)) if dtype == "complex128" else real


def _copy(s: Steps, x: Var) -> None:
    """Something to write into."""
    s.draw.used[:] = [x]
    s.assign(Made(s.draw.choice([f"{x}.clone()", f"{x} + 0"] + [f"{x} * 1"] * (not s.draw.frees)), x.shape), x)


# ---- steps


def _view(s: Steps) -> None:
    d, x = s.draw, s.any()
    kind = d.choice(sorted(views.VIEWS))
    made = None if kind == "detach" and d.smooth else views.VIEWS[kind](d, x)
    if made is None or (made.dtype == "complex128" and d.smooth):
        return
    # Views of tracked bases that are made where nothing is recorded are of little use to anyone.
    mode = s.mode(("no_grad", "enable_grad"), 0.03 if x.tracked else 0.1)
    name = s.name()
    s.say(f"{name} = {made.text}", (name,), mode=mode)
    shares = kind != "detach"
    hidden = x.unrecorded or not s.records(mode)
    dtype = made.dtype or x.dtype
    x.memory.parts |= bool(made.dtype)
    d.scope.append(Var(name, made.shape, dtype, x.tracked and shares, shares, x.several, hidden, memory=x.memory))


def _several(s: Steps) -> None:
    d, x = s.draw, s.any()
    found = views.SEVERAL[d.choice(sorted(views.SEVERAL))](d, x)
    if found is None:
        return
    text, shapes = found
    if d.chance(0.4):
        i = d.randrange(len(shapes))
        text, shapes = f"({text}[{i}],)", [shapes[i]]
    names = tuple(s.name() for _ in shapes)
    s.say(f"{', '.join(names)}, = {text}", names)
    for name, shape in zip(names, shapes, strict=True):
        d.scope.append(Var(name, shape, x.dtype, x.tracked, True, True, x.unrecorded, memory=x.memory))


def _write(s: Steps) -> None:
    d = s.draw
    mode = s.mode(("no_grad", "inference_mode", "enable_grad"))
    x = s.target(mode)
    if x is None:
        return
    kind = d.choice(sorted(writes.LINEAR) * 2 + sorted(writes.SAVING))
    # Some writes are a function and a copy here, through which the hooks of a view see a gradient.
    if (x.dtype != "float64" and kind in writes.REAL) or (x.memory.hooked and kind in ("masked_scatter_", "put_")):
        return
    saves = kind in writes.SAVING
    text = (writes.SAVING if saves else writes.LINEAR)[kind](d, x)
    if text is None:
        return
    s.say(text, writes=x.name, mode=mode)
    if s.records(mode):
        tracked = x.dtype != "int64" and any(v.tracked for v in d.used)
        for v in d.scope:
            v.tracked |= tracked and v.memory is x.memory
        for v in d.used:
            v.memory.saved |= saves


def _function(s: Steps) -> None:
    d, x = s.draw, s.any()
    kind = d.choice(sorted(functions.LINEAR) * 2 + sorted(functions.SAVING))
    if (x.dtype in ("int64", "complex128") and kind in functions.REAL) or (kind == "convert" and d.smooth):
        return
    saves = kind in functions.SAVING
    made = (functions.SAVING if saves else functions.LINEAR)[kind](d, x)
    if made is None:
        return
    result = s.assign(made, x, s.mode(("no_grad", "enable_grad")))
    for v in [*d.used, result] if result.tracked else ():
        v.memory.saved |= saves


def _turn(s: Steps) -> None:
    d, x = s.draw, s.target("")
    # What is tracked keeps its shape where nothing is recorded: gradients of what was computed before have the old one.
    # And PyTorch loses the in-place views of complex numbers made of parts, or of parts, when it follows their base.
    if x is None or x.memory.twice or x.memory.parts or (x.tracked and not s.recording) or (x.several and d.chance(0.8)):
        return
    text, shape = d.choice(writes.turns(d, x))
    s.say(text, writes=x.name)
    x.shape = shape


# ---- the end


def _finish(s: Steps, ends: list[str]) -> None:
    """Gradients of the ends, then of all of them together, twice."""
    if not s.recording:
        s.switch()
    for x in map(s.var, ends):
        name, grads = s.name(), tuple(s.name() for _ in s.starts)
        s.draw.used[:] = [x]
        s.say(f"{name} = {size(x)}\n{_gradients(s, grads, name, 'retain_graph')}\nends.append({name})", (name, *grads))
    first, second = (tuple(s.name() for _ in s.starts) for _ in range(2))
    s.done.append(Step(_gradients(s, first, "sum(ends)", "create_graph"), first))
    s.done.append(Step(_gradients(s, second, " + ".join(map(squares, first)), "retain_graph"), second, first))
    s.done.append(Step("sum(ends).backward()"))


def _gradients(s: Steps, names: tuple[str, ...], end: str, option: str) -> str:
    asked = f"{end}, [{', '.join(s.starts)}], {option}=True, allow_unused=True, materialize_grads=True"
    return f"{', '.join(names)}, = (g.contiguous() for g in t.autograd.grad({asked}))"
