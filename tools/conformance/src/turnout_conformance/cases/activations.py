"""Activation functions and their backwards."""

from __future__ import annotations

from math import exp
from typing import Any

from turnout_conformance.cases.model import NUMBERS, M, OperatorCase, S, T, one, row, some

G = some(2, 3, seed=3)
WIDE = some(2, 3, low=-5.0, high=5.0)


def sigmoid(np: Any, x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def softplus(np: Any, x: Any, beta: float = 1, threshold: float = 20) -> Any:
    return np.where(beta * x > threshold, x, np.log1p(np.exp(beta * x)) / beta)


def elu(np: Any, x: Any, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Any:
    return scale * np.where(x > 0, x, alpha * np.expm1(x * input_scale))


def slope(np: Any, function: Any, x: Any) -> Any:
    """The derivative by central differences, in float64."""
    wide = x.astype(np.float64)
    return (function(np, wide + 1e-5) - function(np, wide - 1e-5)) / 2e-5


def backward(function: Any) -> Any:
    """The reference of a backward of (grad, self, ...)."""
    return lambda np, g, x, *rest: g * slope(np, lambda n, v: function(n, v, *rest), x)


def gated(np: Any, x: Any) -> Any:
    return np.clip(x + 3, 0, 6) / 6


def shrunk(np: Any, x: Any, lambd: float = 0.5) -> Any:
    return np.sign(x) * np.maximum(np.abs(x) - lambd, 0)


# ruff: noqa: E501 - rows of a table
# fmt: off
CASES: tuple[OperatorCase, ...] = (
    row("elu", (*one(), S(M, 0.5, 2.0, 0.7)), elu),
    row("selu", S(M), lambda np, x: elu(np, x, 1.6732632423543772, 1.0507009873554805)),
    row("celu", S(M, 0.7), lambda np, x, alpha: np.maximum(x, 0) + np.minimum(0, alpha * np.expm1(x / alpha))),
    row("leaky_relu", (S(M), S(M, 0.2)), lambda np, x, s=0.01: np.where(x > 0, x, s * x)),
    row("hardtanh", (S(M), S(M, 0, 1)), lambda np, x, a=-1, b=1: np.clip(x, a, b), NUMBERS),
    row("relu6", S(WIDE), lambda np, x: np.clip(x, 0, 6), NUMBERS),
    row("hardsigmoid", S(WIDE), gated),
    row("hardswish", S(WIDE), lambda np, x: x * gated(np, x)),
    row("hardshrink", S(M, 0.6), lambda np, x, limit: np.where(np.abs(x) > limit, x, 0)),
    row("softshrink", S(M, 0.6), shrunk),
    row("softplus", (*one(), S(M, 2, 1)), softplus),
    row("silu", one(), lambda np, x: x * sigmoid(np, x)),
    row("mish", one(), lambda np, x: x * np.tanh(softplus(np, x))),
    row("threshold", S(M, 0.5, 3), lambda np, x, t, v: np.where(x > t, x, v).astype(x.dtype), NUMBERS),
    row("glu", (S(some(2, 4)), S(some(4, 3), 0)), lambda np, x, dim=-1: np.split(x, 2, dim)[0] * sigmoid(np, np.split(x, 2, dim)[1])),
    row("log_sigmoid", one(), lambda np, x: -softplus(np, -x)),
    row("log_sigmoid_forward", S(M), lambda np, x: (-softplus(np, -x), np.exp(-np.abs(x))), differentiable=False),
    row("prelu", (S(some(2, 3, 2), some(3, low=0.1, high=0.9)), S(M, T([0.25]))), lambda np, x, w: np.where(x > 0, x, x * w.reshape((-1,) + (1,) * (x.ndim - 2)))),
    # ---- backwards
    row("elu_backward", S(G, 0.5, 2.0, 0.7, False, M), lambda np, g, a, s, i, r, x: g * slope(np, lambda n, v: elu(n, v, a, s, i), x), tolerance=1e-6),
    *[
        row(f"{name}_backward", samples, backward(reference), tolerance=1e-6)
        for name, samples, reference in (
            ("hardtanh", (S(G, M, -1, 1),), lambda np, x, a, b: np.clip(x, a, b)),
            ("hardsigmoid", (S(G, WIDE),), gated),
            ("hardswish", (S(G, WIDE),), lambda np, x: x * gated(np, x)),
            ("hardshrink", (S(G, M, 0.6),), lambda np, x, limit: np.where(np.abs(x) > limit, x, 0)),
            ("softshrink", (S(G, M, 0.6),), shrunk),
            ("softplus", (S(G, M, 2, 1),), softplus),
            ("silu", (S(G, M),), lambda np, x: x * sigmoid(np, x)),
            ("mish", (S(G, M),), lambda np, x: x * np.tanh(softplus(np, x))),
        )
    ],
    row("leaky_relu_backward", S(G, M, 0.2, False), lambda np, g, x, s, r: np.where(x > 0, g, g * s)),
    row("log_sigmoid_backward", S(G, M, T([[exp(-abs(x)) for x in row] for row in M.data])), lambda np, g, x, b: g * sigmoid(np, -x)),
    row("glu_backward", S(G, some(2, 6), 1), lambda np, g, x, dim: np.concatenate([g * sigmoid(np, x[:, 3:]), g * x[:, :3] * sigmoid(np, x[:, 3:]) * sigmoid(np, -x[:, 3:])], 1)),
)
# fmt: on
