"""`turnout.testing.assert_close` accepts and refuses the pairs that PyTorch's accepts and refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import turnout
from random_programs import closeness, running
from random_programs.running import Lines

KINDS = (AssertionError, TypeError, ValueError)


def verdict(lines: Lines, library: Any) -> str:
    """What becomes of a call: "accepted", or the kind of its error."""
    scope = {"t": library, "np": np}
    for line in lines[:-1]:
        error = running.run(line, scope)
        if error is not None:
            return "not made"
    error = running.run(lines[-1], scope)
    return "accepted" if error is None else next((kind.__name__ for kind in KINDS if isinstance(error, kind)), repr(error))


def judge(lines: Lines) -> str:
    if not lines or "assert_close" not in lines[-1]:
        return ""
    found, wanted = verdict(lines, turnout), verdict(lines, torch)
    # differs from torch: a bool and another number cannot be compared; torch fails with "unexpected exception ... file an issue".
    if "not made" in (found, wanted) or "Originating a NumberPair" in wanted:
        return ""
    # differs from torch: one tolerance alone is refused whatever the values are; torch asks when it compares numbers or tensors.
    if found == "ValueError" and ("rtol" in lines[-1]) != ("atol" in lines[-1]):
        return ""
    return "" if found == wanted else f"turnout: {found}, torch: {wanted}"


def test_drawn_pairs_have_the_same_verdict(seeds: Callable[[int], range]) -> None:
    running.check({seed: closeness.program(seed) for seed in seeds(4000)}, judge)


def test_the_drawn_pairs_have_every_verdict() -> None:
    found = [verdict(closeness.program(seed), torch) for seed in range(2000)]
    for each in ("accepted", *(kind.__name__ for kind in KINDS)):
        assert found.count(each) >= 10, f"{each}: {found.count(each)} of 2000"
    assert found.count("not made") < 20


@pytest.mark.parametrize("dtype", [name for name in closeness.DTYPES if name != "bool"])
def test_the_tolerances_of_a_dtype_are_pytorchs(dtype: str) -> None:
    rtol, atol = turnout.testing.TOLERANCES.get(dtype, (0.0, 0.0))
    assert (rtol, atol) == torch.testing._comparison.default_tolerances(getattr(torch, dtype))
