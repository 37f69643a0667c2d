"""Compiled sums and extremes: of runs of memory, and at places that an index names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from instruction_sets import available
from turnout.nn import functional as F

import turnout
from turnout_conformance.pairwise import pairwise

pytest.importorskip("turnout_kernels._native", reason="the extension module is not built: there is no C compiler")

from turnout_kernels import native, scattering

RNG = np.random.default_rng(7)
AMONG = [[np.nan], [-np.nan], [np.inf], [-np.inf], [np.inf, -np.inf], [np.inf, np.nan], [-0.0], [3e38, 3e38]]
KINDS = {  # rows among which some are special
    "of both signs": lambda x: x,
    "not positive": lambda x: np.where(np.isnan(x), x, -np.abs(x)),
    "infinite": lambda x: np.where(np.isnan(x), x, -np.inf),
}


@pytest.mark.parametrize(
    ("dtype", "kind", "length", "instructions"),
    pairwise(["f", "d"], list(KINDS), [1, 15, 64, 100, 1024], available()),
    indirect=["instructions"],
)
def test_extremes_of_rows_are_nan_where_there_is_one_and_infinite_where_there_is_one(
    dtype: str, kind: str, length: int, instructions: str
) -> None:
    x = RNG.standard_normal((5000, length)).astype(dtype)
    for row, values in enumerate(AMONG):
        x[row, RNG.integers(0, length, len(values))] = values
    x[20], x[21], x[22] = -np.inf, np.inf, -0.0
    x = KINDS[kind](x).astype(dtype)
    t = turnout.from_numpy(x)
    with np.errstate(invalid="ignore"):
        for found, exact in (
            (t.amax(-1), x.max(-1)), (t.amin(-1), x.min(-1)),
            *((turnout.linalg.vector_norm(t, n, -1), np.linalg.norm(x, n, -1)) for n in (np.inf, -np.inf)),
        ):  # fmt: skip
            assert np.array_equal(found.numpy(), exact, equal_nan=True)
    if kind == "not positive":
        assert np.signbit([t.amax(-1).numpy()[22], t.amin(-1).numpy()[22]]).all()


@pytest.mark.parametrize("dtype", ["f", "d"])
def test_sums_of_rows_of_any_length_agree_with_float64(dtype: str, instructions: str) -> None:
    tolerance = 1e-5 if dtype == "f" else 1e-13
    for length in (1, 31, 63, 64, 65, 2047, 2049, 5000):
        x = RNG.standard_normal((2 + 9000 // length, length)).astype(dtype)
        t, wide = turnout.from_numpy(x), x.astype("d")
        np.testing.assert_allclose(t.sum(-1).numpy(), wide.sum(-1), tolerance, tolerance * length**0.5)
        np.testing.assert_allclose(t.norm(dim=-1).numpy(), np.linalg.norm(wide, axis=-1), tolerance)


# rows of the output, elements of a row, rows that are added; the last ones are parts of a row and one part for all
SUMS_OF_ROWS = [(700, 100, 900), (3, 300, 4000), (5000, 16, 300), (40, 3, 3000), (1, 70000, 3), (9, 1, 9000)]


@pytest.mark.parametrize("sizes", SUMS_OF_ROWS, ids=str)
def test_rows_are_added_in_parts(sizes: Any, instructions: str) -> None:
    rows, width, count = sizes
    begins, index, source = turnout.randn(rows, width), turnout.randint(0, rows, (count,)), turnout.randn(count, width)
    added = np.zeros((rows, width))
    np.add.at(added, index.numpy(), source.numpy())
    exact, tolerance = begins.numpy().astype("d"), 1e-6 * (count / rows + 10)
    for factor in (1, -0.5):
        made = begins.index_add(0, index, source, alpha=factor)
        np.testing.assert_allclose(made.numpy(), exact + factor * added, 1e-5, tolerance)
    np.testing.assert_allclose(begins.index_put([index], source, True).numpy(), exact + added, 1e-5, tolerance)


def test_gradients_that_are_added_at_places_begin_as_one_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    starts = {}

    def run(name: str, outputs: Any, inputs: Any, *args: Any, **options: Any) -> None:
        starts[name] = inputs[-1].size
        native.run(name, outputs, inputs, *args, **options)

    monkeypatch.setattr(scattering, "run", run)
    x, rows = turnout.randn(2, 3, 60, 60).requires_grad_(), turnout.randn(300, 50).requires_grad_()
    (found,) = turnout.autograd.grad(F.max_pool2d(x, 2).sum(), [x])
    assert (found.shape, float(found.sum())) == (x.shape, 2 * 3 * 30 * 30)
    (found,) = turnout.autograd.grad(rows[turnout.arange(299)].sum(), [rows])
    assert found[:299].eq(1).all()
    assert found[299].eq(0).all()
    assert (starts["add_at"], starts["add_rows_at"]) == (1, 1)
