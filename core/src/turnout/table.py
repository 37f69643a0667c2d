"""The computed table: which kernel serves an operator at a runtime key, and why; and the plan of a key set, made from it.

`compute_entry` is the whole policy, in numbered steps. Kernels and fallbacks are opaque values here.
"""

from __future__ import annotations

from turnout.keys import AUTOGRAD, EXPLICIT, IMPLICIT, IMPLICIT_NESTED, NON_FUNCTIONAL, TABLE_ALIASES, UNDEFINED, Universe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from turnout.keys import Functionality

__all__ = ["AMBIGUOUS", "AUTOGRAD_KERNEL", "BATCHED", "CHOSEN", "DEFAULT_BACKEND", "DISABLED", "Entry", "FALLBACK",
    "FALLS_THROUGH", "KERNEL", "MATH", "MISSING", "NESTED", "ONLY_TRACKED", "ONLY_UNTRACKED", "PASSED_OVER", "Plan", "SERVED_BY",
    "Step", "compute", "compute_entry"]  # fmt: skip

KERNEL = "kernel"
DEFAULT_BACKEND = "default backend kernel"
NESTED = "nested kernel"
MATH = "math kernel"
AUTOGRAD_KERNEL = "autograd kernel"
BATCHED = "batched kernel"
FALLBACK = "backend fallback"
AMBIGUOUS = "ambiguous autogradother"

# What an operator is served by, for each reason.
SERVED_BY = {
    **dict.fromkeys((KERNEL, AUTOGRAD_KERNEL), "kernel"), **dict.fromkeys((DEFAULT_BACKEND, NESTED, MATH, BATCHED), "composite"),
    FALLBACK: "fallback", AMBIGUOUS: "missing",
}  # fmt: skip

# The verdicts of steps, as `explain` prints them.
CHOSEN = "chosen"
FALLS_THROUGH = "fallthrough"
DISABLED = "disabled by configuration"
ONLY_TRACKED = "left out: no argument requires a gradient"
PASSED_OVER = "no kernel, passed over"
ONLY_UNTRACKED = "no kernel, passed over: no argument requires a gradient"
MISSING = "missing"


class Entry:
    """What serves a runtime key: `kernel`, `reason` (KERNEL to AMBIGUOUS) and `key`, at which it was registered.

    For the reason "ambiguous autogradother" the kernel is None, and a call is an error.
    """

    __slots__ = ("kernel", "key", "reason")

    def __init__(self, kernel: Any, reason: str, key: str) -> None:
        self.kernel = kernel
        self.reason = reason
        self.key = key

    def __repr__(self) -> str:
        return f"Entry({self.kernel!r}, {self.reason!r}, from {self.key})"


def compute_entry(universe: Universe, key: str, kernels: Mapping[str, Any], fallbacks: Mapping[str, Any]) -> Entry | None:
    """The entry of one runtime key, or None if it is missing."""
    aliases = universe.aliases

    def covers(alias: str) -> bool:
        return alias in kernels and (key == UNDEFINED or key in aliases.get(alias, ()))

    # 1. a kernel registered at this key
    if key in kernels:
        return Entry(kernels[key], KERNEL, key)
    # 2.1, 2.2 for every backend
    for alias in (NON_FUNCTIONAL, EXPLICIT):
        if covers(alias):
            return Entry(kernels[alias], DEFAULT_BACKEND, alias)
    if covers(IMPLICIT_NESTED) and key != UNDEFINED:
        return Entry(kernels[IMPLICIT_NESTED], NESTED, IMPLICIT_NESTED)
    # 2.3 for every backend and its autograd key, unless the backend has a kernel, whose gradient it could hide
    backends = universe.backends_of.get(key, ())
    has_backend = EXPLICIT in kernels or any(backend in kernels for backend in backends)
    if covers(IMPLICIT):
        if key == "AutogradOther" and any(backend in kernels for backend in backends):
            return Entry(None, AMBIGUOUS, IMPLICIT)
        if not has_backend:
            return Entry(kernels[IMPLICIT], MATH, IMPLICIT)
    # 2.4 one autograd kernel for all backends
    if key in aliases.get(AUTOGRAD, ()) and AUTOGRAD in kernels:
        return Entry(kernels[AUTOGRAD], AUTOGRAD_KERNEL, AUTOGRAD)
    # 2.5 an alias that was declared
    for alias, covered in aliases.items():
        if alias not in TABLE_ALIASES and key in covered and alias in kernels:
            return Entry(kernels[alias], BATCHED, alias)
    # 3. a fallback for all operators
    if key in fallbacks:
        return Entry(fallbacks[key], FALLBACK, key)
    # 4. missing
    return None


def compute(universe: Universe, kernels: Mapping[str, Any], fallbacks: Mapping[str, Any]) -> dict[str, Entry]:
    """The entries of all runtime keys, without missing ones."""
    entries = ((key, compute_entry(universe, key, kernels, fallbacks)) for key in universe.runtime_keys)
    return {key: entry for key, entry in entries if entry is not None}


class Step:
    """One runtime key of a key set, its entry in the table, and the verdict."""

    __slots__ = ("entry", "key", "verdict")

    def __init__(self, key: str, entry: Entry | None, verdict: str) -> None:
        self.key = key
        self.entry = entry
        self.verdict = verdict


class Plan:
    """The steps in which a key set resolves, and the key, functionality and entry of the last one."""

    __slots__ = ("entry", "functionality", "key", "ks", "steps")

    def __init__(self, ks: int, steps: list[Step], functionality: Functionality | None) -> None:
        self.ks = ks
        self.steps = steps
        self.functionality = functionality
        self.key, self.entry = steps[-1].key, steps[-1].entry
