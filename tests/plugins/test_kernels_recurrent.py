"""The compiled rows of recurrent layers, against the same layers composed of operators."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

pytest.importorskip("turnout_kernels._native", reason="the extension module is not built")

import turnout
from outcomes import agree, refused
from turnout.errors import ShapeError
from turnout_kernels import recurrent

KINDS = {"lstm": (4, turnout.lstm), "gru": (3, turnout.gru)}


def layer(seed):
    """The function, and arguments drawn from a seed."""
    random, made = Random(seed), np.random.default_rng(seed)
    gates, function = KINDS[random.choice(sorted(KINDS))]
    steps, count, width, hidden = random.randint(1, 7), random.randint(1, 9), random.randint(1, 20), random.randint(1, 40)
    layers, both, first, biases = random.randint(1, 3), random.random() < 0.5, random.random() < 0.5, random.random() < 0.5
    dtype, directions = random.choice(["float32", "float64"]), 2 if both else 1

    def tensor(*shape):
        return turnout.tensor((made.standard_normal(shape) * 0.5).astype(dtype))

    x = tensor(count, steps, width) if first else tensor(steps, count, width)
    if random.random() < 0.3:  # the same numbers, lying otherwise
        x = x.transpose(0, 2).contiguous().transpose(0, 2)
    params = []
    for at in range(layers):
        for _ in range(directions):
            inputs = width if at == 0 else directions * hidden
            params += [tensor(gates * hidden, inputs), tensor(gates * hidden, hidden)]
            params += [tensor(gates * hidden) for _ in range(2 * biases)]
    hx = [tensor(layers * directions, count, hidden) for _ in range(2 if gates == 4 else 1)]
    return function, (x, hx if gates == 4 else hx[0], params, biases, layers, 0.0, False, both, first)


def composed(function, args):
    """The results where gradients are recorded, which are those of the operators."""
    x, *rest = args
    return [each.detach() for each in function(x.clone().requires_grad_(), *rest)]


def test_layers_are_those_of_the_operators(seeds, served):
    names = served(recurrent)
    for seed in seeds(60):
        function, args = layer(seed)
        names.clear()
        found, expected = function(*args), composed(function, args)
        assert len(names) == args[4] * (2 if args[7] else 1), f"--seed {seed}: the row did not take the call"
        agree(found, expected, 2e-5 if args[0].dtype is turnout.float32 else 1e-12, strides=True)


def test_layers_are_the_same_with_all_instructions(instructions):
    for seed in range(6):
        function, args = layer(seed)
        agree(function(*args), composed(function, args), 2e-5)


def test_states_and_inputs_are_not_written():
    for seed in range(6):
        function, args = layer(seed)
        hx = args[1] if isinstance(args[1], list) else [args[1]]
        before = [each.tolist() for each in (args[0], *hx, *args[2])]
        function(*args)
        assert [each.tolist() for each in (args[0], *hx, *args[2])] == before


def test_rows_of_the_batch_do_not_depend_on_their_neighbours():
    random = np.random.default_rng(0)
    x, h = (turnout.tensor(random.standard_normal(shape).astype("f4")) for shape in ((40, 70, 24), (1, 70, 32)))
    params = [turnout.tensor(random.standard_normal(shape).astype("f4") * 0.2) for shape in ((96, 24), (96, 32), (96,), (96,))]
    whole = turnout.gru(x, h, params, True, 1, 0.0, False, False, False)[0]
    part = turnout.gru(x[:, 5:9].contiguous(), h[:, 5:9].contiguous(), params, True, 1, 0.0, False, False, False)[0]
    np.testing.assert_allclose(part.numpy(), whole.numpy()[:, 5:9], rtol=1e-5, atol=1e-6)


def test_what_does_not_fit_is_refused_as_without_the_row():
    x, h = turnout.ones(2, 1, 2), turnout.ones(1, 1, 2)
    said = refused(ShapeError, turnout.gru, x, h, [turnout.ones(6, 2), turnout.ones(5, 2)], False, 1, 0.0, False, False, False)
    assert said == "gru_cell: weights must have 6 rows, got shapes [6, 2] and [5, 2]"


def test_dropout_between_layers_is_drawn_as_without_the_row():
    x, h = turnout.ones(3, 2, 4), turnout.zeros(2, 2, 4)
    params = [turnout.full((12, 4), 0.1)] * 4
    turnout.manual_seed(1)
    found = turnout.gru(x, h, params, False, 2, 0.5, True, False, False)
    turnout.manual_seed(1)
    expected = turnout.gru(x.clone().requires_grad_(), h, params, False, 2, 0.5, True, False, False)
    agree(found, expected)


def layer_of(kind, dtype):
    """The first layer of a kind and dtype that a seed gives."""
    return next(each for each in map(layer, range(50)) if each[0] is KINDS[kind][1] and each[1][0].dtype is dtype)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_autocast_casts_the_products_of_a_layer_as_without_the_row(kind):
    function, args = layer_of(kind, turnout.float32)
    with turnout.autocast("cpu", turnout.bfloat16):
        agree(function(*args), composed(function, args))


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_layers_are_batched_and_differentiated_forwards(kind):
    function, (x, *rest) = layer_of(kind, turnout.float64)

    def output(x):
        return function(x, *rest)[0]

    each = [output(x), output(x * 2)]
    agree(list(turnout.func.vmap(output)(turnout.stack([x, x * 2]))), each, 1e-10)
    value, tangent = turnout.func.jvp(output, (x,), (x,))
    agree(value, each[0], 1e-10)
    step = (output(x * (1 + 1e-6)) - output(x * (1 - 1e-6))) / 2e-6
    np.testing.assert_allclose(tangent.numpy(), step.numpy(), rtol=1e-4, atol=1e-6)
