"""Tuples with names: they are what `typing.NamedTuple` makes of the same class statement, and no class compiles anything."""

from __future__ import annotations

import copy
import inspect
import pickle
import typing

import pytest

from turnout.config import tuples


class Row(tuples.NamedTuple):
    """A row."""

    name: str
    count: int = 2
    marks: tuple[str, ...] = ("a",)

    @property
    def text(self) -> str:
        return f"{self.name} {self.count}"


class Same(typing.NamedTuple):
    """A row."""

    name: str
    count: int = 2
    marks: tuple[str, ...] = ("a",)


def test_a_tuple_has_what_that_of_typing_has():
    for ours, other in ((Row("x"), Same("x")), (Row("x", count=3, marks=()), Same("x", count=3, marks=()))):
        assert ours == other == (*ours,)
        assert repr(ours) == repr(other).replace("Same", "Row")
        assert ours._asdict() == other._asdict()
        assert ours._replace(name="y", marks=("z",)) == other._replace(name="y", marks=("z",))
        assert (ours.name, ours.count, ours.marks) == other
        for made in (pickle.loads(pickle.dumps(ours)), copy.deepcopy(ours), ours._replace(), Row._make(ours)):
            assert (made, type(made)) == (ours, Row)
    for name in ("_fields", "_field_defaults", "__match_args__", "__doc__", "__slots__"):
        assert getattr(Row, name) == getattr(Same, name)
    shown = [parameter.replace(annotation="") for parameter in inspect.signature(Row).parameters.values()]
    assert shown == [parameter.replace(annotation="") for parameter in inspect.signature(Same).parameters.values()]
    assert (Row.__module__, Row.__qualname__, Row("x").text, Row.count.__doc__) == (
        __name__, "Row", "x 2", "Alias for field number 1",
    )  # fmt: skip
    assert not hasattr(Row("x"), "__dict__")
    match Row("x"):
        case Row(name, count):
            assert (name, count) == ("x", 2)


def test_what_does_not_fit_is_refused():
    with pytest.raises(TypeError, match=r"^Row has no field colour, size$"):
        Row("x")._replace(colour=1, size=2)
    with pytest.raises(TypeError, match=r"^Row\.__new__\(\) missing 1 required positional argument: 'name'$"):
        Row()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^Row\.__new__\(\) got an unexpected keyword argument 'colour'$"):
        Row("x", colour=1)  # type: ignore[call-arg]


def test_a_class_compiles_nothing(monkeypatch):
    class First(tuples.NamedTuple):
        a: int
        b: int

    monkeypatch.setattr("builtins.eval", None)

    class Second(tuples.NamedTuple):
        c: int
        d: int

    assert First(1, 2) == Second(1, d=2)
    assert Second(3, 4).d == 4
