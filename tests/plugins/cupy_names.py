"""CuPy's names, from `cupy_names.txt`, and what its functions take."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

LINE = re.compile(r"([\w.]+)(?:\((.*)\)| (ufunc))?")


def names() -> dict[str, list[str] | None]:
    """CuPy's names: a function's parameters, "*" before those that go by keyword only; None where they are not known."""
    text = Path(__file__).with_name("cupy_names.txt").read_text(encoding="utf-8")
    found: dict[str, list[str] | None] = {}
    for line in text.splitlines()[1:]:
        match = LINE.fullmatch(line)
        assert match is not None, line
        name, parameters, _ = match.groups()
        found[name] = parameters.split(", ") if parameters else None if parameters is None else []
    return found


NAMES = names()


def check_call(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise TypeError where CuPy's function would."""
    parameters = NAMES[name]
    if parameters is None:
        return
    positional = parameters[: parameters.index("*")] if "*" in parameters else parameters
    wrong = [k for k in kwargs if k not in parameters]
    if len(args) > len(positional) or wrong:
        raise TypeError(f"cupy.{name}({', '.join(parameters)}) was called with {len(args)} arguments and {list(kwargs)}")
