"""The types of settings and of plugins' options, and the strict check of a value against one.

A type is a word: "bool", "int", "float", "str", "strings" (a list of strings). Only an int for a float is converted. The text
of an environment variable is read by the same words.
"""

from __future__ import annotations

from typing import Any

from turnout.errors import printed

EXPECTED = {"bool": "true or false", "int": "an integer", "float": "a number", "str": "a string", "strings": "a list of strings"}
NUMBERS = ("int", "float")  # the types that have bounds
_CLASSES: dict[str, Any] = {"bool": bool, "int": int, "float": float, "str": str}
_BOOLS = {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}


class UnexpectedValueError(ValueError):
    """A value that does not fit. The text says what was expected and what was found."""


def check(type_name: str, value: Any, choices: tuple[Any, ...] = (), least: Any = None, most: Any = None) -> Any:
    """The value as it is kept: lists become tuples. A number is at least `least` and at most `most`, where they are not None.

    Raises UnexpectedValueError ("expected true or false, got 'yes'").
    """
    checked = _typed(type_name, value)
    if checked is None:
        raise UnexpectedValueError(f"expected {EXPECTED[type_name]}, got {show(value)}")
    for element in checked if type_name == "strings" else (checked,):
        if choices and element not in choices:
            raise UnexpectedValueError(f"expected one of {', '.join(map(show, choices))}, got {show(element)}")
    if (least is not None and not checked >= least) or (most is not None and not checked <= most):  # and so for NaN
        raise UnexpectedValueError(f"expected {EXPECTED[type_name]} {_between(least, most)}, got {show(value)}")
    return checked


def _between(least: Any, most: Any) -> str:
    if least is not None and most is not None:
        return f"from {show(least)} to {show(most)}"
    return f"of at least {show(least)}" if most is None else f"of at most {show(most)}"


def _typed(type_name: str, value: Any) -> Any:
    """The value if it is of the type, else None."""
    if type_name == "strings":
        fits = isinstance(value, list | tuple) and all(isinstance(element, str) for element in value)
        return tuple(value) if fits else None
    wanted = int | float if type_name == "float" else _CLASSES[type_name]
    if not isinstance(value, wanted) or isinstance(value, bool) != (type_name == "bool"):
        return None
    try:
        return float(value) if type_name == "float" else value
    except OverflowError:
        return None


def from_text(type_name: str, text: str) -> Any:
    """The value of an environment variable's text. Raises UnexpectedValueError.

    A boolean is `true`, `on`, `1`, `false`, `off` or `0`. Commas separate the elements of a list; an empty text is an empty list.
    """
    if type_name == "strings":
        return tuple(part.strip() for part in text.split(",") if part.strip())
    try:
        return _BOOLS[text] if type_name == "bool" else _CLASSES[type_name](text)
    except (KeyError, ValueError):
        expected = "true, false, on, off, 1 or 0" if type_name == "bool" else EXPECTED[type_name]
        raise UnexpectedValueError(f"expected {expected}, got {show(text)}") from None


def show(value: Any) -> str:
    """A value as it is written in a file."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return "[" + ", ".join("[...]" if isinstance(e, list | tuple) else show(e) for e in value) + "]"
    if isinstance(value, str):
        return repr(value)
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, int) and value.bit_length() > 64:
        return f"an integer of {value.bit_length()} bits"
    return printed(value, str)
