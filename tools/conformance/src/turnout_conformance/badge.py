"""The badge of a run: a small file that says what was proved, of which versions, and when. A plugin directory can show it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from turnout.plugins import all_plugins

FORMAT = 1


def write(
    path: Path, outcomes: Mapping[str, Iterable[str]], keys: Mapping[str, str], counted: Mapping[str, Mapping[str, int]]
) -> None:
    """Write it: for each device and functionality its key, the outcomes of its tests, and for how many operators kernels ran."""
    kit = {name: version(name) for name in ("turnout-core", "turnout-conformance")}
    proved = [_proved(name, key, outcomes[name], counted.get(name, {})) for name, key in sorted(keys.items())]
    badge = {"format": FORMAT, "date": datetime.now(UTC).date().isoformat(), **kit, "proved": proved}
    path.write_text(json.dumps(badge, indent=2) + "\n", encoding="utf-8")


def _proved(name: str, key: str, outcomes: Iterable[str], ran: Mapping[str, int]) -> dict[str, Any]:
    """One device or functionality. One that a program registered itself belongs to no distribution."""
    provides = {f"device:{name}", f"functionality:{name}"}
    owner = next((plugin for plugin in all_plugins() if not provides.isdisjoint(plugin.provides)), None)
    of = {"distribution": "", "version": ""} if owner is None else {"distribution": owner.distribution, "version": owner.version}
    return {"name": name, "key": key, **of, "operators": len(ran), "tests": dict(sorted(Counter(outcomes).items()))}
