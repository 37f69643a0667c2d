"""Decides the state of every plugin that is not active, from manifests, configuration, and past attempts.

No plugin code is run. The states do not depend on the order in which plugins are found.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib.machinery import PathFinder
from importlib.util import find_spec
from typing import Any

from turnout.config.lock import cached_property
from turnout.config.settings import normal
from turnout.plugins import providers
from turnout.plugins.discovery import Found, Identity
from turnout.plugins.records import BROKEN, PluginRecord

# State, reason, remedy, and the error if one was raised.
Verdict = tuple[str, str, str, BaseException | None]
FINE: Verdict = ("discovered", "", "", None)
Claim = tuple[str, str]  # "plugin", "device", "backend", "functionality" or "namespace", and the name


def _claims(found: Found) -> list[Claim]:
    """All that a plugin claims, its own name first."""
    claims = (claim.partition(":") for claim in sorted(found.claims))
    return [("plugin", found.name), *((kind, name) for kind, _, name in claims)]


def _choose(name: str, found: Found) -> str:
    return f'choose one: [plugins.choose] {name} = "{found.distribution}"'


class Judge:
    """Decides the states of all plugins once.

    `setting` reads the configuration: name -> (value, rank of its source, origin in words).
    """

    def __init__(
        self, found: list[Found], setting: Callable[[str], tuple[object, int, str]], past: Mapping[Identity, Verdict]
    ) -> None:
        self._found = sorted(found, key=lambda f: f.identity)
        self._setting = setting
        self._past = past
        self._verdicts: dict[Identity, Verdict] = {}
        self._importable: dict[str, bool] = {}
        self._owners = providers.owners()
        self._claimants: dict[Claim, list[Found]] = {}
        self._claims = {each.identity: _claims(each) for each in self._found}
        self._switches = setting("plugins.disable"), setting("plugins.enable")
        for each in self._found:
            for claim in self._claims[each.identity]:
                self._claimants.setdefault(claim, []).append(each)
        # What each is apart from what others provide. A step sees what the steps before it left.
        self._own: dict[Identity, Verdict | None] = {f.identity: self._switch(f) or self._not_chosen(f) for f in self._found}
        self._there = {normal(f.distribution) for f in self._left()}
        for step in (self._owned, self._same_name, self._manifest):
            self._own |= {f.identity: step(f) for f in self._left()}
        self._usable = {f.name: f for f in self._left()}

    def _left(self) -> list[Found]:
        return [f for f in self._found if self._own[f.identity] is None]

    def verdict(self, found: Found) -> Verdict:
        """The state of one plugin."""
        key = found.identity
        if key not in self._verdicts:
            verdict = self._by_itself(found) or self._requirements(found) or self._last(found)
            self._verdicts[key] = verdict or FINE
        return self._verdicts[key]

    @cached_property
    def broken(self) -> list[Found]:
        """The plugins whose state is one of `BROKEN`. The modules that they need are looked for only after they were tried."""
        return [found for found in self._found if self._is_broken(found)]

    def _is_broken(self, found: Found) -> bool:
        verdict = self.verdict(found) if found.identity in self._past else self._by_itself(found)
        return verdict is not None and verdict[0] in BROKEN

    def _by_itself(self, found: Found) -> Verdict | None:
        """What is wrong whatever its requirements and the modules that it needs are."""
        return self._own[found.identity] or self._rival(found) or self._circle(found)

    def _manifest(self, found: Found) -> Verdict | None:
        if found.error is not None:
            return "failed", str(found.error), f"upgrade {found.distribution}, or tell its authors", found.error
        if found.incompatible:
            return "incompatible", found.incompatible, f"upgrade {found.distribution} and turnout-core", None
        return None

    def _switch(self, found: Found) -> Verdict | None:
        (disable, disable_rank, origin), (enable, enable_rank, _) = self._switches
        assert isinstance(disable, tuple)
        assert isinstance(enable, tuple)
        # The stronger source decides; in one source, a name in `enable` is stronger than "*" in `disable`.
        if not {found.name, "*"}.intersection(disable) or (found.name in enable and enable_rank <= disable_rank):
            return None
        named = f"names {found.name}" if found.name in disable else 'has "*"'
        return "disabled", f"plugins.disable {named} ({origin})", "take it out, or name it in plugins.enable", None

    # ---- what several claim: configuration decides, then core's data file, and nothing else

    def _choice(self, claim: Claim) -> tuple[str, str]:
        """The distribution that `plugins.choose` names for a claim of several, and the setting's origin; "" without one."""
        found = self._claimants[claim]
        claimants = {normal(f.distribution) for f in found} if len(found) > 1 else set()
        if len(claimants) < 2 or claim[0] == "namespace":  # one plugin may add kernels to another's operators
            return "", ""
        chosen, _, origin = self._setting(f"plugins.choose.{claim[1]}")
        return (str(chosen), origin) if chosen is not None and normal(str(chosen)) in claimants else ("", "")

    def _not_chosen(self, found: Found) -> Verdict | None:
        for claim in self._claims[found.identity]:
            chosen, origin = self._choice(claim)
            if chosen and normal(chosen) != normal(found.distribution):
                name = f"plugins.choose.{claim[1]}"
                return "disabled", f"{name} is {chosen!r} ({origin})", f"set {name} to {found.distribution!r}", None
        return None

    def _owned(self, found: Found) -> Verdict | None:
        """What core's data file knows belongs to the distribution that it names, while that is installed and not disabled."""
        for claim in self._claims[found.identity]:
            owner = self._owners.get(claim)
            others = owner is not None and normal(owner) != normal(found.distribution) and normal(owner) in self._there
            if others and not self._choice(claim)[0]:
                reason = f"the {' '.join(claim)} is that of {owner}, which is installed"
                return "blocked", reason, f'choose it: [plugins.choose] {claim[1]} = "{found.distribution}"', None
        return None

    def _same_name(self, found: Found) -> Verdict | None:
        rivals = [f for f in self._claimants["plugin", found.name] if self._own[f.identity] is None]
        if len(rivals) == 1:
            return None
        both = " and ".join(f.owner for f in rivals)
        return "conflict", f"{both} have a plugin of this name", _choose(found.name, found), None

    def _rival(self, found: Found) -> Verdict | None:
        for claim in self._claims[found.identity]:
            if len(self._claimants[claim]) == 1:
                continue
            usable = [f for f in self._claimants[claim] if self._usable.get(f.name) is f]
            if len(usable) == 1 or claim[0] == "namespace" or self._choice(claim)[0]:
                continue
            what = f"the {' '.join(claim)} is provided by {' and '.join(f.name for f in usable)}"
            if len({normal(f.distribution) for f in usable}) > 1:
                return "conflict", what, _choose(claim[1], found), None
            others = [f.name for f in usable if f is not found]
            return "conflict", what, f"name all but one of them in plugins.disable, such as {others[0]}", None
        return None

    def _circle(self, found: Found) -> Verdict | None:
        """Every plugin of a circle has failed. Plugins outside that require one of them are blocked."""
        paths = [[found.name]]
        seen = set()
        while paths:
            path = paths.pop()
            there = self._usable.get(path[-1])
            for name in sorted(there.manifest.requires_plugins if there is not None and there.manifest is not None else ()):
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
        past = self._past.get(found.identity)
        if past is not None and past[0] in ("failed", "conflict"):
            return past
        if found.compiled:
            reason = f"{found.compiled} is compiled, and Python imports no compiled module from a zip file ({found.path})"
            return "unavailable", reason, f"install {found.distribution} into a folder of sys.path", None
        for need in found.manifest.needs:
            if need.module not in self._importable:  # many need the same
                self._importable[need.module] = importable(need.module)
            if not self._importable[need.module]:
                ours = providers.distribution_of(need.module)
                remedy = providers.install(ours) if ours else need.install
                return "unavailable", f"the module {need.module} is not installed", remedy, None
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
