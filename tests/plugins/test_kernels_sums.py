"""Compiled sums and extremes: of runs of memory, and at places that an index names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from turnout.nn import functional as F

import turnout

pytest.importorskip("turnout_kernels._native", reason="the extension module is not built: there is no C compiler")

from turnout_kernels import moving, native

RNG = np.random.default_rng(7)


@pytest.mark.parametrize("length", [1, 15, 64, 100, 1024])
def test_extremes_of_rows_are_nan_where_there_is_one_and_infinite_where_there_is_one(length: int, instructions: str):
    x = RNG.standard_normal((90, length)).astype("f")
    for row, values in enumerate(
        [[np.nan], [-np.nan], [np.inf], [-np.inf], [np.inf, -np.inf], [np.inf, np.nan], [-0.0], [3e38, 3e38]]
    ):
        x[row, RNG.integers(0, length, len(values))] = values
    x[20], x[21] = -np.inf, np.inf
    x = np.tile(x, (60, 1))
    for sign, found in ((1, turnout.from_numpy(x).amax(-1)), (-1, turnout.from_numpy(x).amin(-1))):
        with np.errstate(invalid="ignore"):
            assert np.array_equal(found.numpy(), sign * (sign * x).max(-1), equal_nan=True)


@pytest.mark.parametrize("dtype", ["f", "d"])
@pytest.mark.parametrize("length", [1, 15, 64, 100, 1024])
def test_extremes_of_rows_without_a_positive_number_are_those_nearest_to_zero_and_farthest(
    length: int, dtype: str, instructions: str
):
    x = -np.abs(RNG.standard_normal((5000, length))).astype(dtype)
    x[0], x[1] = -np.inf, -0.0
    t = turnout.from_numpy(x)
    assert np.array_equal(t.amax(-1).numpy(), x.max(-1))
    assert np.array_equal(t.amin(-1).numpy(), x.min(-1))
    assert np.signbit(t.amax(-1).numpy()[1])
    assert np.signbit(t.amin(-1).numpy()[1])


@pytest.mark.parametrize("dtype", ["f", "d"])
def test_the_largest_and_the_least_size_of_rows_are_nan_where_there_is_one(dtype: str, instructions: str):
    x = RNG.standard_normal((600, 70)).astype(dtype)
    x[0, 5], x[1, 69], x[2, 0], x[3] = np.nan, -np.nan, -np.inf, -np.inf
    t = turnout.from_numpy(x)
    for order in (float("inf"), float("-inf")):
        found = turnout.linalg.vector_norm(t, order, -1).numpy()
        assert np.array_equal(found, np.linalg.norm(x, order, -1), equal_nan=True)


@pytest.mark.parametrize("dtype", ["f", "d"])
@pytest.mark.parametrize("length", [1, 31, 63, 64, 65, 2047, 2049, 5000])
def test_sums_of_rows_of_any_length_agree_with_float64(length: int, dtype: str, instructions: str):
    x = RNG.standard_normal((2 + 9000 // length, length)).astype(dtype)
    t, tolerance = turnout.from_numpy(x), 1e-5 if dtype == "f" else 1e-13
    np.testing.assert_allclose(t.sum(-1).numpy(), x.astype("d").sum(-1), tolerance, tolerance * length**0.5)
    np.testing.assert_allclose(t.norm(dim=-1).numpy(), np.linalg.norm(x.astype("d"), axis=-1), tolerance)


# ---- sums at places


STARTS = {
    "contiguous": lambda shape: turnout.randn(shape),
    "one element": lambda shape: turnout.full((), 1.5).expand(shape),
    "repeated rows": lambda shape: turnout.randn(shape[1:]).expand(shape),
    "transposed": lambda shape: turnout.randn(shape[::-1]).mT,
}


@pytest.mark.parametrize("start", STARTS)
def test_elements_are_added_at_their_places_to_a_start_of_any_layout(start: str, instructions: str):
    begins = STARTS[start]((90, 70))
    for dim, shape, layout in ((1, (90, 130), "contiguous"), (0, (200, 70), "contiguous"), (1, (90, 130), "repeated rows")):
        index, source = turnout.randint(0, (90, 70)[dim], shape), STARTS[layout](shape)
        exact, at = begins.numpy().astype("d"), np.indices(shape)
        places = (index.numpy(), at[1]) if dim == 0 else (at[0], index.numpy())
        np.add.at(exact, places, source.numpy())
        np.testing.assert_allclose(begins.scatter_add(dim, index, source).numpy(), exact, 1e-5, 1e-5)


# rows of the output, elements of a row, rows that are added; the last ones are parts of a row and one part for all
SUMS_OF_ROWS = [(700, 100, 900), (3, 300, 4000), (5000, 16, 300), (40, 3, 3000), (1, 70000, 3), (9, 1, 9000)]


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("sizes", SUMS_OF_ROWS, ids=str)
def test_rows_are_added_to_a_start_of_any_layout(sizes: Any, start: str, instructions: str):
    rows, width, count = sizes
    begins, index, source = STARTS[start]((rows, width)), turnout.randint(0, rows, (count,)), turnout.randn(count, width)
    added = np.zeros((rows, width))
    np.add.at(added, index.numpy(), source.numpy())
    exact, tolerance = begins.numpy().astype("d"), 1e-6 * (count / rows + 10)
    for factor in (1, -0.5):
        made = begins.index_add(0, index, source, alpha=factor)
        np.testing.assert_allclose(made.numpy(), exact + factor * added, 1e-5, tolerance)
    np.testing.assert_allclose(begins.index_put([index], source, True).numpy(), exact + added, 1e-5, tolerance)


@pytest.mark.parametrize("layout", STARTS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_rows_of_any_layout_and_dtype_are_added(dtype: str, layout: str):
    index, source = turnout.randint(0, 40, (300,)), STARTS[layout]((300, 64)).to(getattr(turnout, dtype))
    added = np.zeros((40, 64))
    np.add.at(added, index.numpy(), source.double().numpy())
    tolerance = 1e-5 if dtype == "float32" else 2e-2
    table = turnout.zeros(40, 64, dtype=source.dtype).requires_grad_()
    (of_table,) = turnout.autograd.grad(F.embedding(index, table), [table], source)
    for made in (turnout.zeros(40, 64, dtype=source.dtype).index_add(0, index, source), of_table):
        assert made.dtype is source.dtype
        np.testing.assert_allclose(made.double().numpy(), added, tolerance, tolerance)


def test_sums_of_rows_do_not_depend_on_the_number_of_threads():
    found = []
    for threads in (1, 2, 3):
        turnout.manual_seed(3)
        with turnout.config.override({"plugin.cpu.threads": threads}):
            for rows, width, count in SUMS_OF_ROWS:
                index = turnout.randint(0, rows, (count,))
                index[: count // 2] = 0
                source = turnout.randn(count, width)
                found.append(turnout.zeros(rows, width).index_add(0, index, source).numpy().tobytes())
    assert found[: len(SUMS_OF_ROWS)] * 3 == found


@pytest.mark.parametrize("index", [-1, 600])
def test_a_row_to_add_to_that_is_out_of_range_is_the_error_of_the_kernel_below(index: int):
    places = turnout.zeros(600, dtype=turnout.int64)
    places[599] = index
    with pytest.raises(turnout.errors.DimError, match=f"index {index} is out of bounds for a dimension of size 600"):
        turnout.zeros(600, 16).index_add(0, places, turnout.ones(600, 16))
    wide = places.expand(16, 600)
    with pytest.raises(turnout.errors.DimError, match=f"index {index} is out of bounds for a dimension of size 600"):
        turnout.zeros(16, 600).scatter_add(1, wide, turnout.ones(16, 600))


@pytest.mark.parametrize("index", [(1 << 63) - 1, -(1 << 63)])
def test_the_farthest_indices_are_out_of_range(index: int):
    places = turnout.full((16, 600), index, dtype=turnout.int64)
    with pytest.raises(turnout.errors.DimError, match=f"index {index} is out of bounds for a dimension of size 600"):
        turnout.zeros(16, 600).scatter_add(1, places, turnout.ones(16, 600))


def test_gradients_that_are_added_at_places_begin_as_one_zero(monkeypatch: pytest.MonkeyPatch):
    starts = {}

    def run(name: str, outputs: Any, inputs: Any, *args: Any, **options: Any) -> None:
        starts[name] = inputs[-1].size
        native.run(name, outputs, inputs, *args, **options)

    monkeypatch.setattr(moving, "run", run)
    x, rows = turnout.randn(2, 3, 60, 60).requires_grad_(), turnout.randn(300, 50).requires_grad_()
    (found,) = turnout.autograd.grad(F.max_pool2d(x, 2).sum(), [x])
    assert found.shape == x.shape
    assert float(found.sum()) == 2 * 3 * 30 * 30
    (found,) = turnout.autograd.grad(rows[turnout.arange(299)].sum(), [rows])
    assert found[:299].eq(1).all()
    assert found[299].eq(0).all()
    assert starts["add_at"] == 1
    assert starts["add_rows_at"] == 1
