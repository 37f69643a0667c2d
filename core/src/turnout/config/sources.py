"""Reads the sources of configuration into layers of raw values with their places. No value is checked here."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import pairwise
from typing import Any

from turnout.config.installed import installed
from turnout.config.lines import Lines, loads
from turnout.config.settings import SETTINGS
from turnout.config.tuples import NamedTuple
from turnout.errors import ConfigWarning
from turnout.errors import config as errors
from turnout.errors.plugins import warn

PREFIX = "TURNOUT_"
FILE_VARIABLE = "TURNOUT_CONFIG"
PROJECT = "project"


class Origin(NamedTuple):
    """The source of a value: its kind, and for files the path and line."""

    source: str
    path: str = ""
    line: int = 0

    @property
    def trusted(self) -> bool:
        """Whether the user speaks there. A project's file comes with the project, whoever wrote it."""
        return self.source != PROJECT

    def __str__(self) -> str:
        return f"{self.path}:{self.line}" if self.path else self.source


class Raw(NamedTuple):
    """A value as found. A `text` of the environment is not converted yet; `before` is the same setting, spelled otherwise."""

    value: Any
    origin: Origin
    text: bool = False
    before: Raw | None = None


class Layer(NamedTuple):
    """The values of one source. `shared` marks the user's file, which also serves environments with other plugins."""

    entries: Mapping[str, Raw] = {}
    shared: bool = False


DEFAULT = Origin("default")
SET = Origin("turnout.config.set")
OVERRIDE = Origin("turnout.config.override")


def layers(environ: Mapping[str, str]) -> list[Layer]:
    """All sources below `turnout.config.set`, highest first. Raises ConfigError for files that cannot be read."""
    found = [environment(environ)]
    named = os.path.expanduser(environ.get(FILE_VARIABLE, ""))
    if named:
        found.append(_file(named, named_by_variable=True))
    if project := _project(named):
        found.append(project)
    user = user_file(environ)
    if os.path.isabs(user) and os.path.isfile(user):  # without a home, `~` is a name in the working directory
        found.append(Layer(_file(user).entries, shared=True))
    return found


def variable_of(name: str) -> str:
    """The environment variable of a setting: `plugins.disable` is TURNOUT_PLUGINS__DISABLE."""
    return PREFIX + name.replace(".", "__").upper()


def environment(environ: Mapping[str, str]) -> Layer:
    """The TURNOUT_* variables."""
    entries: dict[str, Raw] = {}
    for variable, value in sorted(environ.items()):
        if variable.startswith(PREFIX) and variable != FILE_VARIABLE:
            name = variable[len(PREFIX) :].lower().replace("__", ".")
            entries[name] = Raw(value, Origin(f"environment {variable}"), text=True, before=entries.get(name))
    return Layer(entries)


def _project(named: str) -> Layer | None:
    """The nearest project's file that belongs to root or the user. The one that TURNOUT_CONFIG names is a source by itself."""
    for path in _project_files():
        if named and os.path.exists(named) and os.path.samefile(path, named):
            return None
        try:
            return _file(path, PROJECT)
        except ForeignFileError as error:
            warn(errors.foreign(path, *error.args), installed().is_ours, ConfigWarning)
    return None


def _project_files() -> Iterator[str]:
    """Each `turnout.toml`, and `pyproject.toml` with a table [tool.turnout], from the working directory upward."""
    try:
        folder = os.getcwd()
    except OSError:  # it was deleted
        return
    below = ""
    while folder != below:
        if os.path.isfile(own := os.path.join(folder, "turnout.toml")):  # it is not, in a folder that this user may not search
            yield own
        if os.path.isfile(shared := os.path.join(folder, "pyproject.toml")) and _has_table(shared):
            yield shared
        folder, below = os.path.dirname(folder), folder


def _has_table(path: str) -> bool:
    text = ""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        tool = loads(text).get("tool") if _is_key_of(text) else None
        return isinstance(tool, dict) and "turnout" in tool
    except (OSError, ValueError):  # not TOML, or the file of another tool
        return "[tool.turnout" in text


def _is_key_of(text: str) -> bool:
    """Whether `turnout` may be a key in a TOML text: most projects name it only among what they require, and are not parsed."""
    parts = text.split("turnout")
    around = [(before.rstrip(_LOOSE)[-1:], after.lstrip(_LOOSE)[:1]) for before, after in pairwise(parts)]
    return "[tool.turnout" in text or any(after in (".", "=") or (before, after) == (".", "]") for before, after in around)


_LOOSE = "\"' \t"  # between a key of TOML and what is beside it


def user_file(environ: Mapping[str, str]) -> str:
    """`turnout/config.toml` in $XDG_CONFIG_HOME or ~/.config."""
    base = environ.get("XDG_CONFIG_HOME", "")
    return os.path.join(base if os.path.isabs(base) else os.path.expanduser("~/.config"), "turnout", "config.toml")


def _file(path: str, source: str = "file", *, named_by_variable: bool = False) -> Layer:
    try:
        with open(path, encoding="utf-8") as file:
            if source == PROJECT:
                _check_owner(os.fstat(file.fileno()))  # of what is read, and not of what stood there before
            text = file.read()
        document = loads(text)
    except (OSError, ValueError) as error:
        if source == PROJECT:
            with suppress(OSError):
                _check_owner(os.stat(path))
        raise errors.unreadable(path, FILE_VARIABLE if named_by_variable else "", error) from error
    lines = Lines(text)
    root: tuple[str, ...] = ()
    if os.path.basename(path) == "pyproject.toml":
        root = ("tool", "turnout")
        tool = document.get("tool")
        document = tool.get("turnout", {}) if isinstance(tool, dict) else {}
    entries: dict[str, Raw] = {}
    for names, value in _flatten(document, ()):
        origin, name = Origin(source, path, lines.of((*root, *names))), ".".join(names or root)
        entries[name] = Raw(value, origin, before=entries.get(name))
    return Layer(entries)


class ForeignFileError(Exception):
    """A file that belongs neither to root nor to the user of this process, both of whose numbers it has."""


def _check_owner(facts: os.stat_result) -> None:
    """Raise ForeignFileError for a file of another user. Where the system has no owners, there is none."""
    user = os.geteuid() if hasattr(os, "geteuid") else facts.st_uid
    if facts.st_uid not in (0, user):
        raise ForeignFileError(facts.st_uid, user)


def _flatten(table: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if not isinstance(table, dict):
        yield path, table
        return
    for key, value in table.items():
        below = (*path, key)
        if isinstance(value, dict) and len(below) < 3 and ".".join(below) not in SETTINGS:
            yield from _flatten(value, below)
        else:
            yield below, value
