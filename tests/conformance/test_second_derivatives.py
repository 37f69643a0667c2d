"""Second derivatives at drawn points where formulas of first ones make a difference: 0, 1, equal numbers, borders of ranges.

They are those of finite differences of the gradient wherever these say that the gradient has a derivative.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest
from turnout.func import grad, jvp

import turnout
from turnout.errors import TurnoutError
from turnout_conformance.batches import tensors_of
from turnout_conformance.cases import CASES, OperatorCase, Sample, build
from turnout_conformance.comparing import find, tensors

POINTS = (0.0, 0.0, 1.0, -1.0, 2.0, 0.5, -0.5, 3.0)
STEP = 1e-5
Function = Callable[[turnout.Tensor], turnout.Tensor]

MODES: dict[str, Callable[[Function, turnout.Tensor, turnout.Tensor], turnout.Tensor]] = {
    "reverse over reverse": lambda f, x, d: grad(lambda y: (grad(f)(y) * d).sum())(x),
    "forward over reverse": lambda f, x, d: jvp(grad(f), (x,), (d,))[1],
    "reverse over forward": lambda f, x, d: grad(lambda y: jvp(f, (y,), (d,))[1])(x),
}


def drawn_function(random: Random, op: str, sample: Sample) -> tuple[Function, turnout.Tensor]:
    """A weighted sum of a sample's results, as a function of all its numbers in one vector, and a point."""
    leaves = [np.array(t.data, "float64") for t in tensors_of([list(sample.args), sample.kwargs]) if t.dtype is None]
    flat = [float(v) for leaf in leaves for v in leaf.reshape(-1)]
    share = random.choice([0.2, 0.5, 0.9])
    point = [random.choice(POINTS) if random.random() < share else v for v in flat]

    def function(x: turnout.Tensor) -> turnout.Tensor:
        parts = iter(x.split([leaf.size for leaf in leaves]))
        shapes = iter([leaf.shape for leaf in leaves])

        def make(data: Any, dtype: str) -> turnout.Tensor:
            if dtype == "under test":
                return next(parts).reshape(next(shapes))
            return turnout.from_numpy(np.array(data, dtype))

        args, kwargs = build([list(sample.args), sample.kwargs], "under test", make)
        total = x.new_zeros(())
        for made in tensors(find(op)(*args, **kwargs)):
            if made.is_floating_point():
                total = (
                    total + (made * (turnout.arange(1.0, made.numel() + 1).to(made.dtype).sin() + 2).reshape(made.shape)).sum()
                )
        return total

    return function, turnout.tensor(point, dtype=turnout.float64)


def slope(gradient: Function, x: turnout.Tensor, d: turnout.Tensor) -> turnout.Tensor | None:
    """The derivative of the gradient along `d`; None where differences of several steps, or of both sides, are not alike."""
    here = gradient(x)
    found = []
    for step in (STEP, STEP / 4):
        right, left = (gradient(x + step * d) - here) / step, (here - gradient(x - step * d)) / step
        found += [right, left, (right + left) / 2]
    rough = max([(each - found[-1]).abs().max().item() for each in found])
    alike = rough <= 1e-3 * (1 + found[-1].abs().max().item()) and here.abs().max().item() < 1e6
    return found[-1] if alike else None


def unit(x: turnout.Tensor, i: int) -> turnout.Tensor:
    """The direction of one number."""
    return (turnout.arange(x.numel()) == i).to(x.dtype)


def problem(seed: int) -> str:
    """What goes wrong at a point; "" if nothing does."""
    random = Random(seed)
    op, samples = random.choice(SMOOTH)
    sample = random.choice(samples)
    function, x = drawn_function(random, op, sample)
    return problem_at(f"seed {seed}: {op} of {sample}", function, x, random.randrange(x.numel()), random.choice([*MODES]))


def problem_at(name: str, function: Function, x: turnout.Tensor, i: int, mode: str) -> str:
    """What goes wrong at a point in the direction of one number; "" if nothing does."""
    d = unit(x, i)
    try:
        expected = slope(grad(function), x, d)
        if expected is None:
            return ""
        found = MODES[mode](function, x, d)
    except TurnoutError:  # no second derivative, or a point where the function has no value
        return ""
    wrong = ((found - expected).abs() <= 1e-3 * (1 + expected.abs().max())).logical_not()
    # Where a number has no second derivative of its own, 0 times that is NaN.
    if all(found[i].isnan() and slope(grad(function), x, unit(x, i)) is None for i in wrong.nonzero().flatten().tolist()):
        return ""
    return f"{name} at {x.tolist()}, {mode} along {d.tolist()}\n  {found}\n  {expected}"


def samples_of(case: OperatorCase) -> list[Sample]:
    """Those with derivatives by few numbers."""
    if case.op.startswith("linalg_pinv."):  # a drawn tolerance cuts singular values off, and the formula is that of all of them
        return []
    if not case.differentiable or "float64" not in case.dtypes or "nondeterministic_seeded" in find(case.op).tags:
        return []
    sizes = [sum(np.size(t.data) for t in tensors_of([list(s.args), s.kwargs]) if t.dtype is None) for s in case.samples]
    return [s for s, size in zip(case.samples, sizes, strict=True) if 0 < size <= 40]


SMOOTH = [(case.op, samples) for case in CASES if (samples := samples_of(case))]


@pytest.mark.parametrize("part", range(4))
def test_second_derivatives_are_those_of_differences(part: int, seeds: Callable[..., range]) -> None:
    found = [problem(seed) for seed in [*seeds(40, many=8000)][part::4]]
    assert [each for each in found if each] == []


def test_second_derivatives_where_operands_are_equal_are_those_of_differences() -> None:
    """A difference of two operands is 0 there, at which |d| has none."""
    found, tried = [], 0
    for op, samples in SMOOTH:
        for sample in samples[:2]:
            leaves = [t for t in tensors_of([list(sample.args), sample.kwargs]) if t.dtype is None]
            if len(leaves) > 1 and len({np.shape(t.data) for t in leaves}) == 1:
                function, x = drawn_function(Random(0), op, sample)
                each = x.numel() // len(leaves)
                tried += 1
                found.append(problem_at(f"{op} of {sample}", function, x[:each].repeat(len(leaves)), 0, "reverse over reverse"))
    assert tried > 50
    assert [each for each in found if each] == []
