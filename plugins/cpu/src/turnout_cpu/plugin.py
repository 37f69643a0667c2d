"""Activation: registers the backend and its kernels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from turnout.native.tables import register_kernels
from turnout.plugins import hookimpl
from turnout_cpu.backend import CPUBackend
from turnout_cpu.kernels import kernels
from turnout_cpu.pool import Pool

if TYPE_CHECKING:
    from turnout.registry import Library

_POOLS: list[Pool] = []


@hookimpl
def turnout_activate(library: Library, options: Mapping[str, Any]) -> None:
    """Register device `cpu`. Option `threads` is read whenever work is large enough to be shared."""
    backend = CPUBackend()
    pool = Pool(lambda: int(options["threads"]))
    library.backend(backend)
    register_kernels(library, backend, kernels(pool))
    _POOLS.append(pool)


@hookimpl
def turnout_deactivate() -> None:
    """End the threads."""
    while _POOLS:
        _POOLS.pop().close()
