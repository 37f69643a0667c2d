"""`table`, `explain` and `coverage`: which kernel serves which key of which operator, and why."""

from __future__ import annotations

import os
import sys
from fnmatch import fnmatch
from typing import TYPE_CHECKING

import click

from turnout_cli.activation import activate_with_note
from turnout_cli.main import facts
from turnout_cli.output import print_json, print_lines, print_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from turnout.operators import Operator
    from turnout.table import Entry

# Reasons of the computed table -> a letter for the matrix of `coverage`.
LETTERS = {
    "kernel": "K",
    "default backend kernel": "D",
    "nested kernel": "N",
    "math kernel": "M",
    "autograd kernel": "A",
    "batched kernel": "B",
    "backend fallback": "F",
    "ambiguous autogradother": "?",
}


def entry_facts(key: str, entry: Entry) -> dict[str, str]:
    """One entry of an operator's table as data."""
    from turnout.explanation import source_of

    kernel = entry.kernel
    facts_of_entry = {"key": key, "reason": entry.reason, "registered_at": entry.key}
    if kernel is None:
        return {**facts_of_entry, "kernel": "", "distribution": "", "source": ""}
    source = "" if kernel.is_fallthrough else source_of(kernel)
    return {**facts_of_entry, "kernel": kernel.name, "distribution": kernel.origin, "source": source}


def operators_named(name: str) -> list[Operator]:
    """The operator, or all overloads of the name. Raises UnknownOperatorError."""
    from turnout.explanation import find
    from turnout.operators import Operator

    found = find(name)
    return [found] if isinstance(found, Operator) else list(found)


@click.command
@click.argument("operator")
@click.option("--all", "everything", is_flag=True, help="List keys without a kernel and fallthroughs, too.")
@facts
def table(operator: str, everything: bool, as_json: bool) -> None:
    """Print the computed table of OPERATOR, such as add, add.Tensor or mylib::scale: which kernel serves each key."""
    activate_with_note()
    tables = {op: op.table() for op in operators_named(operator)}
    if as_json:
        print_json({op.qualified_name: [entry_facts(k, e) for k, e in t.items()] for op, t in tables.items()})
        return
    for i, (op, entries) in enumerate(tables.items()):
        print_lines(
            *([""] if i else []), str(op.schema), f"defined by {op.defined_by.origin if op.defined_by else 'nobody'}"
        )
        print_table(("key", "kernel", "reason", "from", "source"), list(_rows(op, entries, everything)))


def _rows(op: Operator, entries: dict[str, Entry], everything: bool) -> Iterator[tuple[str, ...]]:
    """The rows of a table, highest key first, as a call looks at them."""
    for key in reversed(op.registry.keys.universe.runtime_keys):
        entry = entries.get(key)
        if entry is None:
            if everything:
                yield (key, "-", "missing", "", "")
        elif everything or entry.kernel is None or not entry.kernel.is_fallthrough:
            found = entry_facts(key, entry)
            at = f" at {entry.key}" if entry.key != key else ""
            yield (key, found["kernel"] or "-", found["reason"] + at, found["distribution"], _short(found["source"]))


def _short(source: str) -> str:
    """A path as it is imported, `turnout_cpu/kernels.py:57`: without the folder of sys.path that it is in."""
    folders = [folder + os.sep for folder in sys.path if folder and source.startswith(folder + os.sep)]
    return source[len(max(folders, key=len, default="")) :]


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("operator")
@click.argument("arguments", nargs=-1)
@facts
def explain(operator: str, arguments: tuple[str, ...], as_json: bool) -> None:
    """Say why OPERATOR with ARGUMENTS would run the kernel it would run.

    Arguments are written like float32[2,3], float32[2,3]:grad@cpu, ones(2,3), 3, 2.5, [1,2], true, none, 'text',
    alpha=2.
    """
    import turnout
    from turnout_cli.arguments import read

    positional, keywords = read(arguments)
    found = turnout.explain(operator, *positional, **keywords)
    if as_json:
        print_json(found.to_dict())
    else:
        print_lines(str(found))


@click.command
@click.argument("pattern", default="*")
@click.option("--key", "wanted", multiple=True, help="Show this key only; may be repeated.")
@click.option("--missing", is_flag=True, help="Only operators that lack a kernel for one of the keys shown.")
@facts
def coverage(pattern: str, wanted: tuple[str, ...], missing: bool, as_json: bool) -> None:
    """Print operators by keys, those whose names match PATTERN (such as '*_backward'): what serves each, from where."""
    from turnout.registry import REGISTRY

    activate_with_note()
    names = [n for n, op in sorted(REGISTRY.operators.items()) if op.is_defined and _matches(n, pattern)]
    matrix = {name: _served(REGISTRY.operators[name]) for name in names}
    keys = [REGISTRY.keys.canonical(key) for key in wanted] or _used(matrix)
    if missing:
        matrix = {name: row for name, row in matrix.items() if any(key not in row for key in keys)}
    if as_json:
        rows = {n: {k: entry_facts(k, e) for k, e in row.items() if k in keys} for n, row in matrix.items()}
        print_json({"keys": keys, "operators": rows})
        return
    _print_matrix(matrix, keys)


def _matches(name: str, pattern: str) -> bool:
    return fnmatch(name, pattern) or fnmatch(name.partition("::")[2], pattern)


def _served(op: Operator) -> dict[str, Entry]:
    """The entries that run something: fallthroughs and keys that nothing serves are left out."""
    return {
        k: e for k, e in op.table().items() if k != "Undefined" and (e.kernel is None or not e.kernel.is_fallthrough)
    }


def _used(matrix: dict[str, dict[str, Entry]]) -> list[str]:
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


def _print_matrix(matrix: dict[str, dict[str, Entry]], keys: list[str]) -> None:
    origins = sorted({e.kernel.origin for row in matrix.values() for e in row.values() if e.kernel is not None})
    number = {origin: str(i + 1) for i, origin in enumerate(origins)}

    def cell(entry: Entry | None) -> str:
        if entry is None:
            return "."
        return LETTERS[entry.reason] + (number[entry.kernel.origin] if entry.kernel is not None else "")

    rows = [(name, *(cell(row.get(key)) for key in keys)) for name, row in matrix.items()]
    totals = ("operators served", *(sum(1 for row in matrix.values() if key in row) for key in keys))
    print_table(("operator", *keys), [*rows, totals], styles={".": "dim"})
    seen = {LETTERS[e.reason]: e.reason for row in matrix.values() for k, e in row.items() if k in keys}
    print_lines(
        "", f"{len(matrix)} operators", ", ".join(f"{letter} {reason}" for letter, reason in sorted(seen.items()))
    )
    print_lines(*(f"{number[origin]} {origin}" for origin in origins))
