"""Activation: the standard operators, the bookkeeping of views and versions, inference tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import turnout_aten.generated.rows  # noqa: F401 - operators are defined from it under the lock, where nothing may be imported
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
