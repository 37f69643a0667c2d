"""What tests of the dispatcher call operators on: small Python objects with an int `keys`, and backends of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import outcomes
import refusal_tables
from turnout.devices import Backend, Device, device
from turnout.keys import KEYS
from turnout.library import custom
from turnout.library import libraries as groups
from turnout.operators import Operator
from turnout.operators.kernels import Kernel
from turnout.plugins import current_manager, environment
from turnout.plugins.discovery import Catalog
from turnout.registry import REGISTRY, Registrations

NAMESPACES = ("t::", "u::", "v::", "bystander::", "calltest::")  # of the tests' operators


class Cells:
    """What a kernel on arrays gets and returns."""

    def __init__(self, values: list[Any]) -> None:
        self.values = values


class Box:
    """What operators are called with: cells on a device."""

    schema_type = "Tensor"  # in annotations of custom operators

    def __init__(self, array: Cells, place: Device) -> None:
        self.array = array
        self.device = place
        self.keys = place.backend.keys
        self.shape = (len(array.values),)

    def __repr__(self) -> str:
        return f"{self.array.values} on {self.device}"

    def shares_memory_with(self, other: Any) -> bool:
        return self.array is other.array


class Handle:
    """What counts as a tensor for the dispatcher: something with an int of keys."""

    shape = (2,)

    def __init__(self, keys: int) -> None:
        self.keys = keys

    def __repr__(self) -> str:
        return "handle"


class Shelf(Backend):
    """Device `shelf`: its arrays are Cells."""

    name = "Shelf"
    device_type = "shelf"

    def bind_array_kernel(self, op: Operator, kernel: Kernel) -> Callable[..., Any]:
        names = [a.name for a in op.schema.arguments if a.kwarg_only]
        split = len(op.schema.arguments) - len(names)
        written = [i for i, a in enumerate(op.schema.arguments) if a.is_write]

        def call(ks: int, *args: Any) -> Any:
            arrays = [arg.array if isinstance(arg, Box) else arg for arg in args]
            made = kernel.fn(*arrays[:split], **dict(zip(names, arrays[split:], strict=True)))
            return args[written[0]] if written else Box(made, self.place)

        return call


class Rack(Shelf):
    """The same behind another name."""

    name = "Rack"
    device_type = "rack"


class Ghost(Shelf):
    """Its objects have no data; registered with `dataless=True`."""

    name = "Ghost"
    device_type = "ghost"


def box(*values: Any, on: str = "shelf") -> Box:
    """An object with these values."""
    return Box(Cells(list(values)), device(on))


def values(made: Box) -> list[Any]:
    """What is in it."""
    return made.array.values


@contextmanager
def installed(catalog: Catalog | None = None) -> Iterator[None]:
    """As if these plugins, or none, were all that is installed."""
    before = environment._catalog
    environment._catalog = Catalog([]) if catalog is None else catalog
    environment._catalog.place(KEYS)
    current_manager()._judge = None
    REGISTRY.changed()
    try:
        yield
    finally:
        environment._catalog = before
        if before is None:
            environment.forget_catalog()
        else:
            before.place(KEYS)
        current_manager()._judge = None  # it has judged what was as if installed
        REGISTRY.changed()


@pytest.fixture(autouse=True)
def backends() -> Iterator[None]:
    """Two backends and no plugin, and no registration of a test left behind."""
    # A plugin that an earlier test of the process activated may follow the writes and views of its own tensors.
    with installed(), Registrations("the tests' backends") as library:
        library.backend(Shelf())
        library.backend(Rack())
        before = state_of_registry()
        yield
        # What is made without a library object lives as long as the process: here, as long as the test.
        for op in list(custom.CUSTOM.values()):
            op.undo()
        for kept in groups._KEPT.values():
            kept.undo()
        groups._KEPT.clear()
        every, packets = REGISTRY.operators, REGISTRY.packets
        left = [name for name in every if name.startswith(("t::", "u::", "v::"))]
        for name in left:
            every.pop(name)
        for namespace in ("t", "u", "v"):
            packets.pop(namespace, None)
        assert left == []
        assert state_of_registry() == before


def state_of_registry() -> tuple[Any, ...]:
    """All that registrations can change, to be compared; of the operators of plugins, which may be thousands, their number."""
    every, all_packets = REGISTRY.operators, REGISTRY.packets  # read once: each look asks all sources for all names
    operators = {
        name: (op.schema_text, op.tags, {key: list(stack) for key, stack in op.kernels.items()})
        for name, op in every.items() if name.startswith(NAMESPACES)
    }  # fmt: skip
    packets = {
        (namespace, name): sorted(packet.overloads())
        for namespace in NAMESPACES for name, packet in all_packets.get(namespace[:-2], {}).items()
    }  # fmt: skip
    counts = len(every), {name: len(packets) for name, packets in all_packets.items() if packets}
    return operators, packets, counts, dict(REGISTRY.fallbacks), dict(REGISTRY.services), REGISTRY.keys.universe.runtime_keys


def refused(error: type[Exception], call: Callable[..., Any], /, *args: Any, **options: Any) -> str:
    """What the error says that a call raises, which leaves the registry as it was."""
    before = state_of_registry()
    says = outcomes.refused(error, call, *args, **options)
    assert state_of_registry() == before
    return says


def said(call: str, names: dict[str, Any], says: str) -> str:
    """Class and words of the error of a call in source, which leaves the registry as it was.

    `says` is what is expected: where it ends in "...", the error may go on.
    """
    before = state_of_registry()
    found = refusal_tables.said(call, names)
    assert state_of_registry() == before
    return says if says.endswith("...") and found.startswith(says[:-3]) else found


def source(function: Any) -> str:
    """A kernel as messages show it."""
    name = function.__qualname__.rpartition("<locals>.")[2]
    return f"{name} ({function.__code__.co_filename}:{function.__code__.co_firstlineno})"
