"""A registry of its own for a test: two backends, kernels and fallbacks of two distributions."""

from __future__ import annotations

import pytest
from plain_objects import Handle

from turnout.keys import BackendRow, KeySpace
from turnout.registry import Registrations, Registry


@pytest.fixture
def registry() -> Registry:
    """What falls through everywhere does so here."""
    registry = Registry(KeySpace())
    for name in ("CPU", "XPU"):
        registry.keys.add_backend(BackendRow(name))
    core = Registrations("core", distribution="core-dist", version="0", registry=registry)
    core.fallthrough("ADInplaceOrView")
    core.fallthrough("BackendSelect")
    return registry


@pytest.fixture
def library(registry: Registry) -> Registrations:
    return Registrations("lib", distribution="lib-dist", version="1.2", registry=registry)


@pytest.fixture
def x(registry: Registry) -> Handle:
    """What counts as a tensor of the first backend."""
    return Handle(registry.keys.tensor_bits("CPU"))
