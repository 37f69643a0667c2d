"""A backend that has memory and no kernels: tensors on the device "cells" for tests of what is recorded and refused."""

from __future__ import annotations

from typing import Any

import numpy as np

import turnout
from turnout.registry import Registrations
from turnout_arrays import ArrayBackend


class CellsBackend(ArrayBackend):
    """Device `cells`."""

    name = "Cells"
    device_type = "cells"
    wrapper_module = "turnout_arrays.wrapped"


def register(library: Registrations) -> None:
    """Add the backend through a library, whose undo takes it away."""
    library.backend(CellsBackend(np))


def tensor(values: list[Any]) -> turnout.Tensor:
    """A tensor of numbers."""
    return turnout.tensor(values, device="cells")


def values(t: turnout.Tensor) -> list[Any]:
    """Its elements."""
    return t.array.tolist()
