"""Large reductions on the cpu, without compiled kernels: cut among threads and into blocks, they give what one call gives."""

from __future__ import annotations

import threading

import ml_dtypes
import numpy as np
import pytest

import turnout
from outcomes import flat, refused
from turnout_aten.kernels.rows import SAME, Row
from turnout_cpu import halves
from turnout_cpu.kernels import kernels
from turnout_cpu.pool import LARGE, Pool
from turnout_cpu.rows import BLOCK, cut

pytestmark = pytest.mark.usefixtures("without_kernels")
SHAPE = (74, 72, 100)
CALLS = {
    "sum": lambda x, d: x.sum(d),
    "sum kept": lambda x, d: x.sum(d, True),
    "mean": lambda x, d: x.mean(d),
    "amax": lambda x, d: x.amax(d),
    "var": lambda x, d: x.var(d, correction=1, keepdim=True),
    "norm": lambda x, d: turnout.linalg.vector_norm(x, 3, d),
    "argmax": lambda x, d: x.argmax(d, True),
    "max": lambda x, d: x.max(d),
    "median": lambda x, d: x.median(d),
    "kthvalue": lambda x, d: x.kthvalue(7, d, True),
    "softmax": lambda x, d: x.softmax(d),
    "cumsum": lambda x, d: x.cumsum(d),
    "cummax": lambda x, d: x.cummax(d),
    "sort": lambda x, d: x.sort(d, descending=True),
    "topk": lambda x, d: x.topk(5, d),
    "all": lambda x, d: (x != 0).all(d),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dtype", [turnout.float32, turnout.int64])
def test_any_number_of_threads_gives_what_small_arrays_give(name: str, dtype: turnout.DType) -> None:
    if dtype is turnout.int64 and name in ("mean", "var", "norm", "softmax"):
        return
    rng = np.random.default_rng(1)
    x = turnout.from_numpy(rng.permutation(int(np.prod(SHAPE))).reshape(SHAPE).astype("f4") / 1000 - 300)
    x = (x if dtype is turnout.float32 else (x * 1000).to(dtype)).permute(0, 2, 1)
    assert x.numel() > LARGE > x[:37].numel()
    for view in (x, x.contiguous()):
        for d in (0, -1):
            over = 1 if d == 0 else 0  # small pieces along a dim that is left apart
            pieces = [flat(CALLS[name](part, d)) for part in view.split(37, over)]
            for threads in (1, 3):
                with turnout.config.override({"plugin.cpu.threads": threads}):
                    found = flat(CALLS[name](view, d))
                for whole, *parts in zip(found, *pieces, strict=True):
                    joined = turnout.cat(parts, over if whole.ndim == 3 else 0)
                    np.testing.assert_allclose(whole.numpy(), joined.numpy(), rtol=1e-5, atol=1e-3)


def test_reductions_of_everything_are_put_together_from_parts() -> None:
    x = turnout.from_numpy(np.random.default_rng(1).standard_normal(LARGE + 7).astype("f4"))
    for threads in (1, 2, 3):
        with turnout.config.override({"plugin.cpu.threads": threads}):
            assert abs(x.sum().item() - x.numpy().astype("f8").sum()) < 0.05
            assert x.max().item() == x.numpy().max()
            assert x.min().item() == x.numpy().min()
            assert x.sum(dtype=turnout.float64).dtype is turnout.float64


def test_large_integers_are_summed_in_int64_and_halves_in_float32() -> None:
    x = turnout.ones((2, LARGE), dtype=turnout.int8)
    assert x.sum(1).tolist() == [LARGE, LARGE]
    assert x.sum().item() == 2 * LARGE
    assert x.to(turnout.float16).mean(1).tolist() == [1.0, 1.0]
    assert x.to(turnout.bfloat16).sum(0).dtype is turnout.bfloat16


def test_a_large_reduction_uses_the_threads_and_blocks_of_a_share() -> None:
    seen: list[tuple[str, int]] = []
    pool = Pool(lambda: 2)

    def kernel(self: np.ndarray, dim: int, keepdim: bool, out: np.ndarray | None = None) -> np.ndarray:
        seen.append((threading.current_thread().name, self.size))
        return np.add.reduce(self, dim, None, out, keepdim)

    row = cut(pool, Row(kernel, SAME))
    x = np.ones((1024, 1024), "f4")
    assert np.array_equal(row.fn(x, 1, False), x.sum(1))
    assert len({name for name, _ in seen}) == 2
    assert {size for _, size in seen} == {BLOCK}
    pool.close()


def test_an_error_in_a_piece_of_a_reduction_reaches_the_caller() -> None:
    table = kernels(pool := Pool(lambda: 2))
    x = np.ones((2, LARGE), "f4")
    refused(TypeError, table["sum.IntList_out"].fn, x.view("M8[s]"), 1, False, None, np.empty(2, "f4"))
    pool.close()


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int16", "bool", "float16", "bfloat16"])
@pytest.mark.parametrize("descending", [False, True])
def test_sorting_is_stable_with_nan_last_and_zeros_equal(dtype: str, descending: bool) -> None:
    nan, inf = float("nan"), float("inf")
    data = [0.0, -0.0, 1.0, -3.0, nan, -0.0, inf, -inf, 1.0, -nan] if "float" in dtype else [3, -1, 0, 3, -1, 7, 0, 1, 0, 1]
    x = turnout.tensor(data).to(getattr(turnout, dtype))
    values, indices = x.sort(stable=True, descending=descending)
    keys = [(v != v, v) if v == v else (True, 0.0) for v in x.tolist()]
    expected = sorted(range(len(data)), key=keys.__getitem__, reverse=descending)
    assert indices.tolist() == expected
    assert repr(values.tolist()) == repr([x.tolist()[i] for i in expected])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_negation_in_place_takes_its_own_elements_whatever_the_stride(dtype: str) -> None:
    for step in range(1, 20):
        x = turnout.arange(8 * step, dtype=getattr(turnout, dtype))
        expected = [-v if i % step == 0 else v for i, v in enumerate(x.tolist())]
        x[::step].neg_()
        assert x.tolist() == expected
        turnout.neg(x[::step], out=x[::step])
        assert x.tolist() == [abs(v) for v in expected]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
@pytest.mark.parametrize("bounds", [(0, 50), (-128, 127), (-3, 100), (-100, -90)])
def test_distinct_integers_are_found_whether_they_lie_close_together_or_not(dtype: str, bounds: tuple[int, int]) -> None:
    drawn = np.random.default_rng(3).integers(bounds[0], bounds[1] + 1, (40, 31)).astype(dtype)
    far = drawn.astype(np.int64) * (1 << 40) if dtype == "int64" else drawn
    for given in (drawn, drawn.T, drawn[::2, ::3], drawn[:3], far):
        found = turnout.unique(turnout.from_numpy(given))
        assert found.numpy().dtype == given.dtype
        assert np.array_equal(found.numpy(), np.unique(given))


def test_distinct_integers_at_the_ends_of_their_dtype_are_found() -> None:
    for dtype in ("int8", "uint8", "int32", "int64"):
        ends = np.iinfo(dtype)
        given = np.resize(np.array([ends.max, ends.min, 0], dtype), 900)
        assert np.array_equal(turnout.unique(turnout.from_numpy(given)).numpy(), np.unique(given))


@pytest.mark.parametrize("name", ["add.out", "sub.out", "mul.out", "div.out"])
def test_many_bfloat16_are_computed_as_few_are(name: str) -> None:
    pool = Pool(lambda: 1)
    row = kernels(pool)[name].fn
    bits = np.random.default_rng(5).integers(0, 1 << 16, (2, 3 * halves.SMALL), np.uint16)
    bits[:, :6] = [[0x7F80, 0xFF80, 0x7FC0, 0x0000, 0x8000, 0x7F7F], [0xFF80, 0xFF80, 0x3F80, 0x8000, 0x8000, 0x7F7F]]
    a, b = bits.view(ml_dtypes.bfloat16)
    step = 1 << 10
    with np.errstate(all="ignore"):
        few = np.concatenate([row(a[at : at + step], b[at : at + step]) for at in range(0, a.size, step)])
        for many in (row(a, b), row(a, b, out=np.empty_like(a)), row(a[::-1], b[::-1])[::-1]):
            nan = np.isnan(few)
            assert np.array_equal(np.isnan(many), nan)
            assert np.array_equal(many.view(np.uint16)[~nan], few.view(np.uint16)[~nan])
        inside = a.copy()
        row(inside, b, out=inside)
    assert np.array_equal(inside.view(np.uint16)[~nan], few.view(np.uint16)[~nan])
    pool.close()
