"""What core's public functions use while this plugin is active, and what it counts."""

from __future__ import annotations

from turnout_batched.custom import by_function, custom_rule
from turnout_batched.errors import LoopWarning, VmapArgumentError, VmapError
from turnout_batched.kernels import LOOPS
from turnout_batched.mapping import vmap


def loop_counts() -> dict[str, int]:
    """How many calls ran once per example for want of a batching rule, by operator."""
    return dict(LOOPS)


__all__ = ["LoopWarning", "VmapArgumentError", "VmapError", "by_function", "custom_rule", "loop_counts", "vmap"]
