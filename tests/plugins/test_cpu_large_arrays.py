"""Large arrays on the cpu: kernels that go over memory in blocks give what they give for small arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import turnout
from turnout.errors import ArgumentError
from turnout_aten.kernels.rows import Row
from turnout_cpu import blocks
from turnout_cpu.halves import BLOCK, to_float16
from turnout_cpu.kernels import kernels
from turnout_cpu.pool import LARGE, Pool

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


def values(size: int, dtype: Any = "f4") -> np.ndarray:
    made = RNG.standard_normal(size).astype("f4") * 3
    made[RNG.integers(0, size, 400)] = RNG.choice(SPECIAL, 400)
    with np.errstate(all="ignore"):
        return made.astype(dtype)


def same(a: Any, b: Any) -> None:
    assert a.dtype == b.dtype
    assert a.shape == b.shape
    if a.dtype == ml_dtypes.bfloat16:
        a, b = a.astype("f4"), b.astype("f4")
    np.testing.assert_array_equal(a, b)


OTHER_DTYPES = [(n, d) for n in ("gelu", "clamp", "pow 3") for d in ("f8", "f2", ml_dtypes.bfloat16)]


@pytest.mark.parametrize(("name", "dtype"), [*((name, "f4") for name in ELEMENTWISE), *OTHER_DTYPES])
def test_large_array_gives_what_its_parts_give(name: str, dtype: Any) -> None:
    array = values(LARGE + 77, dtype)
    before = array.copy()
    call = ELEMENTWISE[name]
    step = blocks.SMALL
    parts = [call(turnout.from_numpy(array[i : i + step])).numpy() for i in range(0, array.size, step)]
    for threads in (1, 3):
        with turnout.config.override({"plugin.cpu.threads": threads}):
            same(call(turnout.from_numpy(array)).numpy(), np.concatenate(parts))
    same(array, before)


@pytest.mark.parametrize("name", ["gelu", "silu", "sigmoid", "hardswish", "clamp", "pow 3"])
def test_large_strided_array_gives_what_a_contiguous_one_gives(name: str) -> None:
    array = values(2 * LARGE).reshape(512, -1).T
    call = ELEMENTWISE[name]
    same(call(turnout.from_numpy(array)).numpy(), call(turnout.from_numpy(np.ascontiguousarray(array))).numpy())


@pytest.mark.parametrize("name", ["sigmoid", "clamp", "pow"])
def test_large_array_may_be_the_output_too(name: str) -> None:
    array = values(LARGE + 5)
    arguments = {"sigmoid": (), "clamp": (-1.0, 1.0), "pow": (3,)}[name]
    expected = getattr(turnout, name)(turnout.from_numpy(array), *arguments)
    x = turnout.from_numpy(array.copy())
    getattr(turnout, name)(x, *arguments, out=x)
    same(x.numpy(), expected.numpy())
    x = turnout.from_numpy(array.copy())
    getattr(x, name + "_")(*arguments)
    same(x.numpy(), expected.numpy())


def test_blocks_are_called_for_every_part_once() -> None:
    seen: list[int] = []

    def kernel(self: Any, out: Any) -> Any:
        seen.append(self.size)
        out[...] = self
        return out

    row = blocks.blocked(Pool(lambda: 1), Row(kernel, pointwise=True))
    array = values(blocks.SMALL + 3)
    same(row.fn(array, np.empty_like(array)), array)
    assert seen == [blocks.BLOCK] * 4 + [3]


def test_an_error_in_a_block_is_raised() -> None:
    x = turnout.ones(LARGE + 1, dtype=turnout.int64)
    x[LARGE] = 0
    with pytest.raises(ArgumentError, match="integer division by zero"):
        turnout.remainder(turnout.ones_like(x), x)


def test_every_kernel_of_several_steps_is_cut() -> None:
    table = kernels(Pool(lambda: 1))
    for name in ("gelu.out", "silu.out", "erf.out", "gelu_backward.grad_input", "addcmul.out", "erfinv.out"):
        assert table[name].fn.__qualname__ != "kernel"
        assert table[name].fn.__code__.co_filename == blocks.__file__


# ---- erf of float32


def test_erf_of_float32_is_within_four_units_in_the_last_place() -> None:
    from scipy.special import erf

    x = np.concatenate([np.linspace(-5, 5, 1_000_001), np.logspace(-37, 1, 400_001), SPECIAL[:4]]).astype("f4")
    found, expected = turnout.erf(turnout.from_numpy(x)).numpy(), erf(x.astype("f8"))
    assert np.all(np.abs(found - expected) <= 4 * np.spacing(np.abs(expected).astype("f4")))
    assert np.all(np.abs(found) <= 1)
    assert np.isnan(turnout.erf(turnout.tensor(float("nan"))).item())
    assert np.signbit(turnout.erf(turnout.tensor(-0.0)).item())


def test_erf_of_a_number_is_that_of_an_array() -> None:
    x = values(50)[:20]
    same(np.array([turnout.erf(turnout.tensor(v)).item() for v in x], "f4"), turnout.erf(turnout.from_numpy(x)).numpy())


# ---- float16


@pytest.mark.parametrize("sign", [1, -1])
def test_conversion_to_float16_is_that_of_numpy_for_every_float16_and_its_neighbours(sign: int) -> None:
    halves = np.arange(0x7C00, dtype="u2").view("f2").astype("f4") * sign
    middles = ((halves[:-1].astype("f8") + halves[1:]) / 2).astype("f4")
    for exact in (halves, middles):
        for x in (exact, np.nextafter(exact, np.float32(np.inf)), np.nextafter(exact, np.float32(-np.inf))):
            made = np.empty(x.shape, "f2")
            to_float16(made, x)
            with np.errstate(all="ignore"):
                assert np.array_equal(made.view("u2"), x.astype("f2").view("u2"))


def test_conversion_of_any_float32_to_float16_is_that_of_numpy() -> None:
    bits = RNG.integers(0, 1 << 32, 4 * BLOCK + 11, dtype="u4")
    bits[: 2 * BLOCK] &= 0xC77FEFFF  # blocks without infinities and nan
    x = bits.view("f4")
    with np.errstate(all="ignore"):
        expected = x.astype("f2")
    found = turnout.from_numpy(x).to(turnout.float16).numpy()
    assert np.array_equal(np.isnan(found), np.isnan(expected))
    numbers = ~np.isnan(expected)
    assert np.array_equal(found[numbers].view("u2"), expected[numbers].view("u2"))


# ---- rows and places by index


@pytest.mark.parametrize("rows", [40, 9000])
def test_rows_add_up_as_one_by_one(rows: int) -> None:
    table, source = RNG.standard_normal((rows, 64)), RNG.standard_normal((3000, 64))
    index = RNG.integers(0, rows, 3000)
    expected = table.copy()
    np.add.at(expected, index, source)
    x, i, s = (turnout.from_numpy(a) for a in (table, index, source))
    np.testing.assert_allclose(turnout.index_add(x, 0, i, s).numpy(), expected, rtol=1e-12, atol=1e-12)
    negative = turnout.from_numpy(np.where(index % 2, index - rows, index))
    np.testing.assert_allclose(x.index_put((negative,), s, accumulate=True).numpy(), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(turnout.index_add(x, 0, i, s, alpha=-2).numpy(), table - 2 * (expected - table), rtol=1e-9)
    x.index_add_(0, i, s)
    np.testing.assert_allclose(table, expected, rtol=1e-12, atol=1e-12)


def test_rows_out_of_range_are_refused_and_change_nothing() -> None:
    x, s = turnout.zeros(100, 64), turnout.ones(3000, 64)
    wrong = turnout.full((3000,), 100)
    with pytest.raises(IndexError):
        x.index_add_(0, wrong, s)
    with pytest.raises(IndexError):
        x.index_put_((wrong,), s, accumulate=True)
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
    same(turnout.gather(t, dim, i).numpy(), x[tuple(grid)])
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
    x = RNG.standard_normal(shape).astype("f4")
    same(turnout.from_numpy(x).triu(diagonal).numpy(), np.triu(x, diagonal))
    same(turnout.from_numpy(x).tril(diagonal).numpy(), np.tril(x, diagonal))


@pytest.mark.parametrize("fill", [None, np.nan, np.inf, -np.inf, 0.0])
@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dim", [0, 1])
def test_a_few_extremes_are_the_first_of_the_sorted_elements(fill: float | None, largest: bool, dim: int) -> None:
    x = RNG.standard_normal((200, 120)).astype("f4")
    if fill is not None:
        x[RNG.random(x.shape) < 0.97] = fill
    t = turnout.from_numpy(x)
    found, at = t.topk(5, dim, largest)
    expected = t.sort(dim, descending=largest)[0].narrow(dim, 0, 5)
    np.testing.assert_array_equal(found.numpy(), expected.numpy())
    np.testing.assert_array_equal(np.take_along_axis(x, at.numpy(), dim), found.numpy())
    in_order = np.sort(at.numpy(), dim)
    assert np.all(np.diff(in_order, axis=dim) > 0)


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
    x = values(int(np.prod(shape)), "f4").reshape(shape)
    x = (x > 0 if dtype == "?" else np.nan_to_num(x, posinf=9, neginf=9).clip(-99, 99)).astype(dtype)
    made = turnout.from_numpy(x).transpose(-1, -2).contiguous().numpy()
    assert made.flags.c_contiguous
    same(made, np.ascontiguousarray(x.swapaxes(-1, -2)))


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("dim", [0, 1])
def test_softmax_gradient_of_a_large_array_is_that_of_its_parts(name: str, dim: int) -> None:
    x = RNG.standard_normal((900, 700)).astype("f4")
    grad = RNG.standard_normal((900, 700)).astype("f4")
    assert x.size > LARGE

    def back(part: slice) -> np.ndarray:
        here = (slice(None),) * (1 - dim) + (part,)
        leaf = turnout.from_numpy(x[here].copy()).requires_grad_()
        getattr(leaf, name)(dim).backward(turnout.from_numpy(grad[here].copy()))
        assert leaf.grad is not None
        made: np.ndarray = leaf.grad.numpy()
        return made

    parts = [back(slice(i, i + 100)) for i in range(0, x.shape[1 - dim], 100)]
    np.testing.assert_allclose(back(slice(None)), np.concatenate(parts, 1 - dim), rtol=1e-5, atol=1e-6)
