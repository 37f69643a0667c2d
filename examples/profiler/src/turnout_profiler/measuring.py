"""The kernel at the key Profiler. It times the call, and goes on below with the same arguments.

A kernel of another key may call operators, which come here too: their time is part of the outer call's total time, and not of its
own time.
"""

from __future__ import annotations

import threading
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from turnout.keys import KEYS
from turnout_profiler.profiles import current

if TYPE_CHECKING:
    from turnout.operators import Operator


class Frame:
    """A call that has not ended: its operator, and the time of the calls that were made inside it."""

    __slots__ = ("inside", "operator")

    def __init__(self, operator: str) -> None:
        self.operator = operator
        self.inside = 0


class Frames(threading.local):
    """The calls of a thread that have not ended, the innermost last. An operator never waits for another task of its thread."""

    def __init__(self) -> None:
        self.open: list[Frame] = []


FRAMES = Frames()


def measure(op: Operator, keyset: int, args: tuple[Any, ...]) -> Any:
    """Time one call. The rest of the key set, without Profiler, decides what runs.

    Only this call goes below. Operators that its kernel calls have Profiler in their key sets again, because the state includes
    it; `turnout.state.exclude("Profiler")` around the redispatch would hide them.
    """
    frames = FRAMES.open
    frame = Frame(op.qualified_name)
    is_recursive = any(outer.operator == frame.operator for outer in frames)
    frames.append(frame)
    start = perf_counter_ns()
    try:
        return op.redispatch(keyset & ~KEYS.bit("Profiler"), *args)
    finally:  # a call that raises has taken its time, too
        total = perf_counter_ns() - start
        frames.pop()
        if frames:
            frames[-1].inside += total
        current().record(frame.operator, 0 if is_recursive else total, total - frame.inside)
