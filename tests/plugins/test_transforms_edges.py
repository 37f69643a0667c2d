"""Gradients where a formula has to look: at zeros, ties, singular matrices, infinities. By every transform, and inside vmap.

Inside vmap an operator keeps its formula, it does not get the gradients of what it is written in; and what is masked in a formula
for being infinite stays masked in its derivative with respect to the gradient, which is what tangents are made of.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np
import pytest

import turnout
from turnout import func

F = turnout.nn.functional


def tensor(data: Any) -> turnout.Tensor:
    return turnout.tensor(data, dtype=turnout.float64)


WEIGHTS = tensor([[1, 2], [3, 4]])
# fmt: off
EDGES: dict[str, tuple[Callable[..., Any], Any, Any]] = {
    "norm of zeros": (lambda x: turnout.linalg.vector_norm(x, 3.5), [0, 0], [0, 0]),
    "Euclidean norm of zeros": (turnout.linalg.vector_norm, [0, 0], [0, 0]),
    "deviation of equal numbers": (lambda x: x.std(), [1, 1], [0, 0]),
    "logarithm of a cumulative sum": (lambda x: x.logcumsumexp(0).sum(), [0, 1000], [1, 1]),
    "logarithm of a sum with zeros": (lambda x: x.logsumexp(0), [-inf, 2], [0, 1]),
    "product with a zero": (lambda x: x.prod(), [0, 2, 3], [6, 0, 0]),
    "cumulative product with zeros": (lambda x: x.cumprod(0).sum(), [2, 0, 3], [1, 8, 0]),
    "powers of zero": (lambda x: turnout.pow(tensor([0, 1]), x).sum(), [0, 2], [0, 0]),
    "powers of the number zero": (lambda x: turnout.pow(0, x).sum(), [0, 2], [0, 0]),
    "zero to the zero": (lambda x: turnout.pow(x, tensor([0, 2])).sum(), [0, 3], [0, 6]),
    "angle at the origin": (lambda x: turnout.atan2(x, tensor([0, 0])).sum(), [0, 2], [0, 0]),
    "sign of zero": (lambda x: turnout.copysign(x, -1).sum(), [0, 2], [0, -1]),
    "zero times the logarithm of zero": (lambda x: turnout.xlogy(x, tensor([0, 1])).sum(), [0, 2], [0, 0]),
    "sinc at zero": (lambda x: turnout.sinc(x).sum(), [0, 1], [0, -1]),
    "logistic at zero": (lambda x: F.logsigmoid(x).sum(), [0, 800, -800], [0.5, 0, 1]),
    "cross-entropy at certainty": (lambda x: F.binary_cross_entropy(x, tensor([0, 1, 0.5])), [0, 1, 0.5], [0, 0, 0]),
    "cross-entropy of a logit of zero": (lambda x: F.binary_cross_entropy_with_logits(x, tensor([0, 1])), [0, 100], [0.25, 0]),
    "median of equal numbers": (lambda x: x.median(), [1, 1, 2], [0.5, 0.5, 0]),
    "median without NaN": (lambda x: x.nanmedian(), [1, 1, float("nan")], [0.5, 0.5, 0]),
    "largest of equal numbers": (lambda x: x.amax(), [1, 1, 0], [0.5, 0.5, 0]),
    "determinant of a singular matrix": (turnout.linalg.det, [[1, 2], [2, 4]], [[4, -2], [-2, 1]]),
    "determinant of zeros": (turnout.linalg.det, [[0, 0], [0, 0]], [[0, 0], [0, 0]]),
    "determinant of larger zeros": (turnout.linalg.det, [[0] * 3] * 3, [[0] * 3] * 3),
    "pseudo-inverse of a rotation": (lambda x: (turnout.linalg.pinv(x) * WEIGHTS).sum(), [[0, 1], [-1, 0]], [[4, -3], [-2, 1]]),
    "pseudo-inverse of zeros": (lambda x: (turnout.linalg.pinv(x) * WEIGHTS).sum(), [[0, 0], [0, 0]], [[0, 0], [0, 0]]),
    "distance of equal points": (lambda x: turnout.cdist(x, x.detach()).sum(), [[0, 1], [0, 1]], [[0, 0], [0, 0]]),
}
# fmt: on


@pytest.mark.parametrize("name", EDGES)
def test_every_transform_gives_the_gradient_at_the_edge(name: str) -> None:
    function, data, expected = EDGES[name]
    x, wanted = tensor(data), np.asarray(expected, "float64")
    beside = turnout.stack([x, x * 0.5 + 0.25])
    found = {
        "grad": func.grad(function)(x),
        "vjp": func.vjp(function, x)[1](tensor(1))[0],
        "jacfwd": func.jacfwd(function)(x),
        "jacrev": func.jacrev(function)(x),
        "vmap of grad": func.vmap(func.grad(function))(beside)[0],
        "grad of vmap": func.grad(lambda b: func.vmap(function)(b)[0])(beside)[0],
        "vmap of jacfwd": func.vmap(func.jacfwd(function))(beside)[0],
    }
    for transform, gradient in found.items():
        np.testing.assert_allclose(gradient.numpy(), wanted, rtol=1e-12, atol=1e-12, err_msg=transform)


def test_the_determinant_of_a_singular_matrix_has_second_derivatives() -> None:
    x = tensor([[1, 2], [2, 4]])
    expected = np.zeros((2, 2, 2, 2))
    expected[0, 0, 1, 1] = expected[1, 1, 0, 0] = 1
    expected[0, 1, 1, 0] = expected[1, 0, 0, 1] = -1
    both = func.vmap(func.hessian(turnout.linalg.det))(turnout.stack([x, x + tensor([[1, 0], [0, 0]])]))
    for found in (func.hessian(turnout.linalg.det)(x), *both):
        np.testing.assert_allclose(found.numpy(), expected, atol=1e-12)
