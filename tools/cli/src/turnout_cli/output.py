"""How facts are printed: tables and lines for people, JSON for programs.

Where the output is a terminal, what is wider than it is folded: the last columns of a table stand below it as numbered notes, and
a line goes on at its blanks. No word and no path is ever broken. In a file or a pipe, and with `--wide`, nothing is folded.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import click
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from turnout.plugins.records import BROKEN, USABLE
from turnout.table import SERVED_BY

WIDE = "turnout.wide"  # in the meta of click's context: nothing is folded
GAP = 2  # blanks between columns
INDENT = 4  # blanks before the second line of a text
NOTE = "note"  # the title of the column of numbers
NARROWEST = 20  # columns; a terminal that says it has fewer is not believed

_SERVED_BY = {"kernel": "green", "composite": "cyan", "fallback": "yellow", "missing": "red"}
# The word for a state -> its colour, in all commands.
COLOURS = {
    **dict.fromkeys((*USABLE, "on", "healthy", "fine"), "green"),
    **dict.fromkeys(("unavailable", "disabled"), "yellow"),
    **dict.fromkeys((*BROKEN, "blocked", "broken", "something is broken"), "red"),
    **dict.fromkeys(("off", "missing", "."), "dim"),
    **{reason: _SERVED_BY[kind] for reason, kind in SERVED_BY.items()},
}


def coloured(text: object, state: str | None = None) -> Text:
    """The text in the colour of a state, by default the one that it is a word for."""
    return Text(str(text), style=COLOURS.get(str(text) if state is None else state, ""))


def console(*, stderr: bool = False) -> Console:
    """A console that prints text as it is. NO_COLOR wins over FORCE_COLOR, and both over what the output is."""
    plain = bool(os.environ.get("NO_COLOR"))
    return Console(
        stderr=stderr, markup=False, highlight=False, emoji=False, soft_wrap=True, color_system=None if plain else "auto"
    )


def columns(*, stderr: bool = False) -> int | None:
    """The width to fold to, or None where nothing is folded. The variable COLUMNS stands above the terminal's own size."""
    context = click.get_current_context(silent=True)
    if (context is not None and context.meta.get(WIDE)) or not (sys.stderr if stderr else sys.stdout).isatty():
        return None
    return max(shutil.get_terminal_size().columns, NARROWEST)


# ---- what commands print


def print_json(facts: Any) -> None:
    """Print facts as JSON to standard output."""
    click.echo(json.dumps(facts, indent=2, default=str))


def print_lines(*lines: str | Text) -> None:
    """Print lines; a long one goes on below its own text, beside its label."""
    _print(part for line in lines for part in _folded_lines(line, columns()))


def note(text: str | Text) -> None:
    """Print lines about the facts to standard error."""
    _print(_folded_lines(text, columns(stderr=True)), stderr=True)


def print_table(titles: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table without frames. Cells are texts, which have the colour of the state that they name."""
    _print(table_lines(titles, rows, columns()))


def print_matrix(corner: str, titles: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table with many narrow columns: where it is wider than the terminal, the titles stand above each other."""
    _print(matrix_lines(corner, titles, rows, columns()))


def _print(lines: Iterable[Text], *, stderr: bool = False) -> None:
    screen = console(stderr=stderr)
    for line in lines:
        line.rstrip()
        if screen.color_system is None:
            click.echo(line.plain, err=stderr)
        else:
            screen.print(line)


# ---- their layout


def table_lines(titles: Sequence[str], rows: Iterable[Sequence[object]], width: int | None) -> Iterator[Text]:
    """The lines of a table. Columns that have no place beside the others are notes below it, each said once and numbered."""
    cells = [[Text(title, style="bold") for title in titles], *([_cell(each) for each in row] for row in rows)]
    widths = [max(cell.cell_len for cell in column) for column in zip(*cells, strict=True)]
    count = _fitting(widths, width)
    notes: dict[str, tuple[int, Text]] = {}
    for i, row in enumerate(cells):
        line = row[:count]
        if count < len(titles):
            rest = Text("  ").join([cell for cell in row[count:] if cell.plain])
            if i and rest.plain:
                notes.setdefault(rest.plain, (len(notes) + 1, rest))
            number = notes[rest.plain][0] if rest.plain in notes else ""
            line = [*line, Text(str(number)) if i else Text(NOTE, style="bold")]
        yield from folded(_row(line, [*widths[:count], len(NOTE)][: len(line)]), width, INDENT)
    if notes:
        yield Text()
        yield Text(f"{NOTE}  {'  '.join(titles[count:])}", style="bold")
    for number, text in notes.values():
        yield from folded(Text.assemble(f"{number:<{len(NOTE)}}  ", text), width, len(NOTE) + GAP)


def matrix_lines(corner: str, titles: Sequence[str], rows: Iterable[Sequence[object]], width: int | None) -> Iterator[Text]:
    """The lines of a table whose cells are narrow. In a narrow terminal a title is led to its column by a line of its own."""
    cells = [[_cell(each) for each in row] for row in rows]
    names = max((row[0].cell_len for row in cells), default=0)
    widths = [max((row[i + 1].cell_len for row in cells), default=1) for i in range(len(titles))]
    full = names + sum(GAP + max(each, cell_len(title)) for each, title in zip(widths, titles, strict=True))
    if width is None or full <= width:
        yield from table_lines((corner, *titles), cells, width)
        return
    for start, end in _blocks(widths, max(width // 2, width - names - 1)):
        inside = sum(1 + each for each in widths[start:end])
        longest = max(map(cell_len, titles[start:end])) + 1
        left = max(longest, min(names, width - inside))
        yield from _leaders(titles[start:end], widths[start:end], left)
        for row in cells:
            line = _row(row[start + 1 : end + 1], widths[start:end], gap=1)
            if row[0].cell_len > left:
                yield row[0].copy()
                yield Text.assemble(" " * (left + 1), line)
            else:
                yield Text.assemble(row[0], " " * (left + 1 - row[0].cell_len), line)


def folded(line: Text, width: int | None, hang: int) -> list[Text]:
    """A line in parts of at most `width` columns, or of one word, split at blanks; those after the first begin at `hang`."""
    if width is None or line.cell_len <= width:
        return [line]
    parts: list[Text] = []
    start = end = indent = 0  # of the part that is being filled
    for word in re.finditer(r"\S+", line.plain):
        if end and indent + cell_len(line.plain[start : word.end()]) > width:
            parts.append(Text.assemble(" " * indent, line[start:end]))
            start = word.start()
            indent = min(hang, max(width - cell_len(word[0]), 0))  # a long path begins further to the left
        end = word.end()
    return [*parts, Text.assemble(" " * indent, line[start:end])]


def _folded_lines(text: str | Text, width: int | None) -> Iterator[Text]:
    whole = text if isinstance(text, Text) else Text(text)
    for line in whole.split("\n", allow_blank=True):
        yield from folded(line, width, _hang(line.plain, width or 0))


def _hang(line: str, width: int) -> int:
    """Where the text of a line begins: after its label, if it has one ("  why     the module ..."), which two blanks end."""
    label = re.match(r"\s*\S+(?: \S+)*?\s{2,}", line)
    if label and label.end() <= width // 2:
        return label.end()
    return len(line) - len(line.lstrip()) + INDENT


def _cell(value: object) -> Text:
    return value if isinstance(value, Text) else coloured(value)


def _row(cells: Sequence[Text], widths: Sequence[int], gap: int = GAP) -> Text:
    line = Text()
    for cell, width in zip(cells, widths, strict=True):
        line.append_text(cell).append(" " * (width - cell.cell_len + gap))
    line.rstrip()
    return line


def _fitting(widths: Sequence[int], width: int | None) -> int:
    """How many columns stand beside each other: all, or the first ones that leave room for the numbers of notes."""
    if width is None or sum(widths) + GAP * (len(widths) - 1) <= width:
        return len(widths)
    used = len(NOTE)
    for i, each in enumerate(widths):
        used += each + GAP
        if used > width:
            return max(i, 1)
    return len(widths) - 1


def _blocks(widths: Sequence[int], room: int) -> Iterator[tuple[int, int]]:
    """The columns of a matrix in blocks of at most `room` columns of the terminal."""
    start = used = 0
    for i, each in enumerate(widths):
        if used and used + each + 1 > room:
            yield start, i
            start, used = i, 0
        used += each + 1
    yield start, len(widths)


def _leaders(titles: Sequence[str], widths: Sequence[int], left: int) -> Iterator[Text]:
    """A line for each title, the last column's first, that leads to the column: `Meta -----.  |`."""
    starts = [left + 1 + sum(1 + each for each in widths[:i]) for i in range(len(titles))]
    for i in reversed(range(len(titles))):
        line = f"{titles[i]} ".ljust(starts[i], "-") + "."
        for later in starts[i + 1 :]:
            line = line.ljust(later) + "|"
        yield Text(line, style="bold")
