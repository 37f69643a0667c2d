"""Activation: registers the backend and its kernels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from turnout.plugins import hookimpl
from turnout_aten.kernels.tables import register_kernels
from turnout_meta.backend import MetaBackend
from turnout_meta.kernels import kernels

if TYPE_CHECKING:
    from turnout.registry import Registrations


@hookimpl
def turnout_activate(library: Registrations, options: Mapping[str, Any]) -> None:
    """Register device `meta`."""
    backend = MetaBackend()
    library.backend(backend)
    register_kernels(library, backend, kernels())
