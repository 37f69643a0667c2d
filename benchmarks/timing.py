"""Timing two statements against each other: small batches in turns, then medians.

A busy machine slows both sides of a pair of batches alike, so the ratio of a pair is steadier than either time. The ratio that
is reported is the median over all pairs, its spread the quartiles.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import time
import timeit
from collections.abc import Callable
from statistics import median, quantiles
from typing import Any, NamedTuple

# What says how many threads a library uses: each reads its variable when it is loaded.
THREADS = (
    "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "TURNOUT_PLUGIN__CPU__THREADS", "POCL_MAX_PTHREAD_COUNT",
)  # fmt: skip
QUICK = 2  # repeats of a quick run, which shows that everything runs


class Side:
    """One statement with the names that it uses. The collector stays on, as it is for users.

    clock  what is measured: time on the clock, or `time.process_time`, that of the processor, on a machine with other work
    """

    clock = time.perf_counter

    def __init__(self, statement: str, **names: Any) -> None:
        self.statement = statement
        self._timer = timeit.Timer(statement, "gc.enable()", type(self).clock, globals={"gc": gc, **names})

    def seconds(self, number: int) -> float:
        """Seconds per run, of `number` runs in a row."""
        return self._timer.timeit(number) / number

    def number(self, seconds: float) -> int:
        """How many runs take about that long; at least one."""
        self.seconds(1)  # the first call compiles, resolves and activates
        number = 1
        while True:
            took = min(self.seconds(number), self.seconds(number))
            if took * number > seconds / 8:
                return max(1, round(seconds / took))
            number *= 4


class Pair(NamedTuple):
    """What is compared: turnout against another library, or against itself in another state.

    switch  called with 0 before turnout's turn and with 1 before the other's, where both need a different state
    turns   batches per turn, of which the median counts: more than one where switching is slow
    """

    turnout: Side
    other: Side
    switch: Callable[[int], None] | None = None
    turns: int = 1


def rest(_: int) -> None:
    """A switch for sides with several threads: those of OpenMP and BLAS look for work for up to 25 ms after their library's turn,
    on processors that the other side needs. After a pause they sleep; the call that is not timed wakes those of the next turn."""
    time.sleep(0.03)


class Result(NamedTuple):
    """Medians of both sides, in seconds; `value`, with its quartiles, is the ratio, or for `import` the difference in seconds."""

    turnout: float
    other: float
    value: float
    low: float
    high: float
    repeats: int
    note: str = ""


def summary(turnout: list[float], other: list[float], values: list[float], note: str = "") -> Result:
    """Medians and quartiles of repeated measurements."""
    low, _, high = quantiles(values, n=4) if len(values) > 1 else (values[0],) * 3
    return Result(median(turnout), median(other), median(values), low, high, len(values), note)


# Bytes by which results move from one repeat to the next, and the most that they do.
_SPACING, _MOST_SPACE = 5_003_264, 24 << 20


def _trim() -> None:
    """Give freed memory back to the system, where the C library can: holes that earlier rows left would decide whose results need
    new pages."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


# Batches per turn, of which the median counts, for programs that a training or a server calls again and again: after a pause, the
# first milliseconds are those of threads that wake and of caches that are cold.
IN_A_LOOP = 7


def compare(pair: Pair, repeats: int, batch: float) -> Result:
    """Time both sides of a pair in turns; each batch takes about `batch` seconds. Who begins changes with every repeat, and so
    does where the allocator puts results: whether these need new pages in every call would else be the luck of a row."""
    sides = (pair.turnout, pair.other)
    numbers = []
    for i, side in enumerate(sides):
        if pair.switch is not None:
            pair.switch(i)
        numbers.append(side.number(batch))
    gc.collect()
    _trim()
    gc.freeze()  # what is there by now is not searched again in the middle of a batch
    times: tuple[list[float], list[float]] = ([], [])
    try:
        for repeat in range(repeats):
            spacer = bytearray(repeat * _SPACING % _MOST_SPACE)
            for i in (0, 1) if repeat % 2 else (1, 0):
                if pair.switch is not None:
                    pair.switch(i)
                    sides[i].seconds(1)
                times[i].append(median([sides[i].seconds(numbers[i]) for _ in range(pair.turns)]))
            del spacer
    finally:
        gc.unfreeze()
    return summary(*times, [a / b for a, b in zip(*times, strict=True)])
