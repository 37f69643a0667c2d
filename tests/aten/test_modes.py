"""Modes and Tensor subclasses: what they see, what they may do, and what state is left."""

from __future__ import annotations

import asyncio
import threading

import pytest

import turnout
from turnout import config
from turnout.dtypes import float32
from turnout.errors import CallError, DisabledError
from turnout.registry import Registrations
from turnout.state import DISPATCH
from turnout_aten.backend.tensor_backend import TensorBackend
from turnout_aten.tensor.tensor import Tensor, wrap


class Box:
    """The array of the toy backend: one number."""

    shape = ()

    def __init__(self, value):
        self.value = value


class Toy(TensorBackend):
    name = "ModeToy"
    device_type = "modetoy"

    def dtype_of(self, array):
        return float32


@pytest.fixture
def ops():
    """Operators double, triple and six (composite of both) on a backend of boxes."""
    with Registrations("modetest") as library:
        library.backend(Toy())
        double = library.define("modetest::double(Tensor x) -> Tensor")
        triple = library.define("modetest::triple(Tensor x) -> Tensor")
        library.define("modetest::six(Tensor x) -> Tensor")

        def kernel(factor):
            return lambda x: wrap(Box(x.array.value * factor), x.device)

        library.impl("double", "ModeToy", kernel(2))
        library.impl("triple", "ModeToy", kernel(3))
        library.impl("six", "CompositeImplicitAutograd", lambda x: triple(double(x)))
        yield turnout.ops.modetest


@pytest.fixture
def x(ops):
    return box(1)


def box(value):
    return wrap(Box(value), turnout.device("modetoy"))


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
        assert ops.six(x).array.value == 6
    assert log == ["double", "triple"]
    ops.double(x)
    assert log == ["double", "triple"]


def test_a_mode_may_answer_itself(ops, x):
    class Constant(turnout.DispatchMode):
        def dispatch(self, op, ks, args):
            return box(42)

    with Constant():
        assert ops.double(x).array.value == 42
    assert ops.double(x).array.value == 2


def test_modes_nest_innermost_first_and_each_is_off_in_its_own_method(ops, x):
    log = []

    class CallsAnother(Record):
        def dispatch(self, op, ks, args):
            super().dispatch(op, ks, args)
            return ops.triple(*args)

    with Record(log, "outer "), CallsAnother(log, "inner "):
        assert ops.double(x).array.value == 3
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


def test_leaving_modes_out_of_order_is_an_error(ops):
    outer, inner = Record([]), Record([])
    outer.__enter__()
    inner.__enter__()
    with pytest.raises(RuntimeError) as caught:
        outer.__exit__(None, None, None)
    assert str(caught.value) == "Record is not the innermost mode of this context; leave modes in order"
    inner.__exit__(None, None, None)
    outer.__exit__(None, None, None)


def test_a_thread_does_not_see_the_modes_of_another(ops, x):
    log = []
    with Record(log):
        thread = threading.Thread(target=ops.double, args=(x,))
        thread.start()
        thread.join()
        assert log == []
        ops.double(x)
    assert log == ["double"]


def test_tasks_have_their_own_modes(ops, x):
    async def worker(name):
        log = []
        with Record(log, name):
            for _ in range(3):
                ops.double(x)
                await asyncio.sleep(0)
        return log

    async def both():
        return await asyncio.gather(worker("a "), worker("b "))

    assert asyncio.run(both()) == [["a double"] * 3, ["b double"] * 3]


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
    assert str(caught.value) == (
        f"modes and Tensor subclasses need the key Python, which keys.disable names ({_set_origin()})"
    )


def _set_origin():
    config.set({"keys.disable": []})
    try:
        return str(config.origin("keys.disable"))
    finally:
        config.unset("keys.disable")


class Logged(Tensor):
    """Records what it takes part in, and stays what it is."""

    log: list[str] = []

    @classmethod
    def __turnout_dispatch__(cls, op, ks, args):
        cls.log.append(f"{cls.__name__} {op.name}")
        return turnout.as_subclass(op.redispatch(ks, *args), cls)


@pytest.fixture(autouse=True)
def _empty_log():
    Logged.log.clear()


def test_a_subclass_handles_the_calls_it_takes_part_in(ops, x):
    y = ops.six(turnout.as_subclass(x, Logged))
    assert type(y) is Logged
    assert y.array.value == 6
    assert Logged.log == ["Logged double", "Logged triple"]
    assert type(ops.double(x)) is Tensor
    assert len(Logged.log) == 2


def test_the_way_back_to_a_plain_tensor_shares_the_memory(ops, x):
    y = turnout.as_subclass(x, Logged)
    plain = turnout.as_subclass(y, Tensor)
    assert type(plain) is Tensor
    assert plain.array is x.array
    assert plain.is_alias_of(x)
    assert type(ops.double(plain)) is Tensor
    assert Logged.log == []


def test_modes_go_before_subclasses(ops, x):
    with Record(Logged.log, "mode "):
        assert type(ops.double(turnout.as_subclass(x, Logged))) is Logged
    assert Logged.log == ["mode double", "Logged double"]


def test_the_more_derived_of_two_subclasses_is_asked_first_and_may_decline(ops, x):
    class Declines(Logged):
        @classmethod
        def __turnout_dispatch__(cls, op, ks, args):
            cls.log.append("declined")
            return NotImplemented

    with Registrations("pairs") as pairs:
        pairs.define("pairs::first(Tensor x, Tensor y) -> Tensor")
        pairs.impl("first", "ModeToy", lambda x, y: wrap(x.array, x.device))
        both = turnout.as_subclass(x, Logged), turnout.as_subclass(x, Declines)
        assert type(turnout.ops.pairs.first(*both)) is Logged
        assert Logged.log == ["declined", "Logged first"]
        with pytest.raises(CallError) as caught:
            turnout.ops.pairs.first(both[1], x)
    assert str(caught.value) == (
        "pairs::first: no Tensor subclass among the arguments handles it; __turnout_dispatch__ of Declines said no"
    )


def test_as_subclass_wants_a_subclass_of_tensor(x):
    with pytest.raises(TypeError) as caught:
        turnout.as_subclass(x, int)
    assert str(caught.value) == "as_subclass: cls must be a subclass of turnout.Tensor, got <class 'int'>"
