"""Activation: one fallback at the alias Autograd, specialised per operator, and the service behind `turnout.autograd`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from turnout.operators.kernels import INTERNAL
from turnout.plugins import hookimpl


@hookimpl
def turnout_available() -> str | None:
    """It needs nothing but core."""
    return None


@hookimpl
def turnout_activate(library: Any, options: Mapping[str, Any]) -> None:
    """Register the fallback and the service."""
    from turnout_autograd import service
    from turnout_autograd.hooks.packing import packing
    from turnout_autograd.recording.kernels import Specializer

    library.fallback(
        "Autograd", None, form=INTERNAL, tracked_only=True, specialize=Specializer(options), label="autograd"
    )
    library.service("Autograd", service)
    library.fallback("SavedTensors", None, form=INTERNAL, specialize=packing, label="pack saved tensors")
