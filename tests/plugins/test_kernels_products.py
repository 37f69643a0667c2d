"""Products of batches and gradients of views as one call of NumPy: what the composites give, and what is left to them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from turnout.func import grad, hessian, jacfwd, vmap

import turnout
from turnout.registry import find_operator
from turnout_aten import operators as aten
from turnout_aten.composites import view_gradients
from turnout_aten.kernels.rows import Row
from turnout_aten.kernels.unstructured import plain_row

pytest.importorskip("turnout_kernels._native", reason="the extension module is not built: there is no C compiler")

from turnout_kernels.products import linalg_matmul, select_backward, slice_backward

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
    kernel = plain_row(op, turnout.ones(1).device.backend, row, lambda ks, *args: args)
    given = turnout.ones(2), (2, 2), 0, 1
    assert kernel(given[0].keys, *given) == given
    assert len(calls) == 1
    ints = turnout.ones(5, 2, 3, dtype=turnout.int64)
    assert turnout.equal(aten.linalg_matmul(ints, ints.mT), turnout.full((5, 2, 2), 3))


def test_what_a_row_without_a_shape_function_raises_is_told_as_without_a_compiled_call_path() -> None:
    def broken(*given: Any) -> Any:
        raise ZeroDivisionError("a kernel")

    kernel = plain_row(find_operator("aten::select_backward"), turnout.ones(1).device.backend, Row(broken), None)
    x = turnout.ones(2)
    with pytest.raises(turnout.errors.ArgumentError, match=r"^aten::select_backward: a kernel\n"):
        kernel(x.keys, x, (2, 2), 0, 1)


@pytest.mark.parametrize(
    ("first", "second"), [((2, 3), (2, 3)), ((5, 2, 3), (4, 3, 4)), ((5, 2, 3), (2,)), ((), (3,)), ((4, 2, 3), (5, 3, 3, 4))]
)
def test_an_error_is_that_of_matmul(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    a, b = random(*first), random(*second)
    with pytest.raises(turnout.errors.TurnoutError) as expected:
        aten.matmul(a, b)
    with pytest.raises(turnout.errors.TurnoutError) as found:
        aten.linalg_matmul(a, b)
    assert type(found.value) is type(expected.value)


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
