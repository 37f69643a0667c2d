"""`table` and `explain`: which kernel serves which key of an operator, and why."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from turnout_cli.activation import activate_with_note
from turnout_cli.main import facts
from turnout_cli.names import operator_names
from turnout_cli.output import coloured, print_json, print_lines, print_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.text import Text

    from turnout.operators import Operator
    from turnout.table import Entry


def entry_facts(key: str, entry: Entry) -> dict[str, str]:
    """One entry of an operator's table as data."""
    from turnout.explanation.explanation import source_of

    kernel = entry.kernel
    facts_of_entry = {"key": key, "reason": entry.reason, "registered_at": entry.key}
    if kernel is None:
        return {**facts_of_entry, "kernel": "", "distribution": "", "source": ""}
    source = "" if kernel.is_fallthrough else source_of(kernel)
    return {**facts_of_entry, "kernel": kernel.name, "distribution": kernel.origin, "source": source}


def operators_named(name: str) -> list[Operator]:
    """The operator, or all overloads of the name. Raises UnknownOperatorError."""
    from turnout.explanation.explanation import find
    from turnout.operators import Operator

    found = find(name)
    return [found] if isinstance(found, Operator) else list(found)


@click.command
@click.argument("operator", shell_complete=operator_names)
@click.option("--all", "everything", is_flag=True, help="List keys without a kernel and fallthroughs too.")
@facts
def table(operator: str, everything: bool, as_json: bool) -> None:
    """Print which kernel serves each key of OPERATOR.

    This is its computed table, the highest key first. OPERATOR is written like add, add.Tensor or mylib::scale.
    """
    activate_with_note()
    tables = {op: op.entries() for op in operators_named(operator)}
    if as_json:
        print_json({op.qualified_name: [entry_facts(k, e) for k, e in t.items()] for op, t in tables.items()})
    else:
        for i, (op, entries) in enumerate(tables.items()):
            print_lines(*([""] if i else []), str(op.schema), f"defined by {op.defined_by.origin if op.defined_by else 'nobody'}")
            print_table(("key", "kernel", "reason", "from", "source"), _rows(op, entries, everything))


def _rows(op: Operator, entries: dict[str, Entry], everything: bool) -> Iterator[tuple[str | Text, ...]]:
    """The rows of a table, highest key first, as a call looks at them."""
    for key in reversed(op.registry.keys.universe.runtime_keys):
        entry = entries.get(key)
        if entry is None:
            if everything:
                yield (key, "-", "missing", "", "")
        elif everything or entry.kernel is None or not entry.kernel.is_fallthrough:
            found = entry_facts(key, entry)
            at = f" at {entry.key}" if entry.key != key else ""
            reason = coloured(found["reason"] + at, found["reason"])
            yield (key, found["kernel"] or "-", reason, found["distribution"], _short(found["source"]))


def _short(source: str) -> str:
    """A path as it is imported, `turnout_cpu/kernels.py:57`: without the folder of sys.path that it is in."""
    folders = [folder + os.sep for folder in sys.path if folder and source.startswith(folder + os.sep)]
    return source[len(max(folders, key=len, default="")) :]


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("operator", shell_complete=operator_names)
@click.argument("arguments", nargs=-1)
@facts
def explain(operator: str, arguments: tuple[str, ...], as_json: bool) -> None:
    """Say which kernel OPERATOR would run with ARGUMENTS, and why.

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
        print_lines(*(coloured(line, "kernel" if line.startswith("-> ") else "") for line in str(found).splitlines()))
