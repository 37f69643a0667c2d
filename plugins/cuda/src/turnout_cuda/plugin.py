"""Activation, when a CUDA device is first used: only then is CuPy imported, and the driver asked for devices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import turnout_arrays
from turnout.devices import device
from turnout.plugins import hookimpl
from turnout.registry import Registrations
from turnout_aten.backend.host_fallback import host, on_host
from turnout_aten.kernels.tables import group_above, register_kernels, register_over
from turnout_cuda import attention, convolutions, gradients, normalisation
from turnout_cuda.backend import CUDABackend
from turnout_cuda.foreach import element_operators
from turnout_cuda.module import WITHOUT, CuPyModule
from turnout_cuda.prepared import prepared_rows
from turnout_cuda.table import kernels, launches

OPTION = "plugin.cuda.host_fallback"


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
    if not count:
        return "the CUDA driver reports no device"
    import_module("cupyx")  # what activation needs: nothing is imported under its lock
    convolutions.front_end()
    return None


@hookimpl
def turnout_activate(library: Registrations, options: Mapping[str, Any]) -> None:
    """Register device `cuda`."""
    import cupy
    import cupyx

    xp = CuPyModule(cupy, cupyx.errstate, lambda: str(options["matmul_precision"]))
    register(library, CUDABackend(cupy, xp), cudnn=convolutions.front_end())


def register(library: Registrations, backend: CUDABackend, *, cudnn: Any = None) -> None:
    """The backend, its kernels, raw ones over them, and what runs on cpu: operators whose kernels need SciPy, and those of other
    libraries. `cudnn` is the front end, if it is installed."""
    library.backend(backend)
    library.on_undo(backend.peaks.watch())
    raw = kernels(backend) | convolutions.kernels(backend.xp, cudnn, backend.xp.precision, library)
    shared, raw = prepared_tables(backend, raw)
    alone = {name: _or_host(name, raw.pop(name).fn, backend) for name in WITHOUT}
    register_kernels(library, backend, shared | alone)
    library.fallback(backend.name, host("cpu", OPTION))
    each = {name: _unless_replaced(name, fn, backend.name, library) for name, fn in raw.items() if name.startswith("_foreach_")}
    register_over(group_above(library), backend.name, raw | each)
    register_gradients(library, backend)


def prepared_tables(backend: CUDABackend, raw: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The shared rows and those of this package, with what prepares their plans."""
    xp, script = backend.xp, backend.xp.script()
    shared = prepared_rows(turnout_arrays.kernels(xp), turnout_arrays.kernels(script), script.programs, backend.native, raw)
    return shared, prepared_rows(raw, launches(script, script.programs), script.programs, backend.native)


def register_gradients(library: Registrations, backend: CUDABackend) -> None:
    """The operators of gradients, with their raw kernels."""
    xp, namespace = backend.xp, f"turnout_{backend.device_type}"
    gradients.define(library, namespace)
    rows = attention.gradients(xp) | normalisation.gradients(xp, xp.programs)
    register_over(group_above(library), backend.name, rows, namespace=namespace)
    gradients.register(library, backend.name, namespace)


def _unless_replaced(name: str, fn: Callable[..., Any], key: str, library: Registrations) -> Callable[..., Any]:
    """A raw kernel for lists, which leaves calls to the loop where somebody else has a kernel for the operator of one tensor."""

    packets, own = element_operators(name), library.name

    def kernel(*args: Any) -> Any:
        for packet in packets:
            found = library.registry.packet("aten", packet)
            for op in () if found is None else found.attached.values():
                for each in op.kernels.get(key, ()):
                    if each.library is None or each.library.name != own:
                        return NotImplemented
        return fn(*args)

    kernel.__wrapped__ = fn  # type: ignore[attr-defined]  # so that `explain` names the function that computes
    return kernel


def _or_host(name: str, fn: Callable[..., Any], backend: CUDABackend) -> Callable[..., Any]:
    """A raw kernel that is alone: what it does not serve runs on cpu, or is an error."""
    elsewhere = on_host(name, backend, lambda array: device(backend.device_type, array.device.id), option=OPTION)

    def kernel(*args: Any) -> Any:
        made = fn(*args)
        return elsewhere(*args) if made is NotImplemented else made

    kernel.__wrapped__ = fn  # type: ignore[attr-defined]  # so that `explain` names the function that computes
    return kernel
