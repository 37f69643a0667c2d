"""Gradients that PyTorch gets wrong, and that the page of differences names: here they are those of differences of values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import turnout

torch = pytest.importorskip("torch")

# fmt: off
PROGRAMS: dict[str, tuple[tuple[int, ...], Callable[[Any, Any], Any]]] = {
    "cholesky_solve": ((2, 2), lambda t, x: t.cholesky_solve(t.ones(2, 1, dtype=t.float64), x)),
    "cholesky_inverse": ((2, 2), lambda t, x: t.cholesky_inverse(x)),
    "as_strided_scatter": ((4,), lambda t, x: t.as_strided_scatter(x, t.ones(2, dtype=t.float64), (2,), (2,), 1)),
    "ctc_loss": ((3, 1, 3), lambda t, x: t.nn.functional.ctc_loss(x, t.tensor([[1]]), [3], [1])),
}
# fmt: on


def gradient(t: Any, program: Callable[[Any, Any], Any], data: Any) -> Any:
    x = t.tensor(data.tolist(), dtype=t.float64, requires_grad=True)
    y = program(t, x)
    return np.asarray(t.autograd.grad((y * weights(t, y)).sum(), x)[0])


def weights(t: Any, y: Any) -> Any:
    return t.arange(1.0, 1 + y.numel(), dtype=t.float64).reshape(y.shape)


def slope(program: Callable[[Any, Any], Any], data: Any, step: float = 1e-6) -> Any:
    def value(numbers: Any) -> float:
        y = program(torch, torch.tensor(numbers))
        return float((y * weights(torch, y)).sum())

    moves = [step * (np.arange(data.size) == k).reshape(data.shape) for k in range(data.size)]
    return np.array([(value(data + move) - value(data - move)) / (2 * step) for move in moves]).reshape(data.shape)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_gradient_is_that_of_differences_where_that_of_pytorch_is_not(name):
    shape, program = PROGRAMS[name]
    data = np.arange(1.0, 1 + np.prod(shape)).reshape(shape) ** 0.5
    expected = slope(program, data)
    assert np.allclose(gradient(turnout, program, data), expected, atol=1e-5)
    assert not np.allclose(gradient(torch, program, data), expected, atol=1e-5)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")
def test_products_have_a_derivative_along_tangents_and_bytes_are_rounded():
    def derivative(t: Any) -> Any:
        at, source, x = t.tensor([0, 0, 1]), t.tensor([2.0, 4.0, 3.0]), t.tensor([1.0, 2.0])
        along = (t.ones(2), t.ones(3))
        return t.func.jvp(lambda a, b: a.scatter_reduce(0, at, b, "prod"), (x, source), along)[1].tolist()

    assert (derivative(turnout), derivative(torch)) == ([14.0, 5.0], [0.0, 0.0])
    made = [
        t.nn.functional.interpolate(t.tensor([[[[0, 255, 3], [7, 200, 90]]]], dtype=t.uint8), scale_factor=1.5, mode="bilinear")
        for t in (turnout, torch)
    ]
    assert (int(made[0][0, 0, 1, 2]), int(made[1][0, 0, 1, 2])) == (197, 198)  # of 197.33
