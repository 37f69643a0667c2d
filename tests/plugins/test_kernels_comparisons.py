"""Compiled comparisons of many floats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import turnout

pointwise = pytest.importorskip("turnout_kernels.pointwise", reason="the extension module is not built: there is no C compiler")

RNG = np.random.default_rng(5)
QUESTIONS = {"gt": np.greater, "ge": np.greater_equal, "lt": np.less, "le": np.less_equal, "eq": np.equal, "ne": np.not_equal}
COUNT = pointwise.LARGE + 77


def numbers(dtype: str) -> Any:
    """Few values, so that many are equal; nan, infinities and both zeros among them."""
    values = np.array([0.0, -0.0, 0.1, -2.5, np.nan, np.inf, -np.inf, 3.0], dtype)
    return values[RNG.integers(0, len(values), COUNT)]


@pytest.mark.parametrize("dtype", ["f", "d"])
@pytest.mark.parametrize("name", QUESTIONS)
def test_large_comparisons_are_those_of_numpy(name: str, dtype: str, served: Callable[..., list[str]]) -> None:
    asked, a, b = served(pointwise, "apply"), numbers(dtype), numbers(dtype)
    x, y = turnout.from_numpy(a), turnout.from_numpy(b)
    assert np.array_equal(getattr(x, name)(y).numpy(), QUESTIONS[name](a, b))
    for number in (0, 0.1, -2.5, 3):
        assert np.array_equal(getattr(x, name)(number).numpy(), QUESTIONS[name](a, np.asarray(number, dtype)))
    assert asked == [name] * 5


def test_a_comparison_without_memory_of_its_own_reads_before_it_writes() -> None:
    a = RNG.integers(0, 2, COUNT).astype(bool)
    x = turnout.from_numpy(a.copy())
    turnout.ne(x, True, out=x)
    assert np.array_equal(x.numpy(), ~a)
