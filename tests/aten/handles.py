"""A backend without NumPy for tests of core: arrays are views of Python lists. Deriving plugins do more; this does enough."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from turnout.devices import Device, device
from turnout.dtypes import DType, float32
from turnout.registry import Registrations
from turnout_aten.backend.tensor_backend import TensorBackend
from turnout_aten.tensor.tensor import Tensor, wrap


class Cells:
    """An array: shape, strides and offset over a list that views share."""

    def __init__(self, memory: list[Any], shape: tuple[int, ...], strides: tuple[int, ...], offset: int = 0) -> None:
        self.memory = memory
        self.shape = shape
        self.strides = strides
        self.offset = offset

    def places(self) -> Iterator[int]:
        """Where its elements stand in the list, in row-major order."""
        for index in product(*map(range, self.shape)):
            yield self.offset + sum(i * s for i, s in zip(index, self.strides, strict=True))

    def values(self) -> list[Any]:
        return [self.memory[place] for place in self.places()]


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides: list[int] = []
    step = 1
    for length in reversed(shape):
        strides.insert(0, step)
        step *= length
    return tuple(strides)


class CellsBackend(TensorBackend):
    """Device `cells`."""

    name = "Cells"
    device_type = "cells"

    def empty(self, shape: Any, dtype: DType, device: Device, strides: Any = None) -> Cells:
        count = 1
        for length in shape:
            count *= length
        return Cells([0.0] * count, tuple(shape), strides or row_major(tuple(shape)))

    def strided(self, root: Cells, shape: Any, strides: Any, offset: int) -> Cells:
        return Cells(root.memory, tuple(shape), tuple(strides), offset)

    def strides(self, array: Cells) -> tuple[int, ...]:
        return array.strides

    def dtype_of(self, array: Cells) -> DType:
        return float32

    def copy(self, target: Cells, source: Cells) -> None:
        for place, value in zip(list(target.places()), source.values(), strict=True):
            target.memory[place] = value

    def fill(self, target: Cells, value: Any) -> None:
        for place in target.places():
            target.memory[place] = value


def register(library: Registrations) -> None:
    """Add the backend through a library, whose undo takes it away."""
    library.backend(CellsBackend())


def tensor(values: list[Any], *shape: int) -> Tensor:
    """A tensor of a flat list of numbers."""
    shape = shape or (len(values),)
    return wrap(Cells(list(values), shape, row_major(shape)), device("cells"))


def values(t: Tensor) -> list[Any]:
    """Its elements in row-major order."""
    found: list[Any] = t.array.values()
    return found
