"""The state of each plugin, with its reason and remedy, before anything is activated."""

from __future__ import annotations

import itertools
import sys

import pytest

from outcomes import refused
from turnout import config, plugins
from turnout.errors import PluginError
from turnout.plugins import providers
from turnout.plugins.states import Judge


def state_of(name):
    return next((r.state, r.reason, r.remedy) for r in plugins.all_plugins() if r.name == name)


def test_a_plugin_is_discovered_without_its_code_being_run(site):
    path = site.plugin("alpha", activation="raise SystemExit('code was run')")
    [record] = plugins.all_plugins()
    assert (record.name, record.distribution, record.version, record.state) == ("alpha", "dist-alpha", "0.1", "discovered")
    assert record.path == str(path)
    assert record.origin == f"dist-alpha 0.1 ({path})"
    assert record.provides == ("backend:Alpha", "device:alpha")
    assert "fake_alpha" not in sys.modules


@pytest.mark.parametrize(
    ("file", "variables", "expected"),
    [
        ('disable = ["*"]', {}, "disabled"),
        ('disable = ["*"]\nenable = ["alpha"]', {}, "discovered"),
        ('disable = ["alpha"]', {"TURNOUT_PLUGINS__ENABLE": "alpha"}, "discovered"),
        ('enable = ["alpha"]', {"TURNOUT_PLUGINS__DISABLE": "alpha"}, "disabled"),
        ('enable = ["alpha"]', {"TURNOUT_PLUGINS__DISABLE": "*"}, "disabled"),
        ('disable = ["alpha"]', {"TURNOUT_PLUGINS__DISABLE": ""}, "discovered"),
    ],
)
def test_the_stronger_source_decides_between_enable_and_disable(site, settings_file, monkeypatch, file, variables, expected):
    site.plugin("alpha")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    settings_file(f"[plugins]\n{file}\n")
    assert state_of("alpha")[0] == expected


def test_a_plugin_is_blocked_by_what_it_requires(site, settings_file):
    site.plugin("alpha")
    site.plugin("beta", top='requires_plugins = ["alpha"]')
    site.plugin("gamma", top='requires_plugins = ["beta"]')
    file = settings_file('[plugins]\ndisable = ["alpha"]\n')
    disabled = f"it requires the plugin alpha, which is disabled: plugins.disable names alpha ({file}:2)"
    assert state_of("beta") == ("blocked", disabled, "take it out, or name it in plugins.enable")
    assert state_of("gamma") == (
        "blocked",
        f"it requires the plugin beta, which is blocked: {disabled}",
        "take it out, or name it in plugins.enable",
    )


def test_a_missing_module_makes_a_plugin_unavailable_until_it_is_there(site):
    site.plugin("alpha", tables='[[needs]]\nmodule = "fake_driver.low"\ninstall = "pip install fake-driver"\n')
    assert state_of("alpha") == ("unavailable", "the module fake_driver.low is not installed", "pip install fake-driver")
    assert refused(PluginError, plugins.activate, "alpha") == (
        "the plugin alpha is unavailable\n"
        "  why     the module fake_driver.low is not installed\n"
        f"  from    {plugins.all_plugins()[0].origin}\n"
        "  to fix  pip install fake-driver"
    )
    site.distribution("fake-driver", files={"fake_driver/__init__.py": "1/0", "fake_driver/low.py": ""})
    assert plugins.activate("alpha").state == "active"


def test_a_missing_module_of_ours_is_installed_by_the_command_of_core(site, monkeypatch):
    monkeypatch.setattr(providers, "packages", lambda: frozenset({"fake_driver"}))
    monkeypatch.setattr(providers, "install", "pip install /clone/{}".format)
    site.plugin("alpha", tables='[[needs]]\nmodule = "fake_driver"\ninstall = "pip install fake-driver"\n')
    assert state_of("alpha")[2] == "pip install /clone/fake-driver"


def test_a_missing_module_of_turnout_is_answered_with_its_own_package(site, monkeypatch):
    monkeypatch.setattr(providers, "packages", lambda: {"turnout_away"})
    site.plugin("alpha", tables='[[needs]]\nmodule = "turnout_away.low"\ninstall = "pip install alpha"\n')
    assert state_of("alpha") == ("unavailable", "the module turnout_away.low is not installed", "pip install turnout-away")


def test_a_plugin_for_an_older_minor_of_the_api_works_with_a_newer_core(site, monkeypatch):
    from turnout.plugins import environment

    monkeypatch.setattr(environment, "PLUGIN_API", "1.7")
    site.plugin("alpha")
    assert plugins.activate("alpha").state == "active"


def test_two_distributions_with_one_name_wait_for_a_choice(site, settings_file):
    site.plugin("alpha", distribution="one-alpha")
    site.plugin("alpha", distribution="two-alpha")
    assert [(r.state, r.reason, r.remedy) for r in plugins.all_plugins()] == [
        (
            "conflict",
            "one-alpha 0.1 and two-alpha 0.1 have a plugin of this name",
            f'choose one: [plugins.choose] alpha = "{name}-alpha"',
        )
        for name in ("one", "two")
    ]
    assert "the plugin alpha is in conflict with another" in refused(PluginError, plugins.require_device, "alpha")
    file = settings_file('[plugins.choose]\nalpha = "Two_Alpha"\n')
    assert [(r.distribution, r.state) for r in plugins.all_plugins()] == [("one-alpha", "disabled"), ("two-alpha", "discovered")]
    assert state_of("alpha")[1] == f"plugins.choose.alpha is 'Two_Alpha' ({file}:2)"
    assert plugins.activate("alpha").distribution == "two-alpha"


def test_listing_works_with_a_configuration_that_does_not(site):
    site.plugin("alpha")
    with open("turnout.toml", "w") as file:
        file.write("strikt = true\n")
    assert state_of("alpha")[0] == "discovered"
    assert config.problem() is not None


def test_states_do_not_depend_on_the_order_in_which_plugins_are_found(site):
    site.plugin("alpha", top='requires_plugins = ["beta"]')
    site.plugin("beta", top='requires_plugins = ["gamma"]')
    site.plugin("gamma", top='requires_plugins = ["beta"]')
    site.plugin("delta", distribution="one-delta")
    site.plugin("delta", distribution="two-delta")
    found = plugins.catalog().found
    seen = set()
    for order in itertools.permutations(found):
        judge = Judge(list(order), lambda name: (None if "choose" in name else (), 99, "default"), {})
        seen.add(tuple(judge.verdict(each)[:2] for each in found))
    [states] = seen
    assert [state for state, _ in states] == ["blocked", "failed", "conflict", "conflict", "failed"]
