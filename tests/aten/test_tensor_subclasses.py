"""Tensor subclasses: what they see, and the way back to plain tensors. `core/test_dispatch_modes` has who is asked first."""

from __future__ import annotations

import pytest

import turnout
from outcomes import refused
from turnout import Tensor


class Logged(Tensor):
    """Records what it takes part in, and stays what it is."""

    log: list[str] = []

    @classmethod
    def __turnout_dispatch__(cls, op, ks, args):
        cls.log.append(f"{cls.__name__} {op.name}")
        return turnout.as_subclass(op.redispatch(ks, *args), cls)


@pytest.fixture
def x():
    Logged.log.clear()
    return turnout.ones(2)


def test_a_subclass_handles_the_calls_it_takes_part_in(x):
    y = turnout.outer(turnout.as_subclass(x, Logged), x * 3)
    assert type(y) is Logged
    assert y.tolist() == [[3.0, 3.0]] * 2
    assert Logged.log == ["Logged unsqueeze", "Logged mul"]
    assert type(x.exp()) is Tensor
    assert len(Logged.log) == 2


def test_the_way_back_to_a_plain_tensor_shares_the_memory(x):
    y = turnout.as_subclass(x, Logged)
    plain = turnout.as_subclass(y, Tensor)
    assert type(plain) is Tensor
    assert plain.array is x.array
    assert plain.is_alias_of(x)
    assert type(plain.exp()) is Tensor
    assert Logged.log == []


def test_as_subclass_wants_a_subclass_of_tensor(x):
    assert refused(TypeError, turnout.as_subclass, x, int) == (
        "as_subclass: cls must be a subclass of turnout.Tensor, got <class 'int'>"
    )
