"""`coverage`: the matrix of operators by keys, in the terminal, as JSON, or as a page that readers can filter.

An entry of an operator's computed table has one of four kinds: a kernel of its own, a composite (a kernel for an alias key), a
fallback (one kernel for every operator of a key), or missing.
"""

from __future__ import annotations

import json
from fnmatch import fnmatch
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from turnout import table
from turnout_cli.activation import activate_with_note
from turnout_cli.main import Problem, facts
from turnout_cli.names import key_names, operator_names
from turnout_cli.operators import entry_facts
from turnout_cli.output import coloured, note, print_json, print_lines, print_matrix

if TYPE_CHECKING:
    from turnout.operators import Operator
    from turnout.table import Entry

# Reason in the computed table -> a letter for the matrix in the terminal.
LETTERS = {
    table.KERNEL: "K", table.DEFAULT_BACKEND: "D", table.NESTED: "N", table.MATH: "M", table.AUTOGRAD_KERNEL: "A",
    table.BATCHED: "B", table.FALLBACK: "F", table.AMBIGUOUS: "?",
}  # fmt: skip
# What serves an operator, as the page marks and calls it; its style has a colour for each.
KINDS = {
    "kernel": ("K", "own kernel"), "composite": ("C", "composite"), "fallback": ("F", "fallback"),
    "missing": ("\u00b7", "missing"),
}  # fmt: skip
Matrix = dict[str, dict[str, "Entry"]]


@click.command
@click.argument("pattern", default="*", shell_complete=operator_names)
@click.option("--key", "wanted", multiple=True, shell_complete=key_names, help="Show only this key; may be repeated.")
@click.option("--missing", is_flag=True, help="Only operators that lack a kernel for one of the keys shown.")
@click.option(
    "--html", "page", type=click.Path(dir_okay=False, path_type=Path), help="Write a page that can be filtered in a browser."
)
@facts
@click.pass_context
def coverage(ctx: click.Context, pattern: str, wanted: tuple[str, ...], missing: bool, page: Path | None, as_json: bool) -> None:
    """Print what serves each operator at each key.

    PATTERN selects operators by name, such as '*_backward', or all overloads of one name, such as add. Exit code 1 if
    no operator matches or, with --missing, if none lacks a kernel.
    """
    from turnout.errors.layout import near
    from turnout.registry import REGISTRY

    activate_with_note()
    every = [n for n, op in sorted(REGISTRY.operators.items()) if op.is_defined]
    names = [name for name in every if _matches(name, pattern)]
    if not names:
        raise Problem(f"no operator matches {pattern!r}{near(pattern, {n.partition('::')[2] for n in every})}")
    matrix = {name: _served(REGISTRY.operators[name]) for name in names}
    keys = [REGISTRY.keys.canonical(key) for key in wanted] or _used(matrix)
    if missing:
        matrix = {name: row for name, row in matrix.items() if any(key not in row for key in keys)}
    if page is not None:
        from turnout_aten.files import write_text

        write_text(page, _page(matrix, keys))
        note(f"{len(matrix)} operators, {len(keys)} keys: {page}")
    if as_json:
        rows = {n: {k: entry_facts(k, e) for k, e in row.items() if k in keys} for n, row in matrix.items()}
        print_json({"keys": keys, "operators": rows})
    elif not matrix:
        print_lines(f"no operator of {len(names)} lacks a kernel for {', '.join(keys)}")
    elif page is None:
        _print_matrix(matrix, keys)
    if not matrix:
        ctx.exit(1)


def _matches(name: str, pattern: str) -> bool:
    short = name.partition("::")[2]
    return any(fnmatch(each, pattern) for each in (name, short, name.partition(".")[0], short.partition(".")[0]))


def _served(op: Operator) -> dict[str, Entry]:
    """The entries that run something: fallthroughs and keys without a kernel are omitted."""
    return {k: e for k, e in op.entries().items() if k != "Undefined" and (e.kernel is None or not e.kernel.is_fallthrough)}


def _used(matrix: Matrix) -> list[str]:
    """The keys of the columns, lowest first: those where operators differ, not those that one fallback serves alike."""
    from turnout.registry import REGISTRY

    kernels: dict[str, set[object]] = {}
    for row in matrix.values():
        for key, entry in row.items():
            kernels.setdefault(key, set()).add("fallback" if _is_plain_fallback(entry) else entry)
    return [key for key in REGISTRY.keys.universe.runtime_keys if kernels.get(key, {"fallback"}) != {"fallback"}]


def _is_plain_fallback(entry: Entry) -> bool:
    from turnout.registry import REGISTRY

    return entry.kernel is not None and REGISTRY.fallbacks_by_key.get(entry.key) is entry.kernel


def _print_matrix(matrix: Matrix, keys: list[str]) -> None:
    shown = [e for row in matrix.values() for key, e in row.items() if key in keys]
    origins = sorted({e.kernel.origin for e in shown if e.kernel is not None})
    number = {origin: str(i + 1) for i, origin in enumerate(origins)}

    def cell(entry: Entry | None) -> Text:
        if entry is None:
            return coloured(".")
        text = LETTERS[entry.reason] + (number[entry.kernel.origin] if entry.kernel is not None else "")
        return coloured(text, entry.reason)

    rows = [(name, *(cell(row.get(key)) for key in keys)) for name, row in matrix.items()]
    totals = ("operators served", *(sum(1 for row in matrix.values() if key in row) for key in keys))
    print_matrix("operator", keys, [*rows, totals])
    seen = {LETTERS[e.reason]: e.reason for e in shown}
    legend = [coloured(f"{letter} {reason}", reason) for letter, reason in sorted(seen.items())]
    print_lines("", f"{len(matrix)} operators", Text(", ").join(legend))
    print_lines(*(f"{number[origin]} {origin}" for origin in origins))


def _page(matrix: Matrix, keys: list[str]) -> str:
    """The page: a template of this package with the matrix as data in it. Equal entries are stored once."""
    from turnout.registry import REGISTRY

    entries: list[dict[str, str]] = []
    number: dict[str, int] = {}

    def index(key: str, entry: Entry) -> int:
        found = entry_facts(key, entry)
        shown = {n: found[n] for n in ("reason", "registered_at", "kernel", "distribution", "source")}
        shown["kind"] = table.SERVED_BY[entry.reason]
        text = json.dumps(shown, sort_keys=True)
        if text not in number:
            number[text] = len(entries)
            entries.append(shown)
        return number[text]

    rows: list[dict[str, Any]] = [
        {
            "name": name,
            "schema": str(REGISTRY.operators[name].schema),
            "cells": [index(key, row[key]) if key in row else -1 for key in keys],
        }
        for name, row in matrix.items()
    ]
    data = json.dumps({"keys": keys, "entries": entries, "rows": rows, "kinds": KINDS}, separators=(",", ":")).replace(
        "<", "\\u003c"
    )
    template = files("turnout_cli").joinpath("coverage.html").read_text(encoding="utf-8")
    return template.replace("/*DATA*/", data)
