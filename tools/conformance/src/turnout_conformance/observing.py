"""Which kernels ran: for the keys that are watched, every operator whose kernel was called, and what serves the operators.

`Watch` wraps the kernels of its keys as they are bound, and leaves all others as they are: what is proved is not slowed down.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from turnout.operators import Operator
from turnout.registry import REGISTRY
from turnout.table import SERVED_BY, Plan

HOST_FALLBACK = "turnout_aten.backend.host_fallback"
KINDS = ("own kernel", "composite", "host fallback", "fallback", "missing")


class Watch:
    """Counts the calls at some keys, from `start` to `stop`.

    calls  (key, operator) -> how often a kernel ran that was registered at the key; fallbacks to the host are not counted
    """

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, str]] = Counter()
        self._keys: set[str] = set()
        self._undo: Callable[[], None] | None = None

    def add(self, key: str) -> None:
        """Watch a key too."""
        if key not in self._keys:
            self.stop()
            self._keys.add(key)
            self._undo = REGISTRY.instrument(self._counted)

    def stop(self) -> None:
        """Take the wrappers back; what was counted stays."""
        if self._undo is not None:
            self._undo()
            self._undo = None

    def _counted(self, op: Operator, plan: Plan, run: Callable[..., Any]) -> Callable[..., Any]:
        entry = plan.entry
        if plan.key not in self._keys or entry is None or entry.key != plan.key or is_host_fallback(entry.kernel):
            return run
        fact, calls = (plan.key, op.qualified_name), self.calls

        def run_and_count(ks: int, *args: Any) -> Any:
            calls[fact] += 1
            return run(ks, *args)

        return run_and_count

    def ran(self, key: str) -> set[str]:
        """The operators whose kernel at this key was called."""
        return {name for called, name in self.calls if called == key}


def is_host_fallback(kernel: Any) -> bool:
    """Whether a kernel is the one that runs operators on another device and copies the results back."""
    return getattr(getattr(kernel, "fn", None), "__module__", "") == HOST_FALLBACK


def served(op: Operator, key: str) -> str:
    """How a key serves an operator: one of KINDS."""
    entry = op.entry(key)
    if entry is None:
        return "missing"
    if is_host_fallback(entry.kernel):
        return "host fallback"
    kind = SERVED_BY[entry.reason]
    return "own kernel" if kind == "kernel" else kind


def coverage(key: str) -> dict[str, str]:
    """Every standard operator -> how the key serves it."""
    ops = [op for op in REGISTRY.operators.values() if op.namespace == "aten" and op.is_defined]
    return {op.qualified_name: served(op, key) for op in sorted(ops, key=lambda op: op.qualified_name)}
