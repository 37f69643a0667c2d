"""A plugin that counts calls at its key, installed so that it is in a chosen state; a backend of its name; what is called."""

from __future__ import annotations

import sys

from installed_folder import FUNCTIONALITY, MANIFEST

from turnout import config, plugins
from turnout.plugins import providers
from turnout.registry import REGISTRY

COUNTS = """\
from turnout.plugins import hookimpl

calls = []

@hookimpl
def turnout_activate(library, options):
    bit = library.registry.keys.bit("KEY")

    def count(op, ks, args):
        calls.append(options["level"])
        return op.redispatch(ks & ~bit, *args)

    library.fallback("KEY", count)
"""
DEVICE = """\
from turnout.devices import Backend
from turnout.plugins import hookimpl

class Own(Backend):
    name = "{backend}"
    device_type = "{name}"

@hookimpl
def turnout_activate(library, options):
    library.backend(Own())
"""
OPTION = """
[option.level]
type = "int"
default = 0
help = "a number"

[option.peer]
type = "str"
default = ""
trusted = true
help = "an address"
"""


class Thing:
    """What the operator is called with."""

    def __init__(self) -> None:
        self.keys = REGISTRY.backends["Till"].keys


def counter(site, *, name="counter", key="Counter", top="", row='after = "Autograd"', activation="", distribution=""):
    """An installed plugin that counts the calls at its key."""
    site.plugin(
        name,
        manifest=FUNCTIONALITY,
        top=top,
        tables=f'[[provides.key]]\nname = "{key}"\n{row}\n{OPTION}',
        activation=activation or COUNTS.replace("KEY", key),
        distribution=distribution,
    )


def calls(name="counter"):
    """The values of the option at each call that a plugin counted."""
    module = sys.modules.get(f"fake_{name}.plugin")
    return [] if module is None else module.calls


# State of the plugin -> how it comes about, and what asking for it is.
STATES = {
    "discovered": "",
    "active": "",
    "disabled": "the plugin counter is disabled",
    "failed while it was imported": "the plugin counter has failed",
    "failed for its manifest": "the plugin counter has failed",
    "incompatible": "the plugin counter is incompatible",
    "unavailable": "the plugin counter is unavailable",
    "blocked": "the plugin counter is blocked",
    "conflict": "the plugin counter is in conflict with another",
    "not installed": "no installed plugin provides it",
}


def install(site, monkeypatch, how, make):
    """Install the plugin so that it is in one of the states."""
    if how == "not installed":
        row = {"distribution": "dist-counter", "devices": ["counter"], "backends": ["Shop"], "lowest_device": ""}
        row |= {"functionalities": ["Counter"], "namespaces": [], "public": []}
        monkeypatch.setattr(providers, "data", lambda: {"counter": row})
    else:
        top = {"failed for its manifest": "misspelt = 1", "blocked": 'requires_plugins = ["gone"]', "unavailable": ""}.get(
            how, ""
        )
        make(site, top=top, activation="raise OSError('no driver')" if "imported" in how else "")
        path = site.folder / "fake_counter/plugin.toml"
        if how == "incompatible":
            path.write_text(path.read_text().replace('api = "1.0"', 'api = "2.0"'))
        if how == "unavailable":
            path.write_text(path.read_text() + '\n[[needs]]\nmodule = "no_such_module"\ninstall = "pip install it"\n')
        if how == "conflict":
            make(site, distribution="other-counter")
    plugins.reset_discovery()
    if how == "active":
        plugins.activate("counter")
    if how == "disabled":
        config.set({"plugins.disable": ["counter"]})


def backend(site, **options):
    site.plugin("counter", manifest=MANIFEST, tables=OPTION, **{**options, "activation": options.get("activation") or DEVICE})
