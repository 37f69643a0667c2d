"""The part of the derivatives' generated modules that an operator is in."""

from __future__ import annotations

PREFIXES = ("fft", "linalg", "special")
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def part_name(name: str) -> str:
    """The part of an operator by its name: "a" for `add_`, "linalg" for `linalg_det`; "" for a name that no operator has."""
    plain = name.lstrip("_")
    head, underscore, _ = plain.partition("_")
    if underscore and head in PREFIXES:
        return head
    first = plain[:1].lower()
    return first if first and first in LETTERS else ""
