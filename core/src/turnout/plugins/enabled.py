"""Keys by name: what guards include, and what the setting `keys.enable` switches on, for the process or in an override.

The plugin that provides a key is activated, and `turnout.state.current` adds what the process includes to every context.
"""

from __future__ import annotations

from _thread import get_ident
from collections.abc import Sequence

from turnout import config, state
from turnout.config import LOCK
from turnout.config.store import Value
from turnout.errors import plugins as errors
from turnout.guards import Guard
from turnout.keys import KEYS
from turnout.plugins.environment import ACTIVE, catalog
from turnout.plugins.manager import Manager
from turnout.registry import REGISTRY

# The threads that activate plugins for the setting: calls that those make meanwhile do not ask again.
_READING: set[int] = set()


class EnabledKeys:
    """All methods raise PluginError or DisabledError for a key that cannot be had; errors about a setting name its origin."""

    def __init__(self, manager: Manager) -> None:
        self._require = manager.require
        self._is_activating = manager.is_activating

    def include(self) -> int:
        """Include what the process enables in every call from now on; returns the bits. An error leaves the question open."""
        thread = get_ident()
        if thread in _READING:
            return 0
        REGISTRY.follow_config()
        question = state.questions()
        try:
            _READING.add(thread)
            included = self._bits(config.current_store().snapshot["keys.enable"])
        finally:
            _READING.discard(thread)
        with LOCK:
            state.settle(included, question)
        return included

    def switched(self, before: Value, after: Value) -> Guard:
        """The guard of an override of `keys.enable`."""
        off, on = self._bits(before), self._bits(after)
        return state.StateChange(includes=on, drops=off, lifts=on, excludes=off & ~on).block()

    def require(self, names: Sequence[str]) -> None:
        """Activate the installed plugins that provide these keys, but not one that is being activated."""
        for name in names:
            family = next((row.family for row in KEYS.rows_of(name)), name)
            disabled = config.key_disabled(name, family)
            if disabled:
                raise errors.functionality_disabled(name, disabled, str(config.origin("keys.disable")))
            claiming = [] if ("functionality", family) in ACTIVE else catalog().claiming("functionality", family)
            if claiming and not self._is_activating(claiming):
                self._require("functionality", family)

    def _bits(self, setting: Value) -> int:
        """What the state includes for the keys of a setting. Their plugins are activated, unless core itself serves them."""
        included = 0
        for name in setting.value:
            rows = KEYS.rows_of(name)
            family = rows[0].family if rows else name
            served = family in REGISTRY.fallbacks or any(row.included or row.prefix == "" for row in rows)
            if ("functionality", family) not in ACTIVE and not served:
                self._require("functionality", family, f"{name} ({setting.name}, {setting.origin})")
            for row in rows:  # tensors and a fresh context bring the others by themselves
                included |= row.switch if row.opt_in else 0 if row.on_tensors or row.included else row.bit
        return included
