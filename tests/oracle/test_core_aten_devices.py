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
# Device and dtype -> what calls the host there, and why.
ON_HOST = {
    ("opencl", "float32"): {
        "_fft_r2c": "a transform of many lengths, whose results are complex",
        "_fft_c2r": "a transform of many lengths, whose argument is complex",
    },
    ("opencl", "complex64"): {
        "_fft_c2r": "a transform of many lengths",
        "div.Scalar_mode": "one of its cases is without rounding",
    }
    | dict.fromkeys(
        (
            "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "expm1", "log", "log10", "log1p", "log2",
            "rsqrt", "sigmoid", "sin", "sinh", "sqrt", "tan", "tanh", "pow.Tensor_Tensor", "pow.Scalar", "pow.Tensor_Scalar",
        ),
        "branch cuts, infinities and signed zeros are those of NumPy",
    )
    | dict.fromkeys(
        ("embedding_dense_backward", "index_put", "scatter_add", "var.dim", "var.correction"),
        "sums into places that repeat, or moments",
    ),
    ("dask", "float32"): {
        "nonzero": "how large the result is depends on the numbers",
        "index_put": "a mask among the indices becomes their positions by nonzero",
    },
}  # fmt: skip


@pytest.fixture(scope="module", params=ON_HOST, ids="-".join)
def place(request: pytest.FixtureRequest, need_device: Callable[[str], None]) -> Iterator[tuple[str, str]]:
    device, dtype = request.param
    need_device(device)
    with ExitStack() as stack:
        if device == "dask":
            import dask

            stack.enter_context(dask.config.set(scheduler="sync"))
            stack.enter_context(turnout.config.override({"plugin.dask.chunk_size": "64B"}))
        yield device, dtype


@pytest.mark.parametrize("name", core.operators())
def test_a_core_operator_runs_without_the_host(place: tuple[str, str], name: str) -> None:
    device, dtype = place
    theirs, mine = operator(name)
    found = core.calls(name, dtype)
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
    assert bool(host_fallback.calls()) == (name in ON_HOST[place]), host_fallback.report()
