"""`turnout.return_types`: named tuples, the results of functions and methods with several named results.

`x.max(1)` is a `return_types.max` with `.values` and `.indices`. Only public functions and methods make them, from the plain
tuple that the operator returned. So kernels and rules never see one.
"""

from __future__ import annotations

from operator import itemgetter

from turnout.errors import CallError
from turnout.operators import shorten
from turnout_aten.declarations import tables
from turnout_aten.errors import calls as texts
from turnout_aten.generation.packets import Packet, result_fields, return_type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, ClassVar, Self

    from turnout_aten.generated.return_types import *  # noqa: F403 - a class for each operator with named results

HOME = "turnout.return_types"  # the module in repr, and where pickle finds the classes

_MADE: dict[tuple[str, str, tuple[str, ...]], type[ReturnType]] = {}

new_tuple = tuple.__new__  # used by public functions, which know the number of results


class ReturnType(tuple):  # type: ignore[type-arg]
    """A tuple whose elements have names. It is made from a sequence with one value for each name."""

    __slots__ = ()
    _fields: ClassVar[tuple[str, ...]] = ()

    def __new__(cls, values: Iterable[Any]) -> Self:
        try:
            if not hasattr(values, "__iter__") and not hasattr(values, "__getitem__"):
                raise CallError(texts.wrong_result_count(cls.__qualname__, cls._fields, type(values).__name__))
            made = tuple.__new__(cls, values)
            if len(made) != len(cls._fields):
                raise CallError(texts.wrong_result_count(cls.__qualname__, cls._fields, len(made)))
        except Exception as error:
            shorten(error)
            raise
        return made

    @classmethod
    def _make(cls, values: Iterable[Any]) -> Self:
        return cls(values)

    def __repr__(self) -> str:
        elements = ",\n".join(f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
        return f"{type(self).__module__}.{type(self).__qualname__}(\n{elements})"


def return_type(name: str, fields: tuple[str, ...], module: str = HOME) -> type[ReturnType]:
    """The class of a function's results; the same names give the same class. `module` is where pickle finds it."""
    members: dict[str, Any] = {field: property(itemgetter(i), doc=f"Result {i} of `{name}`.") for i, field in enumerate(fields)}
    members.update(__slots__=(), _fields=fields, __match_args__=fields, __module__=module)
    members["__doc__"] = f"The results of `{name}` by name: {', '.join(fields)}."
    return _MADE.setdefault((module, name, fields), type(name, (ReturnType,), members))


def of_packet(table: tables.Table, packet: str, home: str) -> type[ReturnType] | None:
    """The result class of a packet's function and method; None if the results have no names.

    For standard operators it is in `turnout.return_types`; for a third party's table it is in its module, as `R_name`.
    """
    overloads = table.overloads(packet)
    for own in ([f for f in overloads if f.module is not None], [f for f in overloads if f.is_method]):
        made = Packet(packet, own) if own else None
        if made is not None and made.bases:
            fields = result_fields(made)
            if not fields:
                return None
            own_table = table is not tables.standard()
            return return_type(return_type_name(made), fields, home) if own_table else return_type(packet, fields)
    return None


def named(kind: type[tuple[Any, ...]], result: Any) -> Any:
    """The result of an overload: several results or a list of tensors in a `kind`, a single tensor as it is."""
    return new_tuple(kind, result) if result.__class__ in (tuple, list) else result


def nested(kind: type[ReturnType], result: Any) -> Any:
    """Several results, some of which are lists of tensors."""
    return new_tuple(kind, [tuple(each) if each.__class__ is list else each for each in result])


def standard(name: str) -> type[ReturnType]:
    """The result class of a standard operator. Raises AttributeError if its results have no names."""
    found = None if name.startswith("__") else of_packet(tables.standard(), name, HOME)
    if found is None:
        raise AttributeError(f"module {HOME!r} has no attribute {name!r}")
    return found


def is_standard(kind: type) -> bool:
    """Whether a class is the result class of a standard operator, so that its name is enough to find it."""
    return issubclass(kind, ReturnType) and _MADE.get((HOME, kind.__name__, kind._fields)) is kind


def __getattr__(name: str) -> Any:
    """The class of a standard operator's results, made when it is first used."""
    return __dir__() if name == "__all__" else standard(name)


def __dir__() -> list[str]:
    from turnout_aten.generated.names import RETURN_TYPES

    return list(RETURN_TYPES)
