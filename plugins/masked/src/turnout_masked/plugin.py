"""Activation: nothing is registered. The functions are found through the manifest, and call operators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from turnout.plugins import hookimpl

if TYPE_CHECKING:
    from turnout.plugins import Registrations


@hookimpl
def turnout_activate(library: Registrations, options: Mapping[str, Any]) -> None:
    """Register nothing."""
