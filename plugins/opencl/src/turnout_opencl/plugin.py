"""Activation: registers the backend, its kernels, and the host fallback for all other operators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from turnout.plugins import hookimpl
from turnout.registry import Registrations
from turnout_aten.backend.host_fallback import host
from turnout_aten.kernels.tables import group_above, register_kernels, register_over
from turnout_opencl.backend import OpenCLBackend
from turnout_opencl.convolutions import OVER
from turnout_opencl.devices import found_devices
from turnout_opencl.table import OPTION, kernels


@hookimpl
def turnout_available() -> str | None:
    """Why the plugin cannot work here, or None."""
    if not found_devices():
        return "no OpenCL device was found; install a driver, or `pip install pocl-binary-distribution` for one on the CPU"
    return None


@hookimpl
def turnout_activate(library: Registrations, options: Mapping[str, Any]) -> None:
    """Register device `opencl`."""
    backend = OpenCLBackend(lambda: str(options["platform"]))
    library.backend(backend)
    library.on_undo(backend.close)
    register_kernels(library, backend, kernels(backend))
    library.fallback(backend.name, host("cpu", OPTION))
    register_over(group_above(library), backend.name, OVER)
