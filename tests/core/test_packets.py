"""Which overload a packet chooses, and that a choice it remembers holds for the next call."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from plain_objects import Handle

from turnout.operators import Packet
from turnout.registry import Registrations, Registry


class Shape(tuple):
    """A class derived from tuple."""


class Both(NamedTuple):
    first: object
    second: object


@pytest.fixture
def packet(registry: Registry, library: Registrations) -> Packet:
    for overload, kind in (("", "Tensor[]"), ("ints", "int[]"), ("numbers", "Scalar[]")):
        name = f"f.{overload}" if overload else "f"
        library.define(f"lib::{name}({kind} x, Tensor y) -> Tensor")
        library.impl(name, "CPU", lambda x, y, overload=overload: overload or "tensors")
    found = registry.packet("lib", "f")
    assert found is not None
    return found


@pytest.mark.parametrize("kind", [tuple, list, Shape], ids=["tuple", "list", "derived"])
def test_the_elements_of_a_sequence_choose_whatever_was_called_before(packet: Packet, x: Handle, kind: type) -> None:
    for values, overload in (([], ""), ([2, 3], "ints"), ([2.5], "numbers"), ([x], ""), ([2], "ints"), ([], "")):
        assert packet.choose(kind(values), x).overload == overload
        assert packet(kind(values), x) == (overload or "tensors")


def test_the_elements_of_a_named_tuple_choose(packet: Packet, x: Handle) -> None:
    for pair, overload in ((Both(1, 2), "ints"), (Both(x, x), "tensors"), (Both(1.5, 2), "numbers")):
        assert packet(pair, x) == overload
        assert packet(x=pair, y=x) == overload
