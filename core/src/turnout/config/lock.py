"""The lock of everything that changes rarely, and the settings of a context."""

from __future__ import annotations

import os
from _thread import RLock
from contextvars import ContextVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

# Of configuration, plugins and registrations. Activating a plugin registers kernels, and looking up a kernel may activate a
# plugin, so separate locks would be taken in both orders.
LOCK = RLock()
# Without this, a child that is forked during a change in another thread would find the lock taken and the change half made.
os.register_at_fork(before=LOCK.acquire, after_in_parent=LOCK.release, after_in_child=LOCK.release)

# Nothing, or the values that the blocks of `override` set.
OVERRIDES: ContextVar[Sequence[Mapping[str, Any]]] = ContextVar("turnout.config.overrides", default=())
