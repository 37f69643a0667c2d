"""Compiled comparisons of many floats."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import turnout

pytest.importorskip("turnout_kernels._native", reason="the extension module is not built: there is no C compiler")

from turnout_kernels import native, pointwise

RNG = np.random.default_rng(5)
QUESTIONS = {"gt": np.greater, "ge": np.greater_equal, "lt": np.less, "le": np.less_equal, "eq": np.equal, "ne": np.not_equal}
COUNT = pointwise.LARGE + 77


def numbers(dtype: str) -> Any:
    """Few values, so that many are equal; nan, infinities and both zeros among them."""
    values = np.array([0.0, -0.0, 0.1, -2.5, np.nan, np.inf, -np.inf, 3.0], dtype)
    return values[RNG.integers(0, len(values), COUNT)]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The questions that the compiled kernel answers from here on."""
    names: list[str] = []
    real = pointwise.apply

    def apply(name: str, *args: Any) -> Any:
        made = real(name, *args)
        if made is not NotImplemented:
            names.append(name)
        return made

    monkeypatch.setattr(pointwise, "apply", apply)
    return names


@pytest.mark.parametrize("dtype", ["f", "d"])
@pytest.mark.parametrize("name", QUESTIONS)
def test_large_comparisons_are_those_of_numpy(name: str, dtype: str, instructions: str, asked: list[str]) -> None:
    a, b = numbers(dtype), numbers(dtype)
    x, y = turnout.from_numpy(a), turnout.from_numpy(b)
    found = getattr(x, name)(y)
    assert found.dtype is turnout.bool
    assert np.array_equal(found.numpy(), QUESTIONS[name](a, b))
    out = turnout.ones(COUNT, dtype=turnout.bool)
    getattr(turnout, name)(x, y, out=out)
    assert np.array_equal(out.numpy(), QUESTIONS[name](a, b))
    for number in (0, 0.1, -2.5, 3):
        assert np.array_equal(getattr(x, name)(number).numpy(), QUESTIONS[name](a, np.asarray(number, dtype)))
    assert asked == [name] * 6


@pytest.mark.parametrize("name", QUESTIONS)
def test_large_comparisons_of_any_layout_are_those_of_numpy(name: str, asked: list[str]) -> None:
    a, b = (numbers("f")[: 2 * 160 * 202].reshape(2, 160, 202) for _ in range(2))
    x, y = turnout.from_numpy(a), turnout.from_numpy(b)
    pairs = [
        (x[:, :, ::2].transpose(1, 2), a[:, :, ::2].swapaxes(1, 2), y[:, :, 1::2].transpose(1, 2), b[:, :, 1::2].swapaxes(1, 2)),
        (x.flip(0), a[::-1], y[1], b[1]),
        (x, a, y[:, :1], b[:, :1]),
    ]
    for first, one, second, another in pairs:
        assert np.array_equal(getattr(first, name)(second).numpy(), QUESTIONS[name](one, another))


def test_a_comparison_without_memory_of_its_own_reads_before_it_writes() -> None:
    a = RNG.integers(0, 2, COUNT).astype(bool)
    x = turnout.from_numpy(a.copy())
    turnout.ne(x, True, out=x)
    assert np.array_equal(x.numpy(), ~a)


def test_answers_do_not_depend_on_the_number_of_threads() -> None:
    a, b = numbers("f"), numbers("f")
    x, y = turnout.from_numpy(a), turnout.from_numpy(b)
    for threads in (1, 2, 3):
        with turnout.config.override({"plugin.cpu.threads": threads}):
            assert native.threads() == threads
            assert np.array_equal((x > y).numpy(), a > b)
