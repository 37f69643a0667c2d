"""The threads of PoCL, a driver that computes on the host's processors: one for each core, which keeps to it.

A thread of PoCL wakes the others while the program that called it still runs on a core. Linux then often puts two threads on one
core and leaves the other one idle, for a whole kernel, and again for the next one. On two cores, kernels took twice as long in
some runs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

_SWITCH = "POCL_AFFINITY"  # which PoCL reads when it starts its threads
_LIMIT = "POCL_MAX_PTHREAD_COUNT"


@contextmanager
def on_own_cores() -> Iterator[None]:
    """A block in which drivers may start. The user's own `POCL_AFFINITY` decides where it is set.

    Where there are fewer threads than cores, they stay free: those of several processes would have the same cores.
    """
    if _SWITCH in os.environ or not _is_thread_per_core():
        yield
        return
    os.environ[_SWITCH] = "1"
    try:
        yield
    finally:
        os.environ.pop(_SWITCH, None)


def _is_thread_per_core() -> bool:
    """Whether PoCL starts a thread for each core of the machine, and this process may use all of them."""
    cores, limit = os.cpu_count() or 1, os.environ.get(_LIMIT, "")
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
    return allowed == cores > 1 and not (limit.isdecimal() and int(limit) < cores)
