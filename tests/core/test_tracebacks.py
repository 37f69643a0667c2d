"""Which frames an error shows that leaves a call: those of the program, its kernels and hooks, and of a fault in Turnout all."""

from __future__ import annotations

import inspect
import pickle
import sys
import threading
import traceback
import types
from collections.abc import Callable
from typing import Any

import pytest
from plain_objects import backends, box  # noqa: F401

import turnout
from turnout.errors import ConfigError, ShapeError
from turnout.operators import shorten
from turnout.operators.tracebacks import shorten_class
from turnout.registry import Registrations

INTERNAL = ["made"]
KEPT = ShapeError("one object")


def in_core(statement: str, **names: Any) -> Callable[..., Any]:
    """A public function of a text that counts as core's, as generated ones do."""
    text = f"def made(function=None):\n try:\n  {statement}\n except Exception as error:\n  shorten(error)\n  raise"
    own = {"__name__": "turnout.made", "shorten": shorten, "ShapeError": ShapeError, "KEPT": KEPT, **names}
    exec(text, own)
    return own["made"]  # type: ignore[no-any-return]


def raised(function: Callable[..., Any], *args: Any) -> BaseException:
    """What a call raises, without the frame of this function."""
    try:
        function(*args)
    except BaseException as error:  # noqa: BLE001 - of any kind
        return error.with_traceback(error.__traceback__.tb_next if error.__traceback__ is not None else None)
    raise AssertionError("nothing was raised")


def names_of(error: BaseException | None) -> list[str]:
    """The functions whose frames an error shows."""
    return [] if error is None else [frame.name for frame in traceback.extract_tb(error.__traceback__)]


def users() -> None:
    """Of the program."""
    raise KeyError("key")


def meets() -> None:
    raise ShapeError("an error of Turnout, in the program")


def stops() -> None:
    raise StopIteration


def interrupts() -> None:
    raise KeyboardInterrupt


OUTCOMES = (
    ("raise ShapeError('x')", users, []),  # an error about a call
    ("raise UserWarning('x')", users, []),  # a warning as an error, too
    ("raise KEPT", users, []),  # the same object each time
    ("raise KeyError('x')", users, INTERNAL),  # a fault of ours
    ("function()", users, ["users"]),
    ("function()", meets, ["meets"]),
    ("function()", stops, [*INTERNAL, "stops"]),  # Python's own protocols
    ("function()", interrupts, [*INTERNAL, "interrupts"]),
)


@pytest.mark.parametrize(("statement", "function", "names"), OUTCOMES)
def test_frames_of_turnout_are_left_out_of(statement: str, function: Callable[[], None], names: list[str]) -> None:
    call, found = in_core(statement), []
    threads = [threading.Thread(target=lambda: found.append(names_of(raised(call, function)))) for _ in range(2)]
    for thread in threads:
        thread.start()
        thread.join()
    assert [*found, names_of(raised(call, function))] == [names] * 3
    with turnout.config.override(traceback="full"):
        assert names_of(raised(call, function))[:1] == INTERNAL


def test_causes_and_contexts_are_shortened_each_by_its_own_frames() -> None:
    fault = in_core("[][0]")
    for function, names in ((users, ["users"]), (meets, ["meets"]), (fault, ["made", "made"])):
        for cause in ("from caught", ""):
            text = f"try: function()\n  except Exception as caught: raise ShapeError('told again') {cause}"
            told = raised(in_core(text), function)
            assert (names_of(told), names_of(told.__context__), str(told)) == ([], names, "told again")
            assert told.__cause__ is (told.__context__ if cause else None)


def test_a_shortened_error_can_be_raised_again_and_pickled() -> None:
    def again() -> None:
        try:
            in_core("raise ShapeError('first')")()
        except ShapeError as error:
            raise ValueError("second") from error

    second = raised(again)
    assert (names_of(second), names_of(second.__cause__)) == (["again"], ["again"])
    assert repr(pickle.loads(pickle.dumps(second.__cause__))) == "ShapeError('first')"


def test_a_wrong_configuration_does_not_hide_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turnout.config, "get", in_core("raise ConfigError", ConfigError=ConfigError, shorten=print))
    assert names_of(raised(in_core("raise ShapeError"))) == []


def test_a_kernel_of_the_program_keeps_its_frames(backends: None) -> None:  # noqa: F811
    with Registrations("a program") as library:
        library.define("t::failing(Tensor x) -> Tensor")
        library.impl("t::failing", "CompositeExplicitAutograd", lambda x: users())
        op = turnout.ops.t.failing.default
        for call in (op, op, op.stub, turnout.ops.t.failing):
            assert names_of(raised(call, box(1.0))) == ["<lambda>", "users"]


CLASSES = """
from __future__ import annotations
from turnout.errors import ShapeError
class Base:
    __unwrapped__ = ("quick",)
    def __init__(self, size: int, *, name: str = "x") -> None:
        self.size = size + 1
    def method(self, function):
        "Calls it."
        return function()
    def quick(self):
        raise ShapeError("quick")
    @classmethod
    def made(cls, size):
        return cls(size)
    @staticmethod
    def plain():
        raise ShapeError("plain")
    def each(self, count: int):
        yield from range(count)
        raise ShapeError("each")
    def all(self, *sizes: int, **others: int):
        return [size + 1 for size in (*sizes, *others.values())]
    def abstract(self):
        raise NotImplementedError("abstract")
class Derived(Base):
    def __init__(self, size: int) -> None:
        super().__init__(size)
        if size < 0:
            raise ShapeError("negative")
class Hot(Derived):
    __unwrapped__ = ("*",)
    def slow(self):
        raise ShapeError("slow")
"""


@pytest.fixture
def made() -> Any:
    """A module of Turnout with the classes, of which `Derived` and so `Base` are shortened."""
    module = types.ModuleType("turnout.made_classes")
    sys.modules[module.__name__] = module
    exec(CLASSES, vars(module))
    signature = inspect.signature(module.Derived), inspect.signature(module.Base)
    shorten_class(module.Derived)
    shorten_class(module.Hot)
    assert (inspect.signature(module.Derived), inspect.signature(module.Base)) == signature
    yield module
    del sys.modules[module.__name__]


def test_errors_of_constructors_and_methods_of_a_class_show_no_frame_of_turnout(made: Any) -> None:
    one = made.Derived(2)
    calls: tuple[Callable[[], Any], ...] = (
        lambda: made.Derived(-1), lambda: made.Derived(), lambda: made.Derived(1, 2), lambda: made.Derived.made(-1), one.plain,
        lambda: list(one.each(2)), lambda: one.each(1, 2), one.abstract, lambda: one.method(1, 2),
    )  # fmt: skip
    for call in calls:
        assert set(names_of(raised(call))) <= {"<lambda>"}, call
    assert names_of(raised(one.method, users)) == ["users"]
    assert list(zip(one.each(3), range(2), strict=False)) == [(0, 0), (1, 1)]
    text = "Derived: argument 'size' must be an int, got str 'x'"
    assert str(raised(made.Derived, "x")) == text
    assert str(raised(one.each(None).__next__)) == "each: argument 'count' must be an int, got None"
    assert one.all(1, last=2) == [2, 3]
    assert str(raised(one.all, 1, "x")) == "all: argument 'sizes[1]' must be an int, got str 'x'"
    assert str(raised(lambda: one.all(1, last="x"))) == "all: argument 'last' must be an int, got str 'x'"
    with turnout.config.override(traceback="full"):
        assert {"__init__", "call"} <= set(names_of(raised(made.Derived, -1)))


def test_what_a_class_leaves_out_stays_as_it_is(made: Any) -> None:
    assert names_of(raised(made.Derived(1).quick)) == ["quick"]
    assert names_of(raised(made.Hot(1).slow)) == ["slow"]
    assert not hasattr(made.Hot.slow, "__wrapped__")
    wrapped = made.Derived.__init__
    shorten_class(made.Derived)
    assert made.Derived.__init__ is wrapped  # once


def test_a_shortened_class_is_pickled_described_and_derived_from_as_before(made: Any) -> None:
    one = made.Derived(4)
    again = pickle.loads(pickle.dumps(one))
    assert (type(again), again.size, isinstance(again, made.Base)) == (made.Derived, 5, True)
    assert (made.Base.method.__name__, made.Base.method.__doc__) == ("method", "Calls it.")
    assert pickle.loads(pickle.dumps(made.Base.method)) is made.Base.method

    class Own(made.Derived):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__(-3)

    assert names_of(raised(Own)) == ["__init__"]  # the program's own
