"""Setting x origin x state: what each setting about a plugin does, from every source, for a plugin in every state.

The state `disabled` comes from `config.set`, so that it is the same in every row.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest
from counting_plugin import DEVICE, STATES, Thing, backend, calls, counter, install

import turnout
from turnout import config, plugins
from turnout.devices import default_device
from turnout.errors import PluginWarning, TurnoutError
from turnout.errors import config as errors

FILES = {
    "turnout.toml": "turnout.toml",
    "pyproject.toml": "pyproject.toml",
    "the file that TURNOUT_CONFIG names": "named.toml",
    "the user's file": "../home/turnout/config.toml",
}
ORIGINS = ("default", *FILES, "environment", "set", "override")

# State -> the lines of an error after its first. {site} is where the plugin is installed.
FROM = "  from    dist-counter 0.1 ({site}/fake_counter/plugin.toml)\n"
WHY = {
    "disabled": "  why     plugins.disable names counter ({disabled})\n"
    + FROM
    + "  to fix  take it out, or name it in plugins.enable",
    "failed while it was imported": (
        "  why     OSError: no driver ({site}/fake_counter/plugin.py:1)\n"
        + FROM
        + "  to fix  upgrade dist-counter, tell its authors, or name counter in plugins.disable"
    ),
    "failed for its manifest": (
        "  why     the manifest of dist-counter 0.1 is not accepted\n"
        "             file    {site}/fake_counter/plugin.toml\n"
        "             line 6  misspelt: unknown field\n" + FROM + "  to fix  upgrade dist-counter, or tell its authors"
    ),
    "incompatible": (
        "  why     it was built for plugin-API 2.0; this turnout-core has 1.0\n"
        + FROM
        + "  to fix  upgrade dist-counter and turnout-core"
    ),
    "unavailable": "  why     the module no_such_module is not installed\n" + FROM + "  to fix  pip install it",
    "blocked": (
        "  why     it requires the plugin gone, which is not installed\n"
        + FROM
        + "  to fix  install the package that has the plugin gone"
    ),
    "conflict": (
        "  why     dist-counter 0.1 and other-counter 0.1 have a plugin of this name\n"
        + FROM
        + '  to fix  choose one: [plugins.choose] counter = "dist-counter"'
    ),
    "not installed": "  to fix  pip install dist-counter",
}
# State -> what a plugin that nobody asked for is warned of; it is an error with `strict`.
BROKEN = {
    "failed for its manifest": ["counter (dist-counter 0.1): failed, the manifest of dist-counter 0.1 is not accepted"],
    "incompatible": ["counter (dist-counter 0.1): incompatible, it was built for plugin-API 2.0; this turnout-core has 1.0"],
    "conflict": [
        f"counter ({which}-counter 0.1): conflict, dist-counter 0.1 and other-counter 0.1 have a plugin of this name"
        for which in ("dist", "other")
    ],
}


class Cell(NamedTuple):
    """One cell of the table. `where` is the origin as errors print it, `site` the folder of installed packages."""

    origin: str
    state: str
    where: str
    site: Path

    def refused(self, asked: str, state: str = "", disabled: str = "turnout.config.set") -> str:
        """The error for what was asked, with the plugin in its state, or in another one."""
        state = state or self.state
        kind = "DisabledError" if state == "disabled" else "PluginError"
        return f"{kind}: {asked}: {STATES[state]}\n" + WHY[state].format(site=self.site, disabled=disabled)

    def rejected(self, *problems: str) -> str:
        """The error of a configuration that is not accepted."""
        lines = [f"  {self.where}  {problem}" for problem in problems]
        return "\n".join(["ConfigError: the configuration is not accepted; the one before it stays in force", *lines])

    @property
    def refuses_unknown_plugins(self) -> bool:
        """Whether the source may not name the plugin. The user's file serves several environments, so there it is a warning."""
        return self.state == "not installed" and self.origin not in ("default", "the user's file")


def outcome(call: Callable[[], object]) -> object:
    """What a call gives, or the text of its error or warning."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", PluginWarning)
        try:
            found = call()
        except TurnoutError as error:
            return f"{type(error).__name__}: {error}"
    return [str(each.message) for each in said] or found


# ---- what is looked at


def sold(op) -> object:
    """The result of a call, and the option at each call that the plugin counted."""
    return op(Thing()), calls()


def use(op) -> object:
    """The state of the plugin after something asked for its key."""
    plugins.require_functionality("Counter")
    [record] = [r for r in plugins.all_plugins() if (r.name, r.distribution) == ("counter", "dist-counter")]
    return record.state


def use_option(op) -> object:
    """A call with the key switched on for a block."""
    with config.override({"keys.enable": ["Counter"]}):
        return sold(op)


def use_peer(op) -> object:
    """The option that is trusted, with the key switched on."""
    return use_option(op)[0], config.get("plugin.counter.peer")


def use_device(op) -> object:
    return default_device().backend.name


def look_around(op) -> object:
    """The first look at all installed plugins, for a device that another one has."""
    return plugins.require_device("spare")


# ---- what is expected


def enabled(cell: Cell) -> object:
    """`keys.enable = ["Counter"]`: a call is counted, or it is an error."""
    if cell.origin == "default":
        return "sold", []
    return ("sold", [0]) if not STATES[cell.state] else cell.refused(f"Counter (keys.enable, {cell.where})")


def disabled_key(cell: Cell) -> object:
    """`keys.disable = ["Counter"]`: whatever the state, who asks for the key is told of the setting."""
    if cell.origin == "default":
        return "active" if not STATES[cell.state] else cell.refused("Counter")
    return (
        "DisabledError: Counter was asked for, but keys.disable switches it off\n"
        f"  set in  {cell.where}\n  to fix  take Counter out of keys.disable"
    )


def disabled_plugin(cell: Cell) -> object:
    """`plugins.disable = ["counter"]`: whatever the state, it is disabled."""
    if cell.origin == "default" or cell.state in ("disabled", "not installed"):
        return "active" if not STATES[cell.state] else cell.refused("Counter")
    return cell.refused("Counter", "disabled", cell.where)


def enabled_plugin(cell: Cell) -> object:
    """`plugins.enable = ["counter"]` where the user's file disables all: it is used, unless its state forbids it."""
    if cell.refuses_unknown_plugins:
        return cell.rejected("plugins.enable: the plugin counter is not installed (pip install dist-counter)")
    if cell.state == "disabled" and cell.origin == "set":
        return cell.rejected("plugins.disable: 'counter' is also in plugins.enable of the same source")
    if cell.origin == "default" and cell.state not in ("disabled", "not installed"):
        user = (cell.site.parent / "home/turnout/config.toml").resolve()
        return cell.refused("Counter", "disabled", f"{user}:1").replace("names counter", 'has "*"')
    return "active" if not STATES[cell.state] else cell.refused("Counter")


def chosen_plugin(cell: Cell) -> object:
    """`plugins.choose.counter = "dist-counter"`: it decides a conflict, and nothing else."""
    if cell.refuses_unknown_plugins:
        return cell.rejected("plugins.choose.counter: the plugin counter is not installed (pip install dist-counter)")
    if cell.state == "conflict" and cell.origin != "default":
        return "active"
    return "active" if not STATES[cell.state] else cell.refused("Counter")


def option(cell: Cell) -> object:
    """`plugin.counter.level = 7`: it applies where the plugin runs, and is accepted where it does not."""
    if STATES[cell.state]:
        return cell.refused("Counter (keys.enable, turnout.config.override)")
    return "sold", [0 if cell.origin == "default" else 7]


def trusted_option(cell: Cell) -> object:
    """`plugin.counter.peer = "there"`: a project's file may not set it, as far as the manifest can be read."""
    unread = ("failed for its manifest", "incompatible", "not installed")
    if cell.origin in ("turnout.toml", "pyproject.toml") and cell.state not in unread:
        return cell.rejected(f"plugin.counter.peer: {errors.untrusted('TURNOUT_PLUGIN__COUNTER__PEER')}")
    if STATES[cell.state]:
        return cell.refused("Counter (keys.enable, turnout.config.override)")
    return "sold", "" if cell.origin == "default" else "there"


def device(cell: Cell) -> object:
    """`default_device = "counter"`: the device, or an error that names the setting."""
    return "Counter" if not STATES[cell.state] else cell.refused(f"device 'counter' (default_device, {cell.where})")


def strict(cell: Cell) -> object:
    """`strict = true`: what is a warning by default is an error."""
    lines = BROKEN.get(cell.state, [])
    if cell.origin == "default" or not lines:
        return lines or None
    broken = "".join(f"  broken  {line}\n" for line in lines)
    return (
        "PluginError: the setting strict is on and installed plugins are broken\n"
        f"{broken}  to fix  uninstall them, or name them in plugins.disable"
    )


class Row(NamedTuple):
    """A setting: a value as TOML, what is looked at, what is expected, and whether a block may override it."""

    value: str
    look: Callable[..., object]
    expected: Callable[[Cell], object]
    scoped: bool = False


# fmt: off
TABLE = {
    "keys.enable":            Row('["Counter"]',    sold,        enabled,         scoped=True),
    "keys.disable":           Row('["Counter"]',    use,         disabled_key),
    "plugins.disable":        Row('["counter"]',    use,         disabled_plugin),
    "plugins.enable":         Row('["counter"]',    use,         enabled_plugin),
    "plugins.choose.counter": Row('"dist-counter"', use,         chosen_plugin),
    "plugin.counter.level":   Row("7",              use_option,  option,          scoped=True),
    "plugin.counter.peer":    Row('"there"',        use_peer,    trusted_option,  scoped=True),
    "default_device":         Row('"counter"',      use_device,  device,          scoped=True),
    "strict":                 Row("true",           look_around, strict,          scoped=True),
}
# fmt: on
ROWS = [
    pytest.param(setting, origin, state, id=f"{setting} - {origin} - {state}")
    for setting in TABLE
    for origin in ORIGINS
    for state in STATES
    if not (setting == "default_device" and origin == "default")  # the installed backend of lowest rank: test_manifest_rows
]


@pytest.fixture
def stack():
    with ExitStack() as found:
        yield found


def write(path: str, line: str) -> str:
    """Add a setting to a file; returns its place as errors print it."""
    file = Path(path).resolve()
    file.parent.mkdir(parents=True, exist_ok=True)
    before = file.read_text() if file.exists() else "[tool.turnout]\n" if path == "pyproject.toml" else ""
    file.write_text(f"{before}{line}\n")
    return f"{file}:{before.count(chr(10)) + 1}"


def assign(monkeypatch, origin: str, setting: str, text: str) -> str:
    """Give a setting its value in one source, or nowhere; returns the origin as errors print it."""
    where = ""
    if origin == "environment":
        variable = "TURNOUT_" + setting.upper().replace(".", "__")
        monkeypatch.setenv(variable, text.strip('[]"'))
        where = f"environment {variable}"
    elif origin in FILES:
        where = write(FILES[origin], f"{setting} = {text}")
        if "TURNOUT_CONFIG" in origin:
            monkeypatch.setenv("TURNOUT_CONFIG", where.rpartition(":")[0])
    elif origin != "default":
        where = f"turnout.config.{origin}"
    return where


VALUES = {
    '["Counter"]': ["Counter"],
    '["counter"]': ["counter"],
    '"dist-counter"': "dist-counter",
    "7": 7,
    '"there"': "there",
    '"counter"': "counter",
}


@pytest.mark.parametrize(("setting", "origin", "state"), ROWS)
def test_a_row_of_the_table(sell, registering, monkeypatch, stack, setting, origin, state):
    row = TABLE[setting]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PluginWarning)
        install(registering, monkeypatch, state, backend if setting == "default_device" else counter)
    if setting == "strict":
        registering.plugin("spare", activation=DEVICE)
    if setting == "plugins.enable":
        write(FILES["the user's file"], 'plugins.disable = ["*"]')
    where = assign(monkeypatch, origin, setting, row.value)
    value = VALUES.get(row.value, True)

    def reload_and_look() -> object:
        plugins.reset_discovery()
        config.reload()
        if state == "disabled":
            config.set({"plugins.disable": ["counter"]})
        if origin == "set":
            config.set({setting: value})
        if origin == "override":
            stack.enter_context(config.override({setting: value}))
        return row.look(sell)

    found = outcome(reload_and_look)
    cell = Cell(origin, state, where, registering.folder)
    if origin == "override" and not row.scoped:
        unknown = setting in ("plugins.enable", "plugins.choose.counter") and cell.refuses_unknown_plugins
        problems = [f"{setting}: the plugin counter is not installed (pip install dist-counter)"] if unknown else []
        assert found == cell.rejected(*problems, f"{setting}: it holds for the whole process; use turnout.config.set")
    else:
        assert found == row.expected(cell)
        assert outcome(lambda: again(setting, sell, cell)) == again_expected(setting, cell)


def again(setting: str, op, cell: Cell) -> object:
    """What is looked at a second time: `explain` says who asked for a key, and a disabled one cannot be enabled."""
    if setting == "keys.enable":
        sold(op)
        return [line for line in str(turnout.explain(op, Thing())).splitlines() if line.startswith("  added")]
    if setting == "keys.disable":
        assert op(Thing()) == "sold"  # the slots of the key fall through
        config.set({"keys.enable": ["Counter"]})
    return None


def again_expected(setting: str, cell: Cell) -> object:
    """Where a key was asked for, nothing is computed without it, the second time neither."""
    if setting == "keys.enable":
        entered = cell.origin != "default" and not (STATES[cell.state] and cell.origin == "override")
        if entered and STATES[cell.state]:
            return enabled(cell)
        return [f"  added    Counter (keys.enable, {cell.where}), BackendSelect" if entered else "  added    BackendSelect"]
    if setting == "keys.disable" and cell.origin != "default":
        problem = f"keys.enable: 'Counter', but keys.disable has 'Counter' ({cell.where})"
        return cell._replace(where="turnout.config.set").rejected(problem)
    return None


@pytest.mark.parametrize("state", [state for state in STATES if state != "disabled"])
@pytest.mark.parametrize("origin", [*FILES, "environment", "set"])
def test_a_disabled_plugin_is_silent_in_any_state_also_with_strict(site, monkeypatch, origin, state):
    install(site, monkeypatch, state, counter) if state != "active" else counter(site)
    where = assign(monkeypatch, origin, "plugins.disable", '["counter"]')
    config.reload()
    if origin == "set":
        config.set({"plugins.disable": ["counter"]})
    plugins.activate_all()
    for strict in (False, True):  # a warning would be an error here
        with config.override(strict=strict), pytest.raises(TurnoutError, match=r"^device 'nosuch': there is no such device"):
            plugins.require_device("nosuch")
    states = {(record.state, record.reason) for record in plugins.all_plugins()}
    assert states == (set() if state == "not installed" else {("disabled", f"plugins.disable names counter ({where})")})


def test_the_table_has_every_setting_about_plugins_and_every_state():
    from turnout.config.settings import CHOICES, SETTINGS

    # about kernels, names, calls, graphs and errors
    others = "compile.engine debug.kernels debug.locks kernels.choose. kernels.prefer. names.choose. speed traceback"
    elsewhere = set(others.split())
    named = {setting.replace("plugins.choose.counter", "plugins.choose.") for setting in TABLE} - {
        "plugin.counter.level",
        "plugin.counter.peer",
    }
    assert named | elsewhere == {*SETTINGS, *CHOICES}
    documented = Path(__file__).parents[3].joinpath("docs/manifest.md").read_text().partition("## States\n")[2]
    states = {line.split("|")[1].strip() for line in documented.partition("\n\n## ")[0].splitlines() if line.startswith("| ")}
    assert states - {"state"} == {state.partition(" ")[0] for state in STATES} - {"not"}
