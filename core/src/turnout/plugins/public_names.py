"""The facade: the public names of `turnout` that installed plugins provide, as their manifests say.

The first use of `turnout.add` looks it up here: the plugin is activated, and the module that its manifest names has the object.
`import turnout.nn` finds the plugin's module too (`turnout.plugins.module_finder`).

A public module may have *members* from other plugins than its owner (`[provides.members.nn]`). It then is a `PublicModule`, which
looks up here what its owner does not have. A module that nobody owns is made, and has members alone.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any

from turnout import config
from turnout.config import LOCK
from turnout.config.tuples import NamedTuple
from turnout.errors import ConflictError, PluginError, PublicNameError
from turnout.errors import plugins as errors
from turnout.operators.tracebacks import shorten, shorten_class
from turnout.plugins import providers
from turnout.plugins.collector import collector_paused
from turnout.plugins.discovery import Found
from turnout.plugins.environment import catalog
from turnout.plugins.manager import Manager
from turnout.plugins.manifest import Public


class PublicModule(ModuleType):
    """A public module with members from other plugins than its owner. A name that the owner has is the owner's."""

    __public__: _Joined

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        try:
            return self.__public__.facade.get(name, self.__public__.place)
        except Exception as error:
            shorten(error)
            raise

    @property
    def __all__(self) -> list[str]:
        """The owner's public names, and the members."""
        return sorted({*self.__public__.listed, *self.__public__.facade.names(self.__public__.place)})

    def __dir__(self) -> list[str]:
        return self.__all__


class _Joined(NamedTuple):
    """What a PublicModule knows: the name of its place, the names that its owner has, and those of them that are public."""

    facade: Facade
    place: str
    own: frozenset[str]
    listed: tuple[str, ...]


class Facade:
    """The public names of one package, `turnout`. A *place* is a public module; "" is the package itself."""

    def __init__(self, package: str, manager: Manager) -> None:
        self._package = package
        self._manager = manager
        self._forgotten = 0  # how often
        self._joined: dict[str, PublicModule] = {}
        manager.on_deactivation(self._forget)
        config.on_change(self._setting_changed)

    def get(self, name: str, place: str = "") -> Any:
        """The object of a public name. Its plugin is activated.

        Raises PublicNameError, an AttributeError, for a name that no installed plugin provides or whose plugin cannot be
        activated, DisabledError for one whose plugin is disabled, and ConflictError for a name that two provide.
        """
        forgotten = self._forgotten
        holder = self._joined.get(place) if place else sys.modules[self._package]
        try:
            with collector_paused():
                value = self._object(place, name)
        except PluginError as error:  # `hasattr` and `inspect` expect an AttributeError
            raise PublicNameError(str(error)) from error.__cause__
        with LOCK:
            if forgotten == self._forgotten and holder is not None:  # the plugin was not deactivated meanwhile
                setattr(holder, name, value)
        return value

    def names(self, place: str = "") -> list[str]:
        """The public names of all usable plugins."""
        usable = [found.manifest for found in self._read() if self._manager.is_usable(found)]
        found = {name for manifest in usable for name in manifest.offers(place).all}
        if not place:
            found |= {each for manifest in usable for each in manifest.public if each and self._is_ownerless(each)}
        return sorted(found)

    def module(self, name: str, inside: str = "") -> ModuleType | None:
        """A public module, or the module at a path inside it, whose plugin is activated; None for any other name.

        Raises PluginError for a name of a known package that is not installed, ModuleNotFoundError for a wrong path.
        """
        public = self._module("", name)
        if public is None or not inside:
            return public
        first, _, rest = inside.partition(".")
        if isinstance(public, PublicModule) and first not in public.__public__.own:
            member = self._module(name, first)
            if member is not None:
                return import_module(f"{member.__name__}.{rest}") if rest else member
        return None if self._is_ownerless(name) else import_module(f"{public.__name__}.{inside}")

    def why_missing(self, place: str, name: str) -> None:
        """Raise PluginError for a member that cannot be had now. For any other name it does nothing."""
        self._module(place, name)

    def _module(self, place: str, name: str) -> ModuleType | None:
        """The module of a public name; None where it is not one of a module. Raises PluginError for what cannot be had now."""
        try:
            is_module = (not place and self._is_ownerless(name)) or name in _public(self._provider(place, name), place).modules
        except PublicNameError as error:
            if providers.provider_of(*_known(place, name)) is not None:
                # `from turnout import name` shows an ImportError as it is, and hides any other error.
                raise PluginError(str(error)) from None
            return None
        found = self._object(place, name)  # raises for a plugin that cannot be activated, whatever the name is of
        return found if is_module else None

    def _object(self, place: str, name: str) -> Any:
        if not place and self._is_ownerless(name):
            if name not in self._joined:
                self._join(name, ModuleType(f"{self._package}.{name}"))
            return self._joined[name]
        found = self._provider(place, name)
        public = _public(found, place)
        self._manager.activate(found.name)
        loaded = import_module(public.all[name])
        value = loaded if name in public.modules else getattr(loaded, name)
        publish(value, name, self._path(place))
        return self._join(name, value) if not place and value is loaded else value

    def _path(self, place: str, *name: str) -> str:
        return ".".join(filter(None, (self._package, place, *name)))

    def _provider(self, place: str, name: str) -> Found:
        offering = catalog().offering(place, name)
        usable = [found for found in offering if self._manager.is_usable(found)]
        kind, public = _known(place, name)
        if len(usable) > 1:
            chosen = config.choices("names.choose").get(public)
            owner = providers.provider_of(kind, public) if chosen is None else None
            usable = [found for found in usable if found.name == chosen or found.distribution == owner]
            if not usable:
                owners = [f"{found.name} ({found.owner})" for found in offering]
                raise ConflictError(errors.two_providers(self._path(place, name), public, owners, offering[0].name))
        if not offering:
            package = providers.provider_of(kind, public, {found.name for found in catalog().found})
            here = self._joined[place].__public__.listed if place else vars(sys.modules[self._package])
            shown = [each for each in [*here, *catalog().public_names(place)] if not each.startswith("_")]
            text = errors.no_public_name(self._path(place), name, package and providers.install(package), shown)
            raise PublicNameError(text)
        return (usable or offering)[0]

    # ---- members of public modules

    def _is_ownerless(self, place: str) -> bool:
        """Whether a public module has members from usable plugins, and neither an installed nor a known plugin owns it."""
        given = any(place in found.manifest.public and self._manager.is_usable(found) for found in self._read())
        return given and not catalog().offering("", place) and providers.provider_of("public", place) is None

    def _read(self) -> list[Any]:
        """The plugins whose manifests could be read."""
        return [found for found in catalog().found if found.manifest is not None]

    def _join(self, place: str, module: ModuleType) -> ModuleType:
        """The same module, which has from now on what any plugin, installed or known, gives to it."""
        known = any(name.startswith(f"{place}.") for name in providers.known("member"))
        if not known and not catalog().public_names(place):
            return module
        with LOCK:
            if isinstance(module, PublicModule):
                joined = module.__public__._replace(facade=self)
            else:
                listed = tuple(getattr(module, "__all__", ()))
                joined = _Joined(self, place, frozenset({*vars(module), *listed}), listed)
            vars(module)["__public__"] = joined  # before it is asked for
            vars(module).setdefault("__path__", [])  # without one, no import asks `MissingMembers`
            module.__class__ = PublicModule
            self._joined[place] = module  # type: ignore[assignment]
        return module

    def _forget(self, found: Found) -> None:
        """Remove the names of a deactivated plugin: their next use activates it again. A public module stays joined."""
        self._forgotten += 1
        for place, public in found.manifest.public.items() if found.manifest is not None else ():
            joined = self._joined.get(place)
            holder = joined if place else sys.modules[self._package]
            own = joined.__public__.own if joined is not None else frozenset()
            for name in public.all.keys() - own:
                self._remove(holder, place, name)
            if place and not catalog().offering("", place):
                self._remove(sys.modules[self._package], "", place)

    def _remove(self, holder: ModuleType | None, place: str, name: str) -> None:
        if holder is not None:
            vars(holder).pop(name, None)
        path = self._path(place, name)
        for module in [m for m in list(sys.modules) if f"{m}.".startswith(f"{path}.")]:
            del sys.modules[module]

    def _setting_changed(self, names: frozenset[str]) -> None:
        if any(name.startswith(("plugins.", "names.")) for name in names):
            for found in catalog().found:
                self._forget(found)


def _known(place: str, name: str) -> tuple[str, str]:
    """The kind and the name under which the data file of packages lists a public name."""
    return ("member", f"{place}.{name}") if place else ("public", name)


def publish(value: Any, name: str, package: str) -> None:
    """Let a class or function of a plugin name the public module where users find it; of a module, what it has by their names.

    Errors that leave a class of Turnout are shortened from then on.

    Of the modules that a module has, only those inside it are its own: the others it imports. What both have is the outer one's.
    """
    if isinstance(value, ModuleType):
        own = {each: getattr(value, each) for each in dir(value) if each in vars(value)}
        for each in sorted(own, key=lambda each: (isinstance(own[each], ModuleType), each)):
            if not isinstance(own[each], ModuleType) or own[each].__name__.startswith(f"{value.__name__}."):
                publish(own[each], each, f"{package}.{name}")
        return
    if isinstance(value, type):
        shorten_class(value)
    if isinstance(value, (type, FunctionType)) and value.__qualname__ == name:
        manifests = [found.manifest for found in catalog().found if found.manifest is not None]
        if any(value.__module__.partition(".")[0] == manifest.module.partition(".")[0] for manifest in manifests):
            offered = any(manifest.offers("").all.get(name) == value.__module__ for manifest in manifests)
            value.__module__ = package.partition(".")[0] if offered else package


def _public(found: Found, place: str) -> Public:
    """What a plugin gives to a place."""
    return Public() if found.manifest is None else found.manifest.offers(place)
