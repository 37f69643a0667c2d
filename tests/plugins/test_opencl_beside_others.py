"""Three backends in one process: cpu, opencl, and NumPy under another name."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import turnout
from turnout.registry import Registrations
from turnout_arrays import ArrayBackend, kernels
from turnout_aten.kernels.tables import register_kernels

DEVICES = ("cpu", "opencl", "third")


class Third(ArrayBackend):
    """NumPy under another name."""

    name = "THIRD"
    device_type = "third"


@pytest.fixture(autouse=True)
def three(need_device: Callable[[str], None]) -> Iterator[None]:
    need_device("opencl")
    with Registrations("third") as library:
        library.backend(backend := Third(np))
        register_kernels(library, backend, kernels(np))
        yield


@pytest.mark.parametrize(("first", "second"), list(itertools.permutations(DEVICES, 2)))
def test_gradients_cross_devices(first: str, second: str) -> None:
    x = turnout.tensor([1.0, 2.0], device=first).requires_grad_()
    (x.to(second) * 3.0).sum().backward()
    assert x.grad.device is x.device
    assert x.grad.tolist() == [3.0, 3.0]


def test_all_three_compute_the_same_step() -> None:
    def step(device: str) -> list[float]:
        generator = turnout.Generator(device).manual_seed(1)
        weight = turnout.randn(4, 4, device=device, generator=generator).requires_grad_()
        turnout.tanh(weight @ weight).sum().backward()
        found: list[float] = weight.grad.tolist()
        return found

    assert np.allclose(step("opencl"), step("cpu"), rtol=1e-5)
    assert step("third") == step("cpu")
