"""The life of a plugin in a process of its own: what its manifest says, what it registers, and what deactivation leaves."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from typing import Any

import pytest

from turnout import plugins

# `KIND` is "device" or "functionality"; USE is what a program does with it.
PROGRAM = """
import hashlib, importlib, json, sys
import turnout
from turnout import config, plugins
from turnout.registry import REGISTRY

KIND, NAME, PLUGIN, USE = json.loads(sys.argv[1])


def record():
    return next(r for r in plugins.all_plugins() if r.name == PLUGIN)


def active():
    return {r.name for r in plugins.all_plugins() if r.state == "active"}


def closure(name):
    required = next(r for r in plugins.all_plugins() if r.name == name).requires
    return {name}.union(*map(closure, required))


def expected():
    \"\"\"What the plugin requires, and the plugins that are activated for a namespace of these, with what they require.\"\"\"
    needed = closure(PLUGIN)
    spaces = {p for r in plugins.all_plugins() if r.name in needed for p in r.provides if p.startswith("namespace:")}
    return needed.union(*(closure(r.name) for r in plugins.all_plugins() if spaces.intersection(r.provides)))


def registered():
    \"\"\"(operator or fallback, key, kernel) of all that the plugin's distribution registered.\"\"\"
    origin = f"{record().distribution} {record().version}".strip()
    rows = [
        (name, key, kernel.name)
        for name, op in REGISTRY.operators.items()
        for key, kernels in op.kernels.items()
        for kernel in kernels
        if kernel.origin == origin
    ]
    return sorted(rows + [("", key, kernel.name) for key, kernel in REGISTRY.fallbacks.items() if kernel.origin == origin])


def used():
    (plugins.require_device if KIND == "device" else plugins.require_functionality)(NAME)
    exec(USE, {"turnout": turnout})


(plugins.require_device if KIND == "device" else plugins.require_functionality)(NAME)
beyond = sorted(active() - expected())
used()
manifest = record().manifest
first = registered()
plugins.deactivate(PLUGIN)
left, state = registered(), record().state
problem = None
if KIND == "device":
    config.set({"plugins.disable": [PLUGIN]})
    try:
        turnout.ones(1, device=NAME)
    except turnout.TurnoutError as error:
        problem = type(error).__name__
    config.set({"plugins.disable": []})
try:
    used()
    again = "as before" if registered() == first else "something else"
except Exception as error:
    again = f"{type(error).__name__}: {error}"
print(json.dumps({
    "beyond": beyond,
    "registered": first,
    "left": left,
    "after deactivation": state,
    "when disabled": problem,
    "again": again,
    "backends": [b.name for b in manifest.backends],
    "keys": [k.name for k in manifest.keys] + [k.prefix for k in manifest.keys if k.prefix],
    "namespaces": list(manifest.namespaces),
    "absent names": sorted(
        name for public in manifest.public.values() for name, module in public.names.items()
        if not hasattr(importlib.import_module(module), name)
    ),
    "absent options": sorted(
        name for name, option in manifest.options.items() if config.get(f"plugin.{PLUGIN}.{name}") != option.default
    ),
    "version": [record().version, importlib.metadata.version(record().distribution)],
}))
"""


def provider(kind: str, name: str) -> str:
    """The installed plugin that provides a device or functionality, "" where it was registered without a plugin."""
    for record in plugins.all_plugins():
        if f"{kind}:{name}" in record.provides and record.usable:
            return record.name
    return ""


@cache
def life(kind: str, name: str, use: str) -> dict[str, Any]:
    """What the program says of the plugin that provides a device or functionality. The test is skipped where no plugin does."""
    plugin = provider(kind, name)
    if not plugin:
        pytest.skip(f"no installed plugin provides {name}")
    given = json.dumps([kind, name, plugin, use])
    command = [sys.executable, "-P", "-c", f"import importlib.metadata{PROGRAM}", given]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{plugin} in a process of its own:\n{done.stderr}"
    return json.loads(done.stdout)


def check_needs(facts: dict[str, Any]) -> None:
    """The manifest names the plugins that are needed."""
    assert facts["beyond"] == [], "active, and not in requires_plugins"


def check_names_and_options(facts: dict[str, Any]) -> None:
    """What the manifest says of public names and of options is so."""
    assert facts["absent names"] == []
    assert facts["absent options"] == [], "options whose value is not the default"


def foreign(facts: dict[str, Any]) -> list[str]:
    """What a plugin registered at keys that its manifest does not name, for operators of others."""
    own = [*facts["backends"], *facts["keys"]]
    return [
        f"{name or 'a fallback'} at {key}"
        for name, key, _ in facts["registered"]
        if name.partition("::")[0] not in facts["namespaces"] and not any(part in key for part in own)
    ]
