"""From yaml to checked declarations: `load(path)` or `parse(text)`.

There are three steps, and each collects all problems: `yaml_nodes` reads yaml with lines, `entries` makes one `NativeFunction`
per entry, and `checks` compares entries.
"""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike, fspath
from pathlib import Path

from turnout_aten.declarations.checks import checked
from turnout_aten.declarations.entries import read_entries
from turnout_aten.declarations.model import TAGS, NativeFunctions
from turnout_aten.declarations.yaml_nodes import read
from turnout_aten.errors.declarations import DeclarationError, Problem


def load(path: str | PathLike[str], *, namespace: str = "aten", tags: Iterable[str] = ()) -> NativeFunctions:
    """The native functions of a yaml file; see `parse`."""
    return parse(Path(path).read_text(encoding="utf-8"), source=fspath(path), namespace=namespace, tags=tags)


def parse(text: str, *, source: str = "<text>", namespace: str = "aten", tags: Iterable[str] = ()) -> NativeFunctions:
    """The native functions that a yaml text declares.

    `namespace` is the default for entries without one; `tags` are allowed in addition to the standard ones. Raises
    DeclarationError with all problems of the text, ImportError if PyYAML is missing.
    """
    problems: list[Problem] = []
    root = read(text, source)
    functions = read_entries(root, source, namespace, TAGS.union(tags), problems)
    found = checked(functions, source, problems)
    if problems:
        raise DeclarationError(problems)
    return found
