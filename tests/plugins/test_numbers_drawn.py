"""NumPy scalars, 0-dim arrays and 0-dim tensors stand wherever a number may, and change nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import turnout
from random_programs import numbers


def test_a_numpy_scalar_does_what_the_python_number_does(seeds: Callable[[int], range]) -> None:
    for seed in seeds(1500):
        program = numbers.program(seed)
        found, expected = numbers.run(program, turnout), numbers.run(program, turnout, "python")
        if not numbers.alike(found, expected):
            pytest.fail(f"seed {seed}\n{program.lines()}\ngives    {found}\nexpected {expected}")


def test_every_operator_takes_its_numbers_in_any_form(seeds: Callable[[int], range]) -> None:
    def fails(call: numbers.Call) -> bool:
        found, expected = numbers.run_call(call, turnout, plain=False), numbers.run_call(call, turnout, plain=True)
        return not numbers.alike(found, expected)

    for seed in seeds(1500):
        call = numbers.call(seed)
        if fails(call):
            call = numbers.shrunk(call, fails)
            found, expected = (numbers.run_call(call, turnout, plain=plain) for plain in (False, True))
            pytest.fail(f"seed {seed}\n{call}\ngives    {found}\nexpected {expected}")
