"""The build: makes `known_packages.py` from the manifests of the workspace, if this is built in one.

An sdist carries the file, so that building from it needs nothing else.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from pprint import pformat
from typing import Any

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = Path(__file__).resolve().parent
FILE = HERE / "src" / "turnout" / "plugins" / "known_packages.py"

PLACES = ("plugins", "tools")  # the folders whose distributions may have a manifest

HEAD = '''\
"""What the packages of the workspace provide: see `turnout.plugins.providers`. Made by `core/setup.py`."""
# ruff: noqa
# fmt: off

from typing import Any
'''


def known_packages(workspace: Path) -> dict[str, dict[str, Any]]:
    """Plugin name -> what its manifest says that it provides."""
    found = {}
    for path in sorted(path for place in PLACES for path in workspace.glob(f"{place}/*/src/*/plugin.toml")):
        manifest = tomllib.loads(path.read_text(encoding="utf-8"))
        provides = manifest.get("provides", {})
        backends = provides.get("backend", [])
        files = [path.with_name(names) for names in provides.get("names", {}).values() if isinstance(names, str)]
        members = provides.get("members", {})
        found[manifest["name"]] = {
            "distribution": manifest["distribution"],
            "folders": folders(workspace, manifest["distribution"]),
            "devices": sorted(backend["device"] for backend in backends),
            "backends": sorted(backend["name"] for backend in backends),
            "functionalities": sorted(key["name"] for key in provides.get("key", [])),
            "namespaces": sorted(provides.get("namespaces", [])),
            "public": public(path, provides),
            "members": [f"{place}.{name}" for place in sorted(members) for name in public(path, members[place])],
            # The plugin's own build makes the file, which may come after this one: the plugin may have any name then.
            "names_unread": any(not file.exists() for file in files),
            "lowest_device": next((b["device"] for b in backends if b.get("rank") == "lowest"), ""),
        }
    return found


def public(manifest: Path, provides: dict[str, Any]) -> list[str]:
    """The public names of a manifest, or of its table for one public module; of a file that is not there yet, none."""
    found = set(provides.get("modules", {}))
    for listed in provides.get("names", {}).values():
        file = manifest.with_name(listed) if isinstance(listed, str) else None
        found.update(listed if file is None else file.read_text(encoding="utf-8").split() if file.exists() else ())
    return sorted(found)


def folders(workspace: Path, distribution: str) -> dict[str, str]:
    """What a distribution needs of the workspace, core apart, each with its folder: requirements before what needs them."""
    found: dict[str, str] = {}
    places = [workspace / place / distribution.removeprefix("turnout-") for place in PLACES]
    folder = next((place for place in places if (place / "pyproject.toml").is_file()), None)
    # A requirement from elsewhere may have the name of a folder here.
    if distribution.startswith("turnout-") and folder is not None:
        project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        for requirement in project.get("dependencies", []):
            found |= folders(workspace, re.split(r"[^\w-]", requirement)[0])
        found[distribution] = folder.relative_to(workspace).as_posix()
    return found


def write() -> None:
    """Write the file into the source tree, from which wheels, sdists and editable installs take it."""
    workspace = HERE.parent
    if (workspace / "plugins").is_dir():
        found = pformat(known_packages(workspace), width=120, sort_dicts=False)
        text = f"{HEAD}\nPACKAGES: dict[str, dict[str, Any]] = {found}\n"
        if not FILE.exists() or FILE.read_text(encoding="utf-8") != text:  # others may read it meanwhile
            FILE.write_text(text, encoding="utf-8")


class BuildPy(build_py):
    """Makes the file first."""

    def run(self) -> None:
        write()
        super().run()


class Sdist(sdist):
    """Makes the file first."""

    def run(self) -> None:
        write()
        super().run()


if __name__ == "__main__":
    setup(cmdclass={"build_py": BuildPy, "sdist": Sdist})
