"""What core's public functions call while this plugin is active, and the counts that it keeps."""

from __future__ import annotations

from turnout_batched.custom import by_function, custom_rule
from turnout_batched.errors import LoopWarning, VmapArgumentError, VmapError
from turnout_batched.kernels import LOOPS
from turnout_batched.mapping import vmap


def loop_counts() -> dict[str, int]:
    """How many calls ran once per example because the operator has no batching rule, by operator.

    Example:
        >>> isinstance(turnout.func.loop_counts(), dict)
        True
    """
    return dict(LOOPS)


__all__ = ["LoopWarning", "VmapArgumentError", "VmapError", "by_function", "custom_rule", "loop_counts", "vmap"]
