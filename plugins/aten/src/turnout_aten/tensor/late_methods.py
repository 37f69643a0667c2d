"""Methods of `Tensor` that are defined in other modules. The first look-up loads each one and puts it in its place.

So `Tensor` can be defined below indexing, printing and saving, which import it, and a call does not run an import statement
(270 ns each time).
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

from turnout.plugins import replaceable


@replaceable
def named(function: Any, name: str) -> Any:
    """A function as the method of `Tensor` of that name. pickle finds a method by its name, and the function has its own.

    It has the code and the defaults of the function, so that a call costs the same. A property is returned as it is.
    """
    if not isinstance(function, FunctionType):
        return function
    made = FunctionType(
        function.__code__, function.__globals__, name, function.__defaults__, function.__closure__
    )  # fmt: skip
    made.__kwdefaults__ = function.__kwdefaults__
    made.__annotations__ = function.__annotations__
    made.__doc__ = function.__doc__
    made.__dict__.update(function.__dict__)
    made.__module__, made.__qualname__ = "turnout", f"Tensor.{name}"
    return made


class Late:
    """A placeholder for `module:name`, a function of a tensor or a property, until the first use."""

    __slots__ = ("_name", "_owner", "_path")

    def __init__(self, path: str) -> None:
        self._path = path

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner = owner
        self._name = name

    def _load(self) -> Any:
        from importlib import import_module

        module, _, name = self._path.partition(":")
        found = named(getattr(import_module(module), name), self._name)
        if isinstance(found, property):
            found.__set_name__(self._owner, self._name)  # type: ignore[attr-defined] # errors name it
        if vars(self._owner).get(self._name) is self:  # user code may have replaced it
            setattr(self._owner, self._name, found)
        return found

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self._load().__get__(instance, owner)


class LateProperty(Late):
    """`Late`, for a property, which nothing in an instance may hide."""

    __slots__ = ()

    def __set__(self, instance: Any, value: Any) -> None:
        self._load().__set__(instance, value)
