"""Random programs of views and writes, functionalised: values, gradients and replays of traces, against the programs themselves."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import turnout
from autograd_programs import Program as Smooth
from random_programs.running import Lines, check, difference, run, says
from random_programs.writes import Program
from test_autograd_programs import function_of
from turnout import Tensor, autograd
from turnout.func import functionalize

KINDS = ("mutations", "mutations_and_views")

# ---- in place and into out, line by line


def judge(remove: str) -> Callable[[Lines], str]:
    """What differs between a program and the functionalised one after some line; "" if nothing does."""

    def judge_lines(lines: Lines) -> str:
        plain: dict[str, Any] = {"t": turnout}
        inner: dict[str, Any] = {"t": turnout}

        def body() -> str:
            for line in lines:
                shapes = {name: value.shape for name, value in plain.items() if isinstance(value, Tensor)}
                expected, found = run(line, plain), run(line, inner)
                if isinstance(expected, NameError) or resized(plain, shapes) or ".resize_(" in line:
                    return ""
                if (found is None) != (expected is None):
                    return f"{line}\n  {says(found)}, expected {says(expected)}"
                for name, value in plain.items():
                    if isinstance(value, Tensor):
                        wrong = compare(name, inner[name], value)
                        if wrong:
                            return "" if expected is not None else f"after {line}\n  {wrong}"
            return ""

        return functionalize(body, remove=remove)()

    return judge_lines


def resized(scope: dict[str, Any], shapes: dict[str, Any]) -> bool:
    """Whether a line has resized a tensor: the functionalised program then has no memory that others share."""
    return any(scope[name].shape != shape for name, shape in shapes.items() if isinstance(scope[name], Tensor))


def compare(name: str, found: Any, expected: Any) -> str:
    if found.stride() != expected.stride() and 0 not in expected.shape:
        return f"{name}: strides {found.stride()}, expected {expected.stride()}"
    return difference(name, found, expected, close=1e-6)


@pytest.mark.parametrize("remove", KINDS)
def test_functionalised_writes_give_what_the_writes_give(remove: str, seeds: Callable[[int], range]) -> None:
    check({seed: Program(seed).lines for seed in seeds(100)}, judge(remove))
