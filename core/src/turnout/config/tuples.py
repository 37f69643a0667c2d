"""`NamedTuple`: that of `typing` for type checkers, without what it does for them when the program runs.

`typing` compiles the text of each annotation of such a class, which is more than half of the time that the class takes.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any
    from typing import NamedTuple as NamedTuple
else:
    from collections import namedtuple

    class _Statement(type):
        """Makes a tuple class of a class statement. Its annotations are the fields; its other members are added."""

        def __new__(cls, name: str, bases: tuple[type, ...], members: dict[str, Any]) -> type:
            fields = members["__annotations__"]
            defaults = [members.pop(field) for field in fields if field in members]
            made = namedtuple(name, fields, defaults=defaults, module=members["__module__"])
            made.__new__.__annotations__ = fields
            for member, value in members.items():
                setattr(made, member, value)
            return made

    NamedTuple = type.__new__(_Statement, "NamedTuple", (), {})
