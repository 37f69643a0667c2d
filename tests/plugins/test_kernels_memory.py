"""What compiled kernels allocate: their results, and no copy of a large argument."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import turnout.nn.functional as F

import turnout

pytest.importorskip("turnout_kernels._native", reason="the extension module is not built: there is no C compiler")

from turnout_kernels import _native

Call = Callable[[turnout.Tensor], turnout.Tensor]
CALLS: dict[str, Call] = {
    "softmax": lambda x: F.softmax(x, -1),
    "log_softmax": lambda x: F.log_softmax(x, -1),
    "softmax of columns": lambda x: F.softmax(x, 0),
    "layer_norm": lambda x: F.layer_norm(x, (256,)),
    "cumsum": lambda x: x.cumsum(-1),
    "exp": lambda x: x.exp(),
    "gelu": F.gelu,
    "add": lambda x: x + x,
}


def peak(call: Call, x: turnout.Tensor) -> int:
    """The most bytes that a call holds at a time, its result included."""
    call(x)  # activates what serves it
    tracemalloc.start()
    try:
        call(x)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", CALLS)
def test_a_large_contiguous_argument_is_not_copied(name: str) -> None:
    x = turnout.rand(1024, 256)
    size = x.numel() * 4
    assert size <= peak(CALLS[name], x) < 1.5 * size


def test_a_copy_would_be_seen() -> None:
    x = turnout.rand(1024, 256)
    assert peak(lambda x: x.clone() + x, x) >= 2 * x.numel() * 4


@pytest.mark.parametrize("name", ["exp", "gelu", "add"])
def test_bfloat16_is_converted_on_the_way(name: str) -> None:
    x = turnout.rand(1024, 256).to(turnout.bfloat16)
    assert peak(CALLS[name], x) < 1.5 * x.numel() * 2


def test_softmax_copies_a_small_input_into_which_it_computes_and_leaves_a_large_one_alone() -> None:
    copied = []

    class Watched(np.ndarray):
        def copy(self, order: Any = "C") -> Any:
            copied.append(self.size)
            return super().copy(order)

    row = _native.row("softmax", 0, 100, 1, 0, False, np.empty_like, lambda: 1, lambda *args: "left to the other function")
    small, large = (np.ones((2, n), np.float32).view(Watched) for n in (50, 51))
    assert row(small, -1, False).tolist() == [[np.float32(0.02)] * 50] * 2
    assert copied == [100]
    assert row(large, -1, False) == row(large, -1, False, None) == "left to the other function"
    assert copied == [100]
