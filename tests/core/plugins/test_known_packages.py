"""Which package has a public name, where the names of some plugin were not made yet when core was built."""

from __future__ import annotations

import json

import pytest

from turnout.plugins import providers

EMPTY = {"devices": [], "backends": [], "functionalities": [], "namespaces": [], "lowest_device": ""}


@pytest.fixture
def known(monkeypatch):
    rows = {
        "listed": {**EMPTY, "distribution": "turnout-listed", "public": ["peel"], "names_unread": False},
        "unread": {**EMPTY, "distribution": "turnout-unread", "public": ["slice"], "names_unread": True},
    }
    monkeypatch.setattr(providers, "data", lambda: rows)


def test_a_name_that_nobody_lists_may_be_of_a_plugin_whose_names_were_not_made(known):
    assert providers.provider_of("public", "peel") == "turnout-listed"
    assert providers.provider_of("public", "slice") == "turnout-unread"
    assert providers.provider_of("public", "squeeze") == "turnout-unread"
    assert providers.provider_of("public", "squeeze", {"unread"}) is None  # it is installed, so its names are known
    assert providers.provider_of("public", "slice", {"unread"}) == "turnout-unread"
    for kind in ("device", "plugin"):  # only public names can be unread
        assert providers.provider_of(kind, "squeeze") is None


# ---- the command that installs a package


@pytest.fixture
def clone(known, monkeypatch, tmp_path):
    """Core was installed from the clone's folder `core`; `installed` says how, and gives the command for turnout-listed."""
    providers.data()["listed"]["folders"] = {"turnout-needed": "plugins/needed", "turnout-listed": "plugins/listed one"}
    for folder in ("core", "plugins/needed", "plugins/listed one"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "pyproject.toml").touch()
    present = {}

    class Installed:
        def read_text(self, name):
            assert name == "direct_url.json"
            return present["turnout-core"]

    def named(name):
        return [Installed()] if name in present else []

    monkeypatch.setattr(providers, "named", named)

    def installed(direct, *others):
        present.clear()
        present.update(dict.fromkeys(others), **{"turnout-core": direct if direct is None else json.dumps(direct)})
        return providers.install("turnout-listed")

    return tmp_path, installed


def test_where_core_comes_from_an_index_a_package_is_installed_by_its_name(clone):
    folder, installed = clone
    assert installed(None) == "pip install turnout-listed"
    assert installed({"url": "https://host/turnout.git", "vcs_info": {}}) == "pip install turnout-listed"
    assert installed({"url": (folder / "core.whl").as_uri(), "archive_info": {}}) == "pip install turnout-listed"
    assert installed([]) == "pip install turnout-listed"


def test_where_core_comes_from_a_clone_a_package_is_installed_from_there_with_what_it_needs(clone):
    folder, installed = clone
    direct = {"url": (folder / "core").as_uri(), "dir_info": {}}
    assert installed(direct) == f"pip install {folder}/plugins/needed '{folder}/plugins/listed one'"
    assert installed(direct, "turnout-needed") == f"pip install '{folder}/plugins/listed one'"
    assert installed(direct, "turnout-listed") == f"pip install {folder}/plugins/needed"
    assert providers.install("turnout-needed") == f"pip install {folder}/plugins/needed"  # a library, which has no row
    direct["dir_info"]["editable"] = True
    assert installed(direct, "turnout-needed") == f"pip install -e '{folder}/plugins/listed one'"
    assert providers.install("turnout-needed", "turnout-tool") == "pip install turnout-needed turnout-tool"
    (folder / "tools/tool").mkdir(parents=True)
    (folder / "tools/tool/pyproject.toml").touch()
    assert providers.install("turnout-needed", "turnout-tool") == f"pip install -e {folder}/tools/tool"


def test_a_clone_that_is_gone_or_has_no_such_package_is_not_named(clone):
    folder, installed = clone
    (folder / "plugins/listed one/pyproject.toml").unlink()
    assert installed({"url": (folder / "core").as_uri(), "dir_info": {}}) == "pip install turnout-listed"
    assert providers.install("turnout-unread") == "pip install turnout-unread"
