"""Complex numbers on `opencl` against `cpu`, without the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import turnout
from turnout_aten.backend import host_fallback as hosting


@pytest.fixture(scope="module", autouse=True)
def needs_a_driver(need_device: Callable[[str], None]) -> None:
    need_device("opencl")


def numbers(*shape: int, seed: int = 0) -> Any:
    drawn = np.random.default_rng(seed).standard_normal((*shape, 2), np.float32)
    made = drawn.view(np.complex64)[..., 0]
    made.reshape(-1)[:3] = 0
    return made


CALLS: list[Callable[..., Any]] = [
    lambda x, y: x.sum(),
    lambda x, y: x.sum(0),
    lambda x, y: x.sum((0, 2), keepdim=True),
    lambda x, y: x.transpose(0, 2).mean(1),
    lambda x, y: x.mean(),
    lambda x, y: x[:0].mean(0),
    lambda x, y: x[:0].sum(0),
    lambda x, y: x.prod(2),
    lambda x, y: x[:, :1, :1].prod(),
    lambda x, y: x.cumsum(1),
    lambda x, y: x.cumprod(2),
    lambda x, y: x * y + x / (y + 3) - 2j * x,
    lambda x, y: x.any(2),
    lambda x, y: (x[:, :, ::2] * 0).any(),
    lambda x, y: x.all(2),
    lambda x, y: turnout.logical_and(x, y),
    lambda x, y: turnout.logical_xor(x, y.flip(0)),
    lambda x, y: x.logical_not(),
    lambda x, y: (x / x).isnan(),
    lambda x, y: (x * float("inf")).isinf(),
    lambda x, y: turnout.addmm(x[0, :4, :4], x[0], y[0].t(), beta=2, alpha=0.5 + 1j),
    lambda x, y: turnout.baddbmm(x[:, :, :1], x, y.transpose(1, 2), beta=0),
    lambda x, y: turnout.mv(x[0], y[0, 0]),
    lambda x, y: turnout.dot(x[0, 0], y[0, 0]),
    lambda x, y: turnout.where(x == y, x, 2 - 1j),
    lambda x, y: turnout.nn.functional.pad(x, (1, 2), value=3),
    lambda x, y: x.nonzero(),
]


@pytest.mark.parametrize("call", CALLS, ids=range(len(CALLS)))
def test_arithmetic_of_complex_numbers_stays_on_the_device(call: Callable[..., Any]) -> None:
    pair = [turnout.from_numpy(numbers(3, 4, 5)), turnout.from_numpy(numbers(3, 4, 5, seed=1))]
    there = [x.to("opencl") for x in pair]
    hosting.reset_calls()
    found = call(*there)
    assert not hosting.calls(), hosting.report()
    wanted = call(*pair)
    assert found.dtype is wanted.dtype
    np.testing.assert_allclose(found.cpu().numpy(), wanted.numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [turnout.complex64, turnout.complex128])
def test_an_element_with_one_part_is_not_zero(dtype: turnout.DType) -> None:
    x = turnout.tensor([0, 1, 1j, -0.0], dtype=dtype, device="opencl")
    assert x.nonzero().tolist() == [[1], [2]]
    assert x.to(turnout.bool).tolist() == [False, True, True, False]
