"""`NamedTuple`: that of `typing` for type checkers, without what it does for them when the program runs.

`typing` compiles the text of each annotation of such a class, and `collections` a function for each class. Here no class compiles
anything: it has the getters of another class with as many fields, and the code of its `__new__` under the names of its own.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any
    from typing import NamedTuple as NamedTuple
else:
    from collections import namedtuple
    from functools import cache
    from types import FunctionType

    class _Tuple(tuple):
        """What all of these classes have in common, under the names that `collections.namedtuple` gives it."""

        __slots__ = ()

        @classmethod
        def _make(cls, values):
            return cls(*values)

        def _replace(self, /, **changes):
            made = tuple.__new__(self.__class__, map(changes.pop, self._fields, self))
            if changes:
                raise TypeError(f"{self.__class__.__name__} has no field {', '.join(changes)}")
            return made

        __replace__ = _replace

        def _asdict(self):
            return dict(zip(self._fields, self, strict=True))

        def __repr__(self):
            values = [f"{field}={value!r}" for field, value in zip(self._fields, self, strict=True)]
            return f"{self.__class__.__name__}({', '.join(values)})"

        def __getnewargs__(self):
            return tuple(self)

    @cache
    def _like(count):
        """A class with so many fields."""
        return namedtuple("Like", [f"field{i}" for i in range(count)])

    class _Statement(type):
        """Makes a tuple class of a class statement. Its annotations are the fields; its other members are added."""

        def __new__(cls, name: str, bases: tuple[type, ...], members: dict[str, Any]) -> type:
            fields = members["__annotations__"]
            defaults = {field: members[field] for field in fields if field in members}
            like = _like(len(fields))
            code = like.__new__.__code__.replace(co_varnames=("_cls", *fields))
            new = FunctionType(code, like.__new__.__globals__, "__new__", tuple(defaults.values()))
            new.__qualname__, new.__annotations__ = f"{name}.__new__", fields
            own = {field: vars(like)[of] for field, of in zip(fields, like._fields, strict=True)}
            own |= {"__slots__": (), "__new__": new, "_fields": tuple(fields), "_field_defaults": defaults}
            own["__match_args__"] = own["_fields"]
            return type(name, (_Tuple,), {"__doc__": f"{name}({', '.join(fields)})", **members, **own})

    NamedTuple = type.__new__(_Statement, "NamedTuple", (), {})
