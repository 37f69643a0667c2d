"""Fixtures of the tests of tensors and operators, which need no array library."""

from __future__ import annotations

import pytest
from pure_backend import registered

from turnout import plugins

plugins.activate("aten")  # tests that call operators on backends of their own use no name that would do it


@pytest.fixture
def pure():
    """The pure-Python backend, as the device "pure"."""
    with registered() as backend:
        yield backend
