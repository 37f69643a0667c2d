"""`detect_anomaly`: which forward line recorded a node, where a backward pass fails and at the first gradient with a NaN.

While it is on, kernels are specialised anew with a wrapper that notes the line; while it is off, nothing of it is there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

from turnout import plugins
from turnout.config.effects import effect
from turnout.registry import REGISTRY
from turnout_autograd import errors
from turnout_autograd.engine.nodes import hooks_of, made_since, next_seq

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from turnout_autograd.engine.nodes import Node


class Anomaly:
    """Whether forward lines are recorded and gradients are searched for NaN (`detect_anomaly`)."""

    __slots__ = ("always", "check_nan", "depth")

    def __init__(self) -> None:
        self.depth = 0
        self.always = False
        self.check_nan = False

    @property
    def enabled(self) -> bool:
        return self.always or self.depth > 0


ANOMALY = Anomaly()
_SHOWN = 6  # lines of the user's program, innermost last


class detect_anomaly:
    """While entered, in the whole process, an error of a backward pass names the forward line that caused it. Slow.

    check_nan  also raise for a gradient that contains NaN
    """

    def __init__(self, check_nan: bool = True) -> None:
        self._check_nan = check_nan

    def __enter__(self) -> None:
        with REGISTRY.lock:
            self._before = ANOMALY.check_nan
            _change(ANOMALY.depth + 1, ANOMALY.always, self._check_nan)

    def __exit__(self, *exc_info: object) -> None:
        with REGISTRY.lock:
            _change(ANOMALY.depth - 1, ANOMALY.always, self._before)


class set_detect_anomaly:
    """Turn it on or off permanently, or with `with` until the end of the block. Inside `detect_anomaly` it stays on.

    mode       whether it is on
    check_nan  whether a nan in a gradient is an error
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        with REGISTRY.lock:
            self._before = ANOMALY.always, ANOMALY.check_nan
            _change(ANOMALY.depth, bool(mode), check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc_info: object) -> None:
        with REGISTRY.lock:
            _change(ANOMALY.depth, *self._before)


def is_anomaly_enabled() -> bool:
    """Whether forward lines are recorded now.

    Example:
        >>> turnout.autograd.is_anomaly_enabled()
        False
    """
    effect("is_anomaly_enabled()")
    return ANOMALY.enabled


def is_anomaly_check_nan_enabled() -> bool:
    """Whether a gradient that contains NaN is an error now.

    Example:
        >>> turnout.autograd.is_anomaly_check_nan_enabled()
        False
    """
    effect("is_anomaly_check_nan_enabled()")
    return ANOMALY.check_nan


def _change(depth: int, always: bool, check_nan: bool) -> None:
    effect("detect_anomaly()")
    was = ANOMALY.enabled
    ANOMALY.depth = depth
    ANOMALY.always = always
    ANOMALY.check_nan = check_nan and ANOMALY.enabled
    if ANOMALY.enabled is not was:
        REGISTRY.changed()


def noting(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel, with the line of the call kept at the nodes it makes."""

    @wraps(fn)
    def note_line(ks: int, *args: Any) -> Any:
        before = next_seq()
        result = fn(ks, *args)
        for node in made_since(before, args, result):
            if not hooks_of(node).line:
                note(node)
        return result

    return note_line


def keeping_line(call: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel of a functionality that asks for lines, with the user's line kept at the nodes that are made below it."""
    from turnout.explanation.user_frames import user_frame  # not with the plugin, which few programs ask this of

    def keep_line(ks: int, *args: Any) -> Any:
        before = next_seq()
        result = call(ks, *args)
        for node in made_since(before, args, result):
            hooks = hooks_of(node)
            hooks.user_frame = hooks.user_frame or user_frame()
        return result

    return keep_line


def note(node: Node) -> None:
    """Keep the lines of the user's program that led here: frames of Turnout itself would push them out."""
    from traceback import StackSummary, walk_stack  # 1 ms, which programs without `detect_anomaly` do not pay

    frames = list(_users(sys._getframe(1)))[:_SHOWN] or list(walk_stack(sys._getframe(1)))[:_SHOWN]
    hooks_of(node).line = "".join(StackSummary.extract(iter(reversed(frames))).format())


def _users(frame: FrameType) -> Iterator[tuple[FrameType, int]]:
    from traceback import walk_stack

    for each, line in walk_stack(frame):
        if not plugins.is_ours(each.f_globals.get("__name__", "")):
            yield each, line


def line_of(node: Node) -> str:
    """Where a node was recorded."""
    return node.extra.line if node.extra is not None and node.extra.line else errors.passes.UNNOTED
