"""Tables of refused calls: the source of a call, and below it the class of its error and everything that the error says.

    turnout.softmax(ones(2), 3)
        DimError: softmax: dim 3 is out of range

A line that stands further to the right goes on with the one before it.
"""

from __future__ import annotations

from typing import Any

import pytest


def rows(table: str) -> list[tuple[str, str]]:
    """The call of each row, and class and text of its error."""
    found: list[list[str]] = []
    for line in table.strip("\n").split("\n"):
        if not line.startswith("    "):
            found.append([line])
        elif line.startswith("        "):
            found[-1][-1] += " " + line.strip()
        elif len(found[-1]) == 1:
            found[-1].append(line[4:])
        else:
            found[-1][-1] += "\n" + line[4:]
    return [(call, says) for call, says in found]


def said(call: str, names: dict[str, Any]) -> str:
    """The class of the error that a call in source raises, and what it says."""
    with pytest.raises(Exception) as caught:
        eval(call, dict(names))
    return f"{type(caught.value).__name__}: {caught.value}"
