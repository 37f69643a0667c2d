"""`turnout.profiler`: what was measured, and how a block is profiled.

The setting `keys.enable = ["Profiler"]` measures the whole program. `with profile() as found:` measures a block. The calls of a
block belong to its own profile only, in the block's thread or asyncio task.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from turnout.errors import ArgumentError
from turnout.plugins import new_lock
from turnout.state import include
from turnout_profiler.charts import chart
from turnout_profiler.tables import Row, table

SORTS = ("own", "total", "calls", "operator")


class Profile:
    """Times by operator. Threads may record and read at any time."""

    def __init__(self) -> None:
        self._lock = new_lock()
        self._sums: dict[str, list[int]] = {}

    def record(self, operator: str, total: int, own: int) -> None:
        """Add one call, with times in nanoseconds."""
        with self._lock:
            sums = self._sums.setdefault(operator, [0, 0, 0])
            sums[0] += 1
            sums[1] += total
            sums[2] += own

    def clear(self) -> None:
        """Forget all calls."""
        with self._lock:
            self._sums.clear()

    def rows(self, sort: str = "own") -> list[Row]:
        """All operators, the largest first; with `sort="operator"`, in alphabetical order. Raises ArgumentError for no column."""
        if sort not in SORTS:
            raise ArgumentError(f"there is no column {sort!r} to sort by; there are: {', '.join(SORTS)}")
        with self._lock:
            found = sorted(Row(operator, *sums) for operator, sums in self._sums.items())
        return found if sort == "operator" else sorted(found, key=lambda row: -int(getattr(row, sort)))

    def table(self, sort: str = "own", rows: int = 20) -> str:
        """The profile as text; `rows=0` shows all operators."""
        return table(self.rows(sort), rows)

    def chart(self, sort: str = "own", rows: int = 20) -> str:
        """The profile as the text of an SVG picture, which needs nothing else."""
        return chart(self.rows(sort), rows)

    def save(self, path: str | Path, sort: str = "own", rows: int = 20) -> None:
        """Write the chart to a file."""
        Path(path).write_text(self.chart(sort, rows), encoding="utf-8")

    def __str__(self) -> str:
        return self.table()


# Of the calls outside all blocks: those that the setting `keys.enable` brings here.
PROGRAM = Profile()
_CURRENT: ContextVar[Profile] = ContextVar("turnout_profiler.current", default=PROGRAM)


def current() -> Profile:
    """The profile that calls made now belong to: that of the innermost block, else that of the program."""
    return _CURRENT.get()


@contextmanager
def profile() -> Iterator[Profile]:
    """Profile the calls of a block: `with profile() as found:`, then `print(found)`. Activates the plugin."""
    found = Profile()
    with include("Profiler"):
        before = _CURRENT.set(found)
        try:
            yield found
        finally:
            _CURRENT.reset(before)
