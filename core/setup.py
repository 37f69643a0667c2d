"""The build: makes `known_packages.json` from the manifests of the workspace, if this is built in one.

An sdist carries the file, so that building from it needs nothing else.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parent
FILE = HERE / "src" / "turnout" / "plugins" / "known_packages.json"


def known_packages(workspace: Path) -> dict[str, dict[str, Any]]:
    """Plugin name -> what its manifest says that it provides."""
    found = {}
    for path in sorted(workspace.glob("plugins/*/src/*/plugin.toml")):
        manifest = tomllib.loads(path.read_text(encoding="utf-8"))
        provides = manifest.get("provides", {})
        backends = provides.get("backend", [])
        names = [name for listed in provides.get("names", {}).values() for name in _listed(path, listed)]
        found[manifest["name"]] = {
            "distribution": manifest["distribution"],
            "devices": sorted(backend["device"] for backend in backends),
            "backends": sorted(backend["name"] for backend in backends),
            "functionalities": sorted(key["name"] for key in provides.get("key", [])),
            "namespaces": sorted(provides.get("namespaces", [])),
            "public": sorted([*names, *provides.get("modules", {})]),
            "lowest_device": next((b["device"] for b in backends if b.get("rank") == "lowest"), ""),
        }
    return found


def _listed(manifest: Path, names: Any) -> list[str]:
    """Public names, from the manifest or from the file that it names, if that has been made yet."""
    if not isinstance(names, str):
        return list(names)
    file = manifest.with_name(names)
    return file.read_text(encoding="utf-8").split() if file.exists() else []


class BuildPy(build_py):
    """Writes the file into the source tree, from which wheels, sdists and editable installs take it."""

    def run(self) -> None:
        workspace = HERE.parent
        if (workspace / "plugins").is_dir():
            FILE.write_text(json.dumps(known_packages(workspace), indent=1) + "\n", encoding="utf-8")
        super().run()


setup(cmdclass={"build_py": BuildPy})
