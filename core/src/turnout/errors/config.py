"""Texts of errors about configuration: which setting, where it was set, what was expected."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from turnout.errors import ConfigError
from turnout.errors.layout import report


def unreadable(path: Path, variable: str, error: Exception) -> ConfigError:
    """A configuration file that is missing, not text or not TOML."""
    why = getattr(error, "strerror", None) or str(error)
    if isinstance(error, UnicodeDecodeError):
        why = f"it is not UTF-8 text (byte {error.start})"
    elif isinstance(error, RecursionError):
        why = "it is nested too deep"
    return ConfigError(report(f"{path}: the configuration cannot be read", ("named by", variable), ("why", why)))


def not_accepted(problems: Sequence[tuple[str, str]]) -> ConfigError:
    """Everything wrong with the values of one reading or one call: pairs of place and text."""
    return ConfigError(report("the configuration is not accepted; what was in force stays", *problems))
