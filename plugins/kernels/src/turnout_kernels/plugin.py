"""Activation: the rows of `table`, over those of turnout-cpu."""

from __future__ import annotations

from collections.abc import Mapping, Set
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy  # noqa: F401 - whole, before the extension module asks for a part of what another thread may be importing

from turnout import config
from turnout.errors import PluginWarning
from turnout.errors.plugins import not_compiled, warn
from turnout.plugins import hookimpl, is_ours
from turnout_aten.kernels.tables import register_over

if TYPE_CHECKING:
    from turnout.registry import Registrations

_INSTRUCTIONS = "plugin.kernels.instructions"


@hookimpl
def turnout_available() -> str | None:
    """None, or that there is no extension module."""
    try:
        import_module("turnout_kernels._native")
    except ImportError as error:
        return not_compiled("turnout-kernels", error)
    import_module("turnout_kernels.table")  # what activation needs: nothing is imported under its lock
    return None


@hookimpl
def turnout_activate(library: Registrations, options: Mapping[str, Any]) -> None:
    """Register the kernels for the backend CPU, which may be there or come later. Raises ValueError for instructions that the
    processor does not have."""
    from turnout_kernels import native
    from turnout_kernels.table import kernels

    def follow(changed: Set[str]) -> None:
        if _INSTRUCTIONS in changed:
            try:
                native.choose_instructions(str(config.get(_INSTRUCTIONS)))
            except ValueError as error:  # those before stay
                warn(str(error), is_ours, PluginWarning)

    native.choose_instructions(str(options["instructions"]))
    library.on_undo(config.on_change(follow))
    register_over(library, "CPU", kernels())
