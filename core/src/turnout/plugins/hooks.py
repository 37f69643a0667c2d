"""The hooks of a plugin's life. They are called when it is activated and deactivated, never when operators are.

A plugin's activation module has them as functions marked with `turnout.plugins.hookimpl`; only `turnout_activate` is
required. This module is loaded with the first activation, and pluggy with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pluggy

PROJECT = "turnout"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


class Lifecycle:
    """The specifications."""

    @hookspec
    def turnout_available(self) -> str | None:
        """Why the plugin cannot work here ("no CUDA device is visible"), or None. Must not keep anything open."""

    @hookspec
    def turnout_activate(self, library: Any, options: Mapping[str, Any]) -> None:
        """Register everything that the manifest names, through `library`, which can take all of it back.

        `options` reads the plugin's options at the time of each look-up. What this raises undoes the activation.
        """

    @hookspec
    def turnout_deactivate(self) -> None:
        """Release what the plugin holds outside of `library`: handles, threads, memory. Called before the undo."""
