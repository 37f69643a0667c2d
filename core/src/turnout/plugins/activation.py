"""Activates one plugin, whole or not at all, in two steps.

`prepare` imports its module and asks whether it can work here, with no lock held: other threads may be importing the same, and
need the lock. Before the import, the module's place is checked: it must be in the package that holds the manifest. `activate`
lets it register under the lock, and checks its promises.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import pluggy

from turnout import config
from turnout.config.installed import MARKED
from turnout.config.tuples import NamedTuple
from turnout.errors import plugins as errors
from turnout.plugins.collector import collector_paused
from turnout.plugins.discovery import Found
from turnout.plugins.manifest import Manifest
from turnout.registry import Registrations

PROJECT = "turnout"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
LibraryFactory = Callable[..., Registrations]  # (name, distribution=, version=); tests pass their own


class Lifecycle:
    """The hooks of a plugin. They are called when it is activated and deactivated, never when operators are called.

    A plugin's activation module defines them as functions marked with `turnout.plugins.hookimpl`; only `turnout_activate` is
    required.
    """

    @hookspec
    def turnout_available(self) -> str | None:
        """Why the plugin cannot work here ("no CUDA device is visible"), or None. Must not keep anything open.

        It is called without the lock, in which `turnout_activate` runs: what that needs may be imported here.
        """

    @hookspec
    def turnout_activate(self, library: Any, options: Mapping[str, Any]) -> None:
        """Register everything that the manifest names, through `library`, which can take all of it back.

        It runs under the lock of registrations. So it imports nothing that is not loaded, asks for no plugin that the manifest
        does not require, and waits for no thread that calls operators or registers.

        `options` reads the plugin's options at each look-up. An error undoes the activation.
        """

    @hookspec
    def turnout_deactivate(self) -> None:
        """Release what the plugin holds outside of `library`: handles, threads, memory. Called before the undo."""


class UnavailableError(Exception):
    """A plugin cannot work here. The text is the reason, `remedy` what helps, if it is known."""

    def __init__(self, reason: str, remedy: str = "") -> None:
        super().__init__(reason)
        self.remedy = remedy


class Options(Mapping[str, Any]):
    """The options of one plugin, read at each look-up, with the overrides of the context."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest

    def __getitem__(self, option: str) -> Any:
        if option not in self._manifest.options:
            raise KeyError(option)
        return config.get(f"plugin.{self._manifest.name}.{option}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._manifest.options)

    def __len__(self) -> int:
        return len(self._manifest.options)


class Active(NamedTuple):
    """An active plugin, and what its deactivation needs."""

    found: Found
    library: Registrations
    hooks: pluggy.PluginManager

    def deactivate(self) -> BaseException | None:
        """Take everything back. Returns an interrupt, or the first error; everything else was done all the same."""
        problem: BaseException | None = None
        for step in (self.hooks.hook.turnout_deactivate, self.library.undo):
            try:
                step()
            except BaseException as error:  # noqa: BLE001 - a plugin and its undo callbacks may raise anything
                problem = problem if isinstance(error, Exception) and problem is not None else error
        return problem


@collector_paused()
def prepare(found: Found) -> pluggy.PluginManager:
    """The hooks of a plugin that can work here. Raises UnavailableError with the plugin's reason, or any error of its code."""
    manifest = found.manifest
    assert manifest is not None
    hooks = _hooks(manifest, load(manifest))
    for reason in hooks.hook.turnout_available():
        raise UnavailableError(str(reason))
    if manifest.replacements:
        _check_replaced(manifest.replacements)
    return hooks


def _check_replaced(module: str) -> None:
    """Raise PluginError if a plugin replaces what is not replaceable. Of modules that are not loaded yet, nothing is known."""
    replaced = importlib.import_module(module).REPLACEMENTS
    unknown = sorted(name for name in replaced.keys() - MARKED if _is_loaded(name.partition(":")[0]))
    if unknown:
        raise errors.not_replaceable(module, unknown)


def _is_loaded(module: str) -> bool:
    """Whether all of a module has run."""
    found = sys.modules.get(module)
    return found is not None and not getattr(found.__spec__, "_initializing", False)


@collector_paused()
def activate(found: Found, hooks: pluggy.PluginManager, library_factory: LibraryFactory) -> Active:
    """Activate a prepared plugin whose requirements are active. Raises any error of its code; then nothing stays registered."""
    manifest = found.manifest
    assert manifest is not None
    library = library_factory(manifest.name, distribution=found.distribution, version=found.version)
    try:
        hooks.hook.turnout_activate(library=library, options=Options(manifest))
        _check_promises(manifest, library)
    except BaseException:
        library.undo()
        raise
    return Active(found, library, hooks)


def load(manifest: Manifest) -> ModuleType:
    """Import the module of a plugin. Raises PluginError if another package of the same name would be imported."""
    top = manifest.module.partition(".")[0]
    loaded = sys.modules.get(top)
    spec = find_spec(top) if loaded is None else loaded.__spec__
    places = list(spec.submodule_search_locations or []) if spec is not None else []
    if _package(os.fspath(manifest.path), top) not in places:  # as they are written, which is quicker than where links lead
        expected = _package(os.path.realpath(manifest.path), top)
        if not any(os.path.realpath(place) == expected for place in places):
            where = ", ".join(places) or (spec.origin if spec is not None and spec.origin else "nothing of this name")
            raise errors.wrong_module(top, expected, where)
    return importlib.import_module(manifest.module)


def _package(path: str, top: str) -> str:
    """The folder of that name around a file, which may lie in a subpackage."""
    folder = os.path.dirname(path)
    while os.path.basename(folder) not in (top, ""):
        folder = os.path.dirname(folder)
    return folder


class _Hooks(pluggy.PluginManager):
    """It asks no name of Python's own whether it is a hook, which are most of those in a class or a module."""

    def parse_hookimpl_opts(self, plugin: object, name: str) -> pluggy.HookimplOpts | None:
        return None if name.startswith("__") else super().parse_hookimpl_opts(plugin, name)

    def parse_hookspec_opts(self, module_or_class: Any, name: str) -> pluggy.HookspecOpts | None:
        return None if name.startswith("__") else super().parse_hookspec_opts(module_or_class, name)


def _hooks(manifest: Manifest, module: ModuleType) -> pluggy.PluginManager:
    """The hooks of one plugin, in a manager of their own, so that a half-registered plugin leaves nothing behind."""
    manager = _Hooks(PROJECT)
    manager.add_hookspecs(Lifecycle)
    manager.register(module, manifest.name)
    manager.check_pending()
    if not manager.hook.turnout_activate.get_hookimpls():
        raise errors.no_activation(manifest.module)
    return manager


def _check_promises(manifest: Manifest, library: Registrations) -> None:
    """Raise ManifestError if the registrations differ from what the manifest names."""
    promised, provided = manifest.promises(), library.provided(tables=False)
    if not promised <= provided:  # a kernel may keep a promise
        provided = library.provided()
    prefixes = {key.name: key.prefix or key.name for key in manifest.keys}
    missing = sorted(promise for promise in promised if not _is_kept(promise, provided, prefixes))
    extra = sorted(p for p in provided if p.startswith(("backend:", "device:", "functionality:")) and p not in promised)
    if missing or extra:
        raise errors.promises_broken(manifest.module, manifest.path, missing, extra)


def _is_kept(promise: str, provided: set[str], prefixes: Mapping[str, str]) -> bool:
    """Whether one promise was kept. `prefixes` are the prefixes of the functionalities' runtime keys.

    A kernel ("kernel:mylib::add.Tensor@CPU") keeps the promise of its namespace. A kernel, fallback or service keeps that of
    its functionality.
    """
    kind, _, name = promise.partition(":")
    if promise in provided:
        return True
    if kind == "namespace":
        return any(p.startswith(f"kernel:{name}::") for p in provided)
    found = [p for p in provided if p.startswith(("kernel:", "fallback:", "service:"))]
    at = [p.rpartition("@" if p.startswith("kernel:") else ":")[2] for p in found]
    return kind == "functionality" and any(key == name or key.startswith(prefixes[name]) for key in at)
