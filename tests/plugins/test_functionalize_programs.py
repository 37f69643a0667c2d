"""Random programs of views and writes, functionalised: values, gradients and replays of traces, against the programs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from autograd_programs import Program as Smooth
from random_programs.functionalised import disagreement, judge
from random_programs.running import check
from random_programs.writes import Program
from turnout_functionalize import inverses, memories
from turnout_functionalize.transform import REMOVE


@pytest.mark.parametrize("remove", REMOVE)
def test_functionalised_writes_give_what_the_writes_give(remove: str, seeds: Callable[[int], range]) -> None:
    check({seed: Program(seed).lines for seed in seeds(100)}, judge(remove))


def test_functionalised_programs_have_the_values_and_gradients_of_the_programs(seeds: Callable[[int], range]) -> None:
    for seed in seeds(40):
        found = disagreement(seed)
        assert not found, f"seed {seed}: {found}\n{Smooth(seed, smooth=True)}\n\n--seed {seed} --programs 1 runs it again"


def wrong_seeds(seeds: range) -> list[int]:
    return [seed for seed in seeds if disagreement(seed)]


def test_a_write_into_a_view_that_the_base_does_not_see_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("permute", "select.int", "slice.Tensor", "transpose.int", "unbind.int"):
        monkeypatch.setitem(inverses.INVERSES, name, lambda views, before, *rest: before)
    assert any(judge("mutations")(Program(seed).lines) for seed in range(60))
    assert wrong_seeds(range(20))


def test_a_view_that_is_not_made_anew_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memories.Part, "value", lambda self: self.last if self.links else self.memory.base)
    assert any(judge("mutations")(Program(seed).lines) for seed in range(60))
    assert wrong_seeds(range(20))
