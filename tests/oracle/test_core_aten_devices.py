"""PyTorch's Core ATen operators run on `opencl` and `dask` without the host, but for those that are listed with a reason."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

torch = pytest.importorskip("torch")

from op_db import bridge, core  # noqa: E402
from test_core_aten import operator  # noqa: E402

import turnout  # noqa: E402
from turnout_aten.backend import host_fallback  # noqa: E402

CALLS = 3  # of each operator, evenly spread over those of PyTorch's tests
ON_HOST = {
    "opencl": {
        "_fft_r2c": "a transform of many lengths, whose results are complex",
        "_fft_c2r": "a transform of many lengths, whose argument is complex",
    },
    "dask": {
        "nonzero": "how large the result is depends on the numbers",
        "index_put": "a mask among the indices becomes their positions by nonzero",
    },
}


@pytest.fixture(scope="module", params=ON_HOST)
def device(request: pytest.FixtureRequest, need_device: Callable[[str], None]) -> Iterator[str]:
    name = request.param
    need_device(name)
    with ExitStack() as stack:
        if name == "dask":
            import dask

            stack.enter_context(dask.config.set(scheduler="sync"))
            stack.enter_context(turnout.config.override({"plugin.dask.chunk_size": "64B"}))
        yield name


@pytest.mark.parametrize("name", core.operators())
def test_a_core_operator_runs_without_the_host(device: str, name: str) -> None:
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
            mine(*bridge.here(call.args, device), **bridge.here(call.kwargs, device))
    assert bool(host_fallback.calls()) == (name in ON_HOST[device]), host_fallback.report()
