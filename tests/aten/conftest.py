"""Fixtures of the tests of tensors and operators."""

from __future__ import annotations

import pytest
from few_kernels import registered

from turnout import plugins

plugins.activate("aten")  # tests that call operators on backends of their own use no name that would do it


@pytest.fixture
def few():
    """The backend with few kernels, as the device "few"."""
    with registered() as backend:
        yield backend
