"""Random programs of registrations do what a plain model says that they do."""

from __future__ import annotations

import pytest
from plain_objects import backends, box  # noqa: F401

from random_programs import registration
from random_programs.registration import Step
from turnout.registry import Registry


def tensor(device):
    return box(1, on=device)


def test_programs_of_registrations_do_what_the_model_says(seeds):
    for seed in seeds(60, many=5000):
        found = registration.problem(seed, tensor)
        if found:
            pytest.fail(found)


def test_kernels_that_fall_through_are_a_conflict_when_the_one_that_overrides_is_gone():
    for key in registration.KEYS[:-2]:
        ends, passes = (Step(group, "impl", "t::g", key, passes=group > 0, override=not group) for group in (0, 1))
        steps = [ends, passes, Step(1, "define", "t::g"), passes._replace(group=2), Step(0, "undo")]
        assert registration.first_difference(steps, tensor) == "", key


def test_a_cache_that_is_not_cleared_is_noticed(monkeypatch):
    changed = Registry.changed
    monkeypatch.setattr(Registry, "changed", lambda self, op=None: None if op is not None else changed(self))
    assert any(registration.problem(seed, tensor) for seed in range(20))
