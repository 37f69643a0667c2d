"""Methods of `Tensor` that stand in other modules: they are loaded, and take their places, when they are first looked up.

So a tensor is defined below indexing, printing and saving, which are written for tensors, and a call costs no import statement
(270 ns each time).
"""

from __future__ import annotations

from typing import Any


class Late:
    """Stands for `module:name`, a function of a tensor or a property, until it is first used."""

    __slots__ = ("_name", "_owner", "_path")

    def __init__(self, path: str) -> None:
        self._path = path

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner = owner
        self._name = name

    def _load(self) -> Any:
        from importlib import import_module

        module, _, name = self._path.partition(":")
        found = getattr(import_module(module), name)
        if vars(self._owner).get(self._name) is self:  # somebody may have put another one here
            setattr(self._owner, self._name, found)
        return found

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self._load().__get__(instance, owner)


class LateProperty(Late):
    """The same for a property that can be set."""

    __slots__ = ()

    def __set__(self, instance: Any, value: Any) -> None:
        self._load().__set__(instance, value)
