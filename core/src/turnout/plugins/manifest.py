"""The manifest of a plugin: what it says, as a frozen value, and the check of everything it may say.

A manifest is data about code that is not imported yet, so it is judged alone: types, names, and that it belongs to the
distribution it was found in. Whether it tells the truth is checked when the plugin is activated (`manager`).
`docs/manifest.md` is the description for authors.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from turnout.config.lines import Lines
from turnout.config.settings import NAME, nearest
from turnout.config.values import EXPECTED, UnexpectedValueError, check, show
from turnout.errors import ManifestError
from turnout.errors import plugins as errors
from turnout.keys import NEVER, STANDARD, BackendRow, Functionality
from turnout.keys.rows import MIDDLE, PASSES, RANKS

KINDS = ("backend", "functionality", "library")
# Functionalities that core places itself.
STANDARD_KEYS = frozenset(f.name for f in STANDARD)


@dataclass(frozen=True)
class Backend:
    """A backend that the plugin brings: the name in its keys, its device string, and what `turnout.keys.BackendRow` says."""

    name: str
    device: str
    rank: str = MIDDLE
    functional_only: bool = False
    dataless: bool = False

    @property
    def row(self) -> BackendRow:
        """The backend as dispatch sees it."""
        return BackendRow(
            self.name, device=self.device, rank=self.rank, functional_only=self.functional_only, dataless=self.dataless
        )


@dataclass(frozen=True)
class Key:
    """A functionality: a standard one that gets its kernels, or a new one with its place and properties."""

    name: str
    prefix: str | None = None
    before: str | None = None
    after: str | None = None
    passes: str = NEVER
    opt_in: bool = False
    backend_key: bool = False

    @property
    def row(self) -> Functionality | None:
        """The functionality as dispatch sees it; None for a standard one."""
        if self.name in STANDARD_KEYS:
            return None
        return Functionality(
            self.name, self.prefix, before=self.before, after=self.after, passes=self.passes, opt_in=self.opt_in,
            backend_key=self.backend_key,
        )  # fmt: skip


@dataclass(frozen=True)
class Public:
    """What the plugin gives to `turnout`: name -> the module that has it, or that it is."""

    names: Mapping[str, str] = field(default_factory=dict)
    modules: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Need:
    """A module that must be importable, and the command that installs it."""

    module: str
    install: str


@dataclass(frozen=True)
class Option:
    """A setting of the plugin, `plugin.<name>.<option>`."""

    type: str
    default: Any
    help: str = ""
    choices: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Manifest:
    """Everything a manifest says. `path` is the file it was read from."""

    path: str
    name: str
    distribution: str
    kind: str
    api: tuple[int, int]
    module: str
    summary: str = ""
    requires_plugins: tuple[str, ...] = ()
    backends: tuple[Backend, ...] = ()
    keys: tuple[Key, ...] = ()
    namespaces: tuple[str, ...] = ()
    public: Public = field(default_factory=Public)
    needs: tuple[Need, ...] = ()
    options: Mapping[str, Option] = field(default_factory=dict)

    def promises(self) -> frozenset[str]:
        """What must be registered after activation, in the words of `Library.provided()`."""
        named = [f"backend:{b.name}" for b in self.backends] + [f"device:{b.device}" for b in self.backends]
        named += [f"functionality:{key.name}" for key in self.keys] + [f"namespace:{n}" for n in self.namespaces]
        return frozenset(named)


# ---- what can be said of a manifest that is not accepted


def load(path: Path, owner: str) -> tuple[dict[str, Any], Lines]:
    """The raw document. Raises ManifestError when the file is not TOML."""
    try:
        text = path.read_text(encoding="utf-8")
        return tomllib.loads(text), Lines(text)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise errors.manifest_not_accepted(owner, str(path), [("why", str(error))]) from error


def api_of(document: Mapping[str, Any]) -> tuple[int, int] | None:
    """The plugin-API a manifest asks for, or None when that is not said in a form that can be read."""
    text = document.get("api")
    match = re.fullmatch(r"([0-9]+)\.([0-9]+)", text) if isinstance(text, str) else None
    return (int(match[1]), int(match[2])) if match is not None else None


def claims(document: Mapping[str, Any]) -> frozenset[str]:
    """What a manifest claims to provide as far as it can be read: for messages about plugins that are broken."""
    found = []
    provides = document.get("provides")
    provides = provides if isinstance(provides, dict) else {}
    for table, rows in (("backend", ("name", "device")), ("key", ("name",))):
        entries = provides.get(table)
        for entry in entries if isinstance(entries, list) else []:
            for row in rows if isinstance(entry, dict) else ():
                word = "functionality" if table == "key" else ("backend" if row == "name" else "device")
                found.append(f"{word}:{entry.get(row)}")
    namespaces = provides.get("namespaces")
    found += [f"namespace:{n}" for n in namespaces] if isinstance(namespaces, list) else []
    return frozenset(found)


# ---- reading


def parse(
    document: Mapping[str, Any], lines: Lines, path: Path, *, plugin: str, package: str, distribution: str, version: str
) -> Manifest:
    """The manifest of a document.

    `plugin` and `package` are what the entry point says, `distribution` and `version` whose entry point it is.
    Raises one ManifestError for everything that is wrong.
    """
    reader = _Reader(document, lines)
    reader.fields((), document, _FIELDS)
    name = reader.text("name", NAME, "the plugin's name: lower case letters, digits and underscores")
    if name and name != plugin:
        reader.wrong(("name",), f"expected {plugin!r}, the name of the entry point, got {name!r}")
    owner = reader.text("distribution")
    if owner and _normal(owner) != _normal(distribution):
        reader.wrong(("distribution",), f"expected {distribution!r}, which holds this file, got {owner!r}")
    kind = reader.text("kind")
    if kind and kind not in KINDS:
        reader.wrong(("kind",), f"expected one of {', '.join(KINDS)}, got {kind!r}")
    api = api_of(document)
    if "api" in document and api is None:
        reader.wrong(("api",), f"expected 'MAJOR.MINOR', the plugin-API it needs, got {show(document['api'])}")
    module = reader.text("module", _MODULE, "a module")
    if module and module.partition(".")[0] != package.partition(".")[0]:
        reader.wrong(("module",), f"expected a module of {package.partition('.')[0]}, got {module!r}")
    found = Manifest(
        path=str(path),
        name=name,
        distribution=distribution,
        kind=kind,
        api=api or (0, 0),
        module=module,
        summary=reader.text("summary", required=False),
        requires_plugins=reader.strings(("requires_plugins",), document.get("requires_plugins", []), NAME),
        backends=reader.backends(),
        keys=reader.keys(),
        namespaces=reader.strings(("provides", "namespaces"), reader.provides.get("namespaces", []), _IDENTIFIER),
        public=reader.public(path.parent, package),
        needs=reader.needs(),
        options=reader.options(),
    )
    reader.kind(found)
    if reader.problems:
        problems = [(place, text) for _, place, text in sorted(reader.problems)]
        raise errors.manifest_not_accepted(f"{distribution} {version}".strip(), str(path), problems)
    return found


_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MODULE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
_KEY_NAME = re.compile(r"[A-Z][A-Za-z0-9]*")
_DEVICE = re.compile(r"[a-z][a-z0-9_]*")

# field -> whether it is required, and for missing ones what it is
_FIELDS = {
    "name": "the plugin's name, as in the entry point",
    "distribution": "the distribution that holds this file",
    "kind": f"one of {', '.join(KINDS)}",
    "api": "the plugin-API it needs, 'MAJOR.MINOR'",
    "module": "the module that is imported to activate it",
    "summary": None,
    "requires_plugins": None,
    "provides": None,
    "needs": None,
    "option": None,
}
_PROVIDES = {"backend": None, "key": None, "namespaces": None, "names": None, "modules": None}
_BACKEND = {
    "name": "the name in its keys, such as 'CUDA'",
    "device": "the device string, such as 'cuda'",
    "rank": None,
    "functional_only": None,
    "dataless": None,
}
_KEY = {
    "name": "the functionality",
    "prefix": None,
    "before": None,
    "after": None,
    "passes": None,
    "opt_in": None,
    "backend_key": None,
}
_NEED = {"module": "the module that must be importable", "install": "the command that installs it"}
_OPTION = {
    "type": f"one of {', '.join(EXPECTED)}",
    "default": "the value when nobody sets it",
    "help": "a line for people",
    "choices": None,
}


class _Reader:
    """Takes fields out of a document and collects everything that is wrong with them, by line."""

    def __init__(self, document: Mapping[str, Any], lines: Lines) -> None:
        self.document = document
        self.lines = lines
        self.problems: list[tuple[int, str, str]] = []
        provides = document.get("provides", {})
        if not isinstance(provides, dict):
            self.wrong(("provides",), f"expected a table, got {show(provides)}")
            provides = {}
        self.provides: Mapping[str, Any] = provides
        self.fields(("provides",), provides, _PROVIDES)

    def wrong(self, path: tuple[str, ...], text: str) -> None:
        """Note a wrong value."""
        line = self.lines.of(path)
        names = ".".join(part for part in path if not part.isdigit())
        self.problems.append((line, f"line {line}", f"{names}: {text}"))

    def fields(self, path: tuple[str, ...], table: Mapping[str, Any], known: Mapping[str, str | None]) -> None:
        """Note fields that are missing or unknown."""
        prefix = ".".join([part for part in path if not part.isdigit()] + [""])
        for name, meaning in known.items():
            if meaning is not None and name not in table:
                line = self.lines.of(path) if path else 0
                place = f"line {line}" if path else "missing"
                self.problems.append((line, place, f"{prefix}{name} is required: {meaning}"))
        for name in table:
            if name not in known:
                line = self.lines.of((*path, name))
                self.problems.append(
                    (line, f"line {line}", f"{prefix}{name}: unknown field{nearest(name, list(known))}")
                )

    def text(
        self, name: str, pattern: re.Pattern[str] | None = None, expected: str = "", *, required: bool = True
    ) -> str:
        """A string at the top of the document; "" when it is missing or wrong."""
        return self.word((name,), self.document.get(name, "" if required else None), pattern, expected)

    def word(
        self, path: tuple[str, ...], value: Any, pattern: re.Pattern[str] | None = None, expected: str = "a string"
    ) -> str:
        """A string of a form. None stands for a field that is not there."""
        if value is None or value == "":
            if value == "" and self.lines.of(path) and self._has(path):
                self.wrong(path, f"expected {expected or 'a string'}, got ''")
            return ""
        if not isinstance(value, str) or (pattern is not None and not pattern.fullmatch(value)):
            self.wrong(path, f"expected {expected or 'a string'}, got {show(value)}")
            return ""
        return value

    def _has(self, path: tuple[str, ...]) -> bool:
        table: Any = self.document
        for part in path:
            if isinstance(table, list):
                table = table[int(part)]
            elif isinstance(table, dict) and part in table:
                table = table[part]
            else:
                return False
        return True

    def strings(self, path: tuple[str, ...], value: Any, pattern: re.Pattern[str]) -> tuple[str, ...]:
        """A list of names."""
        try:
            names: tuple[str, ...] = check("strings", value)
        except UnexpectedValueError as error:
            self.wrong(path, str(error))
            return ()
        for name in names:
            if not pattern.fullmatch(name):
                self.wrong(path, f"{name!r} is not a name")
            elif names.count(name) > 1:
                self.wrong(path, f"{name!r} is there twice")
                return ()
        return names

    def tables(
        self, path: tuple[str, ...], value: Any, known: Mapping[str, str | None]
    ) -> list[tuple[tuple[str, ...], Any]]:
        """The tables of an array of tables, each with its path."""
        if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
            self.wrong(path, f"expected tables, [[{'.'.join(path)}]], got {show(value)}")
            return []
        rows = [((*path, str(i)), row) for i, row in enumerate(value)]
        for place, row in rows:
            self.fields(place, row, known)
        return rows

    def backends(self) -> tuple[Backend, ...]:
        found = []
        for path, row in self.tables(("provides", "backend"), self.provides.get("backend", []), _BACKEND):
            name = self.word((*path, "name"), row.get("name"), _KEY_NAME, "a name such as 'CUDA'")
            device = self.word((*path, "device"), row.get("device"), _DEVICE, "a device string such as 'cuda'")
            rank = self.choice((*path, "rank"), row.get("rank"), RANKS, MIDDLE)
            flags = [self.flag((*path, word), row.get(word, False)) for word in ("functional_only", "dataless")]
            found.append(Backend(name, device, rank, *flags))
        return tuple(found)

    def keys(self) -> tuple[Key, ...]:
        found = []
        for path, row in self.tables(("provides", "key"), self.provides.get("key", []), _KEY):
            name = self.word((*path, "name"), row.get("name"), _KEY_NAME, "a name such as 'Profiler'")
            prefix = row.get("prefix")
            if prefix != "":  # the empty prefix is the one of Dense, and a value like others
                prefix = self.word((*path, "prefix"), prefix, _KEY_NAME, "what stands before a backend's name") or None
            before = self.word((*path, "before"), row.get("before"), _KEY_NAME, "a functionality") or None
            after = self.word((*path, "after"), row.get("after"), _KEY_NAME, "a functionality") or None
            placed = before is not None or after is not None
            if name in STANDARD_KEYS and len(row) > 1:
                self.wrong(path, f"{name} is a standard functionality, whose row core has: name it alone")
            elif name and name not in STANDARD_KEYS and not placed:
                self.wrong(path, f"{name} is new and needs its place: before or after another functionality")
            passes = self.choice((*path, "passes"), row.get("passes"), PASSES, NEVER)
            flags = [self.flag((*path, word), row.get(word, False)) for word in ("opt_in", "backend_key")]
            found.append(Key(name, prefix, before, after, passes, *flags))
        return tuple(found)

    def choice(self, path: tuple[str, ...], value: Any, choices: tuple[str, ...], default: str) -> str:
        """One of a few words; `default` for a field that is not there."""
        if value is None:
            return default
        if value not in choices:
            words = [choice for choice in choices if choice]
            self.wrong(path, f"expected one of {', '.join(words)}, got {show(value)}")
            return default
        return str(value)

    def flag(self, path: tuple[str, ...], value: Any) -> bool:
        """True or false."""
        if not isinstance(value, bool):
            self.wrong(path, f"expected true or false, got {show(value)}")
        return value is True

    def public(self, folder: Path, package: str) -> Public:
        """`[provides.names]`: module -> names, or the file with the names; `[provides.modules]`: public name -> module."""
        names: dict[str, str] = {}
        for module, value in self._table(("provides", "names"), self.provides.get("names", {})):
            path = ("provides", "names", module)
            self._own_module(path, module, package)
            listed = (
                self._read_names(path, folder, value)
                if isinstance(value, str)
                else self.strings(path, value, _IDENTIFIER)
            )
            for name in listed:
                if name in names:
                    self.wrong(path, f"{name!r} is there twice, from {names[name]} too")
                names[name] = module
        modules: dict[str, str] = {}
        for name, module in self._table(("provides", "modules"), self.provides.get("modules", {})):
            path = ("provides", "modules", name)
            if not _IDENTIFIER.fullmatch(name):
                self.wrong(path, f"{name!r} is not a name")
            modules[name] = self._own_module(path, module, package)
        return Public(names, modules)

    def _table(self, path: tuple[str, ...], value: Any) -> list[tuple[str, Any]]:
        if not isinstance(value, dict):
            self.wrong(path, f"expected a table, got {show(value)}")
            return []
        return list(value.items())

    def _own_module(self, path: tuple[str, ...], module: Any, package: str) -> str:
        found = self.word(path, module, _MODULE, "a module")
        top = package.partition(".")[0]
        if found and found.partition(".")[0] != top:
            self.wrong(path, f"expected a module of {top}, got {found!r}")
        return found

    def _read_names(self, path: tuple[str, ...], folder: Path, file: str) -> list[str]:
        """The names that a file beside the manifest lists, one a line."""
        try:
            names = folder.joinpath(file).read_text(encoding="utf-8").split()
        except (OSError, UnicodeDecodeError) as error:
            self.wrong(path, f"{file} cannot be read: {error}")
            return []
        for name in names:
            if not _IDENTIFIER.fullmatch(name):
                self.wrong(path, f"{file}: {name!r} is not a name")
        return names

    def needs(self) -> tuple[Need, ...]:
        found = []
        for path, row in self.tables(("needs",), self.document.get("needs", []), _NEED):
            module = self.word((*path, "module"), row.get("module"), _MODULE, "a module")
            install = self.word((*path, "install"), row.get("install"))
            found.append(Need(module, install))
        return tuple(found)

    def options(self) -> dict[str, Option]:
        table = self.document.get("option", {})
        if not isinstance(table, dict) or not all(isinstance(row, dict) for row in table.values()):
            self.wrong(("option",), "expected a table for each option, [option.<name>]")
            return {}
        found = {}
        for name, row in table.items():
            path = ("option", name)
            if not NAME.fullmatch(name):
                self.wrong(path, "expected a name of lower case letters, digits and single underscores")
            self.fields(path, row, _OPTION)
            option = self.option(path, row)
            if option is not None:
                found[name] = option
        return found

    def option(self, path: tuple[str, ...], row: Mapping[str, Any]) -> Option | None:
        type_name = self.word((*path, "type"), row.get("type"))
        if not type_name or "default" not in row:
            return None
        if type_name not in EXPECTED:
            self.wrong((*path, "type"), f"expected one of {', '.join(EXPECTED)}, got {type_name!r}")
            return None
        element = "str" if type_name == "strings" else type_name
        choices = row.get("choices", [])
        try:
            if not isinstance(choices, list):
                raise UnexpectedValueError(f"expected a list, got {show(choices)}")
            choices = tuple(check(element, choice) for choice in choices)
        except UnexpectedValueError as error:
            self.wrong((*path, "choices"), str(error))
            return None
        try:
            default = check(type_name, row["default"], choices)
        except UnexpectedValueError as error:
            self.wrong((*path, "default"), str(error))
            return None
        return Option(type_name, default, self.word((*path, "help"), row.get("help")), choices)

    def kind(self, found: Manifest) -> None:
        """A plugin provides at least what its kind is about."""
        provided = {"backend": found.backends, "functionality": found.keys, "library": found.namespaces}
        table = {
            "backend": "[[provides.backend]]",
            "functionality": "[[provides.key]]",
            "library": "provides.namespaces",
        }
        if found.kind in provided and not provided[found.kind]:
            self.wrong(("kind",), f"a {found.kind} needs {table[found.kind]}")


def _normal(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()


__all__ = [
    "KINDS",
    "Backend",
    "Key",
    "Manifest",
    "ManifestError",
    "Need",
    "Option",
    "api_of",
    "claims",
    "load",
    "parse",
]
