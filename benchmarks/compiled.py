"""Small calls with the compiled call path and without it: each side in an interpreter of its own, in turns.

A statement that takes longer with it is one whose kernel the compiled path cannot call, and tries to.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial

import small
from timing import Result, summary

import turnout

WITHOUT = "TURNOUT_SPEED=off"
STATEMENTS = ("x + y", "F.conv2d(q, f)", "F.pad(a, (1, 1))", "F.group_norm(q, 2)", "F.max_pool2d(q, 2)", "m.equal(x, y)")
BATCH = 0.004  # seconds


def measure(statement: str) -> Callable[[bool], Result]:
    """What measures one statement."""
    return partial(_measure, statement)


def _measure(statement: str, quick: bool) -> Result:
    sides = [_side(statement, speed) for speed in (None, "off")]
    try:
        count = max(int(BATCH / _seconds(sides[1], 20) * 20), 1)
        times: tuple[list[float], list[float]] = ([], [])
        for repeat in range(5 if quick else 100):
            for i in (0, 1) if repeat % 2 else (1, 0):
                times[i].append(_seconds(sides[i], count) / count)
    finally:
        for side in sides:
            side.communicate()
    return summary(*times, [a / b for a, b in zip(*times, strict=True)])


def _side(statement: str, speed: str | None) -> subprocess.Popen[str]:
    """An interpreter that runs the statement as often as each line of its input says."""
    environment = {name: value for name, value in os.environ.items() if name != "TURNOUT_SPEED"}
    if speed is not None:
        environment["TURNOUT_SPEED"] = speed
    command = [sys.executable, __file__, statement]
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _seconds(side: subprocess.Popen[str], count: int) -> float:
    assert side.stdin is not None
    assert side.stdout is not None
    side.stdin.write(f"{count}\n")
    side.stdin.flush()
    return float(side.stdout.readline())


def main() -> None:
    """Answer each number of runs by the seconds that they took."""
    code, names = compile(sys.argv[1], "<row>", "eval"), small.names(turnout)
    for _ in range(100):
        eval(code, names)
    for line in sys.stdin:
        start = time.perf_counter()
        for _ in range(int(line)):
            eval(code, names)
        print(time.perf_counter() - start, flush=True)


if __name__ == "__main__":
    main()
