"""What the tests of `turnout.library` share: two backends on small Python objects, and the state of the registry."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from turnout.devices import device
from turnout.dtypes import float32
from turnout.library import custom
from turnout.library import libraries as groups
from turnout.registry import REGISTRY, Registrations
from turnout_aten.backend.tensor_backend import TensorBackend
from turnout_aten.tensor.tensor import Tensor, wrap


class Cells:
    """A one-dimensional array."""

    def __init__(self, values: list[float]) -> None:
        self.values = values
        self.shape = (len(values),)


class Shelf(TensorBackend):
    """Arrays are Cells."""

    name = "Shelf"
    device_type = "shelf"
    array_type = Cells

    def strides(self, array: Any) -> tuple[int, ...]:
        return (1,)

    def dtype_of(self, array: Any) -> Any:
        return float32

    def as_array(self, value: Any) -> Any:
        return Cells(list(value))


class Rack(Shelf):
    """The same behind another name."""

    name = "Rack"
    device_type = "rack"


@pytest.fixture(autouse=True)
def backends() -> Iterator[None]:
    """Both backends, and no registration of a test left behind."""
    with Registrations("the tests' backends") as library:
        library.backend(Shelf())
        library.backend(Rack())
        before = state_of_registry()
        yield
        # What is made without a library object lives as long as the process: here, as long as the test.
        for op in list(custom._CUSTOM.values()):
            op.undo()
        for kept in groups._KEPT.values():
            kept.undo()
        groups._KEPT.clear()
        left = [name for name in REGISTRY.operators if name.partition("::")[0] in ("t", "u", "v")]
        for name in left:
            REGISTRY.operators.pop(name)
        for namespace in ("t", "u", "v"):
            REGISTRY.packets.pop(namespace, None)
        assert left == []
        assert state_of_registry() == before


def tensor(*values: float, on: str = "shelf") -> Tensor:
    """A tensor of these values."""
    return wrap(Cells(list(values)), device(on))


def values(made: Tensor) -> list[float]:
    """What is in it."""
    found: list[float] = made.array.values
    return found


def state_of_registry() -> tuple[Any, ...]:
    """All that registrations can change, to be compared."""
    operators = {
        name: (op.schema_text, op.tags, {key: list(stack) for key, stack in op.kernels.items()})
        for name, op in REGISTRY.operators.items()
    }
    packets = {
        (namespace, name): sorted(packet.overloads)
        for namespace, packets in REGISTRY.packets.items()
        for name, packet in packets.items()
    }
    return operators, packets, dict(REGISTRY.fallbacks), dict(REGISTRY.services), REGISTRY.keys.universe.runtime_keys


def source(function: Any) -> str:
    """A kernel as messages show it."""
    name = function.__qualname__.rpartition("<locals>.")[2]
    return f"{name} ({function.__code__.co_filename}:{function.__code__.co_firstlineno})"
