"""`turnout.dask.step`: what a block makes or writes is computed at its end, so that the next block starts from numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from weakref import WeakSet

from turnout.guards import restore
from turnout_aten.backend.functional_arrays import Memory


class ChunkedMemory(Memory):
    """A memory that tells the steps around it when it gets a value."""

    __slots__ = ("__weakref__",)

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        for changed in _OPEN.get():
            changed.add(self)

    def replace(self, value: Any) -> None:
        super().replace(value)
        for changed in _OPEN.get():
            changed.add(self)

    @property
    def is_made(self) -> bool:
        """Whether it has a value: memory that was never written has none."""
        return self._value is not None


_OPEN: ContextVar[tuple[WeakSet[ChunkedMemory], ...]] = ContextVar("turnout_dask_steps", default=())


@contextmanager
def changes() -> Iterator[WeakSet[ChunkedMemory]]:
    """The memories that are made or written inside the block, in its thread or task, and are still in use."""
    changed: WeakSet[ChunkedMemory] = WeakSet()
    before = _OPEN.get()
    try:
        _OPEN.set((*before, changed))
        yield changed
    finally:
        try:
            _OPEN.set(before)
        except MemoryError:
            restore(_OPEN, before)
