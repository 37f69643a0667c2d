"""Random nestings of transforms against plain loops. `NESTINGS=5000` in the environment runs that many instead of a few."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

import turnout_autograd.transforms.levels
from transform_libraries import Loops, Transforms
from transform_nesting import Nesting
from turnout import state
from turnout_aten.tensor.levels import GRAD, LEVELS

COUNT = int(os.environ.get("NESTINGS", "80"))
FRESH = (*state.DISPATCH.get(),)


def disagreement(seed: int) -> str:
    """What is wrong with the program of a seed; empty when nothing is."""
    program = Nesting(seed)
    found, expected = program(Transforms()), program(Loops())
    if ((*state.DISPATCH.get(),), LEVELS.get(), (*GRAD.get(),)) != (FRESH, (), (1, 1)):
        return "state is left behind"
    for one, other in zip(found, expected, strict=True):
        if one.requires_grad != other.requires_grad and program.backward:
            return "tracked differently"
        if not np.allclose(one.detach().numpy(), other.detach().numpy(), rtol=1e-8, atol=1e-10):
            return f"{one} and not {other}"
    return ""


@pytest.mark.parametrize("start", range(0, COUNT, 20))
def test_random_nestings_give_what_loops_give(start: int) -> None:
    wrong = {seed: found for seed in range(start, min(start + 20, COUNT)) if (found := disagreement(seed))}
    assert not wrong, {seed: (text, Nesting(seed).names) for seed, text in wrong.items()}


def test_all_kinds_of_parts_occur_and_inside_of_each_other() -> None:
    from transform_nesting import PLAIN, TRANSFORMS

    programs = [Nesting(seed) for seed in range(80)]
    assert {name for program in programs for name in program.names} == {*PLAIN, *TRANSFORMS}
    assert any(sum(name in TRANSFORMS for name in program.names) > 4 for program in programs)
    assert {(program.backward, program.is_traced) for program in programs} == {(a, b) for a in (0, 1) for b in (0, 1)}


def test_the_comparison_notices_inputs_that_are_not_lowered(monkeypatch: pytest.MonkeyPatch) -> None:
    def keep(tensor: Any, levels: Any) -> Any:
        return tensor

    monkeypatch.setattr(turnout_autograd.transforms.levels, "lower", keep)
    monkeypatch.setattr(turnout_autograd.transforms.levels, "raise_", keep)

    def is_wrong(seed: int) -> bool:
        try:
            return bool(disagreement(seed))
        except Exception:  # noqa: BLE001 - an error is a difference too
            return True

    assert any(is_wrong(seed) for seed in range(80))
