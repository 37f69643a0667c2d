"""What docs/manifest.md and docs/configuration.md show and list is what there is."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from turnout.config.lines import Lines
from turnout.config.settings import SETTINGS
from turnout.config.values import show
from turnout.plugins import PLUGIN_API, discovery
from turnout.plugins.manifest import _BACKEND, _ENGINE, _KEY, _MANIFEST, _MEMBERS, _NEED, _OPTION, _PROVIDES, parse
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


def tables(text):
    """Title of the first column -> the names in it -> the other cells."""
    found = {}
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        (title, *_), _, *rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in table.splitlines()]
        found[title.strip("`")] = {name: rest for first, *rest in rows for name in re.findall(r"`(.*?)`", first) or [first]}
    return found


def test_the_states_and_the_api_are_in_the_documentation():
    text = (DOCS / "manifest.md").read_text()
    assert tables(text)["state"].keys() == set(STATES)
    assert f'PLUGIN_API` is `"{PLUGIN_API}"`' in text


def test_every_field_is_in_the_documentation_with_its_choices_and_whether_it_is_required():
    said = tables((DOCS / "manifest.md").read_text())
    top = _MANIFEST | {f"provides.{name}": field for name, field in _PROVIDES.items()} | {"option.<name>": _MANIFEST["option"]}
    del top["provides"], top["option"]
    for title, fields in {"field": top, "provides.backend": _BACKEND, "provides.key": _KEY, "provides.engine": _ENGINE}.items():
        assert said[title].keys() == fields.keys()
        for name, field in fields.items():
            required, meaning = said[title][name]
            assert (required == "required") == bool(field.required), name
            assert [choice for choice in filter(None, field.choices) if choice not in meaning] == [], name
            assert not (field.choices and field.absent) or re.search(rf'`"{field.absent}"`[^;]*\(the default\)', meaning), name
    options = (*_OPTION, *_OPTION["type"].choices)
    for name, words in {"needs": _NEED, "option.<name>": options, "provides.members": _MEMBERS}.items():
        meaning = said["field"][name][1]
        assert [word for word in words if not re.search(rf"`{word}\b", meaning)] == [], name


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
