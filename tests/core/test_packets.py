"""Which overload a packet chooses, and that a choice it remembers holds for the next call."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from turnout.keys import BackendRow, KeySpace
from turnout.operators import Packet
from turnout.registry import Registrations, Registry


class Shape(tuple):
    """A class derived from tuple."""


class Both(NamedTuple):
    first: object
    second: object


class Handle:
    shape = (2,)

    def __init__(self, keys: int) -> None:
        self.keys = keys


@pytest.fixture
def registry() -> Registry:
    registry = Registry(KeySpace())
    registry.keys.add_backend(BackendRow("CPU"))
    return registry


@pytest.fixture
def packet(registry: Registry) -> Packet:
    library = Registrations("lib", registry=registry)
    for overload, kind in (("", "Tensor[]"), ("ints", "int[]"), ("numbers", "Scalar[]")):
        name = f"f.{overload}" if overload else "f"
        library.define(f"lib::{name}({kind} x, Tensor y) -> Tensor")
        library.impl(name, "CPU", lambda x, y, overload=overload: overload or "tensors")
    found = registry.packet("lib", "f")
    assert found is not None
    return found


@pytest.mark.parametrize("kind", [tuple, list, Shape], ids=["tuple", "list", "derived"])
def test_the_elements_of_a_sequence_choose_whatever_was_called_before(registry: Registry, packet: Packet, kind: type) -> None:
    tensor = Handle(registry.keys.tensor_bits("CPU"))
    for values, overload in (([], ""), ([2, 3], "ints"), ([2.5], "numbers"), ([tensor], ""), ([2], "ints"), ([], "")):
        assert packet.choose(kind(values), tensor).overload == overload
        assert packet(kind(values), tensor) == (overload or "tensors")


def test_the_elements_of_a_named_tuple_choose(registry: Registry, packet: Packet) -> None:
    tensor = Handle(registry.keys.tensor_bits("CPU"))
    for pair, overload in ((Both(1, 2), "ints"), (Both(tensor, tensor), "tensors"), (Both(1.5, 2), "numbers")):
        assert packet(pair, tensor) == overload
        assert packet(x=pair, y=tensor) == overload
