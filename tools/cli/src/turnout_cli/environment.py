"""`plugins`, `doctor` and `config`: what is installed, what is wrong with it, and which settings are in force."""

from __future__ import annotations

import os
import platform
import sys
import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from turnout.plugins.records import USABLE
from turnout_cli.activation import BROKEN, activate_all
from turnout_cli.main import Problem, facts
from turnout_cli.names import plugin_names, setting_names
from turnout_cli.output import coloured, note, print_json, print_lines, print_table

if TYPE_CHECKING:
    from turnout.plugins.records import PluginRecord


def no_plugin() -> str:
    """That nothing is installed, and what to install first: the backend of lowest rank."""
    from turnout import plugins

    remedy = plugins.remedy_for("device", plugins.default_device_type(), activate=False)
    return "no plugin is installed" + (f"\n  to fix  {remedy}" if remedy else "")


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
@click.argument("name", required=False, shell_complete=plugin_names)
@facts
@click.pass_context
def plugins(ctx: click.Context, name: str | None, as_json: bool) -> None:
    """List the installed plugins, or show the one called NAME.

    Runs none of their code. Exit code 1 if there is none.
    """
    from turnout import config
    from turnout import plugins as installed
    from turnout.errors.layout import near

    every = installed.all_plugins()
    records = [record for record in every if name in (None, record.name)]
    if name is not None and not records:
        raise Problem(f"no plugin {name} is installed{near(name, (record.name for record in every))}")
    if as_json:
        print_json([plugin_facts(record) for record in records])
    elif name is not None:
        for record in records:
            _print_plugin(plugin_facts(record), (("is", "summary"), ("provides", "provides"), ("requires", "requires"), *_ROWS))
    elif records:
        rows = [
            (r.name, r.state, f"{r.distribution} {r.version}", r.kind, ", ".join(r.provides), r.reason.partition("\n")[0])
            for r in records
        ]
        print_table(("plugin", "state", "distribution", "kind", "provides", "reason"), rows)
    else:
        print_lines(no_plugin())
    problem = config.problem()
    if problem is not None:
        note(f"this is what holds without a configuration, because:\n{problem}")
    if not records:
        ctx.exit(1)


@click.command
@facts
@click.pass_context
def doctor(ctx: click.Context, as_json: bool) -> None:
    """Try every plugin and the configuration; say what is broken.

    For each problem, it says why, and what to do. Exit code 1 if something is broken.
    """
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
    from turnout.keys import KEYS
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
        "keys": list(KEYS.notes.values()),
        "dangling": sorted(op.qualified_name for op in REGISTRY.dangling()),
        "notes": _notes(records),
    }


def _notes(records: Sequence[PluginRecord]) -> list[str]:
    """What is not broken, and could surprise: a Python that nobody tested, no C compiler, plugins for an older plugin-API."""
    import shutil
    import sysconfig
    from importlib.metadata import metadata

    from turnout.plugins import PLUGIN_API

    found = []
    here, prefix = ".".join(platform.python_version_tuple()[:2]), "Programming Language :: Python :: 3."
    tested = [each.rpartition(" ")[2] for each in metadata("turnout-core").get_all("Classifier") or () if each.startswith(prefix)]
    if tested and here not in tested:
        found.append(f"Python {here} is not among the versions that are tested: {', '.join(tested)}")
    compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
    if shutil.which(compiler) is None:
        found.append(f"there is no C compiler ({compiler}): packages with C modules can be installed from wheels only")
    for record in records:
        if record.api and record.state not in BROKEN and _numbers(record.api) < _numbers(PLUGIN_API):
            found.append(f"the plugin {record.name} is for plugin-API {record.api}, and {PLUGIN_API} is here: it may do more")
    return found


def _numbers(api: str) -> list[int]:
    return [int(number) for number in api.split(".")]


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
    values = [value for value in config.describe() if value.origin.source not in ("default", "turnout.config.override")]
    return [{"name": v.name, "value": _shown(v.value), "origin": str(v.origin)} for v in values]


def _print_examined(found: dict[str, Any], *, with_traceback: bool) -> None:
    print_lines(f"turnout {found['turnout']}, Python {found['python']} on {found['platform']}", found["executable"], "")
    problem = found["configuration"]["problem"]
    changed = found["configuration"]["changed"]
    if problem:
        print_lines(Text.assemble("configuration: ", coloured("broken")), _indented(problem))
    else:
        count = f", {len(changed)} setting{'' if len(changed) == 1 else 's'} not at the default"
        print_lines(Text.assemble("configuration: ", coloured("fine"), count))
        print_lines(*(f"  {c['name']} = {c['value']} ({c['origin']})" for c in changed))
    for text in found["settings"]:
        print_lines(Text.assemble("setting: ", coloured("broken")), _indented(text))
    if not found["plugins"]:
        print_lines(no_plugin())
    for each in found["plugins"]:
        _print_plugin(each, _ROWS if each["state"] not in USABLE else ())
        if with_traceback and each["traceback"]:
            print_lines(_indented("\n".join(each["traceback"])))
    for text in found["keys"]:
        print_lines(f"key: {text}")
    for name in found["dangling"]:
        print_lines(f"operator {name}: has kernels, but no plugin defines it")
    for text in found["notes"]:
        print_lines(f"note: {text}")
    verdict = coloured("healthy") if found["healthy"] else Text.assemble(coloured("something is broken"), ": see above")
    print_lines("", verdict)


def _print_plugin(facts_of_one: dict[str, Any], rows: Sequence[tuple[str, str]]) -> None:
    """A plugin with its state, and below it rows of (label, fact)."""
    head = "plugin {name} ({distribution} {version}): ".format_map(facts_of_one)
    print_lines(Text.assemble(head, coloured(facts_of_one["state"])))
    width = max((len(label) for label, _ in rows), default=0)
    for label, key in rows:
        fact = facts_of_one[key] if isinstance(facts_of_one[key], str) else ", ".join(facts_of_one[key])
        if fact:
            print_lines(f"  {label:<{width}}  {_indented(fact, width + 4).lstrip()}")


_ROWS = (("why", "reason"), ("from", "origin"), ("to fix", "remedy"))


def _indented(text: str, by: int = 2) -> str:
    return "\n".join(" " * by + line for line in text.splitlines())


def _shown(value: Any) -> str:
    from turnout.config.values import show

    return "not set" if value is None else show(value)


@click.command
@click.argument("name", required=False, shell_complete=setting_names)
@facts
def config(name: str | None, as_json: bool) -> None:
    """Show every setting, or the one called NAME, and its origin.

    The origin is the file and line, or the variable, that the value comes from.
    """
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
