"""The facade: the public names of `turnout` that installed plugins provide, as their manifests say.

The first use of `turnout.add` looks it up here: the plugin is activated, and the module that its manifest names has the object.
`import turnout.nn` finds the plugin's module too (`turnout.plugins.module_finder`).
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any

from turnout import config
from turnout.config import LOCK
from turnout.errors import ConflictError, PluginError, PublicNameError
from turnout.errors import plugins as errors
from turnout.plugins import providers
from turnout.plugins.discovery import Found
from turnout.plugins.environment import catalog
from turnout.plugins.manager import Manager


class Facade:
    """The public names of one package, `turnout`."""

    def __init__(self, package: str, manager: Manager) -> None:
        self._package = package
        self._manager = manager
        self._forgotten = 0  # how often
        manager.on_deactivation(self._forget)
        config.on_change(self._setting_changed)

    def get(self, name: str) -> Any:
        """The object of a public name. Its plugin is activated.

        Raises PublicNameError, an AttributeError, for a name that no installed plugin provides or whose plugin cannot be
        activated, DisabledError for one whose plugin is disabled, and ConflictError for a name that two provide.
        """
        forgotten = self._forgotten
        found, module = self._provider(name)
        try:
            self._manager.activate(found.name)
        except PluginError as error:  # `hasattr` and `inspect` expect an AttributeError
            raise PublicNameError(str(error)) from error.__cause__
        loaded = import_module(module)
        assert found.manifest is not None
        value = loaded if name in found.manifest.modules else getattr(loaded, name)
        publish(value, name, self._package)
        with LOCK:
            if forgotten == self._forgotten:  # the plugin was not deactivated meanwhile
                setattr(sys.modules[self._package], name, value)
        return value

    def names(self) -> list[str]:
        """The public names of all usable plugins."""
        return sorted({name for found in catalog().found if self._manager.is_usable(found) for name in _public(found)})

    def module_of(self, name: str) -> str | None:
        """The module behind a public module, whose plugin is activated; None for any other name.

        Raises PluginError for a name of a known package that is not installed.
        """
        try:
            found, module = self._provider(name)
        except PublicNameError as error:
            if providers.provider_of("public", name) is not None:
                # `from turnout import name` shows an ImportError as it is, and hides any other error.
                raise PluginError(str(error)) from None
            return None
        assert found.manifest is not None
        if name not in found.manifest.modules:
            return None
        self._manager.activate(found.name)
        return module

    def _provider(self, name: str) -> tuple[Found, str]:
        offering = catalog().offering(name)
        usable = [found for found in offering if self._manager.is_usable(found)]
        if len(usable) > 1:
            chosen = config.choices("names.choose").get(name)
            owner = providers.provider_of("public", name) if chosen is None else None
            usable = [found for found in usable if found.name == chosen or found.distribution == owner]
            if not usable:
                owners = [f"{found.name} ({found.owner})" for found in offering]
                raise ConflictError(errors.two_providers(f"{self._package}.{name}", name, owners, offering[0].name))
        if not offering:
            package = providers.provider_of("public", name, {found.name for found in catalog().found})
            known = [*vars(sys.modules[self._package]), *catalog().public_names()]
            shown = [each for each in known if not each.startswith("_")]
            raise PublicNameError(errors.no_public_name(self._package, name, package and providers.install(package), shown))
        found = (usable or offering)[0]
        return found, _public(found)[name]

    def _forget(self, found: Found) -> None:
        """Remove the names of a deactivated plugin from the package: their next use activates it again."""
        self._forgotten += 1
        for name in _public(found):
            vars(sys.modules[self._package]).pop(name, None)
            for module in [m for m in list(sys.modules) if f"{m}.".startswith(f"{self._package}.{name}.")]:
                del sys.modules[module]

    def _setting_changed(self, names: frozenset[str]) -> None:
        if any(name.startswith(("plugins.", "names.")) for name in names):
            for found in catalog().found:
                self._forget(found)


def publish(value: Any, name: str, package: str) -> None:
    """Let a class or function of a plugin name the public module where users find it; of a module, what it has by their names."""
    if isinstance(value, ModuleType):
        for each in set(dir(value)).intersection(vars(value)):
            publish(getattr(value, each), each, f"{package}.{name}")
    elif isinstance(value, (type, FunctionType)) and value.__qualname__ == name:
        manifests = [found.manifest for found in catalog().found if found.manifest is not None]
        if any(value.__module__.partition(".")[0] == manifest.module.partition(".")[0] for manifest in manifests):
            offered = any(manifest.public.get(name) == value.__module__ for manifest in manifests)
            value.__module__ = package.partition(".")[0] if offered else package


def _public(found: Found) -> dict[str, str]:
    """Public name -> module of a plugin."""
    return {} if found.manifest is None else found.manifest.public
