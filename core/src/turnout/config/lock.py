"""Locks that survive a fork: `new_lock()` makes one.

A child process has the one thread that forked. A lock that another thread held at that moment would stay locked in it for ever,
and what it protects would be half changed. So `os.fork` takes all these locks first, in whatever order gets them.

The locks of Python's import system cannot be taken in advance. In the child, those of other threads are forgotten together with
the modules that were half imported; they are imported again when they are next needed.

A thread may take `LOCK` while it imports a module, so no thread may import, or wait for an import, while it holds `LOCK`: the two
would wait for each other. `forbid_imports` holds everybody to that. Modules of the standard library never ask for `LOCK`.
"""

from __future__ import annotations

import os
import sys
from _thread import RLock, get_ident
from contextvars import ContextVar
from importlib import _bootstrap
from weakref import WeakSet

from turnout.errors.registry import import_under_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from functools import cached_property as cached_property
    from typing import Any

_LOCKS: WeakSet[RLock] = WeakSet()
_ADDING = RLock()
# Thread -> what it has taken to fork.
_TAKEN: dict[int, list[RLock]] = {}


def new_lock() -> RLock:
    """A reentrant lock that is held during each fork. Use it in `with`; locks may be taken in any order."""
    lock = RLock()
    with _ADDING:
        _LOCKS.add(lock)
    return lock


def _take_all() -> None:
    """Take every lock. Give all back when one is not to be had in a while: the thread that has it may wait for another."""
    taken = _TAKEN[get_ident()] = []
    missing: RLock | None = _ADDING
    while missing is not None:
        _give_back(taken)
        missing.acquire()
        taken.append(missing)
        missing = next((lock for lock in _every() if not _try(lock, taken)), None)


def _every() -> Iterator[RLock]:
    yield _ADDING
    yield from list(_LOCKS)


def _try(lock: RLock, taken: list[RLock]) -> bool:
    found = lock.acquire(timeout=0.05)
    if found:
        taken.append(lock)
    return found


def _give_back(taken: list[RLock]) -> None:
    while taken:
        taken.pop().release()


def _in_parent() -> None:
    _give_back(_TAKEN.pop(get_ident()))


def _in_child() -> None:
    _in_parent()
    _TAKEN.clear()
    locks = getattr(_bootstrap, "_module_locks", {})
    for name, reference in list(locks.items()):
        lock = reference()
        if lock is not None and lock.owner != get_ident():
            del locks[name]
            if getattr(getattr(sys.modules.get(name), "__spec__", None), "_initializing", False):
                del sys.modules[name]


if not TYPE_CHECKING:

    class cached_property:
        """`functools.cached_property`, which has a lock in Python 3.11, without one: two threads may both compute the value."""

        def __init__(self, function):
            self.function, self.__doc__ = function, function.__doc__

        def __set_name__(self, owner, name):
            self.name = name

        def __get__(self, instance, owner=None):
            if instance is None:
                return self
            value = instance.__dict__[self.name] = self.function(instance)
            return value


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_take_all, after_in_parent=_in_parent, after_in_child=_in_child)

# Of configuration, plugins and registrations. Activating a plugin registers kernels, and looking up a kernel may activate a
# plugin, so separate locks would be taken in both orders.
LOCK = new_lock()

# Nothing, or the values that the blocks of `override` set.
OVERRIDES: ContextVar[Sequence[Mapping[str, Any]]] = ContextVar("turnout.config.overrides", default=())

# ---- imports, and the threads that wait for them


class _NoImports:
    """The first finder of modules while imports under `LOCK` are forbidden. To look for a module, without an import, is none."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Raise RuntimeError for an import by a thread that holds `LOCK`; find nothing."""
        imports = sys._getframe(2).f_code.co_name == "_find_and_load_unlocked"
        if imports and LOCK._is_owned() and name.partition(".")[0] not in sys.stdlib_module_names:  # type: ignore[attr-defined]
            raise RuntimeError(import_under_lock(name))


_NO_IMPORTS = _NoImports()


def forbid_imports(forbidden: bool = True) -> None:
    """From now on an import by a thread that holds `LOCK` is an error, or is none again: the setting `debug.locks`."""
    while _NO_IMPORTS in sys.meta_path:
        sys.meta_path.remove(_NO_IMPORTS)
    if forbidden:
        sys.meta_path.insert(0, _NO_IMPORTS)


def is_waited_for() -> bool:
    """Whether other threads may wait for this one: it holds `LOCK`, or imports a module."""
    if LOCK._is_owned():  # type: ignore[attr-defined]
        return True
    locks = getattr(_bootstrap, "_module_locks", None)
    if locks is None:  # which is private to CPython
        return True
    held = [reference() for reference in list(locks.values())]
    return any(lock is not None and lock.owner == get_ident() for lock in held)
