"""A pause of the cyclic garbage collector while plugins are found, imported and activated, and public names are made."""

from __future__ import annotations

import gc
import os
from _thread import get_ident
from collections.abc import Iterator
from contextlib import contextmanager

from turnout.config.lock import new_lock

# The threads for which the collector is paused, and whether it ran before.
_PAUSING: list[int] = []
_ran = True


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the cyclic garbage collector, which would visit what plugins import and register many times; it stays anyway.

    At the end all of it is old: otherwise the next allocation would be followed by a collection of everything.
    """
    global _ran
    with _COUNTING:
        if not _PAUSING:
            _ran = gc.isenabled()
        gc.disable()
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
        if not _PAUSING and _ran:
            # Where a collection is due. What the program froze stays so: how much that is, is asked last, since it is counted.
            if gc.get_count()[0] > gc.get_threshold()[0] and not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.enable()


_COUNTING = new_lock()


def _in_child() -> None:
    """Let the collector run if threads paused it that are not in the child."""
    if _PAUSING:
        _resume(*(each for each in _PAUSING if each != get_ident()))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
