"""The docstrings that the build made, by full name: "turnout.add", "turnout.Tensor.add".

They are in one text file, which is read when the first function or method is compiled: a docstring is an attribute of a function
and cannot be looked up later. A module of them would be compiled anew, in 20 ms, where Python may not write bytecode.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

FILE = Path(__file__).parent.parent / "generated" / "docstrings.txt"


def of(name: str) -> str | None:
    """The docstring of a public function or method; None if it has none."""
    return _read().get(name)


@cache
def _read() -> dict[str, str]:
    parts = FILE.read_text(encoding="utf-8").split("\0")
    return dict(zip(parts[::2], parts[1::2], strict=True))


def text_of(docstrings: dict[str, str]) -> str:
    """The text of the file: names and docstrings in turn, with a zero character between them."""
    return "\0".join(part for pair in docstrings.items() for part in pair)
