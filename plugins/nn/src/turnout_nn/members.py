"""`Members`: what a module has registered under one table of names, as a dict that can be changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from turnout_nn.module import Module

V = TypeVar("V")


class Members(MutableMapping[str, V | None]):
    """Name -> parameter, buffer or module of one module. The values are the module's attributes."""

    __slots__ = ("_module", "_names", "_register")

    def __init__(self, module: Module, table: str, register: Callable[[str, Any], None]) -> None:
        self._module = module
        self._names: dict[str, Any] = module.__dict__[table]
        self._register = register

    def __getitem__(self, name: str) -> V | None:
        if name not in self._names:
            raise KeyError(name)
        return self._module.__dict__[name]

    def __setitem__(self, name: str, value: V | None) -> None:
        self._register(name, value)

    def __delitem__(self, name: str) -> None:
        if name not in self._names:
            raise KeyError(name)
        delattr(self._module, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return repr(dict(self))
