"""Which package has a public name, where the names of some plugin were not made yet when core was built."""

from __future__ import annotations

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


@pytest.mark.usefixtures("known")
def test_a_name_that_nobody_lists_may_be_of_a_plugin_whose_names_were_not_made():
    assert providers.provider_of("public", "peel") == "turnout-listed"
    assert providers.provider_of("public", "slice") == "turnout-unread"
    assert providers.provider_of("public", "squeeze") == "turnout-unread"


@pytest.mark.usefixtures("known")
def test_the_names_of_an_installed_plugin_are_known():
    assert providers.provider_of("public", "squeeze", {"unread"}) is None
    assert providers.provider_of("public", "slice", {"unread"}) == "turnout-unread"


@pytest.mark.usefixtures("known")
def test_only_public_names_can_be_unread():
    assert providers.provider_of("device", "squeeze") is None
    assert providers.provider_of("plugin", "squeeze") is None
