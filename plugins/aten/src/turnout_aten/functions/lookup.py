"""Public functions and tensor methods by name, made at their first use.

So the cost of `import turnout` does not grow with the number of operators. The `__getattr__` of a module finds a function; a
descriptor finds a method and replaces itself. The first of them loads `compilation`, which makes them.
"""

from __future__ import annotations

from turnout_aten.declarations import tables
from turnout_aten.functions.public_modules import HOMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

_MODULES = {home: module for module, home in HOMES.items()}


_FUNCTIONS: dict[tuple[str, str], Any] = {}
_METHODS: dict[str, Any] = {}


def function(home: str, name: str) -> Any:
    """The function of that name in a public module of the standard operators, or None."""
    made = _FUNCTIONS.get((home, name))
    if made is None:
        made = function_in(tables.standard(), home, name)
        if made is not None:
            made = _FUNCTIONS.setdefault((home, name), made)  # another thread may have been faster
    return made


def function_in(table: tables.Table, home: str, name: str) -> Any:
    """A new function of that name, from the overloads in a table that belong to the public module `home`, or None."""
    module = _MODULES.get(home, "")
    for packet in (f"{module}_{name}", name, name.removesuffix("_")):
        overloads = [f for f in table.overloads(packet) if f.module == module]
        if any(f.schema.kind != "out" for f in overloads):
            from turnout_aten.functions import compilation
            from turnout_aten.generation.packets import Packet

            found = Packet(packet, overloads, module)
            return compilation.make_function(table, found, home) if found.public_name == name else None
    return None


def names(home: str) -> tuple[str, ...]:
    """The names of the functions in a public module."""
    from turnout_aten.generated.names import FUNCTIONS

    return FUNCTIONS.get(home, ())


def functions_of(
    module: dict[str, Any], home: str, table: tables.Table | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` for a module, given its globals, so that it has the functions of a public module.

    A module with a separate table lists its functions in `__all__` itself.
    """

    def find(name: str) -> Any:
        if name == "__all__":
            return list(names(home))
        found = None
        if not name.startswith("__"):
            found = function(home, name) if table is None else function_in(table, home, name)
        if found is None and table is not None and name.startswith("R_"):
            from turnout_aten.functions import return_types

            found = return_types.of_packet(table, name.removeprefix("R_"), home)
        if found is None:
            raise AttributeError(f"module {module['__name__']!r} has no attribute {name!r}")
        return module.setdefault(name, found)  # another thread may have been faster

    def directory() -> list[str]:
        return list(names(home)) if table is None else sorted(module)

    return find, directory


class LateMethod:
    """A placeholder for a method. The first look-up puts the method into the class.

    CPython 3.13 stops caching look-ups in a class that was changed 1,000 times. There are 600 methods; a program uses few.
    """

    __slots__ = ("_name", "_owner")

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner = owner
        self._name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        name = self._name
        made = _METHODS.get(name)
        if made is None:
            from turnout_aten.functions import compilation

            made = _METHODS.setdefault(name, compilation.make_method(tables.standard(), name))
        if vars(self._owner).get(name) is self:
            setattr(self._owner, name, made)
        return made.__get__(instance, owner)


def methods_class(module: str, names: Iterable[str]) -> type:
    """The class with a method for each name."""
    members: dict[str, Any] = {name: LateMethod() for name in names}
    members.update(__slots__=(), __module__=module, __hash__=object.__hash__)
    members["__doc__"] = "A base of `Tensor`: one method for each operator with a method variant."
    return type("TensorMethods", (), members)
