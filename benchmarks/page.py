"""A page with a chart for each group of rows: bars of ratios on a logarithmic scale, in one HTML file that loads nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

LEAST, MOST = 1 / 8, 64.0  # the ends of the scale; a bar beyond them is cut, and its number says so
WIDTH, STEP = 480, 18
LETTER, LONGEST = 7.3, 58  # the width of a letter, and how many letters of a label are shown

HEAD = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Turnout: how fast calls are</title>
<style>
body { font: 14px/1.4 system-ui, sans-serif; margin: 2em auto; max-width: 75em; color: #222; background: #fff }
text { font: 12px ui-monospace, monospace; fill: #222 }
.fast { fill: #3a7d44 } .near { fill: #c9a227 } .slow { fill: #b3432b } .axis { stroke: #bbb } .one { stroke: #222 }
@media (prefers-color-scheme: dark) {
  body { color: #ddd; background: #181818 } text { fill: #ddd } .axis { stroke: #444 } .one { stroke: #ddd }
}
</style>
<h1>How fast calls are</h1>
"""


def mean(values: Sequence[float]) -> float:
    """The geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values))


def place(ratio: float) -> float:
    """Where a ratio stands on the scale, in pixels from its left end."""
    share = (math.log(min(max(ratio, LEAST), MOST)) - math.log(LEAST)) / (math.log(MOST) - math.log(LEAST))
    return round(share * WIDTH, 1)


def chart(rows: Sequence[Mapping[str, Any]]) -> str:
    """The bars of rows, from 1 (as fast as the other side) to their ratio: to the left if Turnout is faster."""
    height = STEP * len(rows) + STEP
    labels = [row["what"][:LONGEST] for row in rows]
    left = round(LETTER * max(map(len, labels))) + 16
    width = left + WIDTH + 80
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    parts = [f'<svg {size} role="img" aria-label="ratios, one bar for each row">']
    tick = LEAST
    while tick <= MOST:
        x = left + place(tick)
        kind = "one" if tick == 1 else "axis"
        parts.append(f'<line class="{kind}" x1="{x}" x2="{x}" y1="{STEP}" y2="{height}"/>')
        parts.append(f'<text x="{x}" y="12" text-anchor="middle">{tick:g}</text>')
        tick *= 2
    one = place(1.0)
    for i, (row, label) in enumerate(zip(rows, labels, strict=True)):
        y = STEP * (i + 1)
        at = place(row["value"])
        kind = "fast" if row["value"] <= 1 else "near" if row["value"] <= 2 else "slow"
        times = f"{row['what']}: Turnout {row['turnout'] * 1e6:.2f} us, {row['against']} {row['other'] * 1e6:.2f} us"
        parts.append(f'<text x="{left - 8}" y="{y + 13}" text-anchor="end">{escape(label)}</text>')
        parts.append(
            f'<rect class="{kind}" x="{left + min(one, at)}" y="{y + 3}" width="{max(abs(at - one), 1)}" height="{STEP - 6}">'
            f"<title>{escape(times)}</title></rect>"
        )
        parts.append(f'<text x="{left + max(one, at) + 4}" y="{y + 13}">{row["value"]:.2f}</text>')
    return "\n".join([*parts, "</svg>"])


def text(machine: Mapping[str, str], groups: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """The page. Rows that were skipped, and those that are no ratio, stand in a list below their group's chart."""
    parts = [HEAD, f"<p>{escape(', '.join(f'{k} {v}' for k, v in machine.items()))}</p>"]
    parts.append("<p>Turnout's time over that of the other side: a bar to the left of 1 says that Turnout is faster.</p>")
    for group, records in groups.items():
        rows = [r for r in records if r.get("unit") == "ratio"]
        parts.append(f"<h2>{escape(group)}</h2>")
        if rows:
            parts.append(f"<p>{len(rows)} rows, geometric mean {mean([r['value'] for r in rows]):.2f}</p>")
            parts.append(chart(rows))
        others = [r for r in records if r.get("unit") != "ratio"]
        if others:
            said = [r["what"] + ": " + (r.get("skipped") or f"{r['value']:.0f} ms over {r['against']}") for r in others]
            parts.append("<ul>" + "".join(f"<li>{escape(each)}</li>" for each in said) + "</ul>")
    return "\n".join(parts) + "\n</html>\n"


def write(path: str, machine: Mapping[str, str], groups: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """Write the page to a file."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(text(machine, groups))
