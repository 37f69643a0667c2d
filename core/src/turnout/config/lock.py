"""The lock of everything that changes rarely, and the settings of a context."""

from __future__ import annotations

from contextvars import ContextVar

from turnout.locks import new_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

# Of configuration, plugins and registrations. Activating a plugin registers kernels, and looking up a kernel may activate a
# plugin, so separate locks would be taken in both orders.
LOCK = new_lock()

# Nothing, or the values that the blocks of `override` set.
OVERRIDES: ContextVar[Sequence[Mapping[str, Any]]] = ContextVar("turnout.config.overrides", default=())
