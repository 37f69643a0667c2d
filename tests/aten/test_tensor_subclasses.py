"""Tensor subclasses: what they see, what they may do, and the way back to plain tensors."""

from __future__ import annotations

import pytest

import turnout
from outcomes import refused
from turnout.dtypes import float32
from turnout.registry import Registrations
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


def test_as_subclass_wants_a_subclass_of_tensor(x):
    assert refused(TypeError, turnout.as_subclass, x, int) == (
        "as_subclass: cls must be a subclass of turnout.Tensor, got <class 'int'>"
    )
