"""Activation: one boxed fallback at Tracer for all operators, and the service of `turnout.graphs`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from turnout.plugins import hookimpl
from turnout_tracer import service
from turnout_tracer.recording import record

if TYPE_CHECKING:
    from turnout.registry import Registrations


@hookimpl
def turnout_activate(library: Registrations, options: Mapping[str, Any]) -> None:
    """Register the fallback and the service."""
    library.fallback("Tracer", record, label="record")
    library.service("Tracer", service)
