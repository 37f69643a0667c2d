"""What core's public functions call while this plugin is active, and the counts that it keeps."""

from __future__ import annotations

from turnout.config.effects import effect
from turnout_batched.custom import by_function, custom_rule
from turnout_batched.errors import LoopWarning, VmapArgumentError, VmapError
from turnout_batched.kernels import LOOPS
from turnout_batched.levels import Level
from turnout_batched.mapping import check_randomness, vmap


def loop_counts() -> dict[str, int]:
    """How many calls ran once per example because the operator has no batching rule, by operator.

    Example:
        >>> isinstance(turnout.func.loop_counts(), dict)
        True
    """
    effect("loop_counts()")
    return dict(LOOPS)


def columns(count: int, randomness: str) -> Level:
    """A vmap for tangents of `count` directions: the function that is differentiated is never inside of it."""
    check_randomness(randomness)
    return Level(count, randomness)


__all__ = ["LoopWarning", "VmapArgumentError", "VmapError", "by_function", "columns", "custom_rule", "loop_counts", "vmap"]
