"""Plugins: packages that bring backends, functionalities and operator libraries.

An entry point of the group `turnout.plugins` names a manifest, a file of data. `distributions` knows what is installed,
`discovery` finds and reads manifests, `manifest` checks their fields, `states` decides states, `manager` and `activation`
activate, with the hooks of a plugin, while `collector` pauses garbage collections, `providers` knows packages that are not
installed. `import turnout` loads this module, whose functions load the rest. Authors start in `docs/manifest.md`.
"""

from __future__ import annotations

import sys
from _thread import get_ident
from importlib import import_module

from turnout import config
from turnout.config import LOCK
from turnout.config.effects import effect as effect
from turnout.config.installed import connect, replaceable
from turnout.config.lock import new_lock
from turnout.keys import KEYS
from turnout.operators.tracebacks import shorten as shorten
from turnout.plugins.environment import ACTIVE, NAMED, PLUGIN_API, catalog, forget_catalog
from turnout.registry import REGISTRY, Registrations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from turnout.plugins.activation import hookimpl as hookimpl
    from turnout.plugins.enabled import EnabledKeys
    from turnout.plugins.manager import Manager
    from turnout.plugins.manifest import Engine
    from turnout.plugins.public_names import Facade
    from turnout.plugins.records import PluginRecord

__all__ = [
    "ACTIVE", "PLUGIN_API", "PluginRecord", "Registrations", "activate", "activate_all", "all_plugins", "catalog", "check_device",
    "current_manager", "deactivate", "default_device_type", "effect", "enabled_keys", "engines", "facade", "hookimpl",
    "install_command", "is_ours", "new_lock", "register", "reload", "remedy_for", "replaceable", "replacements", "require_device",
    "require_functionality", "require_namespace", "reset_discovery", "service",
]  # fmt: skip

_manager: Manager | None = None
_facade: Facade | None = None
_replacements: dict[str, Any] | None = None
_REPLACING: set[int] = set()  # the threads that decide it


def current_manager() -> Manager:
    """The plugin manager of the process. The first use makes it, and searches the environment."""
    global _manager
    if _manager is None:
        from turnout.plugins.manager import Manager

        with LOCK:
            _manager = _manager or Manager()
    return _manager


def facade() -> Facade:
    """The public names of `turnout` that plugins provide."""
    global _facade
    if _facade is None:
        from turnout.plugins.collector import collector_paused

        with collector_paused():
            from turnout.plugins.public_names import Facade

            manager = current_manager()
            catalog()
            config.current_store()
        with LOCK:
            _facade = _facade or Facade("turnout", manager)
    return _facade


def check_device(device_type: str) -> None:
    """Raise DeviceError for a device that no installed plugin and no known package has. Activates nothing."""
    current_manager().check_device(device_type)


def require_device(device_type: str, asked: str = "") -> None:
    """Activate the backend with this device string. `asked` is what error texts begin with; the device by default.

    Raises DeviceError for an unknown device, PluginError when its plugin is not installed or cannot be used, DisabledError when
    configuration disables it.
    """
    if ("device", device_type) not in ACTIVE:
        current_manager().require("device", device_type, asked)


def require_functionality(name: str, key: str | None = None) -> None:
    """Activate the plugin of a functionality. Raises PluginError, and DisabledError when `keys.disable` names it or `key`."""
    disabled = config.key_disabled(key or name, name)
    if disabled:
        from turnout.errors import plugins as errors

        shown = name if disabled == name else key or name
        raise errors.functionality_disabled(shown, disabled, str(config.origin("keys.disable")))
    if ("functionality", name) not in ACTIVE:
        current_manager().require("functionality", name)


def require_namespace(namespace: str) -> bool:
    """Activate the plugins with operators in a namespace. Returns False when no package is known to have any.

    Raises PluginError when they are not installed, or when none of them can be used.
    """
    return ("namespace", namespace) in ACTIVE or current_manager().require_namespace(namespace)


def activate(name: str) -> PluginRecord:
    """Activate a plugin by its name. Raises PluginError or DisabledError, with the original error as its cause."""
    effect("plugins.activate()")
    try:
        return current_manager().activate(name)
    except Exception as error:
        shorten(error)
        raise


def deactivate(name: str, *, with_dependents: bool = False) -> None:
    """Take back all registrations of an active plugin; overridden kernels are back.

    The plugin is activated again when it is next needed. To prevent that, name it in `plugins.disable`. Raises PluginError and
    does nothing while other active plugins require it; `with_dependents` deactivates those first.
    """
    effect("plugins.deactivate()")
    try:
        current_manager().deactivate(name, with_dependents=with_dependents)
    except Exception as error:
        shorten(error)
        raise


def register(manifest: str) -> PluginRecord:
    """Name a plugin where no entry point does, as in a frozen program: `register("turnout_acme:plugin.toml")`.

    From then on it is like one that was found, with the same rules and states; a distribution that is installed with the same
    plugin is used instead. Imports nothing. It may be called at any time, and again. Raises ManifestError for a file that is not
    there; whatever else is wrong with it is in the record.
    """
    effect("plugins.register()")
    from turnout.plugins.discovery import registered

    found = registered(manifest, PLUGIN_API)
    with LOCK:
        if manifest not in NAMED:
            NAMED.append(manifest)
    reset_discovery()
    records = [each for each in all_plugins() if each.name == found.name]
    return next((each for each in records if each.distribution == found.distribution), records[0])


def reload(name: str) -> PluginRecord:
    """Import an active plugin's package anew, for notebooks: it is deactivated, its modules are dropped, and it is activated.

    What is installed by then is used. Objects that were made before keep their old classes. Raises PluginError and does nothing
    while other active plugins require it, and for a plugin that a process can load only once: one with compiled modules, one
    with replacements, one that shares its package with an active plugin.
    """
    effect("plugins.reload()")
    try:
        return current_manager().reload(name)
    except Exception as error:
        shorten(error)
        raise


def is_ours(module: str) -> bool:
    """Whether a module is part of Turnout: of core, or of a distribution that core's data file of packages names."""
    from turnout.plugins import providers

    return providers.is_ours(module)


def install_command(*distributions: str) -> str:
    """The command that installs distributions of Turnout: from the clone that core was installed from, or from an index."""
    from turnout.plugins import providers

    return providers.install(*distributions)


def all_plugins() -> list[PluginRecord]:
    """Every installed plugin with its state, reason and remedy. Runs no plugin code, and does not raise for broken ones."""
    return current_manager().records()


def engines() -> list[tuple[str, Engine]]:
    """What the usable plugins compile graphs with: the plugin's name and the row of its manifest. Runs no plugin code."""
    found = []
    for record in all_plugins():
        if record.manifest is not None and record.usable:
            found += [(record.name, engine) for engine in record.manifest.engines]
    return found


def reset_discovery() -> None:
    """Read the environment again, to find packages installed since and to retry failed plugins.

    Active plugins stay as they are, also where another version is installed by now: their records say so.
    """
    effect("plugins.reset_discovery()")
    with LOCK:
        forget_catalog()
        if _manager is not None:
            _manager.reset()


def service(functionality: str) -> Any:
    """The object that the plugin of a functionality offers to other packages. The plugin is activated.

    Raises PluginError when no plugin provides the functionality, DisabledError when `keys.disable` names it.
    """
    found = REGISTRY.services.get(functionality)
    if found is None or REGISTRY.is_disabled(functionality, functionality):
        require_functionality(functionality)
        with LOCK:  # the plugin cannot be deactivated between the two
            require_functionality(functionality)
            found = REGISTRY.services[functionality]
    return found


# ---- called by the layers below through `turnout.config.installed`


def remedy_for(kind: str, name: str, *, activate: bool) -> str:
    """How to get a "device", "backend", "functionality" or "plugin": activate its plugin, or install its package.

    "" if it is active already, or nobody is known to provide it.
    """
    from turnout.plugins import providers

    if (kind, name) in ACTIVE:
        return ""
    for found in catalog().claiming(kind, name):
        return f'turnout.plugins.activate("{found.name}")' if activate else providers.install(found.distribution)
    package = providers.provider_of(kind, name)
    return providers.install(package) if package else ""


def enabled_keys() -> EnabledKeys:
    """What activates and includes keys by name."""
    from turnout.plugins.enabled import EnabledKeys

    return EnabledKeys(current_manager())


def replacements() -> dict[str, Any]:
    """Replaceable function -> its replacement, decided at the first use for the whole process."""
    global _replacements
    if _replacements is not None:
        return _replacements
    thread = get_ident()
    if thread in _REPLACING:  # what the plugins use while they are activated is as it was made
        return {}
    found: dict[str, Any] = {}
    try:
        _REPLACING.add(thread)
        if config.get("speed"):
            current_manager().activate_all(replacing=True)
            for active in current_manager().active():
                if active.manifest is not None and active.manifest.replacements:
                    found |= import_module(active.manifest.replacements).REPLACEMENTS
    finally:
        _REPLACING.discard(thread)
    with LOCK:
        if _replacements is None:  # no other thread was faster
            _replacements = found
        return _replacements


def default_device_type() -> str:
    """The device string of the backend of lowest rank, installed or else of a known package; "" if there is none."""
    from turnout.plugins import providers

    return catalog().lowest_device() or providers.lowest_device()


def activate_all() -> None:
    """Activate every plugin that is installed, enabled and works here. The states of the others say why not."""
    effect("plugins.activate_all()")
    current_manager().activate_all()


if not TYPE_CHECKING:  # type checkers would take every name for one of this module

    def __getattr__(name: str) -> Any:
        module = {"hookimpl": "turnout.plugins.activation", "PluginRecord": "turnout.plugins.records"}.get(name)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(module), name)


connect(sys.modules[__name__])
KEYS.discover_with(catalog)
