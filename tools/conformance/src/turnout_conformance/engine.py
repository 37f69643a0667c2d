"""The engine that is proved."""

from __future__ import annotations

from typing import Any

import turnout
from turnout import plugins


class Engine:
    """An engine by its name.

    device  where its graphs run: the first device of its row, or cpu
    close   how much numbers may differ, relatively
    """

    def __init__(self, name: str, close: float) -> None:
        self.name = name
        self.close = close
        rows = [row for _, row in plugins.engines() if row.name == name]
        devices: tuple[str, ...] = tuple(rows[0].devices) if rows else ()
        self.device = "cpu" if not devices or "cpu" in devices else devices[0]
        self.check(turnout.compile(lambda x: x + 1, engine=name, strict=True))

    def check(self, compiled: Any) -> None:
        """One call of a graph: an engine that is not there, or takes nothing, is an error of the whole run."""
        x = turnout.ones(3, device=self.device)
        for _ in range(2):
            assert compiled(x).cpu().tolist() == [2.0, 2.0, 2.0]
