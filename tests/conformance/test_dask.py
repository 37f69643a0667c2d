"""The kit on the device `dask`, in chunks so small that most arrays have several.

`make test-all` runs a part of it, and `--selection whole` all: see `ON_DEMAND` in tests/selection.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import turnout
from turnout_conformance.test_backend_device import *  # noqa: F403 - its tests
from turnout_conformance.test_backend_operators import *  # noqa: F403 - its tests
from turnout_conformance.test_backend_plugin import *  # noqa: F403 - its tests

TURNOUT_BACKENDS = ("dask",)


@pytest.fixture(autouse=True, scope="module")
def small_chunks(need_device: Callable[[str], None]) -> Iterator[None]:
    need_device("dask")
    import dask

    options = {"plugin.dask.chunk_size": "64B", "plugin.dask.print_values": True}
    with dask.config.set(scheduler="sync"), turnout.config.override(options):
        yield
