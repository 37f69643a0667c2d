"""`exceptions.toml`: what does not pass, with the reason. A name that passes must leave it.

A table for each check ("forward", "errors", "core"), an entry for each OpInfo or operator: a reason, or one for each dtype.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any


@cache
def _tables() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("exceptions.toml").read_text())


def reason(check: str, name: str, dtype: str) -> str | None:
    """Why this OpInfo is not expected to pass this check in this dtype, or None."""
    entry = _tables().get(check, {}).get(name)
    return entry.get(dtype) if isinstance(entry, dict) else entry


def confirm(check: str, name: str, dtype: str, verdict: object) -> None:
    """A verdict is empty where nothing differs: so it has to be, but for what is listed."""
    if reason(check, name, dtype) is None:
        assert not verdict, verdict
    else:
        assert verdict, f"passes now: take {name} {dtype} out of exceptions.toml"


def checks() -> list[str]:
    """The checks that have a list."""
    return list(_tables())


def names(check: str) -> set[str]:
    """The OpInfos or operators listed for a check."""
    return set(_tables().get(check, {}))
