"""Activates one plugin: imports its module, lets it register, checks its promises. All of it or nothing.

Before the module is imported, a look at where it would come from: it must be the package that the manifest lies in.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pluggy

from turnout import config
from turnout.errors import plugins as errors
from turnout.plugins.discovery import Found
from turnout.plugins.hooks import PROJECT, Lifecycle
from turnout.plugins.manifest import Manifest
from turnout.registry import Registrations

LibraryFactory = Callable[..., Registrations]  # (name, distribution=, version=); tests pass their own


class UnavailableError(Exception):
    """A plugin's own answer that it cannot work here; the text is its reason."""


class Options(Mapping[str, Any]):
    """The options of one plugin as they are at the time of each look-up, context managers included."""

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


class Active:
    """A plugin in use: what it needs to be taken back."""

    def __init__(self, found: Found, library: Registrations, hooks: pluggy.PluginManager) -> None:
        self.found = found
        self.library = library
        self._hooks = hooks

    def deactivate(self) -> BaseException | None:
        """Take everything back. Returns what the plugin's own clean-up raised, after which all the rest was done."""
        problem: BaseException | None = None
        try:
            self._hooks.hook.turnout_deactivate()
        except Exception as error:  # noqa: BLE001 - whatever a plugin raises, its registrations go
            problem = error
        try:
            self.library.undo()
        except Exception as error:  # noqa: BLE001 - all that could be taken back was
            problem = problem or error
        return problem


def activate(found: Found, library_factory: LibraryFactory) -> Active:
    """Activate a plugin whose requirements are active.

    Raises UnavailableError with the plugin's reason, or whatever its code raises; nothing stays registered then.
    """
    manifest = found.manifest
    assert manifest is not None
    _check_source(manifest)
    module = importlib.import_module(manifest.module)
    hooks = _hooks(manifest, module)
    for reason in hooks.hook.turnout_available():
        raise UnavailableError(str(reason))
    library = library_factory(manifest.name, distribution=found.distribution, version=found.version)
    try:
        hooks.hook.turnout_activate(library=library, options=Options(manifest))
        _check_promises(manifest, library.provided())
    except BaseException:
        library.undo()
        raise
    return Active(found, library, hooks)


def _check_source(manifest: Manifest) -> None:
    """Raise PluginError when another package of the same name would be imported."""
    top = manifest.module.partition(".")[0]
    expected = Path(manifest.path).resolve().parent
    while expected.name != top and expected.parent != expected:
        expected = expected.parent  # the manifest may lie in a subpackage
    loaded = sys.modules.get(top)
    spec = find_spec(top) if loaded is None else loaded.__spec__
    places = list(spec.submodule_search_locations or []) if spec is not None else []
    if not any(Path(place).resolve() == expected for place in places):
        where = ", ".join(places) or (spec.origin if spec is not None and spec.origin else "nothing of this name")
        raise errors.wrong_module(top, str(expected), where)


def _hooks(manifest: Manifest, module: ModuleType) -> pluggy.PluginManager:
    """The hooks of one plugin. Each has a manager of its own, so a half-registered one leaves nothing behind."""
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(Lifecycle)
    manager.register(module, manifest.name)
    manager.check_pending()
    if not manager.hook.turnout_activate.get_hookimpls():
        raise errors.no_activation(manifest.module)
    return manager


def _check_promises(manifest: Manifest, provided: set[str]) -> None:
    """Raise ManifestError when a plugin registered other things than it names."""
    promised = manifest.promises()
    prefixes = {key.name: key.prefix or key.name for key in manifest.keys}
    missing = sorted(promise for promise in promised if not _is_kept(promise, provided, prefixes))
    extra = sorted(p for p in provided if p.startswith(("backend:", "device:", "functionality:")) and p not in promised)
    if missing or extra:
        missing_words, extra_words = ([name.replace(":", " ") for name in names] for names in (missing, extra))
        raise errors.promises_broken(manifest.module, manifest.path, missing_words, extra_words)


def _is_kept(promise: str, provided: set[str], prefixes: Mapping[str, str]) -> bool:
    """Whether one promise was kept. `prefixes` are what the runtime keys of the manifest's functionalities begin with.

    `Registrations.provided()` also says "kernel:mylib::add.Tensor@CPU", "fallback:Autograd", "service:Batched": a kernel
    stands for its namespace, and each of them for its functionality.
    """
    kind, _, name = promise.partition(":")
    if promise in provided:
        return True
    if kind == "device":
        return not any(p.startswith("device:") for p in provided)  # a library that does not report devices
    if kind == "namespace":
        return any(p.startswith(f"kernel:{name}::") for p in provided)
    if kind == "functionality":
        at = [p.rpartition("@" if p.startswith("kernel:") else ":")[2] for p in provided if p.startswith(_AT_KEYS)]
        return any(key == name or key.startswith(prefixes[name]) for key in at)
    return False


_AT_KEYS = ("kernel:", "fallback:", "service:")


__all__ = ["Active", "LibraryFactory", "Options", "UnavailableError", "activate"]
