"""The lines of the keys in a TOML text: dotted path -> line number.

tomllib gives values without positions, and an error about a setting needs its line. This is a scanner, not a parser: tomllib
has accepted the text before, so it only finds where values end (quotes and brackets). A key inside an inline table gets the
line of that table.
"""

from __future__ import annotations

import re

_KEY = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')"""
_DOTTED = rf"{_KEY}(?:\s*\.\s*{_KEY})*"
_HEADER = re.compile(rf"\s*(\[\[?)\s*({_DOTTED})\s*\]")
_ASSIGNMENT = re.compile(rf"\s*({_DOTTED})\s*=")
_PART = re.compile(_KEY)
# One token at a time inside a value: comments, the four kinds of string, brackets.
_TOKEN = re.compile(
    r"""#[^\n]*|\"\"\"(?:[^\\]|\\.)*?\"\"\"|'''.*?'''|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[\[\]{}]|\n|[^#"'\[\]{}\n]+""", re.DOTALL
)


class Lines:
    """The lines of the keys of one TOML text."""

    def __init__(self, text: str) -> None:
        self._lines = _scan(text)

    def of(self, path: tuple[str, ...]) -> int:
        """The line of a key, or of the nearest table around it; 1 when neither is known.

        Elements of an array of tables are numbered: ("backend", "0", "device").
        """
        return next((self._lines[path[:n]] for n in range(len(path), 0, -1) if path[:n] in self._lines), 1)


def _scan(text: str) -> dict[tuple[str, ...], int]:
    found: dict[tuple[str, ...], int] = {}
    counts: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    position = 0
    while position < len(text):
        line = text.count("\n", 0, position) + 1
        end = text.find("\n", position)
        end = len(text) if end < 0 else end
        if header := _HEADER.match(text, position, end):
            table = _numbered(_parts(header[2]), counts)
            if header[1] == "[[":
                counts[table] = counts.get(table, -1) + 1
                found.setdefault(table, line)
                table = (*table, str(counts[table]))
            found.setdefault(table, line)
        elif assignment := _ASSIGNMENT.match(text, position, end):
            path = (*table, *_parts(assignment[1]))
            for length in range(len(table) + 1, len(path) + 1):
                found.setdefault(path[:length], line)
            end = _end_of_value(text, assignment.end())
        position = end + 1
    return found


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip("\"'") for part in _PART.findall(dotted))


def _numbered(path: tuple[str, ...], counts: dict[tuple[str, ...], int]) -> tuple[str, ...]:
    """The path of a header. Below an array of tables it belongs to the last element."""
    result: tuple[str, ...] = ()
    for i, part in enumerate(path):
        result = (*result, part)
        if result in counts and i < len(path) - 1:
            result = (*result, str(counts[result]))
    return result


def _end_of_value(text: str, position: int) -> int:
    """The position of the newline that ends the value which starts at `position`."""
    depth = 0
    for token in _TOKEN.finditer(text, position):
        word = token[0]
        if word == "\n" and depth == 0:
            return token.start()
        depth += (word in ("[", "{")) - (word in ("]", "}"))
    return len(text)
