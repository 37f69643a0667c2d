"""The functionality that is proved: how it is switched on, and what it may change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from fnmatch import fnmatch
from importlib import import_module
from typing import Any

from turnout import plugins
from turnout.operators import Operator
from turnout.state import include
from turnout_conformance.observing import Watch


class Functionality:
    """A functionality by its key.

    context  `module:function` of the context manager in which it works, "" for `turnout.state.include(key)`
    changes  patterns of the operators whose results it changes
    watch    counts the calls of its kernels
    """

    watch: Watch

    def __init__(self, key: str, context: str, changes: tuple[str, ...]) -> None:
        plugins.require_functionality(key)
        self.key = key
        self.changes = changes
        self._enter: Callable[[], AbstractContextManager[Any]] = lambda: include(key)
        if context:
            module, _, function = context.partition(":")
            self._enter = getattr(import_module(module), function)

    @contextmanager
    def on(self) -> Iterator[None]:
        """The context in which it works."""
        with self._enter():
            yield

    def may_change(self, op: Operator) -> bool:
        """Whether it says that it changes what an operator gives."""
        names = (op.qualified_name, op.qualified_name.partition("::")[2])
        return any(fnmatch(name, pattern) for pattern in self.changes for name in names)

    def passes(self, op: Operator) -> int:
        """How often the operator went through it so far."""
        return self.watch.calls[self.key, op.qualified_name]
