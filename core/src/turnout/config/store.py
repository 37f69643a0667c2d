"""The settings in force: the layers are merged, checked, and installed whole or not at all.

A snapshot is never changed. It holds for each setting the value of the highest source that names it. Values are checked against
the types of core, and those that name plugins or keys against the manifests of installed packages, which are read as data.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

from turnout.config import settings
from turnout.config.installed import installed
from turnout.config.lock import LOCK, OVERRIDES, forbid_imports
from turnout.config.settings import SETTINGS, Setting
from turnout.config.sources import DEFAULT, OVERRIDE, SET, Layer, Origin, Raw, layers, variable_of
from turnout.config.tuples import NamedTuple
from turnout.config.values import UnexpectedValueError, check, from_text, show
from turnout.errors import ConfigError
from turnout.errors import config as errors
from turnout.errors.layout import near
from turnout.errors.plugins import warn
from turnout.keys.rows import STANDARD

Callback = Callable[[frozenset[str]], None]  # called with the names of changed settings


class Value(NamedTuple):
    """A checked value and where it comes from."""

    name: str
    value: Any
    origin: Origin
    rank: int  # of its source, 0 the highest: decides between plugins.enable and plugins.disable
    help: str = ""


Snapshot = Mapping[str, Value]  # all values in force outside of context managers, by name; defaults of core included


class Store:
    """Reads, checks and holds the configuration of the process.

    `catalog` gives what is installed, as far as manifests say: see `turnout.plugins.discovery.Catalog`.
    `describe`, `set`, `unset`, `reload` and `on_change` are the functions of `turnout.config`.
    """

    def __init__(self, catalog: Callable[[], Any] = lambda: installed().catalog()) -> None:
        self._catalog = catalog
        self._set: dict[str, Raw] = {}
        self._layers: list[Layer] = []
        self._snapshot: Snapshot | None = None
        self._callbacks: list[Callback] = []

    # ---- reading

    @property
    def snapshot(self) -> Snapshot:
        """The values in force. The sources are read at the first use. Raises ConfigError when they are wrong."""
        if self._snapshot is None:
            self._catalog()  # what reads manifests is imported now, not under the lock
            with LOCK:
                if self._snapshot is None:
                    read = layers(os.environ)
                    self._layers, self._snapshot = read, self._check([Layer(self._set), *read])
                    _watch_locks(False, self._snapshot)
        return self._snapshot

    def value(self, name: str) -> Value:
        """One value with its origin. Raises ConfigError for a setting that does not exist."""
        overridden = OVERRIDES.get()
        if overridden and name in overridden[0]:
            return self.overridden(name, overridden[0][name])
        return self.snapshot.get(name) or self._default(name)

    def overridden(self, name: str, value: Any) -> Value:
        """A checked value as that of an override."""
        return (self.snapshot.get(name) or self._default(name))._replace(value=value, origin=OVERRIDE, rank=-1)

    def _default(self, name: object) -> Value:
        if not isinstance(name, str):
            raise errors.no_name(name)
        if name.startswith("plugins.choose."):
            return Value(name, None, DEFAULT, _LOWEST)
        if option := settings.option_of(name):
            declared = (self._catalog().options_of(option[0]) or {}).get(option[1])
            if declared is not None:
                return Value(name, declared.default, DEFAULT, _LOWEST, declared.help)
        raise ConfigError(f"{name}: there is no such setting{near(name, [*SETTINGS, *self._option_names()])}")

    def describe(self) -> list[Value]:
        return [self.value(name) for name in dict.fromkeys([*SETTINGS, *self.snapshot, *self._option_names()])]

    def _option_names(self) -> list[str]:
        catalog = self._catalog()
        return [f"plugin.{p}.{option}" for p in catalog.plugin_names() for option in catalog.options_of(p) or {}]

    # ---- changing

    def set(self, values: Mapping[str, Any]) -> None:
        self._catalog()
        with LOCK:
            before = self.snapshot
            self._install(before, {**self._set, **{name: Raw(value, SET) for name, value in values.items()}}, self._layers)

    def unset(self, names: tuple[str, ...]) -> None:
        self._catalog()
        with LOCK:
            before = self.snapshot
            tables = tuple(f"{name}." for name in names)
            entries = {n: raw for n, raw in self._set.items() if names and n not in names and not n.startswith(tables)}
            self._install(before, entries, self._layers)

    def reload(self) -> None:
        self._catalog()
        with LOCK:
            self._install(self._snapshot or {}, self._set, layers(os.environ))

    def _install(self, before: Snapshot, entries: dict[str, Raw], read: list[Layer]) -> None:
        after = self._check([Layer(entries), *read])
        self._set, self._layers, self._snapshot = entries, read, after
        _watch_locks("debug.locks" in before and before["debug.locks"].value, after)
        names = before.keys() | after.keys()
        changed = frozenset(n for n in names if _plain(before.get(n)) != _plain(after.get(n)))
        if changed:
            for callback in list(self._callbacks):
                callback(changed)  # must not raise: the new values are in force

    def overriding(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The checked values of an `override`. Raises ConfigError, also for settings that hold for the whole process."""
        checker = _Checker(self._catalog, self.snapshot)
        for name, value in values.items():
            checker.read(name, Raw(value, OVERRIDE), 0, shared=False)
        for name in values:
            setting = SETTINGS.get(name)
            if (setting is not None and not setting.scoped) or name.startswith(("plugins.", "kernels.", "names.")):
                checker.problem(OVERRIDE, f"{name}: it holds for the whole process; use turnout.config.set")
        return {name: value.value for name, value in checker.finish().items()}

    def on_change(self, callback: Callback) -> Callable[[], None]:
        self._callbacks.append(callback)

        def unsubscribe() -> None:
            if callback in self._callbacks:
                self._callbacks.remove(callback)

        return unsubscribe

    def _check(self, sources: list[Layer]) -> Snapshot:
        checker = _Checker(self._catalog)
        for rank, layer in enumerate(sources):
            for name, raw in layer.entries.items():
                checker.read(name, raw, rank, shared=layer.shared)
        values = {s.name: Value(s.name, s.default, DEFAULT, _LOWEST, s.help) for s in SETTINGS.values()}
        return {**values, **checker.finish()}


_LOWEST = 99
_ALIASES = [row.name for row in STANDARD if row.each_backend]  # functionalities of one backend each stand behind them
_TABLES = (
    "tool.turnout", "debug", "plugins", "plugins.choose", "plugin", "keys", "kernels", "kernels.choose", "kernels.prefer",
    "names", "names.choose",
)  # fmt: skip


def _watch_locks(before: bool, after: Snapshot) -> None:
    """Follow the setting `debug.locks`, where it changes: a program may have called `forbid_imports` itself."""
    if after["debug.locks"].value is not before:
        forbid_imports(after["debug.locks"].value)


def _plain(value: Value | None) -> Any:
    """What is compared to find changes: the value, and for lists the rank, which decides between enable and disable."""
    return None if value is None else (value.value, value.rank if isinstance(value.value, tuple) else 0)


class _Checker:
    """Collects values, highest source first, and their problems."""

    def __init__(self, catalog: Callable[[], Any], below: Mapping[str, Value] | None = None) -> None:
        self._catalog = catalog
        self._below = below or {}  # the values that an override stands on
        self._values: dict[str, Value] = {}
        self._problems: list[tuple[str, str]] = []
        self._foreign: list[tuple[str, str]] = []  # plugins that a shared file names and this environment lacks

    def problem(self, origin: Origin, text: str) -> None:
        """Note a problem with its place."""
        self._problems.append((str(origin), text))

    def finish(self) -> dict[str, Value]:
        """The values. Raises one ConfigError for all problems."""
        self._contradictions()
        if (strict := self._values.get("strict")) and strict.value:
            self._problems += self._foreign
        elif self._foreign and not self._problems:
            for place, text in self._foreign:
                warn(f"{place}: {text}", installed().is_ours)
        if self._problems:
            raise errors.not_accepted(self._problems)
        return self._values

    def read(self, name: str, raw: Raw, rank: int, *, shared: bool) -> None:
        """Check one value of one source. The value of a weaker source is checked and not kept."""
        if raw.before is not None:
            self.problem(raw.origin, f"{name}: {raw.before.origin} sets it too, by another spelling")
        try:
            checked = self._checked(name, raw, shared)
        except UnexpectedValueError as error:
            self.problem(raw.origin, f"{name}: {error}")
        else:
            if checked is not None:
                self._values.setdefault(name, Value(name, checked[0], raw.origin, rank, checked[1]))

    def _checked(self, name: str, raw: Raw, shared: bool) -> tuple[Any, str] | None:
        """The value and its help; None for a value that is ignored. Raises UnexpectedValueError."""
        if setting := SETTINGS.get(name):
            return self._core_value(setting, _typed(setting.type, raw), raw, shared), setting.help
        subject, text = settings.choice_of(name)
        if subject:
            value = _typed("strings" if name.startswith("kernels.prefer.") else "str", raw)
            if name.startswith("plugins."):
                self._distribution(name, subject, value, raw, shared)
            elif name.startswith("names."):
                self._plugin(name, value, raw, shared, known_is_enough=False)
            elif name.startswith("kernels.prefer."):
                if not re.fullmatch(r"(\w+::)?[\w.*]+@\w+", subject):
                    raise UnexpectedValueError('expected kernels.prefer."name@Key", where * stands for any part of the name')
            elif not re.fullmatch(r"\w+::[\w.]+@\w+", subject):
                raise UnexpectedValueError('expected kernels.choose."namespace::operator.overload@Key"')
            return value, text
        if option := settings.option_of(name):
            return self._option(name, *option, raw, shared)
        if name in _TABLES or name.startswith("plugin."):
            raise UnexpectedValueError(f"expected a table, got {show(raw.value)}")
        spell = variable_of if raw.text else str
        raise UnexpectedValueError(f"there is no such setting{near(name, SETTINGS, spell=spell)}")

    def _core_value(self, setting: Setting, value: Any, raw: Raw, shared: bool) -> Any:
        if setting.pattern and not re.fullmatch(setting.pattern, value):
            raise UnexpectedValueError(f"expected {setting.expected}, got {show(value)}")
        if setting.name.startswith("keys.") and value:
            keys = self._catalog().key_names()
            known = {key for key, family in keys.items() if not family or family in _ALIASES} if setting.scoped else keys
            for key in value:
                if key in keys and key not in known:
                    text = f"{key} is one key of {keys[key]}, which is enabled as a whole: write {keys[key]!r}"
                    self.problem(raw.origin, f"{setting.name}: {text}")
                elif key not in known:
                    self.problem(raw.origin, f"{setting.name}: there is no key {key!r}{near(key, known)}")
        disables = setting.name == "plugins.disable"
        if disables or setting.name == "plugins.enable":
            for plugin in value:
                if not (plugin == "*" and disables):
                    self._plugin(setting.name, plugin, raw, shared, known_is_enough=disables)
        return value

    def _plugin(self, name: str, plugin: str, raw: Raw, shared: bool, known_is_enough: bool) -> bool:
        """Whether a plugin is installed. Notes a problem when the setting needs it to be."""
        catalog = self._catalog()
        if plugin in catalog.plugin_names():
            return True
        elsewhere = catalog.known_elsewhere()
        if plugin in elsewhere:
            if known_is_enough:
                return False
            text = f"{name}: the plugin {plugin} is not installed ({catalog.remedy_of(plugin)})"
        else:
            text = f"{name}: there is no plugin {plugin!r}{near(plugin, [*catalog.plugin_names(), *elsewhere])}"
        (self._foreign if shared else self._problems).append((str(raw.origin), text))
        return False

    def _distribution(self, name: str, subject: str, distribution: str, raw: Raw, shared: bool) -> None:
        known = self._catalog().claimants(subject)
        if not known:
            self._plugin(name, subject, raw, shared, known_is_enough=False)
        elif settings.normal(distribution) not in map(settings.normal, known):
            raise UnexpectedValueError(f"expected a distribution that provides it ({', '.join(known)}), got {distribution!r}")

    def _option(self, name: str, plugin: str, option: str, raw: Raw, shared: bool) -> tuple[Any, str] | None:
        there = self._plugin(name, plugin, raw, shared, known_is_enough=True)
        options = self._catalog().options_of(plugin) if there else None
        if options is None:
            return None  # for a plugin with a broken manifest, which is reported when the plugin is used
        declared = options.get(option)
        if declared is None:
            known = f"; it has {', '.join(options)}" if options else "; it has no options"
            raise UnexpectedValueError(f"the plugin {plugin} has no option {option!r}{near(option, options) or known}")
        if declared.trusted and not raw.origin.trusted:
            raise UnexpectedValueError(errors.untrusted(variable_of(name)))
        return _typed(declared.type, raw, declared.choices, declared.min, declared.max), declared.help

    def _contradictions(self) -> None:
        enable, disable = (self._values.get(name, self._below.get(name)) for name in ("keys.enable", "keys.disable"))
        if enable is not None and disable is not None and enable.value and disable.value:
            families = self._catalog().key_names()
            for key, other in product(enable.value, disable.value):
                if key in (other, families.get(other)) or other == families.get(key):
                    self.problem(enable.origin, f"keys.enable: {key!r}, but keys.disable has {other!r} ({disable.origin})")
        enable, disable = self._values.get("plugins.enable"), self._values.get("plugins.disable")
        if enable is not None and disable is not None and enable.rank == disable.rank:
            for plugin in filter(disable.value.__contains__, enable.value):
                self.problem(disable.origin, f"plugins.disable: {plugin!r} is also in plugins.enable of the same source")


def _typed(type_name: str, raw: Raw, choices: tuple[Any, ...] = (), least: Any = None, most: Any = None) -> Any:
    value = from_text(type_name, raw.value) if raw.text else raw.value
    return check(type_name, value, choices, least, most)
