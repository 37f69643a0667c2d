"""The manifest of a plugin: what it says, as a frozen value, and the check of everything it may say.

A manifest is data about code that is not imported yet, so it is judged alone: types, names, and that it belongs to the
distribution it was found in. Whether it tells the truth is checked when the plugin is activated (`activation`).
`docs/manifest.md` is the description for authors.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from turnout.config.lines import Lines, loads
from turnout.config.settings import NAME, NAMES, normal
from turnout.config.tuples import NamedTuple
from turnout.config.values import EXPECTED, NUMBERS, UnexpectedValueError, check, show
from turnout.errors import plugins as errors
from turnout.errors.layout import near
from turnout.keys import NEVER, STANDARD, BackendRow, Functionality
from turnout.keys.rows import DEVICE_NAME, KEY_NAME, MIDDLE, PASSES, RANKS
from turnout.plugins.distributions import File

KINDS = ("backend", "functionality", "library", "replacement")
SIZE, OPTIONS = 256 << 10, 500  # what a manifest may have: bytes, options
_MOST = 8 << 10  # bytes are in most manifests
SHOWN = 50  # of its problems
# Functionalities that core places itself.
STANDARD_KEYS = frozenset(f.name for f in STANDARD)


class Need(NamedTuple):
    """A module that must be importable, and the command that installs it."""

    module: str
    install: str


class Option(NamedTuple):
    """A setting of the plugin, `plugin.<name>.<option>`."""

    type: str
    default: Any
    help: str = ""
    choices: tuple[Any, ...] = ()
    trusted: bool = False  # it names a peer, a path or a program: a project's file may not set it
    min: float | None = None  # the least and the greatest of the numbers that are allowed
    max: float | None = None


class Engine(NamedTuple):
    """Something that compiles graphs.

    module   the module that has its `compile`
    devices  the devices whose graphs it takes; none means those of every device
    """

    name: str
    module: str
    devices: tuple[str, ...] = ()


class Public(NamedTuple):
    """What a plugin gives to `turnout`, or to one of its public modules.

    names    public name -> the module that has it
    modules  public name -> the module that it is
    """

    names: Mapping[str, str] = {}
    modules: Mapping[str, str] = {}

    @property
    def all(self) -> dict[str, str]:
        """Public name -> module, of names and modules alike."""
        return {**self.names, **self.modules}


class Manifest(NamedTuple):
    """Everything a manifest says.

    path          the file it was read from
    backends      the rows of the backends that the plugin brings
    keys          the rows of its functionalities; those of standard ones have only a name
    public        what it gives to `turnout`, under "", and to public modules, under their names
    engines       what it compiles graphs with
    replacements  the module whose REPLACEMENTS stand in place of functions that are marked as replaceable
    """

    path: str
    name: str
    distribution: str
    kind: str
    api: tuple[int, int]
    module: str
    summary: str = ""
    requires_plugins: tuple[str, ...] = ()
    backends: tuple[BackendRow, ...] = ()
    keys: tuple[Functionality, ...] = ()
    namespaces: tuple[str, ...] = ()
    public: Mapping[str, Public] = {}
    engines: tuple[Engine, ...] = ()
    replacements: str = ""
    needs: tuple[Need, ...] = ()
    options: Mapping[str, Option] = {}

    @property
    def new_keys(self) -> list[Functionality]:
        """The rows of the functionalities that core does not place itself."""
        return [key for key in self.keys if key.name not in STANDARD_KEYS]

    def offers(self, place: str) -> Public:
        """What it gives to a public module; to `turnout` itself, for the place ""."""
        return self.public.get(place, Public())

    def promises(self) -> frozenset[str]:
        """What must be registered after activation, in the words of `Registrations.provided()`."""
        named = [f"backend:{b.name}" for b in self.backends] + [f"device:{b.device}" for b in self.backends]
        named += [f"functionality:{key.name}" for key in self.keys] + [f"namespace:{n}" for n in self.namespaces]
        return frozenset(named)


# ---- what can be said of a manifest that is not accepted


def load(path: File, owner: str) -> tuple[dict[str, Any], Lines]:
    """The raw document. Raises ManifestError when the file is not TOML, or is larger or deeper than a manifest may be."""
    try:
        text = text_of(path)
        return loads(text), Lines(text)
    except (OSError, ValueError) as error:
        raise errors.manifest_not_accepted(owner, str(path), [("why", str(error))]) from error


def text_of(path: File) -> str:
    """The text of a manifest or of a file beside it. Raises ValueError when it is too large, or not UTF-8."""
    with path.open("rb") as file:
        data: bytes = file.read(_MOST)  # a buffer for the largest one takes longer than all else
        if len(data) == _MOST:
            data += file.read(SIZE + 1 - _MOST)
    if len(data) > SIZE:
        raise ValueError(f"it is larger than {SIZE >> 10} KB")
    return data.decode("utf-8")


def api_of(document: Mapping[str, Any]) -> tuple[int, int] | None:
    """The plugin-API a manifest asks for, or None when that is not said in a form that can be read."""
    text = document.get("api")
    found = re.fullmatch(_API, text) if isinstance(text, str) else None
    return (int(found[1]), int(found[2])) if found else None


def claims(document: Mapping[str, Any]) -> frozenset[str]:
    """What a manifest claims to provide as far as it can be read: for messages about plugins that are broken."""
    provides = document.get("provides")
    lists = {k: v for k, v in provides.items() if isinstance(v, list)} if isinstance(provides, dict) else {}
    found = [f"namespace:{name}" for name in lists.get("namespaces", ())]
    for table, row, word in (("backend", "name", "backend"), ("backend", "device", "device"), ("key", "name", "functionality")):
        found += [f"{word}:{entry.get(row)}" for entry in lists.get(table, ()) if isinstance(entry, dict)]
    return frozenset(found)


# ---- the fields


class _Field(NamedTuple):
    """A field of a table: what its value must be, what the field is where it is required, what stands for an absent one."""

    expected: str
    type: Any = str
    required: str = ""
    absent: Any = None
    pattern: str = "(?s).+"  # of strings, and of those in lists of names
    choices: tuple[str, ...] = ()

    def checked(self, value: Any) -> Any:
        """The value in the form it is kept in. Raises UnexpectedValueError, with a text for each problem."""
        if self.type is tuple:
            return self._names([value] if self is _ANCHORS and isinstance(value, str) else value)
        good = isinstance(value, self.type)
        if good and self.choices:
            good = value in self.choices
        elif good and self.type is str:
            good = _compiled(self.pattern).fullmatch(value) is not None
        elif good and self.type is list:
            good = all(isinstance(row, dict) for row in value) or "tables" not in self.expected
        if not good:
            raise UnexpectedValueError(f"expected {self.expected}, got {show(value)}")
        return value

    def _names(self, value: Any) -> tuple[str, ...]:
        names: tuple[str, ...] = check("strings", value)
        matches = _compiled(self.pattern).fullmatch
        problems = [f"{name!r} is not a name" for name in names if not matches(name)]
        if len(set(names)) < len(names):
            problems += [f"{name!r} is there twice" for name, count in Counter(names).items() if count > 1]
        if problems:
            raise UnexpectedValueError(*problems)
        return names


_compiled = cache(re.compile)  # `re` looks longer for a pattern that it knows


def _one_of(choices: Iterable[str], absent: str | None = None, required: str = "") -> _Field:
    expected = f"one of {', '.join(filter(None, choices))}"
    return _Field(expected, choices=tuple(choices), absent=absent, required=required)


_IDENTIFIER = r"[A-Za-z_][A-Za-z0-9_]*"
_API = r"([0-9]+)\.([0-9]+)"
_MODULE = _Field("a module", pattern=rf"{_IDENTIFIER}(\.{_IDENTIFIER})*", absent="")
_NAMES = _Field("a list of names", tuple, absent=(), pattern=_IDENTIFIER)
_TABLE = _Field("a table", dict, absent={})
_ANCHORS = _NAMES._replace(pattern=rf"{KEY_NAME}\??")
_FLAG = _Field("true or false", bool, absent=False)
_TEXT = _Field("a string", absent="")

# fmt: off
_MANIFEST = {
    "name": _Field(f"the plugin's name: {NAMES}", pattern=NAME.pattern, absent="",
                   required="the plugin's name, as in the entry point"),
    "distribution": _TEXT._replace(required="the distribution that holds this file"),
    "kind": _one_of(KINDS, "", required=f"one of {', '.join(KINDS)}"),
    "api": _Field("'MAJOR.MINOR', the plugin-API it needs", pattern=_API, required="the plugin-API it needs, 'MAJOR.MINOR'"),
    "module": _MODULE._replace(required="the module that is imported to activate it"),
    "summary": _TEXT,
    "requires_plugins": _NAMES._replace(pattern=NAME.pattern),
    "provides": _TABLE,
    "needs": _Field("tables, [[needs]]", list, absent=()),
    "option": _TABLE,
}
_PROVIDES = {
    "backend": _Field("tables, [[provides.backend]]", list, absent=()),
    "key": _Field("tables, [[provides.key]]", list, absent=()),
    "engine": _Field("tables, [[provides.engine]]", list, absent=()),
    "namespaces": _NAMES,
    "names": _TABLE,
    "modules": _TABLE,
    "members": _TABLE,
    "replacements": _MODULE,
}
_MEMBERS = {"names": _TABLE, "modules": _TABLE}
_BACKEND = {
    "name": _Field("a name such as 'CUDA'", pattern=KEY_NAME, required="the name in its keys, such as 'CUDA'"),
    "device": _Field("a device string such as 'cuda'", pattern=DEVICE_NAME, required="the device string, such as 'cuda'"),
    "rank": _one_of(RANKS, MIDDLE),
    "functional_only": _FLAG,
    "dataless": _FLAG,
    "adopts": _NAMES,
}
_KEY = {
    "name": _Field("a name such as 'Profiler'", pattern=KEY_NAME, required="the functionality"),
    "prefix": _Field("what stands before a backend's name", pattern=rf"({KEY_NAME})?"),  # "" is the one of Dense
    "before": _ANCHORS,
    "after": _ANCHORS,
    "passes": _one_of(PASSES, NEVER),
    "opt_in": _FLAG,
    "backend_key": _FLAG,
    "holds_values": _FLAG,
    "asks_lines": _FLAG,
}
_ENGINE = {
    "name": _Field("a name such as 'xla'", pattern=NAME.pattern, required="the engine, such as 'xla'"),
    "module": _MODULE._replace(required="the module that has its compile()"),
    "devices": _NAMES._replace(pattern=DEVICE_NAME),
}
_NEED = {
    "module": _MODULE._replace(required="the module that must be importable"),
    "install": _TEXT._replace(required="the command that installs it"),
}
_OPTION = {
    "type": _one_of(EXPECTED, required=f"one of {', '.join(EXPECTED)}"),
    "default": _Field("a value", object, required="the value when nobody sets it"),
    "help": _TEXT._replace(required="a line for people"),
    "choices": _Field("a list", list, absent=()),
    "trusted": _FLAG,
    "min": _Field("a number", object),
    "max": _Field("a number", object),
}
# fmt: on


# ---- reading


def parse(
    document: Mapping[str, Any], lines: Lines, path: File, *, plugin: str, package: str, distribution: str, version: str
) -> Manifest:
    """The manifest of a document.

    `plugin` and `package` are what the entry point says, `distribution` and `version` whose entry point it is.
    Raises one ManifestError for everything that is wrong.
    """
    reader = _Reader(lines, package.partition(".")[0])
    top = reader.read((), document, _MANIFEST)
    if top["name"] not in ("", plugin):
        reader.wrong(("name",), f"expected {plugin!r}, the name of the entry point, got {top['name']!r}")
    owner = top["distribution"]
    if owner and normal(owner) != normal(distribution):
        reader.wrong(("distribution",), f"expected {distribution!r}, which holds this file, got {owner!r}")
    reader.own_module(("module",), top["module"])
    provides = reader.read(("provides",), top["provides"], _PROVIDES)
    reader.own_module(("provides", "replacements"), provides["replacements"])
    found = Manifest(
        path=str(path),
        distribution=distribution,
        api=api_of(document) or (0, 0),
        **{name: top[name] for name in ("name", "kind", "module", "summary", "requires_plugins")},
        backends=tuple(BackendRow(**row) for row in reader.rows(("provides", "backend"), provides["backend"], _BACKEND)),
        keys=reader.keys(provides["key"]),
        namespaces=provides["namespaces"],
        public=reader.public(provides, path.parent),
        engines=reader.engines(provides["engine"]),
        replacements=provides["replacements"],
        needs=tuple(Need(**row) for row in reader.rows(("needs",), top["needs"], _NEED)),
        options=reader.options(top["option"]),
    )
    # A plugin provides at least what its kind is about.
    about = {
        "backend": ("[[provides.backend]]", found.backends),
        "functionality": ("[[provides.key]]", found.keys),
        "library": ("provides.namespaces, names, modules, members or engine", found.namespaces or found.public or found.engines),
        "replacement": ("provides.replacements", found.replacements),
    }
    table, provided = about.get(found.kind, ("", True))
    if not provided:
        reader.wrong(("kind",), f"a {found.kind} needs {table}")
    if reader.problems:
        problems = [(place, text) for _, place, text in sorted(reader.problems)]
        if reader.hidden:
            problems.append(("more", f"{reader.hidden:,} problems that are not shown"))
        raise errors.manifest_not_accepted(f"{distribution} {version}".strip(), str(path), problems)
    return found


class _Reader:
    """Takes fields out of a document and collects everything that is wrong with them, by line."""

    def __init__(self, lines: Lines, package: str) -> None:
        self.lines = lines
        self.package = package
        self.problems: list[tuple[int, str, str]] = []
        self.hidden = 0  # further problems

    def wrong(self, path: tuple[str, ...], text: str, *, missing: bool = False) -> None:
        """Note a wrong value, or a missing one, at the line of the table around it."""
        if len(self.problems) == SHOWN:
            self.hidden += 1
            return
        line = 0 if missing and len(path) == 1 else self.lines.of(path)
        names = ".".join(part for part in path if not part.isdigit()) + (" is required" if missing else "")
        self.problems.append((line, f"line {line}" if line else "missing", f"{names}: {text}"))

    def read(self, path: tuple[str, ...], table: Mapping[str, Any], fields: Mapping[str, _Field]) -> dict[str, Any]:
        """The checked values of a table's fields; notes those that are missing, unknown or wrong."""
        values = {name: known.absent for name, known in fields.items()}
        for name, known in fields.items():
            if name in table:
                try:
                    values[name] = known.checked(table[name])
                except UnexpectedValueError as error:
                    for text in error.args:
                        self.wrong((*path, name), text)
            elif known.required:
                self.wrong((*path, name), known.required, missing=True)
        for name in () if table.keys() <= values.keys() else sorted(table.keys() - fields.keys()):
            self.wrong((*path, name), f"unknown field{near(name, fields) if len(self.problems) < SHOWN else ''}")
        return values

    def rows(self, path: tuple[str, ...], tables: list[dict[str, Any]], fields: Mapping[str, _Field]) -> list[dict[str, Any]]:
        """The fields of each table of an array of tables."""
        return [self.read((*path, str(i)), table, fields) for i, table in enumerate(tables)]

    def keys(self, tables: list[dict[str, Any]]) -> tuple[Functionality, ...]:
        """The rows of functionalities: standard ones are named alone, new ones have a place."""
        rows = self.rows(("provides", "key"), tables, _KEY)
        for i, (row, table) in enumerate(zip(rows, tables, strict=True)):
            path, name = ("provides", "key", str(i)), row["name"]
            if name in STANDARD_KEYS and len(table) > 1:
                self.wrong(path, f"{name} is a standard functionality, whose row core has: name it alone")
            elif name and name not in STANDARD_KEYS and all(anchor.endswith("?") for anchor in row["before"] + row["after"]):
                self.wrong(path, f"{name} is new and needs its place: before or after one that is always there")
        return tuple(Functionality(**row) for row in rows)

    def engines(self, tables: list[dict[str, Any]]) -> tuple[Engine, ...]:
        """The engines; each has its own name, and a module of the plugin's package."""
        rows = [Engine(**row) for row in self.rows(("provides", "engine"), tables, _ENGINE)]
        for i, row in enumerate(rows):
            self.own_module(("provides", "engine", str(i), "module"), row.module)
            if row.name and row.name in [other.name for other in rows[:i]]:
                self.wrong(("provides", "engine", str(i), "name"), f"{row.name!r} is there twice")
        return tuple(rows)

    def own_module(self, path: tuple[str, ...], module: str) -> None:
        """Note a module of another package."""
        if module and module.partition(".")[0] != self.package:
            self.wrong(path, f"expected a module of {self.package}, got {module!r}")

    def module(self, path: tuple[str, ...], value: Any) -> str:
        """A module of the plugin's package; "" for anything else."""
        try:
            module = _MODULE.checked(value)
        except UnexpectedValueError as error:
            self.wrong(path, str(error))
            return ""
        self.own_module(path, module)
        return str(module)

    def public(self, provides: dict[str, Any], folder: Any) -> dict[str, Public]:
        """What there is for `turnout` itself, and for public modules; places for which there is nothing are left out."""
        places: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {"": (("provides",), provides)}
        for place, table in provides["members"].items():
            path = ("provides", "members", place)
            if not re.fullmatch(_IDENTIFIER, place):
                self.wrong(path, f"{place!r} is not a name")
            if not isinstance(table, dict):
                self.wrong(path, f"expected a table, [provides.members.{place}.names], got {show(table)}")
                continue
            places[place] = path, self.read(path, table, _MEMBERS)
        found = {
            place: Public(self.names(path, table["names"], folder), self.modules(path, table["modules"]))
            for place, (path, table) in places.items()
        }
        return {place: public for place, public in found.items() if public.all}

    def names(self, above: tuple[str, ...], table: dict[str, Any], folder: Any) -> dict[str, str]:
        """Public name -> module, from module -> names, or the file beside the manifest that lists them, one a line."""
        found: dict[str, str] = {}
        for module, listed in table.items():
            path = (*above, "names", module)
            self.module(path, module)
            try:
                where = f"{listed}: " if isinstance(listed, str) else ""
                value = text_of(folder.joinpath(listed)).split() if where else listed
                names = _NAMES.checked(value)
            except UnexpectedValueError as error:
                for text in error.args:
                    self.wrong(path, where + text)
                continue
            except (OSError, ValueError) as error:
                self.wrong(path, f"{listed} cannot be read: {error}")
                continue
            for name in names:
                if name in found:
                    self.wrong(path, f"{name!r} is there twice, from {found[name]} too")
                found[name] = module
        return found

    def modules(self, above: tuple[str, ...], table: dict[str, Any]) -> dict[str, str]:
        """Public name -> the module that it is."""
        for name in table:
            if not re.fullmatch(_IDENTIFIER, name):
                self.wrong((*above, "modules", name), f"{name!r} is not a name")
        return {name: self.module((*above, "modules", name), module) for name, module in table.items()}

    def options(self, table: dict[str, Any]) -> dict[str, Option]:
        """The options that are declared correctly, by name."""
        if len(table) > OPTIONS:
            self.wrong(("option",), f"{len(table):,} options; a manifest has at most {OPTIONS}")
            return {}
        found = {}
        for name, row in table.items():
            path = ("option", name)
            if not NAME.fullmatch(name):
                self.wrong(path, f"expected a name of {NAMES}")
            if not isinstance(row, dict):
                self.wrong(path, f"expected a table, [option.{name}], got {show(row)}")
                continue
            values = self.read(path, row, _OPTION)
            if values["type"] is None or "default" not in row:
                continue
            element = "str" if values["type"] == "strings" else values["type"]
            at = "choices"
            try:
                values["choices"] = tuple(check(element, choice) for choice in values["choices"])
                for at in ("min", "max"):
                    if at in row:
                        if element not in NUMBERS:
                            raise UnexpectedValueError(f"options of the type {values['type']} have no bounds")
                        values[at] = check(element, row[at])
                at = "default"
                values["default"] = check(values["type"], values["default"], values["choices"], values["min"], values["max"])
                found[name] = Option(**values)
            except UnexpectedValueError as error:
                self.wrong((*path, at), str(error))
        return found
