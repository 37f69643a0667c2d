"""A pause of the cyclic garbage collector while plugins are found, imported and activated, and public names are made."""

from __future__ import annotations

import gc
import os
from _thread import get_ident
from collections.abc import Iterator
from contextlib import contextmanager

from turnout.config.lock import new_lock

# The threads for which the collector is paused, and its thresholds before.
_PAUSING: list[int] = []
_thresholds = gc.get_threshold()


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the cyclic garbage collector, which would visit what plugins import and register many times; it stays anyway.

    At the end all of it is old: otherwise the next allocation would be followed by a collection of everything.

    The threshold 0 pauses it, not `gc.disable`: a module that is imported meanwhile may read `gc.isenabled` and restore later
    what it says. That would disable the collector for the rest of the process.
    """
    global _thresholds
    with _COUNTING:
        if not _PAUSING:
            _thresholds = gc.get_threshold()
            gc.set_threshold(0)
        _PAUSING.append(get_ident())
    try:
        yield
    finally:
        _resume(get_ident())


def _resume(*threads: int) -> None:
    """Of these threads each pauses the collector once less. It is as before when no thread pauses it."""
    with _COUNTING:
        for thread in threads:
            _PAUSING.remove(thread)
        if not _PAUSING and gc.get_threshold()[0] == 0:  # else what was imported meanwhile has set another one
            # Where a collection is due. What the program froze stays so: how much that is, is asked last, since it is counted.
            if gc.isenabled() and 0 < _thresholds[0] < gc.get_count()[0] and not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.set_threshold(*_thresholds)


_COUNTING = new_lock()


def _in_child() -> None:
    """Let the collector run if threads paused it that are not in the child."""
    if _PAUSING:
        _resume(*(each for each in _PAUSING if each != get_ident()))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
