"""How facts are printed: tables and lines through rich for people, JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import click

WIDE = 200  # columns where the output is not a terminal: in a file or a pipe nothing is cut off


def console(*, stderr: bool = False) -> Any:
    """A console that prints text as it is: no markup, no colours of its own choosing."""
    from rich.console import Console

    made = Console(stderr=stderr, markup=False, highlight=False, soft_wrap=True)
    if not made.is_terminal:
        made.width = max(WIDE, made.width)
    return made


def print_json(facts: Any) -> None:
    """Print facts as JSON to standard output."""
    click.echo(json.dumps(facts, indent=2, default=str))


def print_table(titles: Sequence[str], rows: Iterable[Sequence[object]], *, styles: dict[str, str] | None = None) -> None:
    """Print a table without frames; a cell whose text is a key of `styles` is coloured."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for title in titles:
        table.add_column(title, overflow="fold")
    for row in rows:
        table.add_row(*(Text(str(cell), style=(styles or {}).get(str(cell), "")) for cell in row))
    screen = console()
    screen.soft_wrap = False
    if screen.is_terminal:
        screen.print(table)
        return
    with screen.capture() as captured:
        screen.print(table)
    print_lines(*(line.rstrip() for line in captured.get().splitlines()))


def print_lines(*lines: str) -> None:
    """Lines as they are."""
    for line in lines:
        click.echo(line)


def note(line: str) -> None:
    """Print a line about the facts to standard error."""
    click.echo(line, err=True)
