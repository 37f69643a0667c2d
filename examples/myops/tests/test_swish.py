"""`myops::swish`: values, errors, and that it composes with the other keys."""

from __future__ import annotations

import math

import numpy as np
import pytest

import turnout
from turnout.errors import DTypeError
from turnout_myops.swish import kernel

swish = turnout.ops.myops.swish
POINTS = (-3.0, -0.5, 0.0, 0.5, 3.0)


@pytest.fixture
def x():
    return turnout.tensor(POINTS, dtype=turnout.float64)


@pytest.mark.parametrize("beta", [1.0, 2.0, -0.5, 0.0])
def test_it_is_x_times_the_sigmoid_of_beta_x(x, beta):
    assert swish(x, beta).tolist() == pytest.approx([p / (1 + math.exp(-beta * p)) for p in POINTS])


def test_beta_is_1_by_default_and_given_by_name_too(x):
    assert swish(x).tolist() == swish(x, beta=1.0).tolist()


@pytest.mark.parametrize("dtype", [turnout.float16, turnout.bfloat16, turnout.float32, turnout.float64])
def test_the_dtype_and_the_shape_stay(dtype):
    made = swish(turnout.ones(2, 3, dtype=dtype))
    assert (made.dtype, made.shape) == (dtype, (2, 3))


@pytest.mark.filterwarnings("error")
def test_large_numbers_do_not_overflow():
    assert swish(turnout.tensor([-1000.0, 1000.0])).tolist() == [0.0, 1000.0]


def test_a_strided_and_an_empty_tensor_are_taken(x):
    assert swish(x[::2]).tolist() == swish(x).tolist()[::2]
    assert swish(x[:0]).shape == (0,)


def test_its_gradient_is_that_of_differences_also_the_second(x):
    leaf = x.detach().requires_grad_()
    assert turnout.autograd.gradcheck(lambda t: swish(t, 1.5), (leaf,))
    assert turnout.autograd.gradgradcheck(lambda t: swish(t, 1.5), (leaf,))


@pytest.mark.filterwarnings("error")
def test_vmap_is_one_call(x):
    batch = turnout.stack([x, 2 * x], 1)
    with turnout.trace_dispatch() as log:
        made = turnout.vmap(swish, in_dims=1, out_dims=1)(batch)
    assert made.tolist() == swish(batch).tolist()
    assert [call.key for call in log.walk() if call.op == "myops::swish"].count("CPU") == 1


def test_a_tensor_without_data_has_the_shape(x):
    assert swish(turnout.ones(4, 5, device="meta")).shape == (4, 5)


def test_a_trace_has_it_and_replays(x):
    graph = turnout.trace(lambda t: swish(t) + 1)(x)
    assert "myops.swish" in str(graph)
    assert graph(x).tolist() == (swish(x) + 1).tolist()


def test_it_does_what_its_schema_and_its_rules_say(x):
    turnout.library.opcheck(swish, (x.reshape(1, 5).requires_grad_(), 1.5))


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_integers_are_refused_with_and_without_data(device):
    with pytest.raises(DTypeError) as caught:
        swish(turnout.ones(2, dtype=turnout.int64, device=device))
    assert str(caught.value) == "swish: expected a floating-point tensor, got int64"


def test_deactivation_takes_it_away_and_its_next_use_brings_it_again(x):
    expected = swish(x).tolist()
    turnout.plugins.deactivate("myops", with_dependents=True)
    assert turnout.ops.myops.swish(x).tolist() == expected
    leaf = x.detach().requires_grad_()
    turnout.ops.myops.swish(leaf).sum().backward()
    assert leaf.grad is not None


def test_the_kernel_is_a_plain_function_on_arrays():
    assert kernel(np.zeros(3), 1.0).tolist() == [0.0] * 3
