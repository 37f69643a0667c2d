"""Where a function runs functionalised.

Inside a region, calls come to Functionalize first: the functionalities between it and Batched are excluded there, and take part
in the calls that are made below, on the values. So gradients are recorded, casts made and calls traced for the functional
operators, and nothing above sees a write. Regions do not nest: one inside another joins it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from turnout.guards import during, restore
from turnout.keys import KEYS
from turnout.state import BELOW_ADINPLACEORVIEW, DISPATCH, FRESH, lifted
from turnout_aten.tensor.tensor import Tensor

if TYPE_CHECKING:
    from turnout.operators import Operator
    from turnout_functionalize.memories import Memory

KEY = KEYS.bit("Functionalize")
FORWARD = KEYS.bit("Forward")

REGION: ContextVar[Region | None] = ContextVar("turnout_functionalize.region", default=None)


class Region:
    """A running functionalised function.

    copies   views are made by operators that copy
    adopted  the memories of tensors from outside, by the id of their storage; the tensors are kept alive by them
    turns    in-place views of tensors from outside, to be done to them at the end
    alive    the tensors that the function sees and that exist still, by their id
    """

    __slots__ = ("_lifted", "adopted", "alive", "copies", "turns")

    def __init__(self, copies: bool) -> None:
        self.copies = copies
        self.adopted: dict[int, Memory] = {}
        self.turns: list[tuple[Operator, Tensor, tuple[Any, ...]]] = []
        self.alive: WeakValueDictionary[int, Tensor] = WeakValueDictionary()
        self._lifted = 0

    @contextmanager
    def entered(self) -> Iterator[None]:
        """The state in which the function runs."""
        include, keep = before = DISPATCH.get()
        self._lifted = keep & _above() | FORWARD  # forward levels are left below, if none is active
        try:
            try:
                REGION.set(self)
                DISPATCH.set((include | KEY, (keep | KEY) & ~self._lifted))
                yield
            finally:
                try:
                    DISPATCH.set(before)
                except MemoryError:
                    restore(DISPATCH, before)
        finally:
            try:
                REGION.set(None)
            except MemoryError:
                restore(REGION, None)

    def run(self, function: Callable[..., Any], *args: Any) -> Any:
        """`function(*args)` below Functionalize, where what the region excludes takes part again."""
        include, keep = DISPATCH.get()
        return during(DISPATCH, (include & ~KEY, lifted(keep, self._lifted) & ~KEY), function, *args)

    def call(self, op: Operator, *args: Any) -> Any:
        """An operator on values."""
        return self.run(op.call_boxed, args)


def _above() -> int:
    """The functionalities between Functionalize and Autocast: they work on values."""
    rows = KEYS.functionalities
    at = [row.bit for row in rows].index(KEY)
    top = max(i for i, row in enumerate(rows) if row.bit == FORWARD)
    return sum(row.bit for row in rows[at + 1 : top + 1] if not row.opt_in)


def silently(function: Callable[..., Any], *args: Any) -> Any:
    """`function(*args)` where nothing records, casts or functionalises."""
    keep = lifted(DISPATCH.get()[1] & BELOW_ADINPLACEORVIEW, BELOW_ADINPLACEORVIEW)
    return during(DISPATCH, (FRESH[0], keep), function, *args)
