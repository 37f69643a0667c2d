"""A profile as an SVG picture: a bar for each operator, its own time before the time of the operators that it called."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from turnout_profiler.tables import Row, times

WIDTH, LINE, TOP, LEFT, RIGHT = 920, 24, 64, 300, 210
STYLE = """\
  text { font: 13px ui-monospace, monospace; fill: #1c2733; }
  .head { font-weight: bold; }
  .name { text-anchor: end; }
  .dim { fill: #5d6b7a; }
  .page { fill: #ffffff; }
  .own { fill: #2a6fb0; }
  .inside { fill: #bcd3ea; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e4e9ee; }
    .dim { fill: #9aa7b4; }
    .page { fill: #14191f; }
    .own { fill: #5aa2e0; }
    .inside { fill: #2c4661; }
  }
"""


def chart(rows: Sequence[Row], shown: int) -> str:
    """The picture of the first `shown` rows, 0 for all. The rows are sorted already."""
    head = rows[:shown] if shown else rows
    everything = sum(row.own for row in rows)
    longest = max((max(row.total, row.own) for row in head), default=0) or 1
    height = TOP + LINE * len(head) + 16
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img">',
        "<title>Time by operator</title>",
        f"<style>\n{STYLE}</style>",
        f'<rect class="page" width="{WIDTH}" height="{height}"/>',
        f'<text class="head" x="16" y="24">{_summary(rows, everything, len(head))}</text>',
        f'<rect class="own" x="{LEFT}" y="38" width="12" height="12"/><text class="dim" x="{LEFT + 18}" y="49">own time</text>',
        f'<rect class="inside" x="{LEFT + 110}" y="38" width="12" height="12"/>',
        f'<text class="dim" x="{LEFT + 128}" y="49">operators called inside</text>',
    ]
    for number, row in enumerate(head):
        lines += _bar(row, TOP + LINE * number, (WIDTH - LEFT - RIGHT) / longest, everything)
    return "\n".join([*lines, "</svg>", ""])


def _summary(rows: Sequence[Row], everything: int, shown: int) -> str:
    if not rows:
        return "no operator was called"
    some = f"{shown} of {len(rows)}" if shown < len(rows) else str(len(rows))
    return f"{sum(row.calls for row in rows)} calls, {everything / 1e6:.2f} ms, {some} operators"


def _bar(row: Row, top: int, scale: float, everything: int) -> list[str]:
    name = escape(row.operator)
    total, own, share = times(row.total, row.own, everything)
    own_width = row.own * scale
    whole = max(row.total, row.own) * scale
    return [
        "<g>",
        f"<title>{name}: {row.calls} calls, {total} ms, of these {own} ms of its own ({share})</title>",
        f'<text class="name" x="{LEFT - 10}" y="{top + 15}">{name}</text>',
        f'<rect class="inside" x="{LEFT}" y="{top + 3}" width="{whole:.1f}" height="{LINE - 8}" rx="2"/>',
        f'<rect class="own" x="{LEFT}" y="{top + 3}" width="{own_width:.1f}" height="{LINE - 8}" rx="2"/>',
        f'<text class="dim" x="{LEFT + whole + 8:.1f}" y="{top + 15}">{own} ms, {share}</text>',
        "</g>",
    ]
