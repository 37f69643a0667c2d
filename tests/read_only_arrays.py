"""A loopback device whose arrays cannot be written: NumPy's, with `writeable` off. Writes into them raise.

Its rows are those of `functional_kernels(numpy)`. `register()` adds device `readonly` to this process.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from turnout import plugins
from turnout.registry import Registrations
from turnout_arrays.functional import FunctionalArrayBackend, functional_kernels
from turnout_aten.backend.functional_rows import register_functional_kernels
from turnout_aten.backend.host_fallback import host


class ReadOnlyBackend(FunctionalArrayBackend):
    """Values are read-only arrays, however they were made."""

    name = "ReadOnly"
    device_type = "readonly"

    def __init__(self) -> None:
        super().__init__(np, ml_dtypes.bfloat16)

    def frozen(self, value: Any) -> Any:
        value.flags.writeable = False
        return value


def register() -> Registrations:
    """The device, its rows, and cpu for other operators."""
    plugins.activate("aten")
    plugins.activate("cpu")
    library = Registrations("readonly")
    backend = ReadOnlyBackend()
    library.backend(backend, functional_only=True)
    register_functional_kernels(library, backend, functional_kernels(np))
    library.fallback(backend.name, host("cpu"))
    return library
