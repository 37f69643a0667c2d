"""Checkpoints go from PyTorch to Turnout and back as safetensors files, and the models give the same outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nn_models
import numpy as np
import pytest
import torch
from safetensors import safe_open
from test_nn_programs import changed

import turnout

OURS = changed(nn_models)
RANDOM = np.random.default_rng(5)
INPUTS = {
    "image": RANDOM.standard_normal((2, 3, 32, 32)).astype("float32"),
    "text": RANDOM.integers(1, 50, (2, 9)),
    "sound": RANDOM.standard_normal((2, 16, 40)).astype("float32"),
}


def saved_by_torch(model: torch.nn.Module, path: Path) -> None:
    """What `safetensors.torch.save_file` writes, which needs no more than this."""
    safetensors_torch = pytest.importorskip("safetensors.torch")
    safetensors_torch.save_file({k: v.contiguous() for k, v in model.state_dict().items()}, path)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", nn_models.MODELS)
def test_a_checkpoint_goes_to_turnout_and_back(name: str, dtype: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    theirs = getattr(nn_models, name)().eval()
    with torch.no_grad():
        for buffer in theirs.buffers():  # running means and variances that a model has after training
            if buffer.is_floating_point():
                buffer.uniform_(0.5, 1.5)
    there, back = tmp_path / "there.safetensors", tmp_path / "back.safetensors"
    saved_by_torch(theirs.to(getattr(torch, dtype)), there)
    mine = getattr(OURS, name)().eval().to(getattr(turnout, dtype))
    state = turnout.nn.load_safetensors(there)
    assert set(state) == set(mine.state_dict()) == set(theirs.state_dict())
    assert str(mine.load_state_dict(state)) == "<All keys matched successfully>"
    turnout.nn.save_safetensors(mine.state_dict(), back)
    other = getattr(nn_models, name)().eval().to(getattr(torch, dtype))
    with safe_open(back, framework="pt") as opened:
        other.load_state_dict({key: opened.get_tensor(key) for key in opened.keys()})  # noqa: SIM118
    assert all(torch.equal(a, b) for a, b in zip(other.state_dict().values(), theirs.state_dict().values(), strict=True))
    if dtype == "bfloat16":
        mine, theirs = mine.float(), theirs.float()
    inputs = [INPUTS[kind] for kind in nn_models.MODELS[name]]
    with torch.no_grad(), turnout.no_grad():
        wanted = theirs(*map(torch.from_numpy, inputs))
        found = mine(*map(turnout.from_numpy, inputs))
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-5, atol=1e-5)
    assert _gradient(mine, inputs, turnout) == pytest.approx(_gradient(theirs, inputs, torch), rel=1e-3)


def _gradient(model: Any, inputs: list[Any], library: Any) -> float:
    model(*map(library.from_numpy, inputs)).square().mean().backward()
    return sum(float(p.grad.square().sum()) for p in model.parameters() if p.grad is not None) ** 0.5
