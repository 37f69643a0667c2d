"""Random programs of registrations do what a plain model says that they do."""

from __future__ import annotations

import pytest
from plain_objects import backends, box  # noqa: F401

from random_programs import registration
from turnout.registry import Registry


def tensor(device):
    return box(1, on=device)


def test_programs_of_registrations_do_what_the_model_says(seeds):
    for seed in seeds(60, many=5000):
        found = registration.problem(seed, tensor)
        if found:
            pytest.fail(found)


def test_a_cache_that_is_not_cleared_is_noticed(monkeypatch):
    changed = Registry.changed
    monkeypatch.setattr(Registry, "changed", lambda self, op=None: None if op is not None else changed(self))
    assert any(registration.problem(seed, tensor) for seed in range(20))
