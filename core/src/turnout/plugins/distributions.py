"""The installed distributions, and their records: the metadata that installers leave beside packages.

Folders of sys.path are listed here. For other places (zip files, eggs, finders of other packages) importlib_metadata answers;
its import takes longer than to read all records of an environment.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from importlib.machinery import PathFinder
from typing import Any, Protocol

from turnout.config.settings import normal


class Distribution(Protocol):
    """The part of `importlib.metadata.Distribution` that is used here."""

    @property
    def files(self) -> Iterable[Any] | None: ...
    def read_text(self, filename: str) -> str | None: ...
    def locate_file(self, path: Any) -> Any: ...


class File(Protocol):
    """What a file in a folder and one in a zip file have in common."""

    @property
    def parent(self) -> Any: ...
    def joinpath(self, *parts: str) -> Any: ...
    def is_file(self) -> bool: ...
    def open(self, mode: str) -> Any: ...


class LocalFile:
    """A file or folder of the file system. An import of pathlib takes longer than the manifests of many plugins."""

    __slots__ = ("_path",)

    def __init__(self, *parts: str) -> None:
        self._path = os.path.join(*parts)

    @property
    def parent(self) -> LocalFile:
        """The folder that it is in."""
        return LocalFile(os.path.dirname(self._path))

    def joinpath(self, *parts: str) -> LocalFile:
        """What is at this path in the folder."""
        return LocalFile(self._path, *parts)

    def is_file(self) -> bool:
        """Whether it is there."""
        return os.path.isfile(self._path)

    def open(self, mode: str) -> Any:
        """The open file, which is read as bytes, without a buffer."""
        return open(self._path, mode, buffering=0)

    def __fspath__(self) -> str:
        return self._path

    def __str__(self) -> str:
        return self._path


class _Recorded:
    """A distribution with its records in a folder."""

    __slots__ = ("_folder", "_records")

    def __init__(self, folder: str, records: str) -> None:
        self._folder = folder
        self._records = os.path.join(folder, records)

    @property
    def files(self) -> Iterable[Any] | None:
        """Its files, None where nothing lists them."""
        from pathlib import Path

        from importlib_metadata import PathDistribution

        return PathDistribution(Path(self._records)).files

    def read_text(self, filename: str) -> str | None:
        """The text of one of its records, None for one that is not there or may not be read."""
        try:
            with open(os.path.join(self._records, filename), "rb", buffering=0) as file:  # as text it takes three times as long
                return file.read().decode("utf-8").replace("\r\n", "\n")
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError):
            return None

    def locate_file(self, path: Any) -> str:
        """The path of a file of the distribution."""
        return os.path.join(self._folder, *path.split("/")) if path else self._folder


def _stems() -> Iterator[tuple[Distribution, str]]:
    """Every distribution in the order of sys.path, with the name of its folder of records; "" for any other place."""
    if any(_is_foreign(finder) for finder in sys.meta_path):
        from importlib_metadata import distributions as found

        yield from ((each, "") for each in found())
        return
    for place in sys.path:
        entries = None if place.lower().endswith(".egg") else _entries(place or ".")
        if entries is None:
            from importlib_metadata import distributions as found

            yield from ((each, "") for each in found(path=[place]))
            continue
        for entry in entries:
            if entry.lower().endswith((".dist-info", ".egg-info")):
                yield _Recorded(place or ".", entry), normal(entry.rpartition(".")[0].partition("-")[0])


def _is_foreign(finder: Any) -> bool:
    """Whether a finder of modules knows distributions of its own. Importing importlib_metadata adds one that has none."""
    return (
        hasattr(finder, "find_distributions")
        and finder is not PathFinder
        and not type(finder).__module__.startswith("importlib_metadata")
    )


def _entries(place: str) -> list[str] | None:
    """The names in a folder; none for one that cannot be read, None for a file."""
    try:
        return os.listdir(place)
    except NotADirectoryError:
        return None
    except OSError:
        return []


class Installed:
    """Which distribution of a name is the first on sys.path, the one that is imported. Places are listed once."""

    def __init__(self) -> None:
        self.all: list[Distribution] = []
        self._named: dict[str, list[Distribution]] = {}
        for distribution, stem in _stems():
            self.all.append(distribution)
            self._named.setdefault(stem or normal(name_and_version(distribution)[0]), []).append(distribution)

    def is_first(self, distribution: Distribution, name: str) -> bool:
        """Whether no earlier place has a distribution of that name whose records can be read."""
        for other in self._named.get(normal(name), ()):
            if other is distribution:
                return True
            if name_and_version(other)[0]:
                return bool(other.locate_file("") == distribution.locate_file(""))
        return True


def named(name: str) -> Iterator[Distribution]:
    """The distributions of a name, as packaging tools compare names, in the order of sys.path. Places are listed when they are
    reached."""
    wanted = normal(name)
    return (each for each, stem in _stems() if wanted == (stem or normal(name_and_version(each)[0])))


def name_and_version(distribution: Distribution) -> tuple[str, str]:
    """Its headers, each "" where a half-written folder lacks it.

    importlib_metadata would parse the description as well, and import `email`.
    """
    try:
        text = distribution.read_text("METADATA") or distribution.read_text("PKG-INFO") or ""
    except Exception:  # noqa: BLE001 - a half-written folder may raise anything
        return "", ""
    headers = dict(re.findall(r"(?m)^(Name|Version):[ \t]*(.*?)\s*$", text.partition("\n\n")[0]))
    return headers.get("Name", ""), headers.get("Version", "")


def version_of(distribution: str) -> str:
    """The version of an installed distribution, "" for one that is not there."""
    return next((name_and_version(found)[1] for found in named(distribution)), "")
