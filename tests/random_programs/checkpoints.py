"""Random chains of operators in nested checkpoints: dropout, writes, views, several arguments and results.

A program is nested lists: a string is a step, a list a checkpoint. The same program runs plainly and with checkpoints, or in two
libraries.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import turnout

# Each takes the library and the two tensors that a chain goes on with, and returns the next two. None grows.
STEPS: dict[str, Callable[[Any, Any, Any], tuple[Any, Any]]] = {
    "sin": lambda t, x, y: (x.sin(), y),
    "tanh": lambda t, x, y: (x.tanh(), y.sigmoid()),
    "product": lambda t, x, y: ((x * y).tanh(), y),
    "matmul": lambda t, x, y: (y, ((x @ y.t()) @ x).tanh()),
    "swap": lambda t, x, y: (y, x),
    "write": lambda t, x, y: ((x + 1).mul_(y).sin(), y),
    "view": lambda t, x, y: (t.cat([(x[:1] * y[1:2]).tanh(), x[1:]]), y),
    "softmax": lambda t, x, y: (t.nn.functional.softmax(x, dim=-1), y),
    "norm": lambda t, x, y: (x, t.nn.functional.layer_norm(y, [3])),
    "no_grad": lambda t, x, y: (x, (y + _without(t, x)).tanh()),
    "detach": lambda t, x, y: ((x * y.detach()).cos(), y),
    "max": lambda t, x, y: (x - x.max(dim=1, keepdim=True)[0], y),
}
DRAWS: dict[str, Callable[[Any, Any, Any], tuple[Any, Any]]] = {
    "dropout": lambda t, x, y: (t.nn.functional.dropout(x, 0.3), y),
    "rand": lambda t, x, y: (x, y * t.rand(2, 3)),
}
Program = list[Any]


def _without(t: Any, x: Any) -> Any:
    with t.no_grad():
        return x.square()


def draw(seed: int, *, draws: bool, depth: int = 3) -> Program:
    """A random program; with `draws` it makes random numbers."""
    rng = random.Random(seed)
    names = [*STEPS, *(DRAWS if draws else ())]

    def chain(depth: int) -> Program:
        return [chain(depth - 1) if depth and rng.random() < 0.4 else rng.choice(names) for _ in range(rng.randrange(1, 5))]

    return [chain(depth - 1) for _ in range(rng.randrange(1, 4))]


def run(t: Any, program: Program, checkpoint: Callable[..., Any], *, again: bool = False) -> list[Any]:
    """The results of a program, and gradients of first and second order; with `again` also those of a second backward pass."""
    x = t.tensor([[0.1, 0.5, -0.3], [0.7, -0.2, 0.4]], dtype=t.float64, requires_grad=True)
    y = t.tensor([[0.3, -0.6, 0.2], [-0.1, 0.8, 0.5]], dtype=t.float64, requires_grad=True)
    steps = STEPS | DRAWS

    def apply(part: Any, a: Any, b: Any) -> tuple[Any, Any]:
        if isinstance(part, str):
            return steps[part](t, a, b)
        return checkpoint(lambda a, b: chain(part, a, b), a, b)

    def chain(parts: Program, a: Any, b: Any) -> tuple[Any, Any]:
        for part in parts:
            a, b = apply(part, a, b)
        return a, b

    a, b = chain(program, x * 1, y * 1)
    loss = (a * b).sum()
    first = t.autograd.grad(loss, (x, y), create_graph=True, materialize_grads=True)
    found = [a, b, *first]
    if again:
        found += t.autograd.grad(loss, (x, y), retain_graph=True, materialize_grads=True)
    squares = sum(g.square().sum() for g in first)
    if squares.requires_grad:
        found += t.autograd.grad(squares, (x, y), materialize_grads=True)
    return [each.tolist() for each in found]


def plainly(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return function(*args)


def differs(program: Program, **options: Any) -> bool:
    """Whether a program gives something else with checkpoints than without."""
    found = []
    for call in (plainly, turnout.utils.checkpoint.checkpoint):
        turnout.manual_seed(0)
        found.append(run(turnout, program, lambda f, *args, call=call: call(f, *args, **options), again=True))
    return found[0] != found[1]


def shorter(program: Program) -> Iterator[Program]:
    """The programs with one part less, or with the parts of a checkpoint in its place."""
    for i, part in enumerate(program):
        yield program[:i] + program[i + 1 :]
        if isinstance(part, list):
            yield program[:i] + part + program[i + 1 :]
            yield from (program[:i] + [less] + program[i + 1 :] for less in shorter(part))


def shrunk(program: Program, fails: Callable[[Program], bool]) -> Program:
    """A program that fails too and of which no part can be left out."""
    for less in shorter(program):
        if fails(less):
            return shrunk(less, fails)
    return program


def compare(seed: int, **options: Any) -> None:
    """Check that a program gives the same with checkpoints as without."""
    program = draw(seed, draws=True)
    if differs(program, **options):
        least = shrunk(program, lambda less: differs(less, **options))
        lines = ("import turnout", "from random_programs.checkpoints import differs", f"print(differs({least!r}, **{options!r}))")
        raise AssertionError("\n".join([f"with checkpoints the program of seed {seed} gives something else", *lines]))
