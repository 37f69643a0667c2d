"""Activation: the standard operators, the bookkeeping of views and versions, inference tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

# Operators are defined and kernels made from these under the lock, where nothing may be imported. They come before a plugin that
# imports NumPy: its threads look for work for a while, in which what follows takes the time of two processors.
import turnout_aten.backend.overlap
import turnout_aten.backend.tensor_backend
import turnout_aten.generated.rows
import turnout_aten.kernels.factories
import turnout_aten.kernels.tables
import turnout_aten.shapes.pointwise
import turnout_aten.tensor.backend_keys
import turnout_aten.tensor.facts
import turnout_aten.views.recording  # noqa: F401
from turnout.operators.kernels import INTERNAL
from turnout.plugins import hookimpl
from turnout_aten.declarations.standard import StandardOperators
from turnout_aten.tensor.grad_mode import context_note

if TYPE_CHECKING:
    from turnout.operators import Operator
    from turnout.registry import Registrations


@hookimpl
def turnout_activate(library: Registrations, options: Mapping[str, Any]) -> None:
    """Tell the registry where the operators are, and register the fallbacks."""
    library.source("aten", StandardOperators(library))
    library.fallback("ADInplaceOrView", None, form=INTERNAL, specialize=_bookkeeping, label="views and versions")
    library.fallback("Inference", None, form=INTERNAL, specialize=_inference, label="inference tensors")
    library.context_note(context_note)


def _bookkeeping(op: Operator) -> Any:
    from turnout_aten.views.recording import bookkeeping

    return bookkeeping(op)


def _inference(op: Operator) -> Any:
    from turnout_aten.tensor.inference import at_inference

    return at_inference(op)
