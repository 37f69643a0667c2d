"""Which package provides what, for packages that are not installed: `known_packages.json`, a data file beside this module.

The build of this distribution makes the file from the manifests of the workspace that it is built in (`setup.py`); it answers
what cannot be asked of a package that is not installed: its name.
"""

from __future__ import annotations

import json
from collections.abc import Container
from functools import cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("known_packages.json")
_ROWS = {
    "device": "devices", "backend": "backends", "functionality": "functionalities", "namespace": "namespaces",
    "public": "public",
}  # fmt: skip


@cache
def data() -> dict[str, dict[str, Any]]:
    """Plugin name -> its distribution, devices, backends, functionalities, namespaces and public names."""
    try:
        found: dict[str, dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))
    except FileNotFoundError:  # a build outside of the workspace knows nobody
        return {}
    return found


def provider_of(kind: str, name: str, installed: Container[str] = ()) -> str | None:
    """The distribution for a device, backend, functionality, namespace, public name or plugin; None if none is known.

    A public name that no plugin is known to have may be one of a plugin whose names were not made yet when the file was, unless
    the plugin is among those `installed`, whose names are known.
    """
    for plugin, row in data().items():
        if (kind == "plugin" and plugin == name) or (kind in _ROWS and name in row[_ROWS[kind]]):
            return str(row["distribution"])
    if kind == "public":
        unread = (row for plugin, row in data().items() if row.get("names_unread") and plugin not in installed)
        return next((str(row["distribution"]) for row in unread), None)
    return None


def known(kind: str) -> list[str]:
    """Every device, backend, functionality, namespace, public name or plugin of the file."""
    if kind == "plugin":
        return list(data())
    return sorted({name for row in data().values() for name in row[_ROWS[kind]]})


def lowest_device() -> str:
    """The device string of the known backend of lowest rank; "" where none is known."""
    return next((row["lowest_device"] for row in data().values() if row["lowest_device"]), "")
