"""Errors in native function files. All problems of a file are reported at once, each with its line."""

from __future__ import annotations

from turnout.config.tuples import NamedTuple
from turnout.errors import SchemaError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Problem(NamedTuple):
    """One problem: its place, the operator of the entry ("" if unknown), and a description."""

    source: str
    line: int
    entry: str
    text: str

    def __str__(self) -> str:
        entry = f"{self.entry}: " if self.entry else ""
        return f"{self.source}:{self.line}: {entry}{self.text}"


class DeclarationError(SchemaError):
    """A file of native functions was refused. `problems` lists all its problems in the order of lines."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(problems))
        if len(self.problems) == 1:
            text = str(self.problems[0])
        else:
            lines = "".join("\n  " + str(p).replace("\n", "\n    ") for p in self.problems)
            text = f"{len(self.problems)} problems{lines}"
        super().__init__(text)

    def __reduce__(self) -> tuple[type[DeclarationError], tuple[tuple[Problem, ...]]]:
        return (DeclarationError, (self.problems,))


def near(word: str, known: Iterable[str], *, otherwise: str = "") -> str:
    """`; did you mean 'x'?` for the nearest known word, else `otherwise`."""
    from difflib import get_close_matches

    found = get_close_matches(word, list(known), 1, 0.6)
    return f"; did you mean '{found[0]}'?" if found else otherwise


def unknown_field(word: str, known: Sequence[str]) -> str:
    """An entry has an unknown field."""
    listed = "; fields are " + ", ".join(known)
    return f"unknown field '{word}'{near(word, known, otherwise=listed)}"


def wrong_type(field: str, expected: str, got: object) -> str:
    """The value of a field has the wrong kind."""
    return f"{field} must be {expected}, got {_shown(got)}"


def not_one_of(field: str, word: str, known: Sequence[str]) -> str:
    """The value of a field is not one of its known words."""
    listed = "; known are " + ", ".join(known)
    return f"{field}: unknown '{word}'{near(word, known, otherwise=listed)}"


def _shown(value: object) -> str:
    if value is None:
        return "nothing"
    kind = {dict: "a mapping", list: "a list", bool: "a boolean", int: "a number", float: "a number", str: "a text"}
    return f"{kind.get(type(value), type(value).__name__)}: {value!r}"[:80]


def missing_yaml() -> str:
    """PyYAML, an optional dependency, is missing."""
    return "reading yaml needs PyYAML, which is not installed\n  to fix  pip install PyYAML"


def convention(schema: object, rule: str, fact: str, remedy: str) -> SchemaError:
    """A schema that is valid text but breaks a convention of declared operators."""
    return SchemaError(f"schema: {rule}\n  {schema}\n  found   {fact}\n  to fix  {remedy}")
