"""The programs of nested transforms next to PyTorch's: values, dtypes, and what is tracked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import turnout
from transform_programs import PROGRAMS
from turnout import autograd, func, trees


class Turnout:
    """Turnout, as the programs see it."""

    def __getattr__(self, name: str) -> Any:
        return getattr(func, name) if name in func.__all__ else getattr(turnout, name)

    def tensor(self, data: Any) -> turnout.Tensor:
        return turnout.tensor(data, dtype=turnout.float64)

    def zeros(self, *shape: int) -> turnout.Tensor:
        return turnout.zeros(*shape, dtype=turnout.float64)

    def imperative_grad(self, y: Any, x: Any, v: Any) -> Any:
        return autograd.grad(y, x, v, create_graph=True)[0]


class Torch:
    """PyTorch, in the same way."""

    def __getattr__(self, name: str) -> Any:
        return getattr(torch.func, name) if hasattr(torch.func, name) else getattr(torch, name)

    def tensor(self, data: Any) -> torch.Tensor:
        return torch.tensor(data, dtype=torch.float64)

    def zeros(self, *shape: int) -> torch.Tensor:
        return torch.zeros(*shape, dtype=torch.float64)

    def imperative_grad(self, y: Any, x: Any, v: Any) -> Any:
        return torch.autograd.grad(y, x, v, create_graph=True)[0]


# What torch refuses: any write into a captured tensor inside of grad, where values that are not tracked may be written here;
# and imperative gradients of tensors inside vmap, which are not tracked there.
REFUSED = {"47 a captured tensor written into, not tracked", "36 imperative gradients of examples"}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, when jvp is first used
@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in REFUSED])
def test_programs_give_what_torch_gives(name: str) -> None:
    ours, theirs = trees.flatten(PROGRAMS[name](Turnout())), trees.flatten(PROGRAMS[name](Torch()))
    assert ours[1] == theirs[1]
    for one, other in zip(ours[0], theirs[0], strict=True):
        assert one.requires_grad == other.requires_grad
        np.testing.assert_allclose(one.detach().numpy(), other.detach().numpy(), rtol=1e-9, atol=1e-12, strict=True)
