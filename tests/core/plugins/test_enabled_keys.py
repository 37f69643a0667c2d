"""`keys.enable`: which names it takes, and that it reaches every thread, context and block.

`test_settings_table` has what it does from every source, for a plugin in every state.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path

import pytest
from counting_plugin import COUNTS, STATES, Thing, backend, calls, counter, install

from outcomes import in_threads, refused
from turnout import config, plugins, state
from turnout.errors import ConfigError, DisabledError, PluginError, TurnoutError, UniverseError
from turnout.keys import KEYS
from turnout.plugins import providers
from turnout.registry import REGISTRY

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
    assert refused(ConfigError, config.set, {"keys.enable": enable}).splitlines()[1:] == [f"  turnout.config.set  {problem}"]


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
    plugins.reset_discovery()
    config.set({"keys.enable": ["Functionalize"]})
    with monkeypatch.context() as missing:  # another test may have activated its plugin
        missing.setattr("turnout.plugins.enabled.ACTIVE", set())
        missing.delitem(REGISTRY.fallbacks, "Functionalize", raising=False)
        assert "Functionalize (keys.enable, turnout.config.set): no installed plugin" in refused(PluginError, sell, Thing())


# ---- threads and contexts


@pytest.fixture
def counting(sell, registering):
    counter(registering)
    plugins.reset_discovery()
    return sell


def in_thread(function):
    in_threads(function)


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
    assert refused(TurnoutError, state.include, "Counter").splitlines()[0] == f"Counter: {STATES[how]}"


def test_a_guard_of_a_key_that_nobody_knows_says_so(counting):
    assert refused(UniverseError, state.include, "Cuonter") == "unknown dispatch key 'Cuonter'; did you mean Counter?"


def test_a_guard_of_a_disabled_key_names_the_setting(counting):
    config.set({"keys.disable": ["Counter"]})
    assert "Counter was asked for, but keys.disable switches it off" in refused(DisabledError, state.include, "Counter")
