"""Every kind of small call makes no more Python frames, C calls and memory than it did: counts, which no busy machine changes.

The rows are those of `benchmarks/small.py`. `python benchmarks/counts.py --write` makes new limits, and belongs to a change that
says what the additional calls are for.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from workspace import ROOT

import turnout

# Measured on CPython 3.11. Later versions run comprehensions without a frame. What memory holds differs by some objects.
SPARE_BYTES = 1.5


@pytest.fixture
def benchmarks(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The modules `counts` and `small` of the folder of benchmarks."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import counts
    import small

    yield counts, small
    for name in ("counts", "small", "numeric", "timing"):
        sys.modules.pop(name, None)


def test_every_row_has_limits_and_every_limit_a_row(benchmarks: Any) -> None:
    counts, small = benchmarks
    statements = [row.statement for row in small.ROWS]
    assert list(counts.limits()) == statements
    assert len(set(statements)) == len(statements)
    assert len({row.name for row in small.ROWS}) == len(statements)


def test_a_small_call_makes_no_more_steps_than_it_did(benchmarks: Any) -> None:
    counts, _ = benchmarks
    # In a process of its own: plugins and hooks that other tests have used may add steps.
    command = [sys.executable, str(ROOT / "benchmarks" / "counts.py"), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found = {statement: counts.Counts(*each) for statement, each in json.loads(done.stdout).items()}
    problems = [each for name, limit in counts.limits().items() for each in _beyond(name, found[name], limit)]
    assert not problems, "\n".join([*problems, "`python benchmarks/counts.py --write` makes these the limits"])


def _beyond(statement: str, found: Any, limit: Any) -> list[str]:
    problems = []
    if found.frames > limit.frames:
        problems.append(f"{statement}: {found.frames} Python frames, at most {limit.frames}")
    if found.c_calls > limit.c_calls:
        problems.append(f"{statement}: {found.c_calls} calls of C functions, at most {limit.c_calls}")
    if found.bytes > limit.bytes * SPARE_BYTES + 512:
        problems.append(f"{statement}: {found.bytes} bytes, at most {limit.bytes} and some")
    return problems


def test_one_more_frame_is_noticed(benchmarks: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    counts, small = benchmarks
    before = counts.counted("x + y", small.names(turnout))
    plain = turnout.Tensor.__add__
    monkeypatch.setattr(turnout.Tensor, "__add__", lambda self, other: plain(self, other))
    after = counts.counted("x + y", small.names(turnout))
    assert after.frames == before.frames + 1
    assert _beyond("x + y", after, before) == [f"x + y: {after.frames} Python frames, at most {before.frames}"]
