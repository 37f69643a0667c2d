"""Counts: how many rows at a time, samples or layers a function takes, and how many threads a setting stands for."""

from __future__ import annotations

import os

from turnout.errors import ArgumentError


def check_count(name: str, argument: str, value: object, or_none: bool = False, error: type[Exception] = ArgumentError) -> None:
    """Raise `error` unless the value is an integer above 0; a bool is not one."""
    if (value is None and or_none) or (isinstance(value, int) and not isinstance(value, bool) and value > 0):
        return
    raise error(f"{name}: {argument} must be an integer above 0{', or None' if or_none else ''}, got {value!r}")


def thread_count(wanted: int) -> int:
    """How many threads a setting stands for: 0 is as many as the process has processors."""
    if wanted > 0:
        return wanted
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
