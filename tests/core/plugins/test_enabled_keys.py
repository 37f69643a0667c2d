"""`keys.enable`: what it activates and includes, from every source, for a plugin in every state, in every thread and context."""

from __future__ import annotations

import asyncio
import itertools
import sys
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest
from installed_folder import MANIFEST

import turnout
from turnout import config, plugins, state
from turnout.devices import Backend, default_device
from turnout.errors import ConfigError, DisabledError, PluginError, TurnoutError, UniverseError
from turnout.keys import KEYS
from turnout.plugins import providers
from turnout.registry import REGISTRY, Registrations

FUNCTIONALITY = """\
name = "{name}"
distribution = "{distribution}"
kind = "functionality"
api = "1.0"
module = "{package}.plugin"
{top}
{tables}
"""
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
OPTION = '\n[option.level]\ntype = "int"\ndefault = 0\nhelp = "a number"\n'


class Thing:
    """What the operator is called with."""

    def __init__(self) -> None:
        self.keys = REGISTRY.backends["Till"].keys


@pytest.fixture
def sell(registering):
    """An operator of one backend."""

    class Till(Backend):
        name = "Till"
        device_type = "till"

    with Registrations("shop") as library:
        library.backend(Till())
        library.impl("sell", "Till", lambda x: "sold")
        yield library.define("shop::sell(Tensor x) -> Tensor")
    state.unsettle()


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


# ---- setting x origin x state

ORIGINS = (
    "turnout.toml",
    "pyproject.toml",
    "the file that TURNOUT_CONFIG names",
    "the user's file",
    "environment",
    "set",
    "override",
)
TEXTS = {
    "keys.enable": '["Counter"]',
    "keys.disable": '["Counter"]',
    "plugins.disable": '["counter"]',
    "plugin.counter.level": "7",
    "default_device": '"counter"',
}


def assign(stack, monkeypatch, origin, setting, text):
    """Give a setting its value in one source; returns the origin as errors print it."""
    value = eval(text)
    if origin == "set":
        config.set({setting: value})
        return "turnout.config.set"
    if origin == "override":
        stack.enter_context(config.override({setting: value}))
        return "turnout.config.override"
    if origin == "environment":
        variable = "TURNOUT_" + setting.upper().replace(".", "__")
        monkeypatch.setenv(variable, ",".join(value) if isinstance(value, list) else str(value))
        config.reload()
        return f"environment {variable}"
    path = {
        "turnout.toml": Path("turnout.toml"),
        "pyproject.toml": Path("pyproject.toml"),
        "the file that TURNOUT_CONFIG names": Path("named.toml"),
        "the user's file": Path("../home/turnout/config.toml"),
    }[origin].resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    head = "[tool.turnout]" if origin == "pyproject.toml" else "# settings"
    path.write_text(f"{head}\n{setting} = {text}\n")
    if "TURNOUT_CONFIG" in origin:
        monkeypatch.setenv("TURNOUT_CONFIG", str(path))
    config.reload()
    return f"{path}:2"


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


@pytest.fixture
def stack():
    with ExitStack() as found:
        yield found


@pytest.mark.filterwarnings("ignore::turnout.errors.PluginWarning")
@pytest.mark.parametrize(("how", "origin"), list(itertools.product(STATES, ORIGINS)))
def test_an_enabled_key_takes_part_or_is_an_error_that_names_the_setting(sell, registering, monkeypatch, stack, how, origin):
    install(registering, monkeypatch, how, counter)
    if STATES[how] and origin == "override":
        with pytest.raises(TurnoutError) as caught:
            assign(stack, monkeypatch, origin, "keys.enable", TEXTS["keys.enable"])
        where = "turnout.config.override"
    else:
        where = assign(stack, monkeypatch, origin, "keys.enable", TEXTS["keys.enable"])
        if not STATES[how]:
            assert sell(Thing()) == "sold"
            assert calls() == [0]
            assert f"added    Counter (keys.enable, {where})" in str(turnout.explain(sell, Thing()))
            return
        with pytest.raises(TurnoutError) as caught:
            sell(Thing())
        with pytest.raises(type(caught.value)):  # and again: nothing is computed without the key
            sell(Thing())
    assert str(caught.value).splitlines()[0] == f"Counter (keys.enable, {where}): {STATES[how]}"
    assert type(caught.value) is (DisabledError if how == "disabled" else PluginError)


@pytest.mark.filterwarnings("ignore::turnout.errors.PluginWarning")
@pytest.mark.parametrize(("how", "origin"), list(itertools.product(STATES, ORIGINS[:-1])))
def test_a_disabled_key_cannot_be_asked_for_in_any_state(sell, registering, monkeypatch, stack, how, origin):
    install(registering, monkeypatch, how, counter)
    where = assign(stack, monkeypatch, origin, "keys.disable", TEXTS["keys.disable"])
    assert sell(Thing()) == "sold"
    with pytest.raises(DisabledError) as caught:
        plugins.require_functionality("Counter")
    assert str(caught.value) == (
        f"Counter was asked for, but keys.disable switches it off\n  set in  {where}\n  to fix  take Counter out of keys.disable"
    )
    with pytest.raises(ConfigError) as caught:
        config.set({"keys.enable": ["Counter"]})
    assert str(caught.value).splitlines()[1:] == [
        f"  turnout.config.set  keys.enable: 'Counter', but keys.disable has 'Counter' ({where})"
    ]


@pytest.mark.parametrize(("how", "origin"), list(itertools.product([s for s in STATES if s != "disabled"], ORIGINS[:-1])))
def test_a_disabled_plugin_is_silent_in_any_state(site, monkeypatch, stack, how, origin):
    install(site, monkeypatch, how, counter) if how != "active" else counter(site)
    where = assign(stack, monkeypatch, origin, "plugins.disable", TEXTS["plugins.disable"])
    plugins.activate_all()
    for strict in (False, True):  # a warning would be an error here
        with config.override(strict=strict), pytest.raises(TurnoutError):
            plugins.require_device("nosuch")
    states = {(record.state, record.reason) for record in plugins.all_plugins()}
    assert states == (set() if how == "not installed" else {("disabled", f"plugins.disable names counter ({where})")})


@pytest.mark.filterwarnings("ignore::turnout.errors.PluginWarning")
@pytest.mark.parametrize(("how", "origin"), list(itertools.product(("discovered", "active"), ORIGINS)))
def test_an_option_of_the_plugin_applies(sell, registering, monkeypatch, stack, how, origin):
    install(registering, monkeypatch, how, counter)
    assign(stack, monkeypatch, origin, "plugin.counter.level", TEXTS["plugin.counter.level"])
    with config.override({"keys.enable": ["Counter"]}):
        sell(Thing())
    assert calls() == [7]


@pytest.mark.filterwarnings("ignore::turnout.errors.PluginWarning")
@pytest.mark.parametrize(("how", "origin"), list(itertools.product(STATES, ORIGINS)))
def test_the_default_device_is_used_or_is_an_error_that_names_the_setting(registering, monkeypatch, stack, how, origin):
    install(registering, monkeypatch, how, backend)
    where = assign(stack, monkeypatch, origin, "default_device", TEXTS["default_device"])
    if not STATES[how]:
        assert default_device().backend.name == "Counter"
        return
    with pytest.raises(TurnoutError) as caught:
        default_device()
    assert str(caught.value).splitlines()[0] == f"device 'counter' (default_device, {where}): {STATES[how]}"


# ---- names


@pytest.mark.parametrize(
    ("enable", "problem"),
    [
        (["Cuonter"], "keys.enable: there is no key 'Cuonter'; did you mean Counter?"),
        (["AutogradTill"], "keys.enable: AutogradTill is one key of Autograd, which is enabled as a whole: write 'Autograd'"),
        (["AcmeTill"], "keys.enable: AcmeTill is one key of Acme, which is enabled as a whole: write 'Acme'"),
    ],
)
def test_a_key_that_cannot_be_enabled_is_refused(sell, registering, enable, problem):
    counter(registering)
    counter(registering, name="acme", key="Acme", row='prefix = "Acme"\nafter = "Counter"')
    plugins.reset_discovery()
    with pytest.raises(ConfigError) as caught:
        config.set({"keys.enable": enable})
    assert str(caught.value).splitlines()[1:] == [f"  turnout.config.set  {problem}"]


@pytest.mark.parametrize(
    ("enable", "disable"),
    [("Counter", "Counter"), ("Autocast", "AutocastTill"), ("AutocastTill", "Autocast"), ("Autograd", "AutogradTill")],
)
@pytest.mark.parametrize("first", ["keys.enable", "keys.disable"])
def test_one_key_that_is_enabled_and_disabled_is_an_error_with_both_lines(
    sell, registering, settings_file, enable, disable, first
):
    counter(registering)
    plugins.reset_discovery()
    rows = [f'enable = ["{enable}"]', f'disable = ["{disable}"]']
    with pytest.raises(ConfigError) as caught:
        settings_file("\n".join(["[keys]", *(rows if first == "keys.enable" else rows[::-1])]))
    path = Path("turnout.toml").resolve()
    on, off = (2, 3) if first == "keys.enable" else (3, 2)
    assert str(caught.value).splitlines()[1:] == [
        f"  {path}:{on}  keys.enable: {enable!r}, but keys.disable has {disable!r} ({path}:{off})"
    ]


def test_an_override_cannot_enable_what_the_process_disables(sell, registering):
    counter(registering)
    plugins.reset_discovery()
    config.set({"keys.disable": ["Counter"]})
    with (
        pytest.raises(ConfigError, match=r"'Counter', but keys\.disable has 'Counter'"),
        config.override(keys__enable=["Counter"]),
    ):
        pass


def test_one_backends_key_may_be_disabled_beside_anothers_that_is_enabled(sell, registering):
    backend(registering, activation="")
    plugins.reset_discovery()
    config.set({"keys.enable": ["AutocastTill"], "keys.disable": ["AutocastCounter"]})


@pytest.mark.parametrize("key", ["Dense", "BackendSelect", "Python"])
def test_a_key_that_takes_part_anyway_can_be_named(sell, key):
    config.set({"keys.enable": [key]})
    assert sell(Thing()) == "sold"


def test_a_standard_key_that_nothing_provides_is_an_error(sell, monkeypatch):
    monkeypatch.setattr(providers, "data", dict)
    config.set({"keys.enable": ["Functionalize"]})
    with pytest.raises(PluginError, match=r"Functionalize \(keys.enable, turnout.config.set\): no installed plugin provides it"):
        sell(Thing())


# ---- threads and contexts


@pytest.fixture
def counting(sell, registering):
    counter(registering)
    plugins.reset_discovery()
    return sell


def in_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


def test_a_change_reaches_threads_that_started_earlier_and_new_ones(counting):
    go, done = threading.Event(), threading.Event()

    def wait():
        counting(Thing())
        done.set()
        go.wait()
        counting(Thing())

    thread = threading.Thread(target=wait)
    thread.start()
    done.wait()
    config.set({"keys.enable": ["Counter"]})
    go.set()
    thread.join()
    assert len(calls()) == 1
    in_thread(lambda: counting(Thing()))
    assert len(calls()) == 2
    config.unset("keys.enable")
    in_thread(lambda: counting(Thing()))
    counting(Thing())
    assert len(calls()) == 2


@pytest.mark.parametrize(
    "guard", [lambda: state.exclude("Tracer"), lambda: state.exclude("Autograd"), state.below_adinplaceorview]
)
def test_a_change_reaches_blocks_that_were_entered_before(counting, guard):
    with guard():
        config.set({"keys.enable": ["Counter"]})
        counting(Thing())
        assert len(calls()) == 1
        config.unset()
        counting(Thing())
    assert len(calls()) == 1


def test_a_context_can_exclude_what_is_enabled(counting):
    config.set({"keys.enable": ["Counter"]})
    with state.exclude("Counter"):
        counting(Thing())
    assert calls() == []
    counting(Thing())
    assert calls() == [0]


def test_an_override_holds_for_its_context_and_replaces_the_value(counting, registering):
    counter(registering, name="audit", key="Audit", row='after = "Counter"')
    plugins.reset_discovery()
    config.set({"keys.enable": ["Counter"]})
    with config.override({"keys.enable": ["Audit"]}):
        counting(Thing())
        in_thread(lambda: counting(Thing()))
        assert (len(calls()), len(calls("audit"))) == (1, 1)
        with config.override({"keys.enable": []}):
            counting(Thing())
        with config.override({"keys.enable": ["Counter", "Audit"]}):
            counting(Thing())
        assert (len(calls()), len(calls("audit"))) == (2, 2)
    counting(Thing())
    assert (len(calls()), len(calls("audit"))) == (3, 2)


def test_tasks_do_not_see_each_others_overrides(counting):
    async def enabled():
        with config.override({"keys.enable": ["Counter"]}):
            await asyncio.sleep(0)
            counting(Thing())

    async def plain():
        counting(Thing())
        await asyncio.sleep(0)
        counting(Thing())

    async def both():
        await asyncio.gather(enabled(), plain())

    asyncio.run(both())
    assert len(calls()) == 1


def test_an_override_that_fails_leaves_nothing(sell, registering):
    counter(registering, activation="raise OSError('no driver')")
    plugins.reset_discovery()
    before = state.current()
    with pytest.raises(PluginError, match="no driver"), config.override({"keys.enable": ["Counter"], "strict": True}):
        pass
    assert state.current() == before
    assert config.get("strict") is False


def test_a_plugin_that_was_deactivated_is_activated_by_the_next_call(counting):
    config.set({"keys.enable": ["Counter"]})
    counting(Thing())
    plugins.deactivate("counter")
    counting(Thing())
    assert [r.state for r in plugins.all_plugins()] == ["active"]


def test_an_opt_in_key_is_switched_on_for_tensors_that_bring_it(sell, registering):
    counter(registering, row='after = "Autograd"\nopt_in = true')
    plugins.reset_discovery()
    config.set({"keys.enable": ["Counter"]})
    plain, bringing = Thing(), Thing()
    bringing.keys |= KEYS.bit("Counter")
    sell(plain)
    assert calls() == []
    sell(bringing)
    assert calls() == [0]


def test_what_is_enabled_costs_nothing_where_nothing_is(sell):
    sell(Thing())
    assert state.STUB_BUILTINS["DISPATCH"] == state.DISPATCH.get


def test_a_plugin_may_call_operators_while_it_is_activated_for_the_setting(sell, registering):
    calling = COUNTS.replace("KEY", "Counter") + "    early.append(OP(THING))\n"
    counter(registering, activation=calling.replace("calls = []", "calls, early = [], []"))
    plugins.reset_discovery()
    import builtins

    builtins.OP, builtins.THING = sell, Thing()
    try:
        config.set({"keys.enable": ["Counter"]})
        assert sell(Thing()) == "sold"
    finally:
        del builtins.OP, builtins.THING
    assert sys.modules["fake_counter.plugin"].early == ["sold"]
    assert calls() == [0]


# ---- guards by name


def test_a_guard_activates_what_provides_the_key(counting):
    with state.include("Counter"):
        counting(Thing())
    assert calls() == [0]


@pytest.mark.parametrize("how", [h for h, problem in STATES.items() if problem and h != "not installed"])
@pytest.mark.filterwarnings("ignore::turnout.errors.PluginWarning")
def test_a_guard_says_why_a_plugin_cannot_be_used(sell, registering, monkeypatch, how):
    install(registering, monkeypatch, how, counter)
    with pytest.raises(TurnoutError) as caught:
        state.include("Counter")
    assert str(caught.value).splitlines()[0] == f"Counter: {STATES[how]}"


def test_a_guard_of_a_key_that_nobody_knows_says_so(counting):
    with pytest.raises(UniverseError) as caught:
        state.include("Cuonter")
    assert str(caught.value) == "unknown dispatch key 'Cuonter'; did you mean Counter?"


def test_a_guard_of_a_disabled_key_names_the_setting(counting):
    config.set({"keys.disable": ["Counter"]})
    with pytest.raises(DisabledError, match=r"Counter was asked for, but keys\.disable switches it off"):
        state.include("Counter")
