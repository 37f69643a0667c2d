"""Operators, dtypes, shapes and layouts drawn from a seed give what they give in PyTorch."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import turnout
from random_programs import drawn_rows

torch = pytest.importorskip("torch")

LARGEST = 17


def test_what_is_drawn_gives_the_values_of_torch(seeds: Callable[[int], range]) -> None:
    found = []
    for row in drawn_rows.rows(seeds(300), LARGEST):
        found.append(drawn_rows.difference(row, drawn_rows.result(row, turnout), drawn_rows.result(row, torch)))
    assert not [text for text in found if text]
