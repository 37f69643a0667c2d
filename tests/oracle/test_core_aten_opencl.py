"""PyTorch's Core ATen operators run on `opencl` without the host, but for those that are listed with a reason."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")

from op_db import bridge, core  # noqa: E402
from test_core_aten import operator  # noqa: E402

from turnout_aten.backend import host_fallback  # noqa: E402

CALLS = 3  # of each operator, evenly spread over those of PyTorch's tests
ON_HOST = {
    "_fft_r2c": "a transform of many lengths, whose results are complex",
    "_fft_c2r": "a transform of many lengths, whose argument is complex",
}


@pytest.fixture(scope="module", autouse=True)
def needs_a_driver(need_device: Callable[[str], None]) -> None:
    need_device("opencl")


@pytest.mark.parametrize("name", core.operators())
def test_a_core_operator_runs_on_opencl_without_the_host(name: str) -> None:
    theirs, mine = operator(name)
    found = core.calls(name, "float32")
    host_fallback.reset_calls()
    for call in found[:: max(1, len(found) // CALLS)]:
        args, kwargs = core.kept((call.args, call.kwargs))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                theirs(*args, **kwargs)
            except (RuntimeError, NotImplementedError, TypeError):
                continue
            mine(*bridge.here(call.args, "opencl"), **bridge.here(call.kwargs, "opencl"))
    assert bool(host_fallback.calls()) == (name in ON_HOST), host_fallback.report()
