"""The steps of a row as text of a call, or as the function of a plan, compute what its kernel does, to the last bit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import turnout
from turnout.errors import AliasError, DimError

VALUES = [1.5, -0.0, float("nan"), 3e38, -2.25, 1e-40, 7.0]
CALLS: dict[str, Callable[[turnout.Tensor], turnout.Tensor]] = {
    "sum": lambda x: x.sum(),
    "sum over a dim": lambda x: x.sum(0, keepdim=True),
    "sum over all dims": lambda x: x.sum((0,)),
    "sum into": lambda x: turnout.sum(x, 0, out=turnout.empty((), dtype=x.dtype)),
    "mean": lambda x: x.mean(),
    "mean over a dim": lambda x: x.mean(-1),
    "max": lambda x: x.max(),
    "amin": lambda x: x.amin(0),
    "prod": lambda x: x.prod(0),
    "var": lambda x: x.var(),
    "var of all": lambda x: turnout.var(x, correction=0.5),
    "no freedom": lambda x: turnout.var(x, correction=x.numel()),
    "std": lambda x: x.std(0, keepdim=True),
    "norm": lambda x: x.norm(),
    "another norm": lambda x: turnout.linalg.vector_norm(x, 1),
    "clamp": lambda x: x.clamp(-1, 2.5),
    "clamp_": lambda x: x.add_(0.0).clamp_(-1, 2.5),
    "one bound": lambda x: x.clamp(min=0.0),
    "maximum": lambda x: turnout.maximum(x, x * 0),
    "maximum into": lambda x: turnout.maximum(x, x * 0, out=turnout.empty(len(x), dtype=x.dtype)),
    "add into": lambda x: turnout.add(x, x, out=turnout.empty(len(x), dtype=x.dtype)),
    "scaled, into": lambda x: turnout.add(x, x, alpha=3, out=turnout.empty(len(x), dtype=x.dtype)),
    "exp into": lambda x: turnout.exp(x, out=turnout.empty(len(x), dtype=x.dtype)),
    "lerp": lambda x: turnout.lerp(x, x * 2, 0.75),
    "running sums": lambda x: x.cumsum(0),
    "flip": lambda x: x.flip(0),
}


@pytest.mark.parametrize("dtype", [turnout.float32, turnout.float64, turnout.float16])
@pytest.mark.parametrize("name", CALLS)
def test_memory_in_a_row_gives_the_bits_of_memory_with_gaps(name: str, dtype: turnout.dtype) -> None:
    for count in (1, 2, 7):
        values = [v if abs(v) < 1e30 or dtype is not turnout.float16 else 60000.0 for v in VALUES[:count]]

        def in_a_row(values: list[float] = values) -> turnout.Tensor:
            return turnout.tensor(values, dtype=dtype)

        def with_gaps(values: list[float] = values) -> turnout.Tensor:
            return turnout.tensor([[v, 0.0] for v in values], dtype=dtype)[:, 0]

        for _ in range(3):  # the first call learns
            one, other = CALLS[name](in_a_row()), CALLS[name](with_gaps())
            assert (one.shape, one.dtype) == (other.shape, other.dtype)
            assert one.numpy().tobytes() == other.numpy().tobytes()


def test_a_step_that_raises_leaves_the_call_to_the_general_path() -> None:
    large = turnout.tensor([3e38, 3e38])
    for _ in range(3):
        with np.errstate(all="raise"):
            assert [large.sum().item(), large.mean().item(), large.norm().item()] == [float("inf")] * 3
            assert turnout.add(large, large, out=turnout.empty(2)).tolist() == [float("inf")] * 2
        with pytest.raises(DimError, match="sum: dim 2 is out of range"):
            large.sum(2)
        with pytest.raises(DimError, match="mean: dim -3 is out of range"):
            large.mean(-3)


def test_a_fill_does_not_write_through_an_expanded_tensor() -> None:
    x = turnout.zeros(1)
    for value in (0, 1, 2.5):
        with pytest.raises(AliasError, match="cannot write into an expanded tensor"):
            x.expand(3).fill_(value)
    with pytest.raises(AliasError, match="cannot write into an expanded tensor"):
        x.expand(3).zero_()
    assert x.tolist() == [0.0]
    assert turnout.zeros(2, 2)[0].fill_(1.5).tolist() == [1.5, 1.5]


def test_equal_compares_as_the_elements_do() -> None:
    nan, zero = turnout.tensor([float("nan")]), turnout.tensor([0.0])
    assert not turnout.equal(nan, nan)
    assert turnout.equal(zero, -zero)
    assert turnout.equal(zero, zero.long())
    assert not turnout.equal(zero, zero[None])
    assert turnout.equal(turnout.tensor([[1, 2]]), turnout.tensor([[1], [2]]).t())
    assert turnout.equal(turnout.ones(2, dtype=turnout.bfloat16), turnout.ones(2, dtype=turnout.bfloat16))
    assert turnout.equal(turnout.empty(0), turnout.empty(0))
