"""Random functions of tensors whose sizes are symbols: traced once, their graphs are replayed on inputs of other sizes."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import turnout
from random_programs.fakes import BINARY, DYNAMIC, SIZED, UNARY, filled
from random_programs.running import Lines, run, says

SIZES = ("x0.shape[0]", "x1.shape[0] // 2", "x0.shape[1] + 1", "x2.numel() % 3", "x0.nonzero().shape[0]")
TRACED_SHAPES = ((3, 4), (4,), (3, 2))
OTHER_SHAPES = (
    ((5, 4), (4,), (5, 2)), ((6, 7), (7,), (6, 3)), ((3, 4), (4,), (3, 2)), ((2, 4), (4,), (2, 5)), ((4, 1), (1,), (4, 1)),
)  # fmt: skip


def program(seed: int) -> list[str]:
    """Lines that compute from three tensors, of which the last one is what the function returns."""
    random = Random(seed)
    lines = []
    for i in range(3, random.randint(5, 9)):
        text = random.choice(random.choice([SIZED, SIZED, UNARY, BINARY, DYNAMIC])).replace("D", "'cpu'")
        if random.random() < 0.15:
            text = f"A * ({random.choice(SIZES)})"
        lines.append(f"x{i} = {filled(text.replace('N', 't.tensor([1, 2, 0])'), i, random)}")
    return lines


def numbers(shapes: Any, seed: int) -> list[turnout.Tensor]:
    """Tensors with small numbers, many of them 0."""
    random = Random(seed)
    found = []
    for shape in shapes:
        drawn = [random.choice([0.0, 0.0, 1.0, 2.0, 3.0]) for _ in range(math.prod(shape))]
        found.append(turnout.tensor(drawn).view(shape).clone())
    return found


def function(lines: Lines) -> Any:
    """The program as a function. A line that raises is left out; `done` has the lines that ran."""

    def call(*xs: turnout.Tensor) -> Any:
        scope: dict[str, Any] = {"t": turnout, "x0": xs[0], "x1": xs[1], "x2": xs[2]}
        for line in lines:
            error = run(line, scope)
            if error is not None:
                raise error
        return [v for k, v in scope.items() if k.startswith("x") and k[1:].isdigit() and int(k[1:]) > 2]

    return call


def counted(lines: Lines, seed: int) -> tuple[str, int, int]:
    """What is wrong with the replays of a program, how many gave results, and how many were refused for their sizes."""
    mode = turnout.FakeMode(allow_non_fake_inputs=True, dynamic=True)
    inputs = [mode.from_tensor(x) for x in numbers(TRACED_SHAPES, seed)]
    lines = runnable(lines, seed)
    try:
        with mode:
            graph = turnout.trace(function(lines))(*inputs)
    except Exception:  # noqa: BLE001 - what cannot be traced is another test's matter
        return "", 0, 0
    done = refused = 0
    for shapes in OTHER_SHAPES:
        try:
            expected = function(lines)(*numbers(shapes, seed))
        except Exception:  # noqa: BLE001 - these sizes do not fit
            continue
        try:
            found = graph(*numbers(shapes, seed))
        except turnout.graphs.TraceError:
            refused += 1
            continue
        except Exception as error:  # noqa: BLE001 - a replay does what the function does
            return f"{shapes}: a replay raised {says(error)}", done, refused
        done += 1
        for i, (a, b) in enumerate(zip(found, expected, strict=True)):
            if a.shape != b.shape or a.dtype is not b.dtype or not turnout.allclose(a.double(), b.double(), equal_nan=True):
                return f"{shapes}: line {i + 1} gives {a} in a replay, expected {b}", done, refused
    return "", done, refused


def runnable(lines: Lines, seed: int) -> list[str]:
    """The lines that run on the traced inputs, and draw nothing."""
    scope: dict[str, Any] = {"t": turnout, **{f"x{i}": x for i, x in enumerate(numbers(TRACED_SHAPES, seed))}}
    return [line for line in lines if "rand" not in line and run(line, scope) is None]
