"""Counts that functions and classes take: how many rows at a time, how many samples, how many layers."""

from __future__ import annotations

from turnout.errors import ArgumentError


def check_count(name: str, argument: str, value: object, or_none: bool = False, error: type[Exception] = ArgumentError) -> None:
    """Raise `error` unless the value is an integer above 0; a bool is not one."""
    if (value is None and or_none) or (isinstance(value, int) and not isinstance(value, bool) and value > 0):
        return
    raise error(f"{name}: {argument} must be an integer above 0{', or None' if or_none else ''}, got {value!r}")
