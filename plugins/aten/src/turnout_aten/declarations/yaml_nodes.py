"""Yaml as plain values that remember their lines, so that the loader can report the line of each problem.

Only this module imports PyYAML, which is an optional dependency; without it, an error names the extra to install.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from turnout_aten.errors.declarations import DeclarationError, Problem, missing_yaml


@dataclass(frozen=True, slots=True)
class Node:
    """A value and the line where it starts. A mapping is a dict from text to Node, a list is a list of Nodes."""

    value: Any
    line: int

    def plain(self) -> Any:
        """The value without lines."""
        if isinstance(self.value, dict):
            return {key: node.plain() for key, node in self.value.items()}
        if isinstance(self.value, list):
            return [node.plain() for node in self.value]
        return self.value


def read(text: str, source: str) -> Node | None:
    """The document in `text`; None if it is empty.

    Raises ImportError if PyYAML is missing, DeclarationError for invalid yaml or a repeated key.
    """
    try:
        import yaml
    except ImportError as error:
        raise ImportError(missing_yaml()) from error
    try:
        root = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else 1
        raise DeclarationError([Problem(source, line, "", f"not yaml: {error.problem or error.context}")]) from None
    except yaml.YAMLError as error:
        raise DeclarationError([Problem(source, 1, "", f"not yaml: {str(error).splitlines()[0]}")]) from None
    if root is None:
        return None
    problems: list[Problem] = []
    node = _convert(root, yaml.SafeLoader(""), source, problems)
    if problems:
        raise DeclarationError(problems)
    return node


def _convert(node: Any, loader: Any, source: str, problems: list[Problem]) -> Node:
    line = node.start_mark.line + 1
    if node.id == "mapping":
        entries: dict[str, Node] = {}
        for key, value in node.value:
            name = str(key.value)
            if name in entries:
                at = key.start_mark.line + 1
                problems.append(Problem(source, at, "", f"'{name}' is given twice, first in line {entries[name].line}"))
            made = _convert(value, loader, source, problems)
            # If a value starts on a line below its key, report the line of the key.
            entries[name] = Node(made.value, key.start_mark.line + 1)
        return Node(entries, line)
    if node.id == "sequence":
        return Node([_convert(value, loader, source, problems) for value in node.value], line)
    return Node(loader.construct_object(node), line)
