"""Activation, when a CUDA device is first used: only then is CuPy imported, and the driver asked for devices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import turnout_arrays
from turnout.plugins import hookimpl
from turnout_aten.backend.host_fallback import host
from turnout_aten.kernels.tables import register_kernels
from turnout_cuda.backend import CUDABackend
from turnout_cuda.module import WITHOUT, CuPyModule

if TYPE_CHECKING:
    from turnout.registry import Registrations


@hookimpl
def turnout_available() -> str | None:
    """Why the plugin cannot work here, or None."""
    try:
        import cupy
    except Exception as error:  # noqa: BLE001 - a CuPy built for other drivers fails in any way
        return f"CuPy cannot be imported: {error}"
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"the CUDA driver reports no device: {error}"
    return None if count else "the CUDA driver reports no device"


@hookimpl
def turnout_activate(library: Registrations, options: Mapping[str, Any]) -> None:
    """Register device `cuda`."""
    import cupy
    import cupyx

    xp = CuPyModule(cupy, cupyx.errstate)
    register(library, CUDABackend(cupy, xp), with_host=bool(options["host_fallback"]))


def register(library: Registrations, backend: CUDABackend, *, with_host: bool) -> None:
    """The backend, its kernels, and what runs on cpu: operators whose kernels need SciPy, and those of other libraries."""
    library.backend(backend)
    table = turnout_arrays.kernels(backend.xp)
    register_kernels(library, backend, {name: row for name, row in table.items() if name not in WITHOUT})
    if with_host:
        library.fallback(backend.name, host("cpu"), label="runs on cpu, copied there and back")
