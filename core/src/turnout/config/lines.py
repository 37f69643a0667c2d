"""Reads TOML texts, and finds the lines of their keys: dotted path -> line number.

tomllib gives values without positions, and an error about a setting needs its line. `Lines` is a scanner, not a parser: tomllib
has accepted the text before, so it only finds where values end (quotes and brackets). A key inside an inline table gets the
line of that table.
"""

from __future__ import annotations

import re
import tomllib
from functools import cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DEPTH = 32  # levels of tables and lists
_BRACKETS = {"[": 1, "{": 1, "]": -1, "}": -1}
_KEY = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')"""
_DOTTED = rf"{_KEY}(?:\s*\.\s*{_KEY})*"
# Only a text with something wrong needs these, so they are not compiled before.
_HEADER = rf"\s*(\[\[?)\s*({_DOTTED})\s*\]"
_ASSIGNMENT = rf"\s*({_DOTTED})\s*="
# One token at a time inside a value: comments, the four kinds of string, brackets.
_TOKEN = r"""(?s)#[^\n]*|\"\"\"(?:[^\\]|\\.)*?\"\"\"|'''.*?'''|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[\[\]{}]|\n|[^#"'\[\]{}\n]+"""


class Lines:
    """The lines of the keys of one TOML text."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _lines(self) -> dict[tuple[str, ...], int]:  # at the first question: a manifest without errors is never asked about
        return _scan(self._text)

    def of(self, path: tuple[str, ...]) -> int:
        """The line of a key, or of the nearest table around it; 1 when neither is known.

        Elements of an array of tables are numbered: ("backend", "0", "device").
        """
        return next((self._lines[path[:n]] for n in range(len(path), 0, -1) if path[:n] in self._lines), 1)


def loads(text: str) -> dict[str, Any]:
    """The document of a TOML text. Raises ValueError for one that is not TOML, or nests deeper than `DEPTH`.

    tomllib recurses for brackets and takes quadratic time for the parts of a dotted key, so both are counted before.
    """
    if sum(map(text.count, "[{.")) < DEPTH:  # each level has one of them
        return tomllib.loads(text)
    line = _too_deep(text)
    document = {} if line else tomllib.loads(text)
    level: list[Any] = [document]
    for _ in range(DEPTH + 1):  # headers, dotted keys and brackets together
        inner = (value for each in level for value in (each.values() if isinstance(each, dict) else each))
        level = [value for value in inner if isinstance(value, (dict, list))]
        if not level:
            break
    if line or level:
        raise ValueError(f"tables and lists nest more than {DEPTH} deep" + (f" (at line {line})" if line else ""))
    return document


def _too_deep(text: str) -> int:
    """The first line at which brackets alone, or the parts of one key, nest too deep; 0 without one."""
    brackets = re.sub(r"[^][{}]+", "", text)
    for _ in range(DEPTH):  # pairs vanish from the inside: what is left is too deep, or stands in strings
        if not brackets:
            break
        brackets = brackets.replace("[]", "").replace("{}", "")
    if not brackets and all(line.count(".") < DEPTH for line in text.split("\n")):
        return 0
    depth, dots, line = 0, 0, 1
    for token in re.finditer(_TOKEN, text):
        word = token[0]
        if word in _BRACKETS:
            depth, dots = max(0, depth + _BRACKETS[word]), 0
        elif word[0] not in "#\"'":
            first, *others = re.split(r"[\n,=]", word)
            counts = [dots + first.count("."), *(part.count(".") for part in others)]
            dots = counts[-1]
            if max(counts) >= DEPTH:
                return line
        if depth > DEPTH:
            return line
        line += word.count("\n")
    return 0


def _scan(text: str) -> dict[tuple[str, ...], int]:
    found: dict[tuple[str, ...], int] = {}
    counts: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    position, line, counted = 0, 1, 0
    is_header, is_assignment = re.compile(_HEADER).match, re.compile(_ASSIGNMENT).match
    while position < len(text):
        line, counted = line + text.count("\n", counted, position), position
        end = text.find("\n", position)
        end = len(text) if end < 0 else end
        if header := is_header(text, position, end):
            table = _numbered(_parts(header[2]), counts)
            if header[1] == "[[":
                counts[table] = counts.get(table, -1) + 1
                found.setdefault(table, line)
                table = (*table, str(counts[table]))
            found.setdefault(table, line)
        elif assignment := is_assignment(text, position, end):
            path = (*table, *_parts(assignment[1]))
            for length in range(len(table) + 1, len(path) + 1):
                found.setdefault(path[:length], line)
            end = _end_of_value(text, assignment.end())
        position = end + 1
    return found


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip("\"'") for part in re.findall(_KEY, dotted))


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
    for token in re.compile(_TOKEN).finditer(text, position):
        word = token[0]
        if word == "\n" and depth == 0:
            return token.start()
        depth += _BRACKETS.get(word, 0)
    return len(text)
