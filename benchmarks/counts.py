"""What a small call does, counted: Python frames, calls of C functions, and the bytes that it holds at most.

Counts do not depend on how busy a machine is, so a test can hold them: `tests/integration/test_small_calls.py` compares each row
of `small.ROWS` with `counts.json`. After a change that is worth more calls: `python benchmarks/counts.py --write`.

Counted is what Turnout does by itself: without compiled kernels and without the compiled call path, which replace parts of it.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any, NamedTuple

import small

import turnout

LIMITS = Path(__file__).with_name("counts.json")
WARM = 5  # calls before it is counted: the first ones compile, resolve and remember
TIMES = 3
BY_ITSELF = {"TURNOUT_PLUGINS__DISABLE": "kernels", "TURNOUT_SPEED": "off"}


class Counts(NamedTuple):
    """What one call did. Limits are of this type, too."""

    frames: int
    c_calls: int
    bytes: int


def counted(statement: str, names: dict[str, Any]) -> Counts:
    """What one warm run of a statement does: the least of a few, for some runs tidy up after others."""
    code = compile(statement, "<row>", "exec")
    for _ in range(WARM):
        exec(code, names)
    gc.disable()
    try:
        found = [(*_calls(code, names), _bytes(code, names)) for _ in range(TIMES)]
    finally:
        gc.enable()
    return Counts(*(min(each) for each in zip(*found, strict=True)))


def _calls(code: Any, names: dict[str, Any]) -> tuple[int, int]:
    seen = {"call": 0, "c_call": 0}

    def profile(frame: Any, event: str, arg: Any) -> None:
        # CPython 3.14 tells of the `__enter__` of a with statement, which earlier versions call unseen.
        if event in seen and (event == "call" or arg.__name__ != "__enter__"):
            seen[event] += 1

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        exec(code, names)
    finally:
        sys.setprofile(before)
    return seen["call"] - 1, seen["c_call"] - 2  # without the frame of the statement, exec, and setprofile


def _bytes(code: Any, names: dict[str, Any]) -> int:
    tracemalloc.start()
    try:
        exec(code, names)
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        exec(code, names)
        return max(tracemalloc.get_traced_memory()[1] - before, 0)
    finally:
        tracemalloc.stop()


def limits() -> dict[str, Counts]:
    """The limits by statement."""
    return {statement: Counts(*counts) for statement, counts in json.loads(LIMITS.read_text("utf-8")).items()}


def main() -> None:
    """Print the counts of all rows; with --write, make them the limits. With --json, print them as data."""
    if any(os.environ.get(name) != value for name, value in BY_ITSELF.items()):
        raise SystemExit(subprocess.run([sys.executable, *sys.argv], env={**os.environ, **BY_ITSELF}).returncode)
    found = {row.statement: counted(row.statement, small.names(turnout)) for row in small.ROWS}
    if "--json" in sys.argv:
        print(json.dumps(found))
        return
    for statement, counts in found.items():
        print(f"{counts.frames:5} {counts.c_calls:5} {counts.bytes:6}  {statement}")
    if "--write" in sys.argv:
        lines = [f"  {json.dumps(statement)}: {json.dumps(counts)}" for statement, counts in found.items()]
        LIMITS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
