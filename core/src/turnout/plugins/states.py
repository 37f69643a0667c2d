"""Decides the state of every plugin that is not active, from manifests, configuration, and past attempts.

No plugin code is run. The states do not depend on the order in which plugins are found.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib.machinery import PathFinder
from importlib.util import find_spec
from typing import Any

from turnout.config.settings import normal
from turnout.plugins import providers
from turnout.plugins.discovery import Found
from turnout.plugins.records import PluginRecord

# State, reason, remedy, and the error if one was raised.
Verdict = tuple[str, str, str, BaseException | None]
Identity = tuple[str, str]  # plugin name, normalised distribution
FINE: Verdict = ("discovered", "", "", None)


def identity(found: Found) -> Identity:
    """The key of a plugin. Two distributions may have a plugin of the same name."""
    return found.name, normal(found.distribution)


class Judge:
    """Decides the states of all plugins once.

    `setting` reads the configuration: name -> (value, rank of its source, origin in words).
    """

    def __init__(
        self, found: list[Found], setting: Callable[[str], tuple[object, int, str]], past: Mapping[Identity, Verdict]
    ) -> None:
        self._found = sorted(found, key=identity)
        self._setting = setting
        self._past = past
        self._verdicts: dict[Identity, Verdict] = {}
        self._usable = {f.name: f for f in found if self._own(f) is None}

    def verdict(self, found: Found) -> Verdict:
        """The state of one plugin."""
        key = identity(found)
        if key not in self._verdicts:
            verdict = self._own(found) or self._rival(found) or self._circle(found)
            self._verdicts[key] = verdict or self._requirements(found) or self._last(found) or FINE
        return self._verdicts[key]

    def _own(self, found: Found) -> Verdict | None:
        """The state without regard to what other plugins provide. What is disabled is not looked at further."""
        return self._switch(found) or self._same_name(found) or self._manifest(found)

    def _manifest(self, found: Found) -> Verdict | None:
        if found.error is not None:
            return "failed", str(found.error), f"upgrade {found.distribution}, or tell its authors", found.error
        if found.incompatible:
            return "incompatible", found.incompatible, f"pip install --upgrade {found.distribution} turnout-core", None
        return None

    def _same_name(self, found: Found) -> Verdict | None:
        rivals = [f for f in self._found if f.name == found.name]
        if len(rivals) == 1:
            return None
        name = f"plugins.choose.{found.name}"
        chosen, _, origin = self._setting(name)
        if chosen is None:
            both = " and ".join(f.owner for f in rivals)
            remedy = f'choose one: [plugins.choose] {found.name} = "{found.distribution}"'
            return "conflict", f"{both} have a plugin of this name", remedy, None
        if normal(str(chosen)) != normal(found.distribution):
            return "disabled", f"{name} is {chosen!r} ({origin})", f"set {name} to {found.distribution!r}", None
        return None

    def _switch(self, found: Found) -> Verdict | None:
        disable, disable_rank, origin = self._setting("plugins.disable")
        enable, enable_rank, _ = self._setting("plugins.enable")
        assert isinstance(disable, tuple)
        assert isinstance(enable, tuple)
        # The stronger source decides; in one source, a name in `enable` is stronger than "*" in `disable`.
        if not {found.name, "*"}.intersection(disable) or (found.name in enable and enable_rank <= disable_rank):
            return None
        named = f"names {found.name}" if found.name in disable else 'has "*"'
        return "disabled", f"plugins.disable {named} ({origin})", "take it out, or name it in plugins.enable", None

    def _rival(self, found: Found) -> Verdict | None:
        for claim in sorted(found.claims):
            others = sorted(name for name, other in self._usable.items() if claim in other.claims and name != found.name)
            if others and not claim.startswith("namespace:"):  # one plugin may add kernels to another's operators
                what = claim.replace(":", " ")
                reason = f"the {what} is provided by {' and '.join(sorted([found.name, *others]))}"
                return "conflict", reason, f"name all but one of them in plugins.disable, such as {others[0]}", None
        return None

    def _circle(self, found: Found) -> Verdict | None:
        """Every plugin of a circle has failed. Plugins outside that require one of them are blocked."""
        paths = [[found.name]]
        seen = set()
        while paths:
            path = paths.pop()
            manifests = [f.manifest for f in self._found if f.name == path[-1] and f.manifest is not None]
            for name in sorted({required for manifest in manifests for required in manifest.requires_plugins}):
                if name == found.name:
                    circle = " -> ".join([*path, name])
                    return "failed", f"plugins require each other: {circle}", "tell their authors", None
                if name not in seen:
                    seen.add(name)
                    paths.append([*path, name])
        return None

    def _requirements(self, found: Found) -> Verdict | None:
        assert found.manifest is not None
        for name in found.manifest.requires_plugins:
            required = [f for f in self._found if f.name == name]
            if not required:
                package = providers.provider_of("plugin", name)
                remedy = providers.install(package) if package else f"install the package that has the plugin {name}"
                return "blocked", f"it requires the plugin {name}, which is not installed", remedy, None
            verdicts = [self.verdict(f) for f in required]
            if not any(verdict[0] == "discovered" for verdict in verdicts):
                state, reason, remedy, error = min(verdicts, key=lambda v: v[0] == "disabled")
                return "blocked", f"it requires the plugin {name}, which is {state}: {reason}", remedy, error
        return None

    def _last(self, found: Found) -> Verdict | None:
        assert found.manifest is not None
        past = self._past.get(identity(found))
        if past is not None and past[0] == "failed":
            return past
        for need in found.manifest.needs:
            if not importable(need.module):
                return "unavailable", f"the module {need.module} is not installed", need.install, None
        return past


def importable(module: str) -> bool:
    """Whether a module can be found. Neither it nor a package above it is imported."""
    if module in sys.modules:
        return True
    top, *rest = module.split(".")
    try:
        spec = find_spec(top)
    except (ImportError, ValueError):
        return False
    name = top
    for part in rest:
        if spec is None or spec.submodule_search_locations is None:
            return False
        name = f"{name}.{part}"
        spec = PathFinder.find_spec(name, list(spec.submodule_search_locations))
    return spec is not None


def record(found: Found, verdict: Verdict) -> PluginRecord:
    """The record of a plugin with its state."""
    state, reason, remedy, error = verdict
    known: dict[str, Any] = {"path": str(found.path or ""), "provides": tuple(sorted(found.claims))}
    manifest = found.manifest
    if manifest is not None:
        known |= {"kind": manifest.kind, "summary": manifest.summary, "module": manifest.module}
        known |= {"api": ".".join(map(str, manifest.api)), "requires": manifest.requires_plugins, "manifest": manifest}
    owner = found.name, found.distribution, found.version
    return PluginRecord(*owner, state, reason, remedy, found.origin, error=error, **known)
