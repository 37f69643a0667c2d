"""Docstrings as reStructuredText.

A docstring has paragraphs, lists, tables of Markdown, names in backticks, columns (`name   what it is`), examples that begin with
`>>>`, and the sections Arguments, Raises and Example. Anything that is none of these and indented is code.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass

from generated_pages.differences import MARK
from turnout import errors

COLUMNS = re.compile(r"(\S+(?:,? \S+)*?)  +(\S.*)")
SECTION = re.compile(r"(Arguments|Raises|Examples?|Operators?):(?: (.*))?$")
ENTRY = re.compile(r"(\*{0,2}\w+)(?: \(([^:]*)\))?: (.*)")


@dataclass(frozen=True)
class Description:
    """A docstring without its signatures: the whole as reStructuredText, and its first sentence."""

    text: str
    summary: str


def described(docstring: str | None) -> Description:
    """What a docstring says, for any object."""
    # What differs from the standard of arrays is said in sentences; only what differs from PyTorch stands by itself.
    text = inspect.cleandoc(docstring or "").replace("# differs from the standard: ", "Differs from the standard: ")
    paragraphs = _paragraphs(text)
    if not paragraphs:
        return Description("", "")
    summary = prose(" ".join(paragraphs[0])).partition(". ")[0].removesuffix(".") + "."
    return Description("\n\n".join(_converted(paragraphs)), summary)


def signatures(docstring: str) -> tuple[list[str], str]:
    """The signatures at the head of the docstring of an operator's function or method, in Python's notation, and the rest."""
    head, _, rest = docstring.strip().partition("\n\n")
    return [in_python(line) for line in head.splitlines()], rest


def in_python(signature: str) -> str:
    """A signature of a docstring, whose types are in words, with types in Python's notation."""
    signature = re.sub(r"\blist of (?:\d+ )?(\w+)", r"list[\1]", signature).replace(" or ", " | ")
    signature = signature.replace("tuple of Tensor", "tuple[Tensor, ...]")
    signature = re.sub(r"-> \((.*)\)$", r"-> tuple[\1]", signature)
    ast.parse(f"def {signature}: ...")
    return signature


def prose(text: str) -> str:
    """Text for people: what stands in backticks becomes code, and nothing else is markup."""
    parts = re.split(r"(`+)(.+?)\1", text)
    made = []
    for i in range(0, len(parts), 3):
        made.append(re.sub(r"([\\*`|_])", r"\\\1", parts[i]))
        if i + 2 < len(parts):
            # Code ends where a word could go on, which markup may not.
            after = parts[i + 3][:1]
            made.append(f"``{parts[i + 2]}``" + ("\\ " if after.isalnum() or after == "`" else ""))
    return "".join(made)


def _paragraphs(text: str) -> list[list[str]]:
    """The lines of each paragraph. A section is one, however many paragraphs its example has."""
    found: list[list[str]] = []
    for part in re.split(r"\n\s*\n", text):
        lines = part.splitlines()
        goes_on = found and SECTION.match(found[-1][0]) and lines and lines[0].startswith("    ")
        if goes_on:
            found[-1] += ["", *lines]
        elif lines:
            found.append(lines)
    return found


def _converted(paragraphs: list[list[str]]) -> Iterator[str]:
    for lines in paragraphs:
        section = SECTION.match(lines[0])
        if section is not None:
            yield from _section(section[1], section[2] or "", _dedented(lines[1:]))
            continue
        # A sentence may stand directly above columns or code, and a mark inside a paragraph.
        start = 0
        for i in range(1, len(lines) + 1):
            if i == len(lines) or _begins_block(lines[i], lines[start:i]):
                yield from _block(lines[start:i])
                start = i


def _begins_block(line: str, before: list[str]) -> bool:
    """Whether something else begins in this line of a paragraph than in the lines before it."""
    if line.lstrip().startswith(MARK):
        return True
    if COLUMNS.fullmatch(before[0]) or before[0].startswith(("- ", "1. ")):  # indented lines go on with them
        return False
    return _kind(line) != _kind(before[-1]) and not before[0].lstrip().startswith(MARK)


def _kind(line: str) -> str:
    if line.startswith(" "):
        return "indented"
    if line.startswith("|"):
        return "table"
    return "example" if line.startswith(">>>") else "text"


def _block(lines: list[str]) -> Iterator[str]:
    kind = _kind(lines[0])
    if kind == "table":
        yield from _definitions([[cell.strip() for cell in line.strip("|").split("|", 1)] for line in lines[2:]])
    elif kind == "example":
        yield _code(lines, "pycon")
    elif lines[0].startswith(("- ", "1. ")):
        yield _items(lines)
    elif lines[0].strip().startswith(MARK):
        yield _difference(" ".join(line.strip() for line in lines).removeprefix(MARK))
    elif COLUMNS.fullmatch(lines[0].strip()):
        yield from _columns(_dedented(lines))
    elif kind == "indented":
        yield _code(_dedented(lines), "python")
    else:
        words, _, difference = " ".join(line.strip() for line in lines).partition(MARK)
        yield prose(words.strip())
        if difference:
            yield _difference(difference)


def _difference(text: str) -> str:
    return ".. note::\n\n    Differs from PyTorch: " + prose(text)


def _section(title: str, beside: str, lines: list[str]) -> Iterator[str]:
    if title.startswith("Example"):
        yield _code(lines, "pycon")
    elif title.startswith("Operator"):
        yield f"*{title}:* " + ", ".join(f"``{name}``" for name in " ".join([beside, *lines]).replace(",", " ").split())
    else:
        yield "\n".join(_fields(title, _joined(lines)))


def _fields(title: str, entries: list[str]) -> Iterator[str]:
    for entry in entries:
        match = ENTRY.fullmatch(entry)
        if match is None:
            raise ValueError(f"{title}: expected 'name: what it is' or 'name (type): what it is', got {entry!r}")
        name, kind, text = match.groups()
        if title == "Raises":
            home = "~turnout.errors." if hasattr(errors, name) else ""
            yield f":raises {home}{name}: {prose(text)}"
            continue
        name = name.replace("*", r"\*")
        yield f":param {name}: {prose(text)}"
        if kind:
            yield f":type {name}: {kind}"


def _joined(lines: list[str]) -> list[str]:
    """Entries of which each begins at the margin."""
    entries: list[str] = []
    for line in lines:
        if line.startswith(" ") and entries:
            entries[-1] += " " + line.strip()
        elif line:
            entries.append(line)
    return entries


def _columns(lines: list[str]) -> Iterator[str]:
    rows: list[list[str]] = []
    for line in lines:
        match = COLUMNS.fullmatch(line) if not line.startswith(" ") else None
        if match is not None:
            rows.append([f"`{match[1]}`" if "`" not in match[1] else match[1], match[2]])
        elif rows:
            rows[-1][1] += " " + line.strip()
    yield from _definitions(rows)


def _definitions(rows: list[list[str]]) -> Iterator[str]:
    for name, text in rows:
        yield f"{prose(name)}\n    {prose(text)}"


def _items(lines: list[str]) -> str:
    items = _joined(lines)
    return "\n".join(f"{item.partition(' ')[0]} {prose(item.partition(' ')[2])}" for item in items)


def _code(lines: list[str], language: str) -> str:
    return "\n".join([f".. code-block:: {language}", "", *(f"    {line}" if line else "" for line in lines)])


def _dedented(lines: list[str]) -> list[str]:
    return inspect.cleandoc("\n" + "\n".join(lines)).splitlines()
