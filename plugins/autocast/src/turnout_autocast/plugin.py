"""Activation: one fallback at the alias Autocast, specialised per operator and backend, and the service of `turnout.amp`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from turnout.operators.kernels import INTERNAL
from turnout.plugins import hookimpl

if TYPE_CHECKING:
    from turnout.registry import Registrations


@hookimpl
def turnout_activate(library: Registrations, options: Mapping[str, Any]) -> None:
    """Register the fallback, which covers backends that come later too, and the service."""
    from turnout import config
    from turnout_autocast import contexts, service
    from turnout_autocast.kernels import specialize

    library.fallback("Autocast", None, form=INTERNAL, specialize=specialize, by_key=True, label="autocast")
    library.service("Autocast", service)
    contexts.forget_option()
    library.on_undo(config.on_change(contexts.forget_option))
