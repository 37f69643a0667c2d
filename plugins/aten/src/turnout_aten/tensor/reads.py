"""Values of tensors that a program takes without an operator: `tolist()`, `numpy()`, printing, an address.

A functionality that has to know of them, as a compiler does, asks for them with `told_of_reads`.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_READER: ContextVar[Callable[[str], None] | None] = ContextVar("turnout.reader", default=None)

# One for each `told_of_reads` that is open in any context. Frequent reads look here first: while it is empty, nobody is told.
READERS: list[Callable[[str], None]] = []


@contextmanager
def told_of_reads(reader: Callable[[str], None]) -> Iterator[None]:
    """In the block, and in its context alone, `reader` is called with what each read of values is in a program."""
    READERS.append(reader)
    token = _READER.set(reader)
    try:
        yield
    finally:
        _READER.reset(token)
        READERS.remove(reader)


def reads(what: str) -> None:
    """Tell who wants to know that values are read now; `what` is how the program says it."""
    reader = _READER.get()
    if reader is not None:
        reader(what)
