"""Activation: registers the backend and its kernels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from turnout.native.tables import register_kernels
from turnout.plugins import hookimpl
from turnout_meta.backend import MetaBackend
from turnout_meta.kernels import kernels

if TYPE_CHECKING:
    from turnout.registry import Library


@hookimpl
def turnout_activate(library: Library, options: Mapping[str, Any]) -> None:
    """Register device `meta`."""
    backend = MetaBackend()
    library.backend(backend)
    register_kernels(library, backend, kernels())
