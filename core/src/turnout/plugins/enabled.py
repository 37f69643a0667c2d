"""The keys that configuration switches on: `keys.enable`, for the process and inside `turnout.config.override`.

The plugin that provides a key is activated, and the key becomes part of what `turnout.state.current` adds to every context.
"""

from __future__ import annotations

from collections.abc import Sequence

from turnout import config, state
from turnout.config import LOCK
from turnout.config.store import Value
from turnout.errors import plugins as errors
from turnout.keys import KEYS
from turnout.plugins.environment import ACTIVE, catalog
from turnout.plugins.manager import Manager
from turnout.registry import REGISTRY

_reading = False  # under LOCK: calls that plugins make while they are activated for this setting do not ask again


def include_enabled(manager: Manager) -> int:
    """Activate what provides the keys of the process's `keys.enable`, and include them in every call; returns their bits.

    Raises PluginError or DisabledError, which name the setting's origin. Then the next call asks again.
    """
    global _reading
    with LOCK:
        if _reading:
            return 0
        REGISTRY.follow_config()
        _reading = True
        try:
            included = _bits(manager, config.current_store().snapshot["keys.enable"])
        finally:
            _reading = False
        state.settle(included)
        return included


def switched(manager: Manager, before: Value, after: Value) -> state.Guard:
    """The guard of an override of `keys.enable`."""
    off, on = _bits(manager, before), _bits(manager, after)
    return state.Guard(lambda include, keep: (include & ~off | on, keep & ~off | on))


def _bits(manager: Manager, setting: Value) -> int:
    """What the state includes for the keys of a setting. Their plugins are activated."""
    included = 0
    for name in setting.value:
        rows = KEYS.rows_of(name)
        require(manager, rows[0].family if rows else name, f"{name} ({setting.name}, {setting.origin})")
        for row in rows:  # tensors and a fresh context bring the others by themselves
            included |= row.switch if row.opt_in else 0 if row.on_tensors or row.included else row.bit
    return included


def require(manager: Manager, functionality: str, asked: str) -> None:
    """Activate the plugin of a functionality, unless core itself serves it."""
    served = functionality in REGISTRY.fallbacks or any(
        r.included or r.prefix == "" for r in KEYS.rows_of(functionality)
    )
    if ("functionality", functionality) not in ACTIVE and not served:
        manager.require("functionality", functionality, asked)


def require_keys(manager: Manager, names: Sequence[str]) -> None:
    """Activate the installed plugins that provide what a guard includes, but not one that is being activated."""
    for name in names:
        family = next((row.family for row in KEYS.rows_of(name)), name)
        disabled = config.key_disabled(name, family)
        if disabled:
            raise errors.functionality_disabled(name, disabled, str(config.origin("keys.disable")))
        if ("functionality", family) in ACTIVE:
            continue
        claiming = catalog().claiming("functionality", family)
        if claiming and not manager.is_activating(claiming):
            manager.require("functionality", family)
