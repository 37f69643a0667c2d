"""The directory of plugins, from their manifests, and from the badge that the conformance kit wrote for a plugin.

The badge of a plugin is the file `conformance.json` in its folder, beside its pyproject.toml. Nobody but its author has seen the
run, and the page says so.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from turnout_conformance.badge import FORMAT

BADGE = "conformance.json"
KINDS = {"backend": "Devices", "functionality": "Functionalities", "library": "Operators and tools", "replacement": "Call paths"}


def fragment(root: Path) -> str:
    """A table for each kind of plugin. Raises ValueError for a badge that is of another format or of no plugin of its folder."""
    tables: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for path in sorted(path for place in ("plugins", "tools") for path in root.glob(f"{place}/*/src/*/plugin.toml")):
        manifest = tomllib.loads(path.read_text(encoding="utf-8"))
        cells = f"`{manifest['distribution']}`", manifest["summary"], _provides(manifest), _reported(path.parents[2], manifest)
        tables[manifest["kind"]].append(f"| {' | '.join(map(_cell, cells))} |")
    return "\n\n".join(_section(title, tables[kind]) for kind, title in KINDS.items() if tables[kind]) + "\n"


def _section(title: str, rows: list[str]) -> str:
    head = ["| distribution | what it is | provides | conformance, reported by its author |", "|---|---|---|---|"]
    return "\n".join([f"## {title}", "", *head, *rows])


def _provides(manifest: Mapping[str, Any]) -> str:
    """Devices, functionalities, engines, namespaces of operators, and public modules."""
    provides = manifest.get("provides", {})
    found = [f"device `{row['device']}`" for row in provides.get("backend", ())]
    found += [f"`{row['name']}`" for row in provides.get("key", ())]
    found += [f"engine `{row['name']}`" for row in provides.get("engine", ())]
    found += [f"operators `{name}::`" for name in provides.get("namespaces", ())]
    found += [f"`turnout.{name}`" for name in provides.get("modules", ())]
    return ", ".join(found)


def _reported(folder: Path, manifest: Mapping[str, Any]) -> str:
    path = folder / BADGE
    if not path.is_file():
        return "no report"
    badge = json.loads(path.read_text(encoding="utf-8"))
    if badge.get("format") != FORMAT:
        raise ValueError(f"{path}: expected a badge of format {FORMAT}, got {badge.get('format')!r}")
    proved = [row for row in badge["proved"] if row["distribution"] == manifest["distribution"]]
    if not proved:
        raise ValueError(f"{path}: the badge proves nothing of {manifest['distribution']}")
    return "; ".join(_said(row, badge) for row in proved)


def _said(row: Mapping[str, Any], badge: Mapping[str, Any]) -> str:
    def parts() -> Iterator[str]:
        yield f"`{row['name']}` {row['version']}"
        if row["operators"]:
            yield f"{row['operators']:,} operators"
        yield from (f"{count:,} {outcome}" for outcome, count in row["tests"].items())
        yield f"turnout-core {badge['turnout-core']}"
        yield badge["date"]

    return ", ".join(parts())


def _cell(text: str) -> str:
    return text.replace("|", r"\|")
