"""PyTorch accepts the calls with second names that Turnout accepts, and refuses those that it refuses."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from second_names import CALLS, REFUSED, run  # noqa: E402


@pytest.mark.parametrize(("call", "plain"), CALLS)
def test_torch_accepts(call, plain):
    assert run(call, torch).tolist() == run(plain, torch).tolist()


@pytest.mark.parametrize("call", [call for call, _ in REFUSED])
def test_torch_refuses(call):
    with pytest.raises(TypeError):
        run(call, torch)
