"""`plugins`, `doctor` and `config`: what is installed, what is wrong with it, and which settings are in force."""

from __future__ import annotations

import platform
import sys
import traceback
from typing import TYPE_CHECKING, Any

import click

from turnout_cli.activation import BROKEN, activate_all
from turnout_cli.main import facts
from turnout_cli.output import note, print_json, print_lines, print_table

if TYPE_CHECKING:
    from turnout.plugins.records import PluginRecord

STYLES = {"active": "green", "discovered": "green", "unavailable": "yellow", "disabled": "yellow", **dict.fromkeys(BROKEN, "red")}


def plugin_facts(record: PluginRecord) -> dict[str, Any]:
    """A plugin's record as data; the exception of a failed one as its traceback's lines."""
    names = ("name", "distribution", "version", "kind", "state", "reason", "remedy", "summary", "module", "api", "origin")
    found: dict[str, Any] = {name: getattr(record, name) for name in names}
    found["requires"] = list(record.requires)
    found["provides"] = list(record.provides)
    error = record.error
    found["traceback"] = [] if error is None else "".join(traceback.format_exception(error)).splitlines()
    return found


@click.command
@facts
def plugins(as_json: bool) -> None:
    """List the installed plugins with their states; runs none of their code."""
    from turnout import config
    from turnout import plugins as installed

    records = installed.all_plugins()
    if as_json:
        print_json([plugin_facts(record) for record in records])
        return
    rows = [
        (r.name, r.state, f"{r.distribution} {r.version}", r.kind, ", ".join(r.provides), r.reason.partition("\n")[0])
        for r in records
    ]
    if rows:
        print_table(("plugin", "state", "distribution", "kind", "provides", "reason"), rows, styles=STYLES)
    else:
        print_lines("no plugin is installed: pip install turnout-cpu")
    problem = config.problem()
    if problem is not None:
        note(f"the configuration cannot be read, so this is what holds without one:\n{problem}")


@click.command
@facts
@click.pass_context
def doctor(ctx: click.Context, as_json: bool) -> None:
    """Try every plugin and the configuration; say what is broken, why, and what to do. Exit code 1 if something is."""
    found = _examined()
    broken = [p for p in found["plugins"] if p["state"] in BROKEN]
    found["healthy"] = not broken and not found["configuration"]["problem"] and not found["settings"]
    if as_json:
        print_json(found)
    else:
        _print_examined(found, with_traceback=bool(ctx.meta.get("turnout.traceback")))
    if not found["healthy"]:
        ctx.exit(1)


def _examined() -> dict[str, Any]:
    import turnout
    from turnout import config
    from turnout.registry import REGISTRY

    problem = config.problem()
    records = activate_all()
    return {
        "turnout": turnout.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "executable": sys.executable,
        "configuration": {"problem": "" if problem is None else str(problem), "changed": _changed_settings()},
        "settings": [] if problem is not None else _failing_settings(),
        "plugins": [plugin_facts(record) for record in records],
        "dangling": sorted(op.qualified_name for op in REGISTRY.dangling()),
    }


def _failing_settings() -> list[str]:
    """The errors of settings that are well written, and ask for what cannot be had: a device, a key."""
    from turnout import config, plugins
    from turnout.devices import default_device
    from turnout.errors import TurnoutError

    found = []
    for setting, attempt in (("default_device", default_device), ("keys.enable", plugins.enabled_keys().include)):
        try:
            if config.get(setting):
                attempt()
        except TurnoutError as error:
            found.append(str(error))
    return found


def _changed_settings() -> list[dict[str, str]]:
    from turnout import config

    if config.problem() is not None:
        return []
    values = [value for value in config.describe() if value.origin.source != "default"]
    return [{"name": v.name, "value": _shown(v.value), "origin": str(v.origin)} for v in values]


def _print_examined(found: dict[str, Any], *, with_traceback: bool) -> None:
    print_lines(f"turnout {found['turnout']}, Python {found['python']} on {found['platform']}", found["executable"], "")
    problem = found["configuration"]["problem"]
    changed = found["configuration"]["changed"]
    if problem:
        print_lines("configuration: broken", _indented(problem))
    else:
        print_lines(f"configuration: fine, {len(changed)} setting{'' if len(changed) == 1 else 's'} not at the default")
        print_lines(*(f"  {c['name']} = {c['value']} ({c['origin']})" for c in changed))
    for text in found["settings"]:
        print_lines("setting: broken", _indented(text))
    if not found["plugins"]:
        print_lines("plugins: none is installed", "  to fix  pip install turnout-cpu")
    for each in found["plugins"]:
        print_lines(f"plugin {each['name']} ({each['distribution']} {each['version']}): {each['state']}")
        if each["state"] not in ("active", "discovered"):
            print_lines(*(f"  {label:<6}  {_indented(each[key], 10).lstrip()}" for label, key in _ROWS if each[key]))
        if with_traceback and each["traceback"]:
            print_lines(_indented("\n".join(each["traceback"])))
    for name in found["dangling"]:
        print_lines(f"operator {name}: has kernels, but no plugin defines it")
    print_lines("", "healthy" if found["healthy"] else "something is broken: see above")


_ROWS = (("why", "reason"), ("from", "origin"), ("to fix", "remedy"))


def _indented(text: str, by: int = 2) -> str:
    return "\n".join(" " * by + line for line in text.splitlines())


def _shown(value: Any) -> str:
    from turnout.config.values import show

    return "not set" if value is None else show(value)


@click.command
@click.argument("name", required=False)
@facts
def config(name: str | None, as_json: bool) -> None:
    """Show every setting, or the one called NAME, with its value and where that comes from."""
    from turnout import config as configuration

    values = configuration.describe()
    if name is not None:
        configuration.origin(name)  # an unknown name is an error that lists similar names
        values = [value for value in values if value.name == name] or [configuration.current_store().value(name)]
    if as_json:
        print_json([{"name": v.name, "value": v.value, "origin": str(v.origin), "help": v.help} for v in values])
        return
    rows = [(v.name, _shown(v.value), str(v.origin), v.help) for v in values]
    print_table(("setting", "value", "origin", "meaning"), rows)
