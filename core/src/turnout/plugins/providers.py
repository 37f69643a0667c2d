"""What packages provide that are not installed, from the data file `known_packages.py` beside this module.

The build of this distribution makes the file from the manifests of its workspace (`setup.py`). As a module it is read in half a
millisecond less than as JSON.
"""

from __future__ import annotations

import os
from collections.abc import Container
from functools import cache
from typing import Any

from turnout.config.settings import normal
from turnout.plugins.distributions import Distribution, named

try:
    from turnout.plugins.known_packages import PACKAGES
except ImportError:  # a build outside of the workspace knows no packages
    PACKAGES = {}

_ROWS = {
    "device": "devices", "backend": "backends", "functionality": "functionalities", "namespace": "namespaces",
    "public": "public", "member": "members",
}  # fmt: skip


def data() -> dict[str, dict[str, Any]]:
    """Plugin name -> its distribution, the folders of a clone that have it, and what it provides."""
    return PACKAGES


@cache
def packages() -> frozenset[str]:
    """The packages of Turnout, by the names under which they are imported: core, and the distributions of the file."""
    names = {name for row in data().values() for name in (row["distribution"], *row.get("folders", {}))}
    return frozenset({"turnout", *(name.replace("-", "_") for name in names)})


def is_ours(module: str) -> bool:
    """Whether a module is part of Turnout: of core, or of a distribution that the file names."""
    return module.partition(".")[0] in packages()


def provider_of(kind: str, name: str, installed: Container[str] = ()) -> str | None:
    """The distribution for a device, backend, functionality, namespace, public name, plugin, or "member" of a public module,
    such as "nn.Linear"; None if none is known.

    An unknown public name may belong to a plugin whose names were not made before the file, unless that plugin is among those
    `installed`, whose names are known.
    """
    for plugin, row in data().items():
        if (kind == "plugin" and plugin == name) or (kind in _ROWS and name in row[_ROWS[kind]]):
            return str(row["distribution"])
    if kind == "public":
        unread = (row for plugin, row in data().items() if row.get("names_unread") and plugin not in installed)
        return next((str(row["distribution"]) for row in unread), None)
    return None


def owners() -> dict[tuple[str, str], str]:
    """What belongs to a known package: ("device", "cpu") -> its distribution. Packages share namespaces and public names."""
    found = {("plugin", plugin): str(row["distribution"]) for plugin, row in data().items()}
    for row in data().values():
        for kind in ("device", "backend", "functionality"):
            found.update(((kind, name), str(row["distribution"])) for name in row[_ROWS[kind]])
    return found


def is_known(distribution: str) -> bool:
    """Whether the file names a distribution."""
    return normal(distribution) in {normal(row["distribution"]) for row in data().values()}


def distribution_of(module: str) -> str | None:
    """The distribution of Turnout that has a module; None for a module from elsewhere."""
    return module.partition(".")[0].replace("_", "-") if is_ours(module) else None


def install(*packages: str) -> str:
    """The command that installs packages: from the clone that core was installed from, if that has them."""
    needed = {name: folder for package in packages for name, folder in _folders(package)}
    missing = [folder for name, folder in needed.items() if not any(named(name))]
    core, editable = project_of(next(iter(named("turnout-core")), None))
    folders = [os.path.join(os.path.dirname(core), *folder.split("/")) for folder in missing] if core is not None else []
    if not folders or not all(os.path.isfile(os.path.join(folder, "pyproject.toml")) for folder in folders):
        return f"pip install {' '.join(packages)}"
    from shlex import quote

    return "pip install" + "".join(f"{' -e' if editable else ''} {quote(folder)}" for folder in folders)


def _folders(package: str) -> list[tuple[str, str]]:
    """What a package needs of a clone, and itself, each with its folder. What no plugin needs is a tool."""
    rows = [list(row.get("folders", {}).items()) for row in data().values()]
    row = next((row for row in rows if package in dict(row)), [(package, f"tools/{package.removeprefix('turnout-')}")])
    return row[: [name for name, _ in row].index(package) + 1]


def project_of(distribution: Distribution | None) -> tuple[str | None, bool]:
    """The folder that a distribution was installed from, None if from elsewhere; and whether it is an editable install."""
    import json
    from urllib.parse import unquote, urlsplit

    try:
        direct = json.loads(distribution.read_text("direct_url.json"))  # type: ignore[union-attr, arg-type]
        return os.path.normpath(unquote(urlsplit(direct["url"]).path)), direct["dir_info"].get("editable") is True
    except (AttributeError, KeyError, TypeError, ValueError):  # of an index, of a version control system, or damaged
        return None, False


def known(kind: str) -> list[str]:
    """Every device, backend, functionality, namespace, public name or plugin of the file."""
    if kind == "plugin":
        return list(data())
    return sorted({name for row in data().values() for name in row[_ROWS[kind]]})


def lowest_device() -> str:
    """The device string of the known backend of lowest rank; "" where none is known."""
    return next((row["lowest_device"] for row in data().values() if row["lowest_device"]), "")
