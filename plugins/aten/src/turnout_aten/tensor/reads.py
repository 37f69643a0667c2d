"""Values of tensors that a program takes without an operator: `tolist()`, `numpy()`, printing, an address.

A functionality that has to know of them, as a compiler does, sets `READER` for its context.
"""

from __future__ import annotations

from contextvars import ContextVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

READER: ContextVar[Callable[[str], None] | None] = ContextVar("turnout.reader", default=None)


def reads(what: str) -> None:
    """Tell who wants to know that values are read now; `what` is how the program says it."""
    reader = READER.get()
    if reader is not None:
        reader(what)
