"""Modes, and objects that dispatch themselves: what they see, what they may do, and what state is left."""

from __future__ import annotations

import pytest
from plain_objects import Box, Cells, backends, box, values  # noqa: F401

import turnout
from outcomes import in_threads
from turnout import config
from turnout.devices import device
from turnout.errors import CallError, DisabledError
from turnout.keys import KEYS
from turnout.registry import Registrations
from turnout.state import DISPATCH


@pytest.fixture
def ops(backends):  # noqa: F811
    """Operators double, triple and six (composite of both) on boxes."""
    with Registrations("modetest") as library:
        double = library.define("modetest::double(Tensor x) -> Tensor")
        triple = library.define("modetest::triple(Tensor x) -> Tensor")
        library.define("modetest::six(Tensor x) -> Tensor")

        def kernel(factor):
            return lambda x: box(*[factor * v for v in values(x)])

        library.impl("double", "Shelf", kernel(2))
        library.impl("triple", "Shelf", kernel(3))
        library.impl("six", "CompositeImplicitAutograd", lambda x: triple(double(x)))
        yield turnout.ops.modetest


@pytest.fixture
def x(ops):
    return box(1)


class Record(turnout.DispatchMode):
    def __init__(self, log, name=""):
        self.log = log
        self.name = name

    def dispatch(self, op, ks, args):
        self.log.append(self.name + op.name)
        return op.redispatch(ks, *args)


def test_a_mode_sees_every_operator_inside_composites_taken_apart(ops, x):
    log = []
    with Record(log):
        assert ops.six(x).array.values == [6]
    assert log == ["double", "triple"]
    ops.double(x)
    assert log == ["double", "triple"]


def test_a_mode_may_answer_itself(ops, x):
    class Constant(turnout.DispatchMode):
        def dispatch(self, op, ks, args):
            return box(42)

    with Constant():
        assert ops.double(x).array.values == [42]
    assert ops.double(x).array.values == [2]


def test_modes_nest_innermost_first_and_each_is_off_in_its_own_method(ops, x):
    log = []

    class CallsAnother(Record):
        def dispatch(self, op, ks, args):
            super().dispatch(op, ks, args)
            return ops.triple(*args)

    with Record(log, "outer "), CallsAnother(log, "inner "):
        assert ops.double(x).array.values == [3]
    assert log == ["inner double", "outer double", "outer triple"]


def test_one_mode_can_be_entered_twice(ops, x):
    log = []
    mode = Record(log)
    with mode, mode:
        ops.double(x)
    assert log == ["double", "double"]


def test_an_exception_in_a_mode_or_its_block_restores_the_state(ops, x):
    class Fails(turnout.DispatchMode):
        def dispatch(self, op, ks, args):
            raise ZeroDivisionError("no")

    before = DISPATCH.get()
    log = []
    with Record(log), pytest.raises(ZeroDivisionError), Fails():
        ops.double(x)
    assert DISPATCH.get() == before
    with Record(log):
        ops.double(x)
        with pytest.raises(ZeroDivisionError), Fails():
            ops.double(x)
        ops.triple(x)
    assert log == ["double", "triple"]
    assert DISPATCH.get() == before


def test_a_mode_that_is_left_before_one_inside_it_goes_when_that_one_is_left(ops, x):
    before = DISPATCH.get()
    log = []
    outer, inner = Record(log, "outer "), Record(log, "inner ")
    outer.__enter__()
    inner.__enter__()
    outer.__exit__(None, None, None)
    ops.double(x)
    inner.__exit__(None, None, None)
    ops.double(x)
    assert log == ["inner double", "outer double"]
    assert tuple(DISPATCH.get()) == before


def test_a_thread_does_not_see_the_modes_of_another(ops, x):
    log = []
    with Record(log):
        in_threads(lambda: ops.double(x))
        assert log == []
        ops.double(x)
    assert log == ["double"]


def test_a_mode_without_a_method_says_what_to_define(ops, x):
    with turnout.DispatchMode(), pytest.raises(NotImplementedError) as caught:
        ops.double(x)
    assert str(caught.value) == "DispatchMode must define dispatch(self, op, ks, args)"


def test_a_mode_is_an_error_where_configuration_disables_its_key():
    config.set({"keys.disable": ["Python"]})
    try:
        with pytest.raises(DisabledError) as caught, Record([]):
            pass
    finally:
        config.unset("keys.disable")
    assert str(caught.value) == (f"modes and Tensor subclasses need the key Python, which keys.disable names ({_set_origin()})")


def _set_origin():
    config.set({"keys.disable": []})
    try:
        return str(config.origin("keys.disable"))
    finally:
        config.unset("keys.disable")


# ---- objects that dispatch themselves


class Logged(Box):
    """Records the calls that it takes part in, and lets them go on."""

    log: list[str] = []

    def __init__(self, *numbers):
        super().__init__(Cells(list(numbers)), device("shelf"))
        self.keys |= KEYS.bit("Python")

    @classmethod
    def __turnout_dispatch__(cls, op, ks, args):
        cls.log.append(f"{cls.__name__} {op.name}")
        return cls(*values(op.redispatch(ks, *args)))


class Declines(Logged):
    @classmethod
    def __turnout_dispatch__(cls, op, ks, args):
        cls.log.append("declined")
        return NotImplemented


@pytest.fixture(autouse=True)
def _empty_log():
    Logged.log.clear()


def test_an_object_with_the_key_handles_the_calls_it_takes_part_in(ops, x):
    y = ops.six(Logged(1))
    assert type(y) is Logged
    assert values(y) == [6]
    assert Logged.log == ["Logged double", "Logged triple"]
    assert type(ops.double(x)) is Box
    assert len(Logged.log) == 2


def test_modes_go_before_objects(ops, x):
    with Record(Logged.log, "mode "):
        assert type(ops.double(Logged(1))) is Logged
    assert Logged.log == ["mode double", "Logged double"]


def test_the_more_derived_of_two_classes_is_asked_first_and_may_decline(ops, x):
    with Registrations("pairs") as pairs:
        pairs.define("pairs::first(Tensor x, Tensor y) -> Tensor")
        pairs.impl("first", "Shelf", lambda x, y: box(*values(x)))
        assert type(turnout.ops.pairs.first(Logged(1), Declines(2))) is Logged
        assert Logged.log == ["declined", "Logged first"]
        with pytest.raises(CallError) as caught:
            turnout.ops.pairs.first(Declines(1), x)
    assert str(caught.value) == (
        "pairs::first: no Tensor subclass among the arguments handles it; "
        "__turnout_dispatch__ of Declines returned NotImplemented"
    )
