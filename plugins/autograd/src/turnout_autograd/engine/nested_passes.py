"""Backward passes inside of backward passes. Python's stack holds some hundred of them; every 40 levels a new thread goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

# A level takes at least six frames of the thousand that Python allows, the user's own functions not counted.
LEVELS_PER_THREAD = 40


class _Depth(threading.local):
    """How many backward functions of users are running in this thread."""

    count = 0


_DEPTH = _Depth()


def run_nested(call: Callable[..., Any], *args: Any) -> Any:
    """`call(*args)`, in a new thread with a copy of the context where this one's stack is deep. Raises what it raises."""
    depth = _DEPTH.count
    try:
        _DEPTH.count = depth + 1
        if depth >= LEVELS_PER_THREAD:
            return _elsewhere(call, args)
        return call(*args)
    finally:
        _DEPTH.count = depth


def _elsewhere(call: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    results: list[Any] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(call(*args))
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
            errors.append(error)

    thread = threading.Thread(target=copy_context().run, args=(run,), name="backward inside of backward")
    thread.start()
    thread.join()
    if errors:
        raise errors.pop()
    return results[0]
