"""Charts of the benchmarks' last run, from the files that `benchmarks/run.py --json` wrote into benchmarks/last.

The bars are those of `benchmarks/page.py`. Colours come from the style sheet of the site, for its light and dark modes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any


def fragment(root: Path) -> str:
    """A section for each file: how it was measured, a chart of the ratios, and the rows that are no ratio or were skipped."""
    page = _drawing(root / "benchmarks/page.py")
    runs = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(root.glob("benchmarks/last/*.json"))]
    return "\n\n".join(part for run in runs for part in _section(run, page)) + "\n"


def _drawing(path: Path) -> Any:
    """The module that draws, of a folder that is no package."""
    spec = spec_from_file_location("turnout_benchmarks_page", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _section(run: Mapping[str, Any], page: Any) -> Iterator[str]:
    rows = [row for row in run["rows"] if row.get("unit") == "ratio"]
    yield f"### {run['title']}"
    machine = ", ".join(f"{name} {value}" for name, value in run["machine"].items())
    yield f"Measured on {run['date']} with `{run['command']}`: {machine}."
    if rows:
        yield f"{len(rows)} rows, geometric mean {page.mean([row['value'] for row in rows]):.2f}."
        yield f'<div class="bench">\n{page.chart(rows)}\n</div>'
    others = [row for row in run["rows"] if row.get("unit") == "ms"]
    if others:
        yield "\n".join(f"- {row['what']}: {row['value']:.0f} ms more than {row['against']}" for row in others)
    skipped = [row["what"] for row in run["rows"] if "skipped" in row]
    if skipped:
        yield f"Not measured, because the other side was not installed: {'; '.join(skipped)}."
