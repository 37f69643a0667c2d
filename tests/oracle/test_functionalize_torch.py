"""Random programs of writes under `functionalize`, in Turnout and in PyTorch: values, and what is written into the arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import turnout
from random_programs.functionalised import Seen, disagreement, until_resized
from random_programs.running import Lines, check, difference, run
from random_programs.writes import Program
from turnout_functionalize.transform import REMOVE

torch = pytest.importorskip("torch")

NAMES = ["a", "b"]


def judge(remove: str) -> Callable[[Lines], str]:
    """What differs between the program functionalised in Turnout and in PyTorch; its first two lines make the arguments."""

    def judge_lines(lines: Lines) -> str:
        plain: dict[str, Any] = {"t": turnout}
        steps = list(until_resized([Seen(line, plain) for line in lines]))
        good = [step.line for step in steps[2:] if step.error is None]
        # differs from torch: a write into windows that overlap leaves the last value; PyTorch's functional form adds them up.
        if len(steps) < 3 or any(".unfold(" in line for line in lines):
            return ""
        ours = outcome(turnout, lines[:2], good, remove)
        theirs = outcome(torch, lines[:2], good, remove)
        if theirs is None:
            return ""  # PyTorch has no functional form for a line of it
        if ours is None:
            return "an error, where PyTorch has none"
        for name, value in theirs.items():
            wrong = difference(name, ours[name], value, close=4e-3 if value.dtype is torch.float16 else 2e-5)
            if wrong:
                return wrong
        return ""

    return judge_lines


def scope(lines: Lines, library: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"t": library}
    for line in lines:
        run(line, found)
    return found


def outcome(library: Any, first: Lines, rest: Lines, remove: str) -> dict[str, Any] | None:
    """The tensors after the program, and its arguments as they are then; None where it raises."""
    given = scope(first, library)
    names = [name for name in NAMES if name in given]

    def body(*args: Any) -> dict[str, Any]:
        inner = {"t": library, **dict(zip(names, args, strict=True))}
        for line in rest:
            exec(line, inner)
        return {name: value for name, value in inner.items() if isinstance(value, library.Tensor)}

    try:
        found = library.func.functionalize(body, remove=remove)(*[given[name] for name in names])
    except Exception:  # noqa: BLE001 - which errors it raises is not compared
        return None
    return {**found, **{f"{name} outside": given[name] for name in names}}


@pytest.mark.parametrize("remove", REMOVE)
def test_functionalised_writes_are_those_of_pytorch(remove: str, seeds: Callable[[int], range]) -> None:
    check({seed: Program(seed).lines for seed in seeds(300)}, judge(remove))


def test_functionalised_programs_have_the_values_and_gradients_of_the_programs(seeds: Callable[[int], range]) -> None:
    for seed in seeds(200):
        found = disagreement(seed + 10_000)
        assert not found, f"seed {seed + 10_000}: {found}"
