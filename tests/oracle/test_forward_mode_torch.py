"""Programs with dual tensors next to PyTorch's: values and tangents."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import turnout
from forward_programs import PROGRAMS
from turnout_aten import trees


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, when jvp is first used
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_with_dual_tensors_give_what_torch_gives(name: str) -> None:
    ours, theirs = trees.flatten(PROGRAMS[name](turnout))[0], trees.flatten(PROGRAMS[name](torch))[0]
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one.detach().numpy(), other.detach().numpy(), rtol=1e-10, atol=1e-12)
