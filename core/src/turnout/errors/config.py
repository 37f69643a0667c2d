"""Texts of errors about configuration: which setting, where it was set, what was expected."""

from __future__ import annotations

from collections.abc import Sequence

from turnout.errors import ConfigError
from turnout.errors.layout import printed, report


def unreadable(path: str, variable: str, error: Exception) -> ConfigError:
    """A configuration file that is missing, not text or not TOML."""
    why = getattr(error, "strerror", None) or str(error)
    if isinstance(error, UnicodeDecodeError):
        why = f"it is not UTF-8 text (byte {error.start})"
    return ConfigError(report(f"{path}: the configuration cannot be read", ("named by", variable), ("why", why)))


def not_accepted(problems: Sequence[tuple[str, str]]) -> ConfigError:
    """Everything wrong with the values of one reading or one call: pairs of place and text."""
    return ConfigError(report("the configuration is not accepted; the one before it stays in force", *problems))


def foreign(path: str, owner: int, user: int) -> str:
    """A project's file that is ignored for its owner. Both users by their numbers, as the system has them."""
    why = f"user {owner} owns it; this process runs as user {user}, and takes settings only from files of root and its own"
    fix = f"chown {user} {path}, or TURNOUT_CONFIG={path}"
    return report(f"{path}: these settings are ignored", ("why", why), ("to fix", fix))


def untrusted(variable: str) -> str:
    """An option that a project's file may not set, and where it may stand."""
    return (
        "a project's file may not set this option, which names a peer, a path or a program; "
        f"set it in your own file, in {variable}, in the file that TURNOUT_CONFIG names, or by turnout.config.set"
    )


def no_name(value: object) -> ConfigError:
    """What is no string stands for a setting."""
    return ConfigError(f"a setting has a name such as 'strict', got {printed(value)}")
