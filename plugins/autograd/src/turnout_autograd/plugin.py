"""Activation: one fallback at the alias Autograd, specialised per operator, and the service behind `turnout.autograd`."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from turnout.operators.kernels import INTERNAL
from turnout.plugins import hookimpl

if TYPE_CHECKING:
    from turnout.operators import Operator


@hookimpl
def turnout_available() -> str | None:
    """Why the plugin cannot work here, or None."""
    generated = find_spec("turnout_autograd.generated")
    if generated is None or generated.origin is None:  # without an origin: a folder that holds no package
        return "its kernels are not generated; run `python -m turnout_autograd.generation`"
    for module in ("service", "hooks.packing", "recording.kernels"):  # what activation needs: nothing is imported under its lock
        import_module(f"turnout_autograd.{module}")
    return None


@hookimpl
def turnout_activate(library: Any, options: Mapping[str, Any]) -> None:
    """Register the fallback and the service."""
    from turnout_autograd import service
    from turnout_autograd.engine.anomaly import keeping_line
    from turnout_autograd.hooks.packing import packing
    from turnout_autograd.recording.kernels import Specializer

    library.fallback("Autograd", None, form=INTERNAL, tracked_only=True, specialize=Specializer(options), label="autograd")
    library.service("Autograd", service)
    library.keeps_lines(keeping_line)
    library.fallback("SavedTensors", None, form=INTERNAL, specialize=packing, label="pack saved tensors")
    library.fallback("Forward", None, form=INTERNAL, specialize=_forward, label="forward mode")


def _forward(op: Operator) -> Any:
    """The kernel of an operator at Forward. Its module is loaded when the first tensor with a tangent is used."""
    from turnout_autograd.forward.kernels import specialize

    return specialize(op)
