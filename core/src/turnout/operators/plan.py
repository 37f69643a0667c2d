"""`Plan`: the steps from a key set to the kernel that serves it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from turnout.keys import Functionality
    from turnout.table import Entry

# The verdicts, as `explain` prints them.
CHOSEN = "chosen"
FALLS_THROUGH = "fallthrough"
DISABLED = "disabled by configuration"
ONLY_TRACKED = "left out: no argument requires a gradient"
PASSED_OVER = "no kernel, passed over"
ONLY_UNTRACKED = "no kernel, passed over: no argument requires a gradient"
MISSING = "missing"


class Step:
    """One runtime key of a key set, its entry in the table, and the verdict."""

    __slots__ = ("entry", "key", "verdict")

    def __init__(self, key: str, entry: Entry | None, verdict: str) -> None:
        self.key = key
        self.entry = entry
        self.verdict = verdict


class Plan:
    """The steps in which a key set resolves, and the key, functionality and entry of the last one."""

    __slots__ = ("functionality", "ks", "steps")

    def __init__(self, ks: int, steps: list[Step], functionality: Functionality | None) -> None:
        self.ks = ks
        self.steps = steps
        self.functionality = functionality

    @property
    def key(self) -> str:
        return self.steps[-1].key

    @property
    def entry(self) -> Entry | None:
        return self.steps[-1].entry
