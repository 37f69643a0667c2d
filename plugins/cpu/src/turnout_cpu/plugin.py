"""Activation: registers the backend and its kernels, and keeps NumPy's floating-point warnings away from users.

Kernels run without `numpy.errstate` where they can, since entering it costs more than adding four floats. NumPy then
warns from a frame of this package or of the kernel library, and a filter for exactly those modules drops the warning.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from turnout.native.tables import register_kernels
from turnout.plugins import hookimpl
from turnout_cpu.backend import CPUBackend
from turnout_cpu.kernels import kernels
from turnout_cpu.pool import Pool

if TYPE_CHECKING:
    from turnout.registry import Library

OWN_MODULES = r"turnout_(arrays|cpu)\."
_POOLS: list[Pool] = []


@hookimpl
def turnout_activate(library: Library, options: Mapping[str, Any]) -> None:
    """Register device `cpu`. Option `threads` is read whenever work is large enough to be shared."""
    backend = CPUBackend()
    pool = Pool(lambda: int(options["threads"]))
    library.backend(backend)
    register_kernels(library, backend, kernels(pool))
    _ignore_floating_point_warnings(library)
    _POOLS.append(pool)


@hookimpl
def turnout_deactivate() -> None:
    """End the threads."""
    while _POOLS:
        _POOLS.pop().close()


def _ignore_floating_point_warnings(library: Library) -> None:
    warnings.filterwarnings("ignore", category=RuntimeWarning, module=OWN_MODULES)
    added = warnings.filters[0]

    def undo() -> None:
        # Absent when a `catch_warnings` block that was open at activation has ended since.
        if added in warnings.filters:
            warnings.filters.remove(added)  # type: ignore[attr-defined]

    library.on_undo(undo)
