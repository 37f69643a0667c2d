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

# glibc keeps twice the threshold that it adapts to a freed block (mallopt(3), M_MMAP_THRESHOLD): the most, less a block's header.
_KEPT = 64 << 20
_ADAPTED = _KEPT // 2 - (64 << 10)


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
    """Free one large untouched block: from then on glibc keeps freed memory.

    Otherwise it may return every large temporary to the system, and each new one costs its page faults again: 360 of them in a
    training step of a small network, 0.7 ms of 1.6. Without glibc this does nothing.
    """
    numpy.empty(_ADAPTED, numpy.uint8)
