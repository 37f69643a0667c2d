"""Guards: blocks that set variables of the context, and put back what was there, wherever and however the block is left.

A guard derives from `Guard` and says in `sets` what holds inside the block. Values are sequences: a guard sets a list, code that
sets a variable for the time of one call a tuple. A block may end where it did not begin: a generator is closed in a copy of its
context, or collected in another thread. Then the list itself takes the old values, so the context that still holds it is right.
So it does where there is no memory to set a variable. A call has no list: it gets the memory from `restore`.

An interrupt (Ctrl-C) can arrive before the first line of `__exit__`. So what a `with` statement holds is an object of its own,
which no traceback keeps alive: when the statement lets it go, it leaves a block that was not left. Code that sets a variable
without a guard reads the old value, sets inside `try`, and sets the old value in `finally`: no interrupt can come between.
`during` does that for a call.
"""

from __future__ import annotations

from _thread import get_ident
from collections.abc import Sequence
from contextvars import ContextVar
from functools import partial
from weakref import ref

from turnout.errors import CallError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import Token
    from typing import Any, ClassVar, Self

__all__ = ["Block", "Changes", "Guard", "during", "restore"]

# Variables, and the lists that they hold inside a block.
Changes = Sequence[tuple[ContextVar["Any"], list["Any"]]]


class Block:
    """One entering of a guard, until it is left.

    changes  (variable, the guard's list, the value before); none when they were put back where the block was entered
    inside   blocks inside it that were left elsewhere. A context that holds the list of one has it or one inside it as innermost
    outer    the block around it
    by_with  whether a `with` statement entered it, which ends it for certain
    """

    __slots__ = ("__weakref__", "by_with", "changes", "entered", "guard", "inside", "outer", "token")

    guard: Guard
    by_with: bool
    entered: bool
    outer: Block | None
    inside: list[ref[Block]]
    changes: list[tuple[ContextVar[Any], list[Any], Any]]
    token: Token[Block | None] | None

    def enter(self) -> None:
        self.outer = outer if (outer := _INNERMOST.get()) is None or outer.entered else _innermost()
        self.inside = []
        changes: list[tuple[ContextVar[Any], list[Any], Any]] = []  # by a loop: a comprehension is a frame before Python 3.12
        for variable, value in self.guard.sets():
            changes += [(variable, value, variable.get())]
        self.changes = changes
        self.entered = True
        self.token = _INNERMOST.set(self)
        for variable, value, _ in self.changes:
            variable.set(value)

    def leave(self) -> None:
        """Put everything back; a second call, after an interrupt in the first one, goes on with it.

        It calls no deeper than `enter` has: where a block could be entered, the recursion limit is no obstacle to leaving it.
        """
        if not self.entered:
            return
        guard = self.guard
        all_of_it = False  # whether the variables of this context were set to what they were, and that was all the block has set
        try:
            if _INNERMOST.get() is self or self._is_innermost():
                all_of_it = not (self.inside and self._left_inside())
                for variable, value, before in self.changes:
                    now = variable.get()
                    if now is value or type(now) is list:
                        variable.set(before)
                    else:
                        all_of_it = False  # a call is running that has set it for itself
                try:
                    _INNERMOST.set(self.outer) if self.token is None else _INNERMOST.reset(self.token)
                except ValueError:  # in a copy of the context that entered
                    _INNERMOST.set(self.outer)
                    all_of_it = False
        except MemoryError:  # what could not be set is put back as by a block that was left elsewhere
            all_of_it = False
            self.changes = [change for change in self.changes if change[0].get() is change[1]]
        if all_of_it:
            self.changes = []
        else:
            for block in (self, *self._left_inside()):
                for _, value, before in block.changes:
                    value[:] = before
            outer = _around(self.outer)
            if outer is not None:  # lists that a context still holds change again when the block around is left
                outer.inside = [ref(block) for block in (*outer._left_inside(), self, *self._left_inside())]
        self.entered = False
        self.token = None  # which holds its context, which may hold this block
        if guard.__class__.left is not _NOTHING_TO_DO:
            guard.left()

    def _is_innermost(self) -> bool:
        """Whether this context has no block inside this one, after what blocks have set that were left elsewhere is put back."""
        innermost = _innermost()
        while self.by_with and innermost is not None and innermost is not self and not innermost.by_with:
            innermost = _around(innermost.outer)  # entered by hand inside this block, and never left
        return innermost is self

    def _left_inside(self) -> list[Block]:
        return [block for each in self.inside if (block := each()) is not None]


def _around(block: Block | None) -> Block | None:
    """The block, or the innermost one around it that is not left."""
    while block is not None and not block.entered:
        block = block.outer
    return block


def _innermost() -> Block | None:
    """The innermost block of this context, after what blocks have set here that were left elsewhere has been put back."""
    block = _INNERMOST.get()
    while block is not None and not block.entered and all(variable.get() is value for variable, value, _ in block.changes):
        for variable, _, before in block.changes:
            variable.set(before)
        block = block.outer
        _INNERMOST.set(block)
    return block


# Blocks of memory of the sizes that setting a variable takes.
_SIZES = (*range(1, 512, 16),) * 4
_KEPT = [*map(bytearray, _SIZES)]


def restore(variable: ContextVar[Any], value: Any) -> None:
    """Set a variable to what it was before a call, where that raised MemoryError: in memory that is kept for this."""
    _KEPT.clear()
    variable.set(value)
    try:
        _KEPT[:] = map(bytearray, _SIZES)
    except MemoryError:
        pass  # the next time tries again


def during(variable: ContextVar[Any], value: Any, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """`function(*args, **kwargs)` while a variable has a value. It is put back however the call ends."""
    before = variable.get()
    try:
        variable.set(value)
        return function(*args, **kwargs)
    finally:
        try:
            variable.set(before)
        except MemoryError:
            restore(variable, before)


_INNERMOST: ContextVar[Block | None] = ContextVar("turnout.guards", default=None)
# Thread -> the guard that a `with` statement is about to enter, and its block.
_NEXT: dict[int, tuple[Guard, Block]] = {}


class _Leaving(partial[None]):
    """What a `with` statement calls at its end. Called from C, so that no frame, and no traceback, holds it."""

    __slots__ = ()

    def __del__(self) -> None:
        if self.args and self.args[1].entered:  # without memory, it is made without arguments
            self.args[1].leave()


class _Exit:
    """`__exit__` of guards: makes a new block for each look-up, which a `with` statement does before it calls `__enter__`."""

    def __get__(self, guard: Guard | None, owner: type[Guard]) -> Callable[..., None]:
        if guard is None:
            return _leave_last
        block = Block()  # without an `__init__`, whose frame would cost 60 ns
        block.guard, block.by_with, block.entered, block.token = guard, True, False, None
        _NEXT[get_ident()] = guard, block
        return _Leaving(_leave, guard, block)


def _leave(guard: Guard, block: Block, *exc_info: object) -> None:
    if block.entered:
        block.leave()
    elif not hasattr(block, "outer"):  # never entered: `__exit__` was called by its name, not by a `with` statement
        _NEXT.pop(get_ident(), None)  # a look-up is no `with` statement
        _leave_last(guard)


def _leave_last(guard: Guard, *exc_info: object) -> None:
    """Leave the block that was last entered by a call of `__enter__`."""
    entered: list[Block] = getattr(guard, "_by_hand", [])
    if not entered:
        raise CallError(f"{type(guard).__name__}: __exit__ was called without __enter__")
    entered.pop().leave()


class Guard:
    """A context manager that sets variables of the context. It may be entered again inside its block, and in several threads."""

    __slots__ = ("_by_hand",)
    __unwrapped__: ClassVar[tuple[str, ...]] = ("__enter__", "left", "sets")  # blocks are small calls
    _by_hand: list[Block]  # those that no `with` statement entered

    def sets(self) -> Changes:
        """The variables and their values inside the block, new lists. Raises what entering the block raises."""
        raise NotImplementedError(f"{type(self).__name__} must define sets(self)")

    def left(self) -> None:
        """Called when a block has been left."""

    def __enter__(self) -> Self:
        guard, block = _NEXT.pop(get_ident(), (None, None))
        if block is None or guard is not self:
            block = Block()
            block.guard, block.by_with, block.entered, block.token = self, False, False, None
            self._by_hand = [*getattr(self, "_by_hand", ()), block]
        block.enter()
        return self

    __exit__ = _Exit()


_NOTHING_TO_DO = Guard.left
