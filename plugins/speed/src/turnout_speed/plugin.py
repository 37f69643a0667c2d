"""Activation: nothing is registered. The manifest names what is replaced; here is said whether the modules were compiled."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy  # noqa: F401 - whole, before the extension modules ask for a part of what another thread may be importing

import turnout
from turnout import config
from turnout.plugins import catalog, hookimpl

if TYPE_CHECKING:
    from turnout.registry import Registrations


@hookimpl
def turnout_available() -> str | None:
    """None, or that it is switched off, that there is no GIL, or that the modules are not there or built for other packages."""
    if not config.get("speed"):
        return f"the setting speed is false ({config.origin('speed')})"
    if not getattr(sys, "_is_gil_enabled", lambda: True)():  # loading the modules would switch it on for the whole process
        return "it needs the GIL, with which this Python does not run: PYTHON_GIL=1 switches it on"
    try:
        import_module("turnout_speed._calls")
        import_module("turnout_speed._rules")
    except ImportError as error:
        from turnout.errors.plugins import not_compiled

        return not_compiled("turnout-speed", error)
    if other := _other_versions():
        return other
    import_module("turnout_speed.replacements")  # what activation needs: nothing is imported under its lock
    return None


def _other_versions() -> str:
    """What is installed in another version than the extension modules are built for, and what to do; "" if nothing is."""
    installed = {found.distribution: found.version for found in catalog().found} | {"turnout-core": turnout.__version__}
    for name, version in import_module("turnout_speed._calls").BUILT_FOR.items():
        found = installed.get(name, "none")
        if found != version:
            return f"it is built for {name} {version}, and {found} is installed: install the turnout-speed of that version"
    return ""


@hookimpl
def turnout_activate(library: Registrations, options: Mapping[str, Any]) -> None:
    """Tell the extension modules which classes and variables calls read."""
    from turnout_speed.replacements import configure

    configure()
