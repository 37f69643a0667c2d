"""Activation: the fallback of Functionalize, and the service behind `turnout.func.functionalize`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from turnout.operators.kernels import INTERNAL
from turnout.plugins import hookimpl
from turnout_functionalize import kernels, service

if TYPE_CHECKING:
    from turnout.registry import Registrations


@hookimpl
def turnout_activate(library: Registrations, options: Mapping[str, Any]) -> None:
    """Register everything."""
    library.fallback("Functionalize", None, form=INTERNAL, specialize=kernels.specialize, label="functionalize")
    library.service("Functionalize", service)
