"""The texts of errors about sizes that depend on data."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from turnout.errors.layout import report


def undecided(question: str, rows: Iterable[tuple[str, str]]) -> str:
    """A comparison that both can be true and false."""
    return report(
        f"{question} cannot be decided without data",
        *rows,
        ("to fix", f"if it always holds, say so: turnout.check(...) of {question}, in terms of the program's sizes"),
    )


def no_number(text: str, rows: Iterable[tuple[str, str]]) -> str:
    """A place that takes only a number."""
    return report(
        f"{text} has no known value, and a number is needed here",
        *rows,
        ("to fix", f"if it is always the same, say so: turnout.check({text} == number); or keep it as a size"),
    )


def described(low: float, high: float, origin: str) -> str:
    """The bounds and the origin of a symbol."""
    if low == -inf:
        bounds = "any integer" if high == inf else f"at most {high:.0f}"
    else:
        bounds = f"{low:.0f} or more" if high == inf else f"{low:.0f} to {high:.0f}"
    return f"{bounds}, from {origin}"


def contradiction(name: str, origin: str) -> str:
    """A fact that no value fulfils."""
    return report(f"check: no value of {name} fulfils this and what is known already", (name, f"from {origin}"))


def failed(question: str) -> str:
    """A check that does not hold."""
    return f"check: {question} does not hold"
