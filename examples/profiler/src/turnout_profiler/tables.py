"""A profile as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Row(NamedTuple):
    """One operator: its calls, their time, and the part of it that was not spent in operators called inside. In nanoseconds."""

    operator: str
    calls: int
    total: int
    own: int


def table(rows: Sequence[Row], shown: int) -> str:
    """Calls, total and own time of each operator, and its share of the time of all. The rows are sorted already."""
    if not rows:
        return "no operator was called"
    everything = sum(row.own for row in rows)
    calls = sum(row.calls for row in rows)
    head = rows[:shown] if shown else rows
    rest = rows[len(head) :]
    cells = [("operator", "calls", "total ms", "own ms", "share")]
    cells += [(row.operator, str(row.calls), *times(row.total, row.own, everything)) for row in head]
    if rest:
        own = sum(row.own for row in rest)
        cells.append((f"{len(rest)} more", str(sum(row.calls for row in rest)), "", *times(0, own, everything)[1:]))
    widths = [max(len(line[column]) for line in cells) for column in range(5)]
    lines = [
        f"{line[0]:<{widths[0]}}  " + "  ".join(f"{cell:>{width}}" for cell, width in zip(line[1:], widths[1:], strict=True))
        for line in cells
    ]
    return "\n".join([f"{calls} calls of {len(rows)} operators in {everything / 1e6:.2f} ms", *lines])


def times(total: int, own: int, everything: int) -> tuple[str, str, str]:
    """Total and own time in milliseconds, and the share of all."""
    return f"{total / 1e6:.3f}", f"{own / 1e6:.3f}", f"{100 * own / max(everything, 1):.1f} %"
