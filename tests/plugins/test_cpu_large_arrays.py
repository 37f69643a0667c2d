"""Large arrays on the cpu, without compiled kernels: what goes over memory in blocks gives what it gives for small arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import turnout
from outcomes import agree, refused
from turnout.errors import ArgumentError
from turnout_aten.kernels.rows import Row
from turnout_cpu import blocks
from turnout_cpu.kernels import kernels
from turnout_cpu.pool import LARGE, Pool

pytestmark = pytest.mark.usefixtures("without_kernels")
RNG = np.random.default_rng(5)
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 3e38, 88.8, -104.0, 6.0, 3.0, -3.0], "f4")
F = turnout.nn.functional
Call = Callable[..., turnout.Tensor]

ELEMENTWISE: dict[str, Call] = {
    "sigmoid": turnout.sigmoid,
    "erf": turnout.erf,
    "rsqrt": turnout.rsqrt,
    "pow 3": lambda x: x.pow(3),
    "pow -1": lambda x: x.pow(-1),
    "pow -2": lambda x: x.pow(-2),
    "gelu": F.gelu,
    "gelu tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "hardswish": F.hardswish,
    "softplus": F.softplus,
    "elu": F.elu,
    "clamp": lambda x: x.clamp(-1.5, 2),
    "clamp min": lambda x: x.clamp(min=0.5),
    "nan_to_num": lambda x: x.nan_to_num(),
    "isposinf": lambda x: x.isposinf(),
    "gt": lambda x: x > 0.5,
    "addcmul": lambda x: turnout.addcmul(x, x, x, value=0.5),
    "where": lambda x: turnout.where(x > 0, x, -x),
}


def values(*shape: int, dtype: turnout.DType = turnout.float32) -> turnout.Tensor:
    made = RNG.standard_normal(shape).astype("f4") * 3
    made.reshape(-1)[RNG.integers(0, made.size, 400)] = RNG.choice(SPECIAL, 400)
    return turnout.from_numpy(made).to(dtype)


OTHER_DTYPES = [(n, d) for n in ("gelu", "clamp", "pow 3") for d in (turnout.float64, turnout.float16, turnout.bfloat16)]


@pytest.mark.parametrize(("name", "dtype"), [*((name, turnout.float32) for name in ELEMENTWISE), *OTHER_DTYPES], ids=str)
def test_large_array_gives_what_its_parts_give(name: str, dtype: turnout.DType) -> None:
    x, call = values(LARGE + 77, dtype=dtype), ELEMENTWISE[name]
    before = x.clone()
    parts = turnout.cat([call(part) for part in x.split(blocks.SMALL)])
    for threads in (1, 3):
        with turnout.config.override({"plugin.cpu.threads": threads}):
            agree(call(x), parts)
    agree(x, before)


@pytest.mark.parametrize("name", ["gelu", "silu", "sigmoid", "hardswish", "clamp", "pow 3"])
def test_large_strided_array_gives_what_a_contiguous_one_gives(name: str) -> None:
    x = values(512, LARGE // 256).t()
    agree(ELEMENTWISE[name](x), ELEMENTWISE[name](x.contiguous()))


@pytest.mark.parametrize(("name", "arguments"), [("sigmoid", ()), ("clamp", (-1.0, 1.0)), ("pow", (3,))])
def test_large_array_may_be_the_output_too(name: str, arguments: tuple[Any, ...]) -> None:
    x = values(LARGE + 5)
    expected = getattr(turnout, name)(x, *arguments)
    agree(getattr(x.clone(), name + "_")(*arguments), expected)
    agree(getattr(turnout, name)(x, *arguments, out=x), expected)


def test_blocks_are_called_for_every_part_once() -> None:
    seen: list[int] = []

    def kernel(self: Any, out: Any) -> Any:
        seen.append(self.size)
        out[...] = self
        return out

    row = blocks.blocked(Pool(lambda: 1), Row(kernel, pointwise=True))
    array = values(blocks.SMALL + 3).numpy()
    np.testing.assert_array_equal(row.fn(array, np.empty_like(array)), array)
    assert seen == [blocks.BLOCK] * 4 + [3]


def test_an_error_in_a_block_is_raised() -> None:
    x = turnout.ones(LARGE + 1, dtype=turnout.int64)
    x[LARGE] = 0
    assert "integer division by zero" in refused(ArgumentError, turnout.remainder, turnout.ones_like(x), x)


def test_every_kernel_of_several_steps_is_cut() -> None:
    table = kernels(Pool(lambda: 1))
    for name in ("gelu.out", "silu.out", "erf.out", "gelu_backward.grad_input", "addcmul.out", "erfinv.out"):
        assert table[name].fn.__qualname__ != "kernel"
        assert table[name].fn.__code__.co_filename == blocks.__file__


# ---- rows and places by index


@pytest.mark.parametrize("rows", [40, 9000])
def test_rows_add_up_as_one_by_one(rows: int) -> None:
    table, source = RNG.standard_normal((rows, 64)), RNG.standard_normal((3000, 64))
    index = RNG.integers(0, rows, 3000)
    expected = table.copy()
    np.add.at(expected, index, source)
    x, i, s, wanted = (turnout.from_numpy(a) for a in (table, index, source, expected))
    negative = turnout.where(i % 2 == 1, i - rows, i)
    agree(turnout.index_add(x, 0, i, s), wanted, 1e-12)
    agree(x.index_put((negative,), s, accumulate=True), wanted, 1e-12)
    agree(turnout.index_add(x, 0, i, s, alpha=-2), x - 2 * (wanted - x), 1e-9)
    agree(x.index_add_(0, i, s), wanted, 1e-12)


def test_rows_out_of_range_are_refused_and_change_nothing() -> None:
    x, s, wrong = turnout.zeros(100, 64), turnout.ones(3000, 64), turnout.full((3000,), 100)
    refused(IndexError, x.index_add_, 0, wrong, s)
    refused(IndexError, x.index_put_, (wrong,), s, accumulate=True)
    assert not x.any()


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
@pytest.mark.parametrize("transposed", [False, True])
def test_gather_and_scatter_add_agree_with_index_tuples(dim: int, transposed: bool) -> None:
    x = RNG.standard_normal((70, 50, 60)).astype("f4")
    x = x.transpose(0, 2, 1) if transposed else x
    shape = [n - 5 for n in x.shape]
    index = RNG.integers(0, x.shape[dim], shape)
    grid = list(np.indices(shape))
    grid[dim] = index
    t, i = turnout.from_numpy(x), turnout.from_numpy(index)
    np.testing.assert_array_equal(turnout.gather(t, dim, i).numpy(), x[tuple(grid)])
    expected = x.astype("f8")
    np.add.at(expected, tuple(grid), x[tuple(slice(n) for n in shape)].astype("f8"))
    np.testing.assert_allclose(turnout.scatter_add(t, dim, i, t).numpy(), expected, rtol=1e-4, atol=1e-4)


# ---- windows, triangles, extremes, norms, copies


@pytest.mark.parametrize("fill", ["numbers", "ties", "nan", "-inf"])
def test_max_pool_finds_the_first_largest_element_and_the_last_nan(fill: str) -> None:
    x = RNG.standard_normal((2, 3, 9, 11)).astype("f4")
    if fill == "ties":
        x = np.round(x)
    if fill in ("nan", "-inf"):
        x[RNG.random(x.shape) < 0.4] = float(fill)
    made, at = (t.numpy() for t in F.max_pool2d(turnout.from_numpy(x), 3, 2, 1, return_indices=True))
    for n, c, i, j in np.ndindex(made.shape):
        places = [(i * 2 + a - 1, j * 2 + b - 1) for a in range(3) for b in range(3)]
        places = [(r, s) for r, s in places if 0 <= r < 9 and 0 <= s < 11]
        best = places[0]
        for place in places:
            value = x[(n, c, *place)]
            if value > x[(n, c, *best)] or value != value:
                best = place
        assert at[n, c, i, j] == best[0] * 11 + best[1]
        np.testing.assert_array_equal(made[n, c, i, j], x[(n, c, *best)])


@pytest.mark.parametrize("shape", [(130, 70), (2, 70, 131), (1, 5), (0, 4), (3, 0)])
@pytest.mark.parametrize("diagonal", [-200, -66, -1, 0, 3, 64, 200])
def test_triangles_of_many_rows(shape: tuple[int, ...], diagonal: int) -> None:
    x = turnout.from_numpy(RNG.standard_normal(shape).astype("f4"))
    agree([x.triu(diagonal), x.tril(diagonal)], [turnout.from_numpy(f(x.numpy(), diagonal)) for f in (np.triu, np.tril)])


@pytest.mark.parametrize("fill", [None, np.nan, np.inf, -np.inf, 0.0])
@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dim", [0, 1])
def test_a_few_extremes_are_the_first_of_the_sorted_elements(fill: float | None, largest: bool, dim: int) -> None:
    x = RNG.standard_normal((200, 120)).astype("f4")
    if fill is not None:
        x[RNG.random(x.shape) < 0.97] = fill
    t = turnout.from_numpy(x)
    found, at = t.topk(5, dim, largest)
    agree(found, t.sort(dim, descending=largest)[0].narrow(dim, 0, 5))
    np.testing.assert_array_equal(np.take_along_axis(x, at.numpy(), dim), found.numpy())
    assert np.all(np.diff(np.sort(at.numpy(), dim), axis=dim) > 0)


def test_norm_of_many_elements_keeps_its_digits() -> None:
    x = RNG.standard_normal(3 * LARGE + 1).astype("f4") + 1
    exact = float(np.sqrt(np.sum(x.astype("f8") ** 2)))
    assert turnout.linalg.vector_norm(turnout.from_numpy(x)).item() == pytest.approx(exact, rel=2e-7)
    assert turnout.from_numpy(x.reshape(-1, 1)).norm(keepdim=True).shape == (1, 1)
    x[7] = np.inf
    assert turnout.from_numpy(x).norm().item() == np.inf


@pytest.mark.parametrize("dtype", ["f4", "f8", "i2", "?", ml_dtypes.bfloat16])
@pytest.mark.parametrize("shape", [(1000, 700), (3, 700, 301)])
def test_transposed_copy_is_the_transposed_array(dtype: Any, shape: tuple[int, ...]) -> None:
    x = RNG.integers(-9, 9, shape).astype(dtype)
    made = turnout.from_numpy(x).transpose(-1, -2).contiguous().numpy()
    assert made.flags.c_contiguous
    assert made.dtype == x.dtype
    np.testing.assert_array_equal(made.astype("f4"), x.swapaxes(-1, -2).astype("f4"))


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("dim", [0, 1])
def test_softmax_gradient_of_a_large_array_is_that_of_its_parts(name: str, dim: int) -> None:
    x, grad = (turnout.from_numpy(RNG.standard_normal((900, 700)).astype("f4")) for _ in range(2))
    assert x.numel() > LARGE

    def back(x: turnout.Tensor, grad: turnout.Tensor) -> turnout.Tensor:
        leaf = x.clone().requires_grad_()
        (found,) = turnout.autograd.grad(getattr(leaf, name)(dim), [leaf], grad.clone())
        return found

    parts = [back(*part) for part in zip(x.split(100, 1 - dim), grad.split(100, 1 - dim), strict=True)]
    np.testing.assert_allclose(back(x, grad).numpy(), turnout.cat(parts, 1 - dim).numpy(), rtol=1e-5, atol=1e-6)
