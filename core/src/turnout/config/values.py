"""The types of settings and of plugins' options, and the strict check of a value against one.

A type is a word: "bool", "int", "float", "str", "strings" (a list of strings). Only an int for a float is converted. The text of
an environment variable is read by the same words.
"""

from __future__ import annotations

from typing import Any

EXPECTED = {
    "bool": "true or false",
    "int": "an integer",
    "float": "a number",
    "str": "a string",
    "strings": "a list of strings",
}


class UnexpectedValueError(ValueError):
    """A value that does not fit. The text says what was expected and what was found."""


def check(type_name: str, value: Any, choices: tuple[Any, ...] = ()) -> Any:
    """The value as it is kept: lists become tuples.

    Raises UnexpectedValueError ("expected true or false, got 'yes'").
    """
    checked = _typed(type_name, value)
    if checked is None:
        raise UnexpectedValueError(f"expected {EXPECTED[type_name]}, got {show(value)}")
    for element in checked if type_name == "strings" else (checked,):
        if choices and element not in choices:
            raise UnexpectedValueError(f"expected one of {', '.join(map(show, choices))}, got {show(element)}")
    return checked


def _typed(type_name: str, value: Any) -> Any:
    """The value if it is of the type, else None."""
    if type_name == "bool":
        return value if isinstance(value, bool) else None
    if type_name == "str":
        return value if isinstance(value, str) else None
    if type_name == "strings":
        if isinstance(value, list | tuple) and all(isinstance(element, str) for element in value):
            return tuple(value)
        return None
    if isinstance(value, bool) or not isinstance(value, int if type_name == "int" else int | float):
        return None
    return value if type_name == "int" else float(value)


def from_text(type_name: str, text: str) -> Any:
    """The value of an environment variable's text. Raises UnexpectedValueError.

    A boolean is `true`, `false`, `1` or `0`. The elements of a list are separated by commas; an empty text is an empty list.
    """
    if type_name == "bool":
        if text in ("true", "1", "false", "0"):
            return text in ("true", "1")
        raise UnexpectedValueError(f"expected true, false, 1 or 0, got {show(text)}")
    if type_name == "strings":
        return tuple(part.strip() for part in text.split(",") if part.strip())
    if type_name in ("int", "float"):
        try:
            return int(text) if type_name == "int" else float(text)
        except ValueError:
            raise UnexpectedValueError(f"expected {EXPECTED[type_name]}, got {show(text)}") from None
    return text


def show(value: Any) -> str:
    """A value as it is written in a file."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(show(element) for element in value) + "]"
    if isinstance(value, str):
        return repr(value)
    if isinstance(value, dict):
        return "a table"
    return str(value)
