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


# Of complex64, arithmetic, sums, products, means, truths and moves of elements run there. These do not.
ON_HOST_OF_COMPLEX = frozenset((
    # Functions whose branch cuts, infinities and zeros NumPy decides.
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "expm1", "log", "log10", "log1p", "log2", "rsqrt",
    "sigmoid", "sin", "sinh", "sqrt", "tan", "tanh", "pow.Tensor_Tensor", "pow.Scalar", "pow.Tensor_Scalar",
    # Sums into places that repeat, and moments.
    "embedding_dense_backward", "index_put", "scatter_add", "var.dim", "var.correction",
    # Of its cases, the one without rounding.
    "div.Scalar_mode",
    "_fft_r2c", "_fft_c2r",
))  # fmt: skip


def on_host(name: str, dtype: str) -> str:
    """What runs on the host in some calls of an operator; "" for nothing."""
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
            mine(*bridge.here(call.args, "opencl"), **bridge.here(call.kwargs, "opencl"))
    return host_fallback.report() if host_fallback.calls() else ""


@pytest.mark.parametrize("name", core.operators())
def test_a_core_operator_runs_on_opencl_without_the_host(name: str) -> None:
    found = on_host(name, "float32")
    assert bool(found) == (name in ON_HOST), found


@pytest.mark.parametrize("name", core.operators())
def test_a_core_operator_of_complex_numbers_runs_there_too(name: str) -> None:
    found = on_host(name, "complex64")
    assert not found or name in ON_HOST_OF_COMPLEX, found
