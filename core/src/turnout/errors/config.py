"""Texts of errors about configuration: which setting, where it was set, what was expected."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from turnout.errors import ConfigError
from turnout.errors.layout import report


def unreadable(path: Path, variable: str, error: Exception) -> ConfigError:
    """A configuration file that is missing, not text or not TOML."""
    if isinstance(error, OSError):
        why = error.strerror or str(error)
    elif isinstance(error, UnicodeDecodeError):
        why = f"it is not UTF-8 text (byte {error.start})"
    else:
        why = str(error)
    return ConfigError(report(f"{path}: the configuration cannot be read", ("named by", variable), ("why", why)))


def not_accepted(problems: Sequence[tuple[str, str]]) -> ConfigError:
    """Everything wrong with the values of one reading or one call: pairs of place and text."""
    return ConfigError(report("the configuration is not accepted; what was in force stays", *problems))


def unknown_setting(name: str, hint: str) -> ConfigError:
    """A setting that is asked for but does not exist."""
    return ConfigError(f"{name}: there is no such setting{hint}")
