"""What notebooks show: texts, tables and trees as HTML, every word escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

_PRE = "white-space: pre; text-align: left; line-height: 1.3; overflow-x: auto"


def preformatted(text: object, caption: object = "") -> str:
    """A text as it is, below a caption."""
    above = f"<div><small>{escape(str(caption))}</small></div>" if str(caption) else ""
    return f'<div>{above}<pre style="{_PRE}">{escape(str(text))}</pre></div>'


def table(head: Sequence[str], rows: Iterable[Sequence[object]], caption: object = "", marked: int = -1) -> str:
    """A table; the row `marked` is bold."""
    lines = [f'<table><caption style="text-align: left">{escape(str(caption))}</caption>'] if str(caption) else ["<table>"]
    lines += ["<thead><tr>", *(f'<th style="text-align: left">{escape(name)}</th>' for name in head), "</tr></thead><tbody>"]
    for i, row in enumerate(rows):
        weight = "; font-weight: bold" if i == marked else ""
        cells = [f'<td style="text-align: left{weight}">{escape(str(cell))}</td>' for cell in row]
        lines += ["<tr>", *cells, "</tr>"]
    return "".join([*lines, "</tbody></table>"])


def branch(text: object, below: Sequence[str]) -> str:
    """A line of a tree, which opens to what is below it."""
    if not below:
        return f'<div style="margin-left: 1.2em"><code>{escape(str(text))}</code></div>'
    inner = "".join(below)
    return f'<details open style="margin-left: 1.2em"><summary><code>{escape(str(text))}</code></summary>{inner}</details>'
