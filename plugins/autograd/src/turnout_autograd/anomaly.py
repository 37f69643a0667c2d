"""`detect_anomaly`: which forward line recorded a node, and an error at the first gradient with a NaN.

While it is on, kernels are specialised anew with a wrapper that notes the line; while it is off, nothing of it is there.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from functools import wraps
from types import FrameType
from typing import Any

from turnout.registry import REGISTRY, tensors_in
from turnout_autograd.engine import ANOMALY
from turnout_autograd.graph import Output, hooks_of

_SHOWN = 6  # lines of a stack


class detect_anomaly:
    """While entered (in the whole process), backward says which forward line a NaN comes from. Slow."""

    def __init__(self, check_nan: bool = True) -> None:
        self._check_nan = check_nan

    def __enter__(self) -> None:
        self._before = ANOMALY.check_nan
        set_detect_anomaly(True, self._check_nan)

    def __exit__(self, *exc_info: object) -> None:
        set_detect_anomaly(False, self._before)


def set_detect_anomaly(mode: bool, check_nan: bool = True) -> None:
    """Turn it on or off; calls nest."""
    with REGISTRY.lock:
        ANOMALY.depth = max(0, ANOMALY.depth + (1 if mode else -1))
        ANOMALY.check_nan = check_nan and ANOMALY.depth > 0
        if ANOMALY.depth == int(mode):
            REGISTRY.changed()


def noting(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel, with the line of the call kept at the nodes it makes."""

    @wraps(fn)
    def note_line(ks: int, *args: Any) -> Any:
        result = fn(ks, *args)
        for tensor in tensors_in(result if isinstance(result, (tuple, list)) else (result,)):
            node = tensor.node if tensor.gmask else None
            node = node.node if isinstance(node, Output) else node
            if node is not None and hasattr(node, "edges") and not hooks_of(node).line:
                hooks_of(node).line = forward_lines()
        return result

    return note_line


def forward_lines() -> str:
    """The stack of the call that is running, innermost last and without Turnout's own frames there, as a traceback shows it."""
    innermost = frame = sys._getframe(1)
    while frame.f_back is not None and _is_own(frame):
        frame = frame.f_back
    return "".join(traceback.format_stack(innermost if _is_own(frame) else frame, limit=_SHOWN))


def _is_own(frame: FrameType) -> bool:
    package = frame.f_globals.get("__name__", "").partition(".")[0]
    return package == "turnout" or package.startswith("turnout_")
