"""Element-wise functions as one table, `expressions.txt`, and how a language writes them.

The compiled kernels of turnout-kernels (C), turnout-cuda (CUDA C) and turnout-opencl (OpenCL C) are made of the same rows. This
file imports the standard library only, so that a build can load it without any distribution.

A row is `name = expression | error`. The expression is in a subset of C: arithmetic, comparisons, `&&`, `||`, `?:`, decimal
numbers, functions of C's mathematical library, and
    a, b, c   the inputs
    p, q, r   numbers that a call gives
    NAMES     constants: rows whose name is written in capitals, which are computed by `math`
    name(x)   helpers: rows with parameters. A helper may begin with `local = expression;`, any number of times.
A number with a point is of the computed type in every language. The error holds on every device, for float32 and float64. A row
without an error is a question: its result is a bool.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

_ROW = re.compile(r"(?P<name>\w+)(?:\((?P<parameters>[\w, ]+)\))? *= (?P<text>.*?)(?: +\| (?P<error>[\d.]+)(?P<unit> of .+)?)?")
_WORD = re.compile(r"\b[A-Za-z_]\w*\b|\d+\.\d+")
_LOCAL = re.compile(r"(\w+) = (.*)")


@dataclass(frozen=True)
class Expression:
    """A row.

    text        the expression, or the result of a helper
    parameters  of a helper
    locals      name and expression of what a helper computes first
    error       in units in the last place of `unit`: the result where it is "", else what the row names; None for a question
    """

    name: str
    text: str
    parameters: tuple[str, ...] = ()
    locals: tuple[tuple[str, str], ...] = ()
    error: float | None = None
    unit: str = ""

    def words(self) -> set[str]:
        """The names that it uses."""
        return {word for text in (self.text, *(value for _, value in self.locals)) for word in _WORD.findall(text)}

    @property
    def inputs(self) -> int:
        """How many inputs it has."""
        return max((i for i, name in enumerate("abc", 1) if name in self.words()), default=0)

    @property
    def is_question(self) -> bool:
        """Whether its result is a bool."""
        return self.error is None


@dataclass(frozen=True)
class Table:
    """The rows: constants by name, helpers and functions in the order of the file."""

    constants: Mapping[str, float]
    helpers: Mapping[str, Expression]
    functions: Mapping[str, Expression]


@cache
def table() -> Table:
    """The table.

    Raises:
        ValueError: a line is not a row
    """
    constants: dict[str, float] = {}
    helpers: dict[str, Expression] = {}
    functions: dict[str, Expression] = {}
    for line in Path(__file__).with_name("expressions.txt").read_text(encoding="utf-8").splitlines():
        stated = line.split("#")[0].strip()
        if not stated:
            continue
        found = _ROW.fullmatch(stated)
        if found is None:
            raise ValueError(f"expressions.txt: not a row: {line}")
        name, text = found["name"], found["text"]
        if name.isupper():
            constants[name] = float(eval(text, {"__builtins__": {}}, {"sqrt": math.sqrt, "pi": math.pi}))
            continue
        *steps, result = text.split("; ")
        before = tuple((step[1], step[2]) for step in map(_LOCAL.fullmatch, steps) if step)
        parameters = tuple(found["parameters"].split(", ")) if found["parameters"] else ()
        error, unit = float(found["error"]) if found["error"] else None, (found["unit"] or "").removeprefix(" of ")
        (helpers if parameters else functions)[name] = Expression(name, result, parameters, before, error, unit)
    return Table(constants, helpers, functions)


@dataclass(frozen=True)
class Language:
    """How a language writes a row.

    number     a format of numbers and constants, such as "(T){}"
    functions  name -> how it is called, for the functions and helpers that the language has itself
    helper     a format of the names of helpers; "" where they are written in place
    """

    number: str
    functions: Mapping[str, str] = field(default_factory=dict)
    helper: str = ""

    def has(self, row: Expression) -> bool:
        """Whether the language has all functions of a row."""
        return all(name in self.functions or name not in _LIBRARY for name in self._called(row))

    def _called(self, row: Expression) -> set[str]:
        names = row.words()
        for name in names & table().helpers.keys() - self.functions.keys() - {row.name}:
            names = names | self._called(table().helpers[name])
        return names

    def written(self, row: Expression, variables: Mapping[str, str]) -> str:
        """The expression of a row, with other words for the variables."""
        return self._text(row.text, variables)

    def define(self, row: Expression, head: Callable[[str, tuple[str, ...]], str], local: str) -> str:
        """A helper as a function of the language: `head` writes what stands before the body, `local` is the type of a local."""
        lines = [f"{local} {name} = {self._text(value, {})};" for name, value in row.locals]
        lines.append(f"return {self._text(row.text, {})};")
        return f"{head(self.helper.format(row.name), row.parameters)} {{ {' '.join(lines)} }}"

    def helpers(self) -> list[Expression]:
        """The helpers that the language does not have itself, and can write."""
        return [row for name, row in table().helpers.items() if name not in self.functions and self.has(row)]

    def _text(self, text: str, variables: Mapping[str, str]) -> str:
        known = table()
        made, at = [], 0
        for found in _WORD.finditer(text):
            if found.start() < at:
                continue
            word = found[0]
            made.append(text[at : found.start()])
            at = found.end()
            if word in variables:
                made.append(variables[word])
            elif word in known.constants or "." in word:
                made.append(self.number.format(repr(known.constants.get(word, None) or float(word))))
            elif word in self.functions:
                made.append(self.functions[word])
            elif word in known.helpers and text[at : at + 1] == "(" and not self.helper:
                end = _closing(text, at)
                given = [self._text(each, variables) for each in _split(text[at + 1 : end])]
                made.append(self._in_place(known.helpers[word], given))
                at = end + 1
            else:
                made.append(self.helper.format(word) if word in known.helpers and text[at : at + 1] == "(" else word)
        return "".join((*made, text[at:]))

    def _in_place(self, row: Expression, given: list[str]) -> str:
        words = {name: v if v.isidentifier() else f"({v})" for name, v in zip(row.parameters, given, strict=True)}
        for name, value in row.locals:
            words[name] = f"({self._text(value, words)})"
        return f"({self._text(row.text, words)})"


# Functions of C's mathematical library: a language says of each how it calls it, or has no row that needs it.
_LIBRARY = frozenset((
    "atan", "ceil", "cos", "cosh", "erf", "exp", "expm1", "fabs", "floor", "hypot", "log", "log10", "log1p", "log2", "rint",
    "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
))  # fmt: skip


def library() -> dict[str, str]:
    """The functions of C's mathematical library by their own names."""
    return {name: name for name in _LIBRARY}


def _closing(text: str, opening: int) -> int:
    depth = 0
    for at in range(opening, len(text)):
        depth += (text[at] == "(") - (text[at] == ")")
        if not depth:
            return at
    raise ValueError(f"expressions.txt: a parenthesis is not closed: {text}")


def _split(text: str) -> list[str]:
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]
