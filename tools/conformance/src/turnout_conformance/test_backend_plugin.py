"""The plugin that brings the device: its manifest is true, and deactivation takes everything back."""

from __future__ import annotations

from typing import Any

from turnout.devices import device
from turnout_conformance.lifecycle import check_names_and_options, check_needs, foreign, life


def life_of(name: str) -> dict[str, Any]:
    """What the device's plugin does in a process of its own; the test is skipped where no plugin provides the device."""
    return life("device", name, f"x = turnout.ones(2, device={name!r}); (x + x).tolist()")


def test_the_manifest_names_the_backend_and_what_it_registers(turnout_device: str) -> None:
    facts = life_of(turnout_device)
    assert device(turnout_device).backend.name in facts["backends"]
    assert foreign(facts) == [], "kernels at keys that the manifest does not provide"


def test_the_manifest_names_the_plugins_that_are_needed(turnout_device: str) -> None:
    check_needs(life_of(turnout_device))


def test_the_names_options_and_version_of_the_manifest_are_there(turnout_device: str) -> None:
    facts = life_of(turnout_device)
    check_names_and_options(facts)
    assert len(set(facts["version"])) == 1


def test_deactivation_takes_everything_back_and_the_next_use_brings_it_again(turnout_device: str) -> None:
    facts = life_of(turnout_device)
    assert facts["registered"]
    assert facts["left"] == []
    assert facts["after deactivation"] == "discovered"
    assert facts["when disabled"] == "DisabledError"
    assert facts["again"] == "as before"
