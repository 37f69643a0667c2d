"""Activation: one fallback at the alias Autocast, specialised per operator and backend, and the service of `turnout.amp`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from turnout import config
from turnout.operators.kernels import INTERNAL
from turnout.plugins import hookimpl
from turnout_autocast import contexts, service
from turnout_autocast.kernels import specialize

if TYPE_CHECKING:
    from turnout.registry import Registrations


@hookimpl
def turnout_activate(library: Registrations, options: Mapping[str, Any]) -> None:
    """Register the fallback, which covers backends that come later too, and the service."""
    library.fallback("Autocast", None, form=INTERNAL, specialize=specialize, by_key=True, label="autocast")
    library.service("Autocast", service)
    contexts.forget_option()
    library.on_undo(config.on_change(contexts.forget_option))
