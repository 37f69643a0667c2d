"""Checks that need the numbers of a tensor, which a library that traces a program does not know yet.

Who has a program traced opens `postponed`: kernels and composites then note what would be wrong, as bool values of the program,
and do not look at numbers. Whoever runs the program looks at what it gives for these.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_NOTED: ContextVar[list[Any] | None] = ContextVar("turnout_aten.noted", default=None)


@contextmanager
def postponed() -> Iterator[list[Any]]:
    """A block in which checks of numbers are noted: values that are true where something is wrong."""
    noted: list[Any] = []
    token = _NOTED.set(noted)
    try:
        yield noted
    finally:
        _NOTED.reset(token)


def are_postponed() -> bool:
    """Whether kernels and composites may not look at numbers now."""
    return _NOTED.get() is not None


def note(wrong: Any) -> None:
    """Note a check: a bool without dims, true where something is wrong, as a tensor or as a value of the device's library."""
    noted = _NOTED.get()
    assert noted is not None
    noted.append(wrong)
