"""Products of batches and gradients of views as one call of NumPy: what the composites give, and what is left to them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from instruction_sets import available
from turnout.func import grad, hessian, jacfwd, vmap

import turnout
from outcomes import refused
from turnout.registry import find_operator
from turnout_aten import operators as aten
from turnout_aten.composites import view_gradients
from turnout_aten.kernels.binding import unstructured
from turnout_aten.kernels.rows import Row
from turnout_conformance.comparing import Raised, outcome
from turnout_conformance.pairwise import pairwise

pytest.importorskip("turnout_kernels._native", reason="the extension module is not built: there is no C compiler")

from turnout_kernels import matrix_products, native
from turnout_kernels.matrix_products import (
    FEW_WEIGHTS,
    MANY_ROWS,
    bmm,
    linalg_matmul,
    rows_with_rows,
    select_backward,
    slice_backward,
)
from turnout_kernels.native import code, run

RNG = np.random.default_rng(3)
PAIRS = [
    ((5, 2, 3), (5, 3, 4)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)), ((7, 1, 2, 3), (5, 3, 4)), ((5, 2, 3), (3,)),
    ((3,), (5, 3, 4)), ((3,), (3,)), ((2, 3), (3,)), ((0, 2, 3), (3, 4)), ((5, 2, 0), (0, 4)), ((1, 2, 3), (5, 3, 4)),
]  # fmt: skip


def random(*shape: int) -> Any:
    return turnout.from_numpy(RNG.standard_normal(shape))


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_a_product_of_any_ranks_is_that_of_matmul(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    a, b = random(*first), random(*second)
    found, expected = aten.linalg_matmul(a, b), aten.matmul(a, b)
    assert found.shape == expected.shape
    assert turnout.allclose(found, expected)
    assert found.view_of is None
    if a.ndim > 1:  # in another memory order
        turned = a.transpose(-1, -2).contiguous().transpose(-1, -2)
        assert turnout.allclose(aten.linalg_matmul(turned, b), expected)


def batches(random: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Any:
    """Matrices in some memory order, some of them the same one, some of them backwards."""
    order = random.permutation(len(shape))
    whole = [shape[d] for d in order]
    made = random.standard_normal(whole).astype(dtype).transpose(np.argsort(order))
    if random.random() < 0.3:
        made = made[(..., slice(None, None, -1), slice(None))]
    if random.random() < 0.3 and len(shape) > 2:
        made = np.broadcast_to(made[:1], shape)
    return turnout.from_numpy(made) if 0 not in made.strides and min(made.strides) > 0 else turnout.from_numpy(made.copy())


def test_batches_in_any_memory_order_have_a_row_major_product_that_is_the_same_for_a_debugger(
    seeds: Callable[[int], range],
) -> None:
    for seed in seeds(200):
        draw = np.random.default_rng(seed)
        lead = [int(n) for n in draw.integers(1, 4, int(draw.integers(0, 4)))]
        n, k, m = (int(n) for n in draw.integers(1, 6, 3))
        own = [[n if draw.random() < 0.7 else 1 for n in lead][int(draw.integers(0, len(lead) + 1)) :] for _ in range(2)]
        dtype = draw.choice(["f4", "f8"])
        a, b = batches(draw, (*own[0], n, k), dtype), batches(draw, (*own[1], k, m), dtype)
        found = aten.linalg_matmul(a, b)
        assert found.is_contiguous(), (seed, a.shape, a.stride(), b.shape, b.stride())
        sys.setprofile(lambda *_: None)
        try:
            expected = aten.linalg_matmul(a, b)
        finally:
            sys.setprofile(None)
        assert turnout.equal(found, expected), (seed, a.shape, a.stride(), b.shape, b.stride())
        assert found.stride() == expected.stride()
        assert np.allclose(found.numpy(), np.matmul(a.numpy(), b.numpy()), atol=1e-4)


def test_integers_and_what_does_not_fit_go_to_the_kernel_below_once() -> None:
    calls: list[tuple[Any, ...]] = []
    row = Row(lambda *given: calls.append(given) or NotImplemented)
    op = find_operator("aten::select_backward")
    kernel = unstructured(op, turnout.ones(1).device.backend, row, lambda ks, *args: args)
    given = turnout.ones(2), (2, 2), 0, 1
    assert kernel(given[0].keys, *given) == given
    assert len(calls) == 1
    ints = turnout.ones(5, 2, 3, dtype=turnout.int64)
    assert turnout.equal(aten.linalg_matmul(ints, ints.mT), turnout.full((5, 2, 2), 3))


def test_what_a_row_without_a_shape_function_raises_is_told_as_without_a_compiled_call_path() -> None:
    def broken(*given: Any) -> Any:
        raise ZeroDivisionError("a kernel")

    kernel = unstructured(find_operator("aten::select_backward"), turnout.ones(1).device.backend, Row(broken))
    x = turnout.ones(2)
    said = refused(turnout.errors.ArgumentError, kernel, x.keys, x, (2, 2), 0, 1)
    assert said.startswith("aten::select_backward: a kernel\n")


@pytest.mark.parametrize(
    ("first", "second"), [((2, 3), (2, 3)), ((5, 2, 3), (4, 3, 4)), ((5, 2, 3), (2,)), ((), (3,)), ((4, 2, 3), (5, 3, 3, 4))]
)
def test_an_error_is_that_of_matmul(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    a, b = random(*first), random(*second)
    expected, found = outcome(aten.matmul, a, b), outcome(aten.linalg_matmul, a, b)
    assert isinstance(expected, Raised)
    assert found.kind is expected.kind


def test_other_dtypes_and_shapes_that_do_not_fit_are_left_to_the_kernel_below() -> None:
    two = np.ones((2, 2, 2))
    for first, second in [(two.astype(np.int64),) * 2, (two.astype(np.float16),) * 2, (two, two.astype(np.float32))]:
        assert linalg_matmul(first, second) is NotImplemented
    assert linalg_matmul(np.ones((3, 2, 2)), np.ones((4, 2, 2))) is NotImplemented
    assert slice_backward(two, (2, 2, 2), 3, 0, 2, 1) is NotImplemented
    assert slice_backward(two, (2, 2, 4), 2, 0, 3, 1) is NotImplemented
    assert select_backward(two, (2, 2, 2, 4), 3, 4) is NotImplemented


def test_gradients_of_slices_and_selections_are_those_of_the_composites() -> None:
    size = (3, 6, 4)
    for dim, start, end, step in [(1, 0, 6, 1), (1, 1, 5, 2), (-1, -3, (1 << 63) - 1, 1), (0, 2, 2, 1), (-3, 0, 1, 5)]:
        grad_output = random(*size)[(*(slice(None),) * (dim % 3), slice(start, end, step))] * 2
        given = grad_output, size, dim, start, end, step
        assert turnout.equal(aten.slice_backward(*given), view_gradients.slice_backward(*given))
    for dim, index in [(0, 1), (1, -1), (-1, 3)]:
        given = random(*[n for d, n in enumerate(size) if d != dim % 3]), size, dim, index
        assert turnout.equal(aten.select_backward(*given), view_gradients.select_backward(*given))


def test_a_tracked_product_records_and_an_untracked_one_beside_a_level_does_not() -> None:
    a, b = random(5, 2, 3), random(4, 1, 3, 2)
    leaf = b.clone().requires_grad_()
    (aten.linalg_matmul(a, leaf) * 2).sum().backward()
    assert turnout.allclose(leaf.grad, grad(lambda v: (aten.matmul(a, v) * 2).sum())(b))
    found = grad(lambda v: (aten.linalg_matmul(a, v) ** 2).sum())(b)
    assert turnout.allclose(found, grad(lambda v: (aten.matmul(a, v) ** 2).sum())(b))


RANKS = [
    ((3,), (3,)), ((3,), (3, 2)), ((2, 3), (3,)), ((2, 3), (3, 2)), ((4, 2, 3), (3,)), ((3,), (4, 3, 2)), ((4, 2, 3), (3, 2)),
    ((2, 3), (4, 3, 2)), ((4, 2, 3), (4, 3, 2)), ((1, 2, 3), (4, 3, 2)), ((5, 1, 2, 3), (4, 3, 2)),
]  # fmt: skip


@pytest.mark.parametrize(("first", "second"), RANKS)
@pytest.mark.parametrize("dims", [(0, 0), (0, None), (None, 0), (-1, 0)])
def test_matmul_inside_vmap_and_its_second_derivatives_are_those_of_the_loop(
    first: tuple[int, ...], second: tuple[int, ...], dims: tuple[int | None, int | None]
) -> None:
    a = random(*first) if dims[0] is None else random(2, *first).movedim(0, dims[0])
    b = random(*second) if dims[1] is None else random(2, *second)

    def example(i: int) -> tuple[Any, Any]:
        return a if dims[0] is None else a.select(dims[0], i), b if dims[1] is None else b[i]

    def loss(x: Any, y: Any) -> Any:
        return (x @ y).tanh().sum()

    for function in (lambda x, y: x @ y, jacfwd(lambda x, y: x @ y), grad(loss), hessian(loss), hessian(loss, 1)):
        found = vmap(function, dims)(a, b)
        expected = turnout.stack([function(*example(i)) for i in range(2)])
        assert found.shape == expected.shape
        assert turnout.allclose(found, expected)


# Rows, elements of a row, columns: tiles and vectors that are full, and those that are not.
ROWS_WITH_ROWS = [(4, 128, 96), (2, 131, 65), (7, 1000, 13), (33, 200, 101), (64, 784, 256), (5, 2047, 6), (64, 129, 64)]


def given(dtype: str, *shape: int) -> Any:
    return np.asarray(RNG.standard_normal(shape), dtype)


@pytest.mark.parametrize(
    ("sizes", "dtype", "instructions"), pairwise(ROWS_WITH_ROWS, ["f", "d"], available()), indirect=["instructions"]
)
def test_rows_times_rows_are_their_sums_with_all_instructions(sizes: tuple[int, int, int], dtype: str, instructions: str) -> None:
    rows, depth, columns = sizes
    x, w = given(dtype, rows, depth + 3)[:, 1:-2], given(dtype, columns, depth)
    wanted = x.astype("d") @ w.T.astype("d")
    near = {"f": 2e-4, "d": 1e-11}[dtype]
    shapes: list[tuple[int, ...]] = [(columns,), (rows, 1), (), (1,), (1, columns)]
    for parts in (1, 3):
        found = np.full((rows, columns), np.nan, dtype)
        run("matrix_products", (found,), (x, w), (code(x), 0), parts=parts)
        np.testing.assert_allclose(found, wanted, rtol=near, atol=near)
        for added in (given(dtype, columns, rows).T, *(np.asarray(given(dtype, *shape)) for shape in shapes)):
            sums = np.empty_like(found)
            run("matrix_products", (sums,), (x, w, added), (code(x), 1), parts=parts)
            assert np.array_equal(sums, found + added)


Served = Callable[..., list[str]]
NEEDS_REGISTERS = pytest.mark.skipif(native.instructions() != "avx512", reason="fewer registers: BLAS is faster")


@NEEDS_REGISTERS
def test_all_variants_of_a_product_with_a_transposed_matrix_are_compiled_alike(served: Served) -> None:
    names = served(matrix_products)
    x, w, b = (turnout.from_numpy(given("f", *shape)) for shape in ((16, 300), (50, 300), (50,)))
    first, sum_ = turnout.mm(x, w.t()), turnout.addmm(b, x, w.t())
    assert names == ["matrix_products"] * 2
    assert turnout.equal(sum_, first + b)
    assert turnout.equal(turnout.nn.functional.linear(x, w, b), sum_)
    assert turnout.equal(x @ w.t(), first)
    gaps = turnout.stack([first, first], -1)[..., 0]
    for out in (turnout.empty(16, 50), turnout.empty(50, 16).t(), gaps, turnout.empty(0, 0)):
        assert turnout.equal(turnout.mm(x, w.t(), out=out), first)
    assert turnout.equal(turnout.addmm(b, x, w.t(), out=turnout.empty(16, 50)), sum_)
    into = turnout.zeros(16, 50)
    assert turnout.equal(into.addmm_(x, w.t()), first)
    assert names == ["matrix_products"] * len(names)
    assert len(names) > 8


def test_what_is_no_product_of_few_rows_with_a_large_transposed_matrix_is_left() -> None:
    x, w, b = given("f", 16, 300), given("f", 50, 300), given("f", 50)
    assert w.size > FEW_WEIGHTS
    if native.instructions() == "avx512":
        assert rows_with_rows(x, w.T, b, None) is not NotImplemented
    many = given("f", MANY_ROWS + 1, 300)
    pairs = [
        (x, np.ascontiguousarray(w.T)), (x[:1], w.T), (many, w.T), (x, w[:4].T), (x[:, ::2], w[:, ::2].T), (x.astype("d"), w.T),
        (x.astype("e"), w.T.astype("e")), (x[:, :100], given("f", 90, 100).T), (x[:, :200], w.T), (np.asfortranarray(x), w.T),
    ]  # fmt: skip
    for first, second in pairs:
        assert rows_with_rows(first, second, None, None) is NotImplemented
    for added in (given("f", 49), given("d", 50), given("f", 2, 16, 50)):
        assert rows_with_rows(x, w.T, added, None) is NotImplemented
    a, b2, c = map(turnout.from_numpy, (x, w, b))
    assert "do not match" in refused(turnout.errors.ShapeError, turnout.mm, a[:, :200], b2.t())
    refused(turnout.errors.ShapeError, turnout.addmm, c[:49], a, b2.t())
    scaled = turnout.addmm(c, a, b2.t(), beta=0.5, alpha=2)
    turnout.testing.assert_close(scaled, 2 * (a @ b2.t()) + 0.5 * c)


def test_infinity_and_nan_go_only_where_they_meet() -> None:
    x, w = given("f", 8, 200), given("f", 60, 200)
    x[3, 199], w[7, 0] = np.inf, np.nan
    found, wanted = (turnout.from_numpy(x) @ turnout.from_numpy(w).t()).numpy(), x @ w.T
    assert np.array_equal(np.isnan(found), np.isnan(wanted))
    assert np.array_equal(np.isinf(found), np.isinf(wanted))


# Rows, depth and columns of each matrix of a batch
BATCHES = [(6, 40, 64), (1, 1, 1), (7, 33, 65), (13, 5, 130), (40, 64, 17), (5, 70, 50), (12, 300, 31)]


def laid_out(how: str, dtype: str, *shape: int) -> Any:
    """A batch of matrices: row-major, transposed, every other row and column of larger ones, or heads beside each other."""
    batch, rows, columns = shape
    if how == "transposed":
        return given(dtype, batch, columns, rows).swapaxes(1, 2)
    if how == "strided":
        return given(dtype, batch, 2 * rows, 2 * columns)[:, ::2, ::2]
    return given(dtype, rows, batch, columns).swapaxes(0, 1) if how == "heads" else given(dtype, *shape)


LYING = ["row-major", "transposed", "strided", "heads"]


@pytest.mark.parametrize(
    ("sizes", "dtype", "first", "second", "instructions"),
    pairwise(BATCHES, ["f", "d"], LYING, LYING, available()),
    indirect=["instructions"],
)
def test_batches_of_products_are_their_sums_with_all_instructions(
    sizes: tuple[int, int, int], dtype: str, first: str, second: str, instructions: str
) -> None:
    rows, depth, columns = sizes
    near = {"f": 1e-4, "d": 1e-12}[dtype]
    x, w = laid_out(first, dtype, 5, rows, depth), laid_out(second, dtype, 5, depth, columns)
    made = []
    for parts in (1, 2, 5):
        found, failed = np.full((5, rows, columns), np.nan, dtype), np.zeros(parts, np.uint8)
        run("batches", (found, failed), (x, w), (code(x),), parts=parts)
        assert not failed.any()
        made.append(found)
    np.testing.assert_allclose(made[0], x.astype("d") @ w.astype("d"), rtol=near, atol=near)
    assert np.array_equal(made[0], made[1])
    assert np.array_equal(made[0], made[2])


@NEEDS_REGISTERS
def test_all_variants_of_a_product_of_batches_are_compiled_alike(served: Served) -> None:
    names = served(matrix_products)
    x, w = (turnout.from_numpy(given("f", *shape)) for shape in ((8, 48, 64), (8, 64, 64)))
    made = turnout.bmm(x, w)
    np.testing.assert_allclose(made.numpy(), x.numpy().astype("d") @ w.numpy().astype("d"), rtol=1e-4, atol=1e-4)
    assert turnout.equal(x @ w, made)
    assert turnout.equal(turnout.einsum("bij,bjk->bik", x, w), made)
    gaps = turnout.stack([made, made], -1)[..., 0]
    for out in (turnout.empty(8, 48, 64), turnout.empty(8, 64, 48).mT, gaps, turnout.empty(0, 0, 0)):
        assert turnout.equal(turnout.bmm(x, w, out=out), made)
    assert names == ["batches"] * len(names)
    assert len(names) >= 7
    array = w.numpy().copy()
    assert np.array_equal(bmm(array, array, array), turnout.bmm(w, w).numpy())


def test_batches_that_are_few_or_small_or_large_are_left() -> None:
    shapes = {
        "few": ((3, 64, 64), (3, 64, 64)), "flat": ((8, 12, 64), (8, 64, 64)), "narrow": ((8, 64, 64), (8, 64, 8)),
        "deep": ((4, 32, 1024), (4, 1024, 32)), "large": ((4, 512, 512), (4, 512, 512)), "uneven": ((8, 64, 64), (8, 64, 33)),
        "not alike": ((8, 64, 64), (9, 64, 64)), "not matching": ((8, 64, 48), (8, 64, 64)), "no batches": ((64, 64), (64, 64)),
    }  # fmt: skip
    for name, (first, second) in shapes.items():
        assert bmm(given("f", *first), given("f", *second)) is NotImplemented, name
    x = given("f", 8, 64, 64)
    assert bmm(x, x.astype("d")) is NotImplemented
    assert bmm(x.astype("e"), x.astype("e")) is NotImplemented
    doubles = given("d", 8, 64, 64)
    assert bmm(doubles.swapaxes(1, 2), doubles) is NotImplemented
