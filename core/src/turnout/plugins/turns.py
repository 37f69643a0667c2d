"""Whose turn it is: one thread prepares a plugin for its activation, and the others that need it wait.

A thread for which others may wait does not wait: it holds the lock, imports a module, or prepares a plugin itself. Otherwise two
threads could wait for each other. It goes on and prepares the plugin too, beside the other thread.
"""

from __future__ import annotations

import os
from _thread import allocate_lock, get_ident
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from turnout.config.lock import is_waited_for

# Plugin -> the thread that prepares it, and a lock that is held meanwhile.
_TURNS: dict[str, tuple[int, Any]] = {}


@contextmanager
def turn(plugin: str) -> Iterator[bool]:
    """Whether this thread shall prepare a plugin now. If another one does, wait for it where that is safe, and return False."""
    thread, mine = get_ident(), allocate_lock()
    mine.acquire()
    try:
        waits = not is_waited_for() and all(owner != thread for owner, _ in list(_TURNS.values()))
        _, theirs = _TURNS.setdefault(plugin, (thread, mine))
        if theirs is not mine and waits:
            with theirs:
                pass
        yield theirs is mine or not waits
    finally:
        if _TURNS.get(plugin, (0, None))[1] is mine:
            del _TURNS[plugin]
        mine.release()


def is_mine(plugin: str) -> bool:
    """Whether this thread is preparing a plugin."""
    return _TURNS.get(plugin, (0, None))[0] == get_ident()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_TURNS.clear)  # the other threads are not there
