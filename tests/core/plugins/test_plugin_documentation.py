"""What docs/manifest.md and docs/configuration.md show and list is what there is."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from turnout.config.lines import Lines
from turnout.config.settings import SETTINGS
from turnout.config.values import show
from turnout.plugins import PLUGIN_API, discovery
from turnout.plugins.manifest import _BACKEND, _ENGINE, _KEY, _PROVIDES, parse
from turnout.plugins.records import STATES

DOCS = Path(__file__).resolve().parents[3] / "docs"


def block(text, mark):
    [found] = [code for code in re.findall(r"```toml\n(.*?)```", text, re.DOTALL) if mark in code]
    return found


def test_the_manifest_of_the_documentation_is_accepted():
    text = block((DOCS / "manifest.md").read_text(), "turnout_acme/plugin.toml")
    names = {"plugin": "acme", "package": "turnout_acme", "distribution": "turnout-acme", "version": "1"}
    manifest = parse(tomllib.loads(text), Lines(text), Path("plugin.toml"), **names)
    assert manifest.promises() == {"backend:Acme", "device:acme", "functionality:AcmeProfiler", "namespace:acme"}
    assert not discovery.incompatibility(manifest.api, PLUGIN_API)


def test_every_field_state_and_the_api_are_in_the_documentation():
    text = (DOCS / "manifest.md").read_text()
    assert set(re.findall(r"^\| (\w+) \|", text.split("## States")[1], re.MULTILINE)) - {"state"} == set(STATES)
    assert f'PLUGIN_API` is `"{PLUGIN_API}"`' in text
    for field in ("name", "distribution", "kind", "api", "module", "summary", "requires_plugins", "needs"):
        assert f"| `{field}` |" in text
    for field in (*_BACKEND, *_KEY, *_ENGINE, *(f"provides.{name}" for name in _PROVIDES)):
        assert f"`{field}`" in text


def test_every_setting_is_in_the_documentation_with_its_default():
    text = (DOCS / "configuration.md").read_text()
    for setting in SETTINGS.values():
        default = show(setting.default).replace("'", '"')
        assert f"| `{setting.name}` | `{default}` |" in text


def test_the_settings_of_a_context_are_those_of_the_documentation():
    text = (DOCS / "configuration.md").read_text()
    [listed] = re.findall(r"`turnout.config.override` accepts (.*?) and plugin options\.", text, re.DOTALL)
    assert re.findall(r"`(.*?)`", listed) == [setting.name for setting in SETTINGS.values() if setting.scoped]


def test_the_configuration_of_the_documentation_has_only_settings_that_exist():
    table = tomllib.loads(block((DOCS / "configuration.md").read_text(), "strict"))
    plugins = table.pop("plugins")
    assert plugins.keys() == {"disable", "enable", "choose"}
    assert table.pop("keys").keys() == {"enable", "disable"}
    assert table.pop("kernels").keys() == {"choose"}
    assert table.pop("names").keys() == {"choose"}
    assert table.pop("plugin").keys() == {"acme"}
    assert table.keys() == {"default_device", "strict"}
