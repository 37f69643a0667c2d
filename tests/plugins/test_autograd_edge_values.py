"""Gradients where a value is 0, infinite, or so large that something on the way overflows."""

from __future__ import annotations

import math

import pytest

import turnout
from turnout import autograd
from turnout_aten.nn import functional as F

INF = math.inf


def leaf(*values: float, dtype: turnout.DType = turnout.float64) -> turnout.Tensor:
    return turnout.tensor(values, dtype=dtype, requires_grad=True)


def gradients(y: turnout.Tensor, x: turnout.Tensor) -> tuple[list[float], list[float]]:
    """The first and the second gradient of a sum."""
    (first,) = autograd.grad(y.sum(), x, create_graph=True)
    (second,) = autograd.grad(first.sum(), x)
    return first.tolist(), second.tolist()


def test_a_product_with_a_logarithm_has_its_slope_at_zero_too() -> None:
    x, y = leaf(0.0, 0.0, 0.0), turnout.tensor([0.5, -1.0, math.nan], dtype=turnout.float64)
    first = autograd.grad(turnout.xlogy(x, y).sum(), x)[0].tolist()
    assert first[:2] == [math.log(0.5), 0.0]
    assert math.isnan(first[2])
    assert autograd.grad(turnout.xlogy(x, 0.5).sum(), x)[0].tolist() == [math.log(0.5)] * 3
    first = autograd.grad(turnout.special.xlog1py(x, y).sum(), x)[0].tolist()
    assert first[:2] == [math.log1p(0.5), 0.0]
    assert autograd.grad(turnout.special.xlog1py(x, -2).sum(), x)[0].tolist() == [0.0] * 3


@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2"])
def test_the_one_infinite_term_of_a_sum_of_exponentials_has_all_of_the_gradient(name: str) -> None:
    x, y = leaf(INF, 1.0, -INF), leaf(0.0, INF, 2.0)
    both = autograd.grad(getattr(turnout, name)(x, y).sum(), (x, y))
    assert [each.tolist() for each in both] == [[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]]


@pytest.mark.parametrize("dtype", [turnout.float32, turnout.float64], ids=str)
@pytest.mark.parametrize("name", ["elu", "selu", "celu"])
def test_second_gradients_survive_an_exponential_that_overflows(name: str, dtype: turnout.DType) -> None:
    x = leaf(100.0, 800.0, INF, dtype=dtype)
    first, second = gradients(getattr(F, name)(x), x)
    assert len(set(first)) == 1
    assert second == [0.0] * 3


def test_sinc_has_its_second_gradient_near_zero() -> None:
    x = leaf(0.0, 1e-8, -1e-300, 0.009)
    first, second = gradients(turnout.sinc(x), x)
    assert first == pytest.approx([-(math.pi**2) / 3 * v + math.pi**4 * v**3 / 30 for v in x.tolist()], abs=1e-9)
    assert second[:3] == pytest.approx([-(math.pi**2) / 3] * 3)
    assert autograd.gradgradcheck(turnout.sinc, leaf(0.0, 0.005, 0.5))


@pytest.mark.parametrize("loss", [F.smooth_l1_loss, F.huber_loss])
def test_an_infinite_difference_has_the_slope_of_the_linear_part(loss) -> None:
    x = leaf(INF, 0.0, 0.25, math.nan)
    target = turnout.tensor([0.0, INF, 0.0, 0.0], dtype=turnout.float64)
    first = autograd.grad(loss(x, target, reduction="sum"), x)[0].tolist()
    assert first[:3] == [1.0, -1.0, 0.25]
    assert math.isnan(first[3])


def test_the_logarithm_of_the_normal_distribution_bends_nowhere_far_from_zero() -> None:
    x = leaf(100.0, 800.0)
    assert gradients(turnout.special.log_ndtr(x), x) == ([0.0, 0.0], [0.0, 0.0])
    first, second = gradients(turnout.special.log_ndtr(far := leaf(-1e5)), far)
    assert (first, second) == (pytest.approx([1e5]), pytest.approx([-1.0], abs=1e-3))


def scattered(v: turnout.Tensor) -> turnout.Tensor:
    """2 times the product of all numbers."""
    return v.new_full((1,), 2.0).scatter_reduce(0, turnout.tensor([0, 0, 0]), v, "prod")[0]


@pytest.mark.parametrize(("function", "point", "expected"), [
    (lambda v: v[0] ** v[1], (2.0, 0.0), [[0.0, 0.5], [0.5, math.log(2) ** 2]]),
    (lambda v: turnout.float_power(v[0], v[1]), (4.0, 0.0), [[0.0, 0.25], [0.25, math.log(4) ** 2]]),
    (lambda v: v[0] ** v[1], (0.0, 0.0), [[0.0, 0.0], [0.0, 0.0]]),
    (lambda v: v[0] ** v[1], (0.0, 2.0), [[2.0, 0.0], [0.0, 0.0]]),
    (lambda v: 0.0 ** v[0] + v[1] ** 2, (1.5, 1.0), [[0.0, 0.0], [0.0, 2.0]]),
    (lambda v: turnout.copysign(v[0], v[1]) ** 2, (0.0, 1.0), [[0.0, 0.0], [0.0, 0.0]]),
    (scattered, (0.0, 0.0, 3.0), [[0.0, 6.0, 0.0], [6.0, 0.0, 0.0], [0.0, 0.0, 0.0]]),
])  # fmt: skip
@pytest.mark.parametrize("outer", [turnout.func.jacrev, turnout.func.jacfwd])
@pytest.mark.parametrize("inner", [turnout.func.jacrev, turnout.func.jacfwd])
def test_a_mask_for_a_place_hides_no_second_derivative_there(outer, inner, function, point, expected) -> None:
    found = outer(inner(function))(leaf(*point).detach())
    assert turnout.allclose(found, turnout.tensor(expected, dtype=turnout.float64)), found


@pytest.mark.parametrize("reduction", [0, 1, 2])
@pytest.mark.parametrize("shape", [(), (1, 1), (3,), (2, 3)])
def test_the_gradient_of_a_loss_may_have_any_shape_that_broadcasts(shape: tuple[int, ...], reduction: int) -> None:
    x, y, grad = leaf(1.0, 2.0, -1.0), leaf(0.5, 1.0, 3.0), turnout.full(shape, 0.5, dtype=turnout.float64, requires_grad=True)
    backward = turnout.ops.aten.mse_loss_backward
    assert autograd.gradcheck(lambda *given: backward(*given, reduction), (grad, x, y.repeat(2, 1)))
