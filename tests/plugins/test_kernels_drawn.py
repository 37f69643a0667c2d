"""Operators, dtypes, shapes and layouts drawn from a seed give the same with compiled kernels and without them."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import turnout
from random_programs import drawn_rows

pytest.importorskip("turnout_kernels._native", reason="the extension module is not built: there is no C compiler")

TESTS = Path(__file__).parents[1]
LARGEST = 15


def test_what_is_drawn_gives_the_same_with_compiled_kernels_and_without(seeds: Callable[[int], range], tmp_path: Path) -> None:
    chosen, results = seeds(120), tmp_path / "results"
    facts = [str(results), str(chosen.start), str(len(chosen)), str(LARGEST)]
    command = [sys.executable, "-m", "random_programs.drawn_rows", *facts]
    environment = os.environ | {"TURNOUT_PLUGINS__DISABLE": "kernels"}
    done = subprocess.run(command, env=environment, cwd=TESTS, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    without = pickle.loads(results.read_bytes())
    found = []
    for row, expected in zip(drawn_rows.rows(chosen, LARGEST), without, strict=True):
        found.append(drawn_rows.difference(row, drawn_rows.result(row, turnout), expected))
    assert not [text for text in found if text]
