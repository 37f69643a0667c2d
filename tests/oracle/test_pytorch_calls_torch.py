"""What `pytorch_calls` says of PyTorch is what PyTorch does."""

from __future__ import annotations

import warnings

import pytest

torch = pytest.importorskip("torch")

from pytorch_calls import CALLS, shown  # noqa: E402


@pytest.mark.parametrize("call", CALLS)
def test_torch_gives(call: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert shown(call, torch) == CALLS[call]
