"""`keys`: the order of all dispatch keys, who provides each, whether it is on, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from turnout_cli.main import facts
from turnout_cli.output import note, print_json, print_lines, print_table

if TYPE_CHECKING:
    from turnout.keys import Functionality


@click.command
@facts
@click.pass_context
def keys(ctx: click.Context, as_json: bool) -> None:
    """List all dispatch keys, who provides each, and which are on.

    The highest key comes first. The table says whether each key is on in a new thread, and why. The lines below it say why
    each key of a plugin has its place. Exit code 1 if a key that the setting keys.enable names cannot be switched on.
    """
    from turnout import config, plugins
    from turnout.errors import TurnoutError
    from turnout.keys import KEYS

    config.get("keys.enable")  # a configuration that cannot be read is an error
    problem = ""
    try:
        plugins.enabled_keys().include()
    except TurnoutError as error:
        problem = str(error)
    KEYS.discovered()  # a functionality of an installed plugin has a row from then on
    rows = [key_facts(key, row) for row in reversed(KEYS.functionalities) for key in _keys_of(row)]
    if as_json:
        print_json({"keys": rows, "problem": problem})
    else:
        cells = [(r["key"], r["state"], r["why"], r["provider"], r["plugin_state"]) for r in rows]
        print_table(("key", "state", "why", "provided by", "plugin"), cells)
        for name, place in sorted(KEYS.places.items()):
            print_lines(f"{name} stands {place}")
        print_lines(*KEYS.notes.values())
    if problem:
        if not as_json:
            note(problem)
        ctx.exit(1)


def _keys_of(row: Functionality) -> list[str]:
    """The runtime keys of a functionality, those of the backend of highest rank first."""
    from turnout.keys import KEYS

    return [row.name] if row.prefix is None else [row.prefix + backend for backend in reversed(KEYS.backends)]


def key_facts(key: str, row: Functionality) -> dict[str, Any]:
    """One key as data."""
    from turnout.keys import KEYS

    state, why = _state(key, row)
    provider, plugin_state = _provider(key, row)
    place = KEYS.places.get(row.name, "in the standard order")
    found = {
        "key": key,
        "functionality": row.name,
        "state": state,
        "why": why,
        "provider": provider,
        "plugin_state": plugin_state,
    }
    return {**found, "place": place, "note": KEYS.notes.get(row.name, "")}


def _state(key: str, row: Functionality) -> tuple[str, str]:
    """Whether a key takes part in the calls of a new thread, and why."""
    from turnout import config

    entry = config.key_disabled(key, row.name)
    if entry:
        return "disabled", f"keys.disable has {entry} ({config.origin('keys.disable')})"
    enabled = [name for name in (row.name, row.family) if name in config.get("keys.enable")]
    if enabled:
        return "on", f"keys.enable has {enabled[0]} ({config.origin('keys.enable')})"
    if row.included:
        return "on", "part of every call"
    if row.opt_in:
        return "off", "until a program or keys.enable switches it on"
    if row.on_tensors:
        return "on", "brought by every tensor of its backend" if row.prefix is not None else "brought by every tensor"
    return "off", "until a tensor, a guard or keys.enable brings it"


def _provider(key: str, row: Functionality) -> tuple[str, str]:
    """The plugin behind a key and its state; the package to install where there is none."""
    from turnout import plugins
    from turnout.registry import REGISTRY

    kind, name = ("backend", key) if row.prefix == "" else ("functionality", row.family)
    records = [r for r in plugins.all_plugins() if f"{kind}:{name}" in r.provides]
    if records:
        return ", ".join(f"{r.name} ({r.distribution} {r.version})" for r in records), ", ".join(r.state for r in records)
    if name in REGISTRY.fallbacks:
        return f"core ({REGISTRY.fallbacks[name].origin})", ""
    remedy = plugins.remedy_for(kind, name, activate=False)
    return (f"none: {remedy}", "") if remedy else ("none", "")
