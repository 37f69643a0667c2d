"""The whole table. A row computes in the dtypes that OpenCL C has; for others (complex) the same row runs on the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from turnout.devices import Device, device
from turnout.errors import DTypeError
from turnout_aten.backend.host_fallback import on_host
from turnout_aten.kernels.wrapping import Row
from turnout_opencl import (
    convolutions,
    curves,
    images,
    losses,
    matrices,
    moving,
    normalisation,
    pointwise,
    pooling,
    reductions,
    sorting,
)
from turnout_opencl.arrays import ClArray
from turnout_opencl.backend import OpenCLBackend

MODULES = (
    pointwise, curves, reductions, matrices, losses, moving, sorting, convolutions, pooling, images, normalisation,
)  # fmt: skip


def kernels(backend: OpenCLBackend, with_host: bool = True) -> dict[str, Any]:
    """Operator -> row. Without the host, dtypes that have no kernel are a DTypeError."""
    table: dict[str, Any] = dict(sorting.PLAIN)
    for module in MODULES:
        assert not table.keys() & module.KERNELS.keys(), f"{module.__name__} repeats a row"
        for name, row in module.KERNELS.items():
            other = on_host(name, backend, _place) if with_host else _refused(name)
            table[name] = Row(_by_dtype(name, row.fn, other), pointwise=row.pointwise)
    return table


def _by_dtype(name: str, fn: Callable[..., Any], other: Callable[..., Any]) -> Callable[..., Any]:
    """`fn` where the device computes in all dtypes of the call, else `other`."""

    def kernel(*args: Any) -> None:
        for value in args:
            for array in value if value.__class__ is list else (value,):
                if array.__class__ is ClArray and not array.place.supports(array.dtype):
                    other(*args)
                    return
        fn(*args)

    kernel.__wrapped__ = fn  # type: ignore[attr-defined]  # so that `explain` names the function that computes
    # A function that a factory made is called as its operator is.
    kernel.__name__ = kernel.__qualname__ = name.partition(".")[0] if fn.__name__ == "kernel" else fn.__name__
    return kernel


def _place(array: ClArray) -> Device:
    return device("opencl", array.place.index)


def _refused(name: str) -> Callable[..., Any]:
    def kernel(*args: Any) -> None:
        dtypes = {a.dtype.name for a in args if isinstance(a, ClArray)}
        raise DTypeError(
            f"{name}: opencl does not compute in {' and '.join(sorted(dtypes))}; "
            "plugin.opencl.host_fallback = true lets it run on cpu"
        )

    return kernel
