"""The alias Autocast, specialisation by key, and the switches: what a plugin for mixed precision stands on."""

from __future__ import annotations

import pytest

from turnout.keys import AUTOCAST, BackendRow, KeySpace, Universe
from turnout.operators.kernels import FALLTHROUGH, INTERNAL
from turnout.registry import Registrations, Registry


@pytest.fixture
def registry():
    return Registry(KeySpace())


def test_the_alias_covers_the_keys_of_all_backends_those_that_come_later_too():
    keys = KeySpace()
    assert keys.universe.aliases[AUTOCAST] == frozenset()
    keys.add_backend(BackendRow("Two"))
    keys.add_backend(BackendRow("One"))
    assert keys.universe.aliases[AUTOCAST] == {"AutocastOne", "AutocastTwo"}
    keys.remove_backend("Two")
    assert keys.universe.aliases[AUTOCAST] == {"AutocastOne"}


def test_universes_that_are_given_have_no_such_alias():
    assert AUTOCAST not in Universe([("Dense", "")], ["CPU"]).aliases


@pytest.mark.parametrize("first", ["fallback", "backend"])
def test_a_fallback_at_the_alias_is_specialised_for_each_key_of_each_operator(registry, first):
    asked = []

    def specialize(op, key):
        asked.append((op.name, key))
        return FALLTHROUGH if key == "AutocastTwo" else lambda ks, *args: f"{op.name} at {key}"

    library = Registrations("mixed", registry=registry)
    if first == "backend":
        registry.keys.add_backend(BackendRow("One"))
    library.define("mixed::double(Tensor x) -> Tensor")
    library.fallback(AUTOCAST, None, form=INTERNAL, specialize=specialize, by_key=True)
    with registry.lock:
        for name in ("One", "Two"):
            if name not in registry.keys.backends:
                registry.keys.add_backend(BackendRow(name))
        registry.changed()
    op = registry.find("mixed::double")
    assert op.entry("AutocastOne").kernel.fn(0) == "double at AutocastOne"
    assert op.entry("AutocastTwo").kernel.is_fallthrough
    assert asked == [("double", "AutocastOne"), ("double", "AutocastTwo")]
    library.undo()
    assert registry.fallbacks_by_key == {}


def test_the_switch_of_a_functionality_is_the_same_before_and_after_it_exists():
    keys = KeySpace()
    before = keys.switch_bit("AutocastNew")
    keys.add_backend(BackendRow("New"))
    assert next(f.switch for f in keys.functionalities if f.name == "AutocastNew") == before
