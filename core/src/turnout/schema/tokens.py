"""The tokens of schema texts, with their columns.

White space between tokens is free. A token is a plain tuple `(kind, text, column)`, because tokens take most of the time of
reading a schema.
"""

from __future__ import annotations

import re

from turnout.errors.schemas import SchemaSyntaxError

Token = tuple[str, str, int]

NAME = "name"
NUMBER = "number"
STRING = "string"
END = "end"

# One alternative for each kind; a mark is its own kind. The kind BAD is any other character, which the error shows.
BAD = "bad"
_TOKEN = re.compile(
    r"""\s*(?:
    (?P<name>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?j?(?![A-Za-z0-9_.]))
  | (?P<mark>->|::|[()\[\]*,=?!|.-])
  | (?P<string>'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")
  | (?P<bad>\S)
    )""",
    re.VERBOSE,
)


def tokenize(text: str) -> list[Token]:
    """All tokens of `text`, and one of kind END. Raises SchemaSyntaxError for a character that starts no token."""
    tokens: list[Token] = []
    append = tokens.append
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        assert kind is not None
        found = match[kind]
        if kind == "mark":
            append((found, found, match.end() - len(found)))
        elif kind == BAD:
            raise _bad(text, match.end() - 1)
        else:
            append((kind, found, match.end() - len(found)))
    append((END, "", len(text)))
    return tokens


def described(token: Token) -> str:
    """A token as errors show it."""
    kind, text, _ = token
    if kind == END:
        return "the end"
    return text if kind == STRING else f"'{text}'"


def _bad(text: str, column: int) -> SchemaSyntaxError:
    character = text[column]
    if character in "'\"":
        return SchemaSyntaxError(text, column, "a closed string", f"a string without its closing {character}")
    if character.isdigit():
        word = re.match(r"[\w.]*", text[column:])
        assert word is not None
        return SchemaSyntaxError(text, column, "a decimal number", f"'{word[0]}'")
    return SchemaSyntaxError(text, column, "a name, a number, a string or one of ( ) [ ] * , = ? ! | . - -> ::", f"{character!r}")
