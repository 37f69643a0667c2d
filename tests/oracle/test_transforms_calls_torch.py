"""Calls of the functional transforms and of `autograd.functional` next to PyTorch: what they give or refuse."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import turnout  # noqa: E402
from transform_calls import CALLS, OLD_CALLS, Library  # noqa: E402


def shown(value: Any) -> Any:
    """Structure, dtypes, shapes, numbers and whether they are tracked."""
    if isinstance(value, torch.Tensor | turnout.Tensor):
        numbers = np.round(value.detach().numpy(), 9).tolist()
        return str(value.dtype).split(".")[-1], tuple(value.shape), numbers, value.requires_grad
    if isinstance(value, dict):
        return type(value), {k: shown(v) for k, v in value.items()}
    if isinstance(value, tuple | list):
        return type(value), [shown(v) for v in value]
    return value


def outcome(call: Callable[..., Any], module: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return shown(call(Library(module)))
        except Exception:  # noqa: BLE001 - whether it raises is the question
            return "refused"


# differs from torch: zeros would hide that the function returns nothing that has a gradient
REFUSED_HERE = {"grad of a whole number"}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_gives_what_torch_gives(name: str) -> None:
    ours, theirs = outcome(CALLS[name], turnout), outcome(CALLS[name], torch)
    if name in REFUSED_HERE:
        assert ours == "refused" != theirs
    else:
        assert ours == theirs


@pytest.mark.parametrize("name", OLD_CALLS)
def test_a_call_of_autograd_functional_gives_what_torch_gives(name: str) -> None:
    assert outcome(OLD_CALLS[name], turnout) == outcome(OLD_CALLS[name], torch)
