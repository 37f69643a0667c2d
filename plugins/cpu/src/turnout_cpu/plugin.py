"""Activation: registers the backend and its kernels, and lets the C library keep freed memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy

from turnout.plugins import hookimpl
from turnout_aten.kernels.tables import register_kernels, register_over
from turnout_cpu import normalisation
from turnout_cpu.backend import CPUBackend
from turnout_cpu.kernels import kernels
from turnout_cpu.pool import Pool

if TYPE_CHECKING:
    from turnout.registry import Registrations

# The most for which glibc adapts its thresholds (mallopt(3), M_MMAP_THRESHOLD), less the header of a block.
_ADAPTED = (32 << 20) - (64 << 10)


@hookimpl
def turnout_activate(library: Registrations, options: Mapping[str, Any]) -> None:
    """Register device `cpu`. Option `threads` is read whenever work is large enough to be shared."""
    backend = CPUBackend()
    pool = Pool(lambda: int(options["threads"]))
    library.backend(backend)
    library.on_undo(pool.close)
    register_over(library, backend.name, normalisation.kernels(pool), yields=False)
    register_kernels(library, backend, kernels(pool))
    keep_freed_memory()


def keep_freed_memory() -> None:
    """Free one untouched block of 32 MiB: from then on glibc keeps up to 64 MiB of freed memory.

    Otherwise it may return every large temporary to the system, and each new one costs its page faults again: 360 of them in a
    training step of a small network, 0.7 ms of 1.6. Without glibc this does nothing.
    """
    numpy.empty(_ADAPTED, numpy.uint8)
