"""Distributions written into a folder on sys.path: metadata, a manifest and a module, as pip would leave them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

MANIFEST = """\
name = "{name}"
distribution = "{distribution}"
kind = "backend"
api = "1.0"
module = "{package}.plugin"
{top}
[[provides.backend]]
name = "{backend}"
device = "{name}"
{tables}
"""
ACTIVATION = """\
from turnout.plugins import hookimpl

@hookimpl
def turnout_activate(library, options):
    library.register("backend:{backend}")
"""


FUNCTIONALITY = """\
name = "{name}"
distribution = "{distribution}"
kind = "functionality"
api = "1.0"
module = "{package}.plugin"
{top}
{tables}
"""
LIBRARY = """\
name = "{name}"
distribution = "{distribution}"
kind = "library"
api = "1.0"
module = "{package}.plugin"
{top}
[provides]
namespaces = ["{name}"]
{tables}
"""
LIBRARY_ACTIVATION = """\
from turnout.plugins import hookimpl

@hookimpl
def turnout_activate(library, options):
    library.register("namespace:{name}")
"""


class Library:
    """Stands in for turnout.registry.Registrations: remembers what was registered, in one place for all libraries."""

    registered: list[str] = []

    def __init__(self, name: str, /, *, distribution: str, version: str) -> None:
        self.name = name
        self.origin = f"{distribution} {version}"
        self._mine: list[str] = []

    def register(self, what: str) -> None:
        self.registered.append(what)
        self._mine.append(what)

    def provided(self, *, tables: bool = True) -> set[str]:
        """As a backend is registered, so is its device, which these manifests call as the backend."""
        devices = {f"device:{what.removeprefix('backend:').lower()}" for what in self._mine if what.startswith("backend:")}
        return {*self._mine, *devices}

    def undo(self) -> None:
        while self._mine:
            self.registered.remove(self._mine.pop())


class Site:
    """A folder like site-packages."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def distribution(
        self,
        name: str,
        *,
        files: dict[str, str],
        entry_points: str = "",
        record: bool = True,
        version: str = "0.1",
        extra: dict[str, str] | None = None,
    ) -> None:
        """Metadata and files of one distribution, as pip would write them."""
        info = f"{name.replace('-', '_')}-{version}.dist-info"
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        everything = {**files, f"{info}/METADATA": metadata, **{f"{info}/{k}": v for k, v in (extra or {}).items()}}
        if entry_points:
            everything[f"{info}/entry_points.txt"] = f"[turnout.plugins]\n{entry_points}\n"
        if record:
            everything[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in [*everything, f"{info}/RECORD"])
        for path, text in everything.items():
            target = self.folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")

    def plugin(
        self,
        name: str,
        *,
        manifest: str = MANIFEST,
        top: str = "",
        tables: str = "",
        activation: str = ACTIVATION,
        distribution: str = "",
        backend: str = "",
        modules: dict[str, str] | None = None,
    ) -> Path:
        """A plugin in a package `fake_<name>`, with `modules` (file -> text) in it; returns the path of its manifest."""
        package = f"fake_{name}"
        words: dict[str, Any] = {
            "name": name,
            "distribution": distribution or f"dist-{name}",
            "package": package,
            "backend": backend or name.capitalize(),
            "top": top,
            "tables": tables,
        }
        if distribution:
            package = words["package"] = distribution.replace("-", "_")
        files = {
            f"{package}/__init__.py": "",
            f"{package}/plugin.toml": manifest.format(**words),
            f"{package}/plugin.py": activation.format(**words)
            if "{backend}" in activation or activation is LIBRARY_ACTIVATION
            else activation,
            **{f"{package}/{file}": text for file, text in (modules or {}).items()},
        }
        self.distribution(words["distribution"], files=files, entry_points=f"{name} = {package}:plugin.toml")
        return self.folder / package / "plugin.toml"
