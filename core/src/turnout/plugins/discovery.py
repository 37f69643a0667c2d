"""Finds the installed plugins: the entry points of the group `turnout.plugins`, and the manifests that they name.

No code is imported or run. A manifest is a file of the distribution whose entry point names it, found through the records of
that distribution, so a module of the same name elsewhere on sys.path cannot replace it. Discovery does not fail: a manifest
that cannot be read is a `Found` with an error.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from importlib.util import find_spec
from posixpath import normpath

import turnout.keys.order  # noqa: F401 - rows are placed under the lock
from turnout.config.settings import normal
from turnout.config.tuples import NamedTuple
from turnout.errors import ManifestError, printed
from turnout.errors import plugins as errors
from turnout.keys import KEYS, STANDARD, KeySpace
from turnout.keys.rows import LOWEST
from turnout.plugins import providers
from turnout.plugins.distributions import Distribution, File, Installed, LocalFile, name_and_version, version_of
from turnout.plugins.manifest import Manifest, Option, api_of, claims, load, parse

GROUP = "turnout.plugins"
Identity = tuple[str, str]  # plugin name, normalised distribution


class Found(NamedTuple):
    """One entry point. If `manifest` is None, `error` or `incompatible` says why.

    compiled  a compiled module of a plugin in a zip file, from which Python imports none
    instead   of a plugin that runs while something else is installed by now: that version, "" for none
    """

    name: str
    distribution: str
    version: str
    entry: str
    path: File | None = None
    manifest: Manifest | None = None
    error: ManifestError | None = None
    incompatible: str = ""
    claims: frozenset[str] = frozenset()
    compiled: str = ""
    instead: str | None = None

    @property
    def identity(self) -> Identity:
        """Two distributions may have a plugin of the same name."""
        return self.name, normal(self.distribution)

    @property
    def owner(self) -> str:
        """The distribution and its version."""
        return f"{self.distribution} {self.version}".strip()

    @property
    def origin(self) -> str:
        """The distribution, its version and the file."""
        return f"{self.owner} ({self.path})" if self.path is not None else self.owner


def find(api: str, named: Iterable[str] = ()) -> list[Found]:
    """Every plugin of the environment, and those that the program has `named`, ordered by name and distribution.

    `api` is the plugin-API of this core.
    """
    found: list[Found] = []
    seen = set()
    installed = Installed()
    for distribution in installed.all:
        problem = None
        try:
            text = distribution.read_text("entry_points.txt")
        except (OSError, UnicodeDecodeError) as error:  # it may be the file of any distribution, and may name plugins
            text, problem = GROUP, error
        if not text or GROUP not in text:
            continue  # names are read for plugins alone: parsing all metadata of an environment takes longer than the rest
        name, version = name_and_version(distribution)
        if not name or normal(name) in seen or not installed.is_first(distribution, name):
            continue  # the one in an earlier folder of sys.path is imported
        seen.add(normal(name))
        try:
            found += (
                [_broken(distribution, name, version, problem)]
                if problem
                else _plugins_of(distribution, text, name, version, api)
            )
        except RecursionError:  # of the program: another call may find the plugin
            raise
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one distribution concerns no other one
            found.append(_broken(distribution, name, version, error))
    there = {each.identity for each in found}
    for value in named:
        try:
            each = registered(value, api)
        except ManifestError as error:  # its file is gone since it was named
            top = value.partition(":")[0]
            each = Found(top, top, "", value, error=error)
        if each.identity not in there:
            found.append(each)
    return sorted(found, key=lambda f: f.identity)


def keep(running: Mapping[Identity, Found], found: list[Found]) -> list[Found]:
    """What was found, with what runs in the place of what is installed by now: its keys and names are those in use."""
    installed = {each.identity: each.version for each in found}
    kept = {key: f._replace(instead=installed.get(key, "")) for key, f in running.items() if installed.get(key) != f.version}
    return sorted(
        [*kept.values(), *(running.get(f.identity, f) for f in found if f.identity not in kept)], key=lambda f: f.identity
    )


def _broken(distribution: Distribution, name: str, version: str, error: Exception) -> Found:
    """What stands for a distribution whose metadata cannot be read: a plugin of its name that has failed."""
    where = "entry_points.txt"
    with suppress(Exception):  # the list of its files may be what cannot be read
        where = next(str(file.locate()) for file in distribution.files or () if file.name == where)
    problem = errors.manifest_not_accepted(f"{name} {version}".strip(), where, [("why", str(error))])
    return Found(name, name, version, "", error=problem)


def _plugins_of(distribution: Distribution, text: str, name: str, version: str, api: str) -> Iterator[Found]:
    entries: list[tuple[str, str]] = []
    is_ours = False
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            is_ours = line == f"[{GROUP}]"
        elif is_ours and line and not line.startswith("#"):
            entry, _, value = map(str.strip, line.partition("="))
            entries.append((entry, value))
    counts = Counter(entry for entry, _ in entries)
    for entry, value in dict(entries).items():
        if counts[entry] > 1:
            problem = [(GROUP, f"{entry}: it is there twice")]
            error = errors.manifest_not_accepted(f"{name} {version}", "entry_points.txt", problem)
            yield Found(entry, name, version, value, error=error)
        else:
            yield read(distribution, name, version, entry, value, api)


def read(distribution: Distribution, name: str, version: str, entry: str, value: str, api: str) -> Found:
    """The content of one entry point and its manifest."""
    here = Found(entry, name, version, value)
    parts = _parts(value)
    if not parts:
        text = f"{entry}: expected 'package:plugin.toml', got {value!r}"
        return here._replace(error=errors.manifest_not_accepted(here.owner, "entry_points.txt", [(GROUP, text)]))
    looked: list[str] = []
    path = locate(distribution, parts, looked)
    if path is None:
        return here._replace(error=errors.manifest_not_found(here.owner, f"{entry} = {value}", looked))
    if not isinstance(path, LocalFile):
        here = here._replace(compiled=next((str(f) for f in distribution.files or () if f.suffix in _COMPILED), ""))
    return content(here._replace(path=path), api)


_COMPILED = (".so", ".pyd", ".dylib")


def _parts(value: object) -> tuple[str, ...]:
    """The packages and the file of an entry point, "package:plugin.toml"; empty for anything else."""
    if not isinstance(value, str):
        return ()
    package, _, file = (part.strip() for part in value.partition(":"))
    good = re.fullmatch(r"[A-Za-z_][\w.]*:[\w.-]+\.toml", f"{package}:{file}")
    return (*package.split("."), file) if good else ()


def registered(value: str, api: str) -> Found:
    """A plugin that a program names itself, as an entry point would: see `plugins.register`. Raises ManifestError."""
    top, *rest = _parts(value) or ("",)
    if not rest:
        raise errors.manifest_not_accepted(
            "a plugin to register", printed(value, str), [(GROUP, "expected 'package:plugin.toml'")]
        )
    try:
        spec = find_spec(top)
        reader = spec.loader.get_resource_reader(top)  # type: ignore[union-attr] # as importlib.resources, without an import
        path = reader.files().joinpath(*rest)
        if not path.is_file():
            raise FileNotFoundError(f"there is no file {path}")
    except (AttributeError, ImportError, OSError, ValueError) as error:
        why = str(error) if isinstance(error, OSError) else f"there is no package {top} with files"
        raise errors.manifest_not_accepted("a plugin to register", value, [("why", why)]) from error
    here = Found(top, top, "", value, path)
    try:
        document, _ = load(path, here.owner)
        names = [document.get(field) for field in ("name", "distribution")]
        name, distribution = (each if isinstance(each, str) and each else top for each in names)
        here = here._replace(name=name, distribution=distribution, version=version_of(distribution))
    except ManifestError as error:
        return here._replace(error=error)
    return content(here, api)


def content(here: Found, api: str) -> Found:
    """The same with what its manifest says."""
    path = here.path
    assert path is not None
    try:
        document, lines = load(path, here.owner)
        here = here._replace(claims=claims(document))
        why = incompatibility(api_of(document), api)
        if why:
            return here._replace(incompatible=why)
        words = {"plugin": here.name, "package": here.entry.partition(":")[0].strip()}
        manifest = parse(document, lines, path, **words, distribution=here.distribution, version=here.version)
    except ManifestError as error:
        return here._replace(error=error)
    return here._replace(manifest=manifest)


def incompatibility(needed: tuple[int, int] | None, core: str) -> str:
    """Why a plugin for one plugin-API cannot work with another; "" when it can.

    It can with the same major and a minor that is not newer than core's, because a minor only adds.
    """
    major, minor = (int(part) for part in core.split("."))
    if needed is None or (needed[0] == major and needed[1] <= minor):
        return ""
    return f"it was built for plugin-API {needed[0]}.{needed[1]}; this turnout-core has {core}"


# ---- where the manifest is


def locate(distribution: Distribution, relative: tuple[str, ...], looked: list[str]) -> File | None:
    """The file `relative` of a distribution, found through its own records; None when there is none.

    The places, in order: the recorded files; for an editable install the folders of its .pth file or the mapping of its import
    finder; the project folder of direct_url.json. Paths that do not exist are added to `looked`.
    """
    path: File
    name, record = "/".join(relative), distribution.read_text("RECORD")
    if f"\n{name}," in f"\n{record}" and (path := _file(distribution, name)).is_file():
        return path
    recorded = _recorded(distribution, record)
    for each in recorded:
        if each.endswith(relative[-1]) and normpath(each) == name and (path := _file(distribution, each)).is_file():
            return path
    editable_by = [
        (last, path) for each in recorded if (last := _editing(each)) and isinstance(path := _file(distribution, each), LocalFile)
    ]
    for path in _beside(distribution, relative, editable_by):
        if path.is_file():
            return path
        looked.append(str(path))
    if not recorded or record is None:
        # System packages drop RECORD, and `setup.py develop` writes none: look beside the metadata.
        path = _file(distribution, name)
        if path.is_file():
            return path
        looked.append(str(path))
    return None


def _beside(
    distribution: Distribution, relative: tuple[str, ...], editable_by: list[tuple[str, LocalFile]]
) -> Iterator[LocalFile]:
    """Where an editable install may have the file."""
    for last, path in editable_by:
        yield from _editable(last, path, relative)
    project, editable = providers.project_of(distribution)
    if project is not None and editable:
        yield LocalFile(project, "src", *relative)
        yield LocalFile(project, *relative)


def _file(distribution: Distribution, name: str) -> File:
    """A file in the folder of a distribution, or in its zip file."""
    place: File | str | os.PathLike[str] = distribution.locate_file(name)
    return LocalFile(os.fspath(place)) if isinstance(place, str | os.PathLike) else place


def _recorded(distribution: Distribution, record: str | None) -> list[str]:
    """The files of a distribution. One whose records have no RECORD, or a name in quotes, is read by importlib_metadata."""
    if record is not None and '"' not in record:
        return [line.partition(",")[0] for line in record.splitlines() if line]
    return [str(file).replace("\\", "/") for file in distribution.files or ()]


def _editing(file: str) -> str:
    """The name of a file that an editable install leaves, "" for any other file."""
    name = file.rpartition("/")[2]
    return name if name.endswith(".pth") or (name.startswith("__editable__") and name.endswith(".py")) else ""


def _editable(name: str, path: LocalFile, relative: tuple[str, ...]) -> Iterator[LocalFile]:
    if name.endswith(".pth"):
        for line in _text(path).splitlines():
            if line.strip() and not line.startswith(("import ", "import\t", "#")):
                yield path.parent.joinpath(line.strip(), *relative)
    else:
        for package, folder in _mapping(_text(path)).items():
            parts = tuple(package.split("."))
            if relative[: len(parts)] == parts:
                yield LocalFile(folder, *relative[len(parts) :])


def _mapping(source: str) -> dict[str, str]:
    """The table in setuptools' import finder, read without running the file."""
    import ast

    try:
        for statement in ast.parse(source).body:
            targets = [statement.target] if isinstance(statement, ast.AnnAssign) else getattr(statement, "targets", [])
            if any(isinstance(target, ast.Name) and target.id == "MAPPING" for target in targets):
                value = ast.literal_eval(statement.value)  # type: ignore[attr-defined]
                return {str(package): str(folder) for package, folder in value.items()}
    except (SyntaxError, ValueError, AttributeError):
        return {}
    return {}


def _text(path: LocalFile) -> str:
    try:
        with path.open("rb") as file:
            return str(file.read(), "utf-8", "replace")
    except OSError:
        return ""


# ---- the catalog


class Catalog:
    """The content of the installed manifests: plugins, their options and distributions, keys, public names."""

    def __init__(self, found: list[Found]) -> None:
        self.found = found

    @property
    def manifests(self) -> list[Manifest]:
        """The manifests that are accepted."""
        return [found.manifest for found in self.found if found.manifest is not None]

    def plugin_names(self) -> list[str]:
        """The plugins that are installed, broken ones included."""
        return list(dict.fromkeys(f.name for f in self.found))

    def provided(self, kind: str) -> list[str]:
        """Every "device", "backend", "functionality", "namespace" or "plugin" that is installed, in broken plugins too."""
        claims = (claim.partition(":") for found in self.found for claim in found.claims)
        return self.plugin_names() if kind == "plugin" else sorted({name for of, _, name in claims if of == kind})

    def claiming(self, kind: str, name: str) -> list[Found]:
        """The plugins that provide a "device", "backend", "functionality" or "namespace", or the "plugin" of that name."""
        return [found for found in self.found if f"{kind}:{name}" in found.claims or (kind, name) == ("plugin", found.name)]

    def place(self, keys: KeySpace) -> None:
        """Add the keys and backends of the manifests to the universe. A plugin whose key has no place has failed."""
        owners = {normal(distribution) for distribution in providers.owners().values()}
        manifests = sorted(self.manifests, key=lambda manifest: normal(manifest.distribution) in owners)
        rows = [key for manifest in manifests for key in manifest.new_keys]  # of one name, the last is placed
        backends = [backend for manifest in manifests for backend in manifest.backends]
        known = {name for kind, name in providers.owners() if kind in ("backend", "functionality")}
        problems = keys.set_installed(rows, backends, known)
        for i, found in enumerate(self.found if problems else ()):
            own = [("provides.key", key.name) for key in found.manifest.new_keys] if found.manifest is not None else []
            own += [("provides.backend", row.name) for row in found.manifest.backends] if found.manifest is not None else []
            wrong = [(place, problems[name]) for place, name in own if name in problems]
            if wrong:
                error = errors.manifest_not_accepted(found.owner, str(found.path), wrong)
                self.found[i] = found._replace(manifest=None, error=error)

    def namespaces(self) -> list[str]:
        """The namespaces that plugins have operators in."""
        return sorted({name for manifest in self.manifests for name in manifest.namespaces})

    def offering(self, place: str, public_name: str) -> list[Found]:
        """The plugins whose manifests provide a name of a public module; of `turnout` itself, for the place ""."""
        return [f for f in self.found if f.manifest is not None and public_name in f.manifest.offers(place).all]

    def public_names(self, place: str) -> list[str]:
        """The names of a public module that manifests provide."""
        return list({name: None for manifest in self.manifests for name in manifest.offers(place).all})

    def lowest_device(self) -> str:
        """The device string of the installed backend with the rank "lowest"; "" without one."""
        lowest = {b.device: b.order for manifest in self.manifests for b in manifest.backends if b.rank == LOWEST}
        known = providers.lowest_device()
        return known if known in lowest else min(lowest, key=lowest.__getitem__, default="")

    def known_elsewhere(self) -> list[str]:
        """Plugins of known packages, installed or not."""
        return list(providers.data())

    def claimants(self, name: str) -> list[str]:
        """The installed distributions with a plugin, device, backend or functionality of this name."""
        words = {f"{kind}:{name}" for kind in ("device", "backend", "functionality")}
        return list(dict.fromkeys(f.distribution for f in self.found if f.name == name or f.claims & words))

    def remedy_of(self, plugin: str) -> str:
        """The command that installs the package of a known plugin."""
        return providers.install(providers.data()[plugin]["distribution"])

    def options_of(self, plugin: str) -> Mapping[str, Option] | None:
        """A plugin's options; None when its manifest cannot be read."""
        manifests = [f.manifest for f in self.found if f.name == plugin and f.manifest is not None]
        if not manifests:
            return None
        return {name: option for manifest in reversed(manifests) for name, option in manifest.options.items()}

    def key_names(self) -> dict[str, str]:
        """Functionalities and runtime keys, those of installed and of known plugins included.

        A key of one backend comes with the functionality that it is a key of, any other with "". AutocastCPU is both.
        """
        backends = [*KEYS.backends, *providers.known("backend")]
        rows = {row.name: row for row in (*STANDARD, *KEYS.functionalities)}
        for manifest in self.manifests:
            backends += [backend.name for backend in manifest.backends]
            rows.update((key.name, key) for key in manifest.new_keys)
        names = dict.fromkeys([*rows, *self.provided("functionality"), *providers.known("functionality")], "")
        for row in rows.values():
            names.update((key, row.name) for key, backend in row.keys_of(backends).items() if backend)
        return names
