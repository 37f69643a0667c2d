"""Gradients with a kernel of their own: the first argument is the gradient of the output."""

from __future__ import annotations

from turnout_conformance.cases.model import M, OperatorCase, S, T, row, some
from turnout_conformance.cases.references import erf

# ruff: noqa: E501 - rows of a table
# fmt: off
CASES: tuple[OperatorCase, ...] = (
    row("threshold_backward", S(some(2, 3, seed=3), M, 0.5), lambda np, g, x, t: np.where(x > t, g, 0), differentiable=False),
    row("sigmoid_backward", S(some(2, 3, seed=3), M), lambda np, g, y: g * y * (1 - y), differentiable=False),
    row("tanh_backward", S(some(2, 3, seed=3), M), lambda np, g, y: g * (1 - y * y), differentiable=False),
    row("gelu_backward", S(some(2, 3, seed=3), M), lambda np, g, x: g * ((1 + erf(np, x / 2 ** 0.5)) / 2 + x * np.exp(-x * x / 2) / (2 * np.pi) ** 0.5), tolerance=1e-7, differentiable=False),
    row("mse_loss_backward", (S(T(2.0), M, some(2, 3, seed=3), 1), S(T(2.0), some(3), M, 1), S(some(2, 3, seed=5), M, some(2, 3, seed=3), 0)), lambda np, g, x, y, r: g * 2 * (x - y) / ((x - y).size if r == 1 else 1), differentiable=False),
    row("nll_loss_backward", S(T(2.0), some(3, 4), T([1, 0, 3], "int64"), None, 1, 0, T(2.0)), lambda np, g, x, t, w, r, i, total: ((np.arange(4) == t[:, None]) & (t != i)[:, None]) * -g / total, differentiable=False),
    row("native_dropout_backward", S(M, T([True, False, True], "bool"), 2.0), lambda np, g, m, k: g * m * k, differentiable=False),
    row("select_backward", S(some(2), [2, 3], 1, -1), lambda np, g, s, d, i: np.stack([0 * g, 0 * g, g], axis=1), differentiable=False),
    row("slice_backward", S(some(2), [5], 0, 1, 5, 2), lambda np, g, s, d, a, b, k: np.array([0, g[0], 0, g[1], 0], g.dtype), differentiable=False),
    row("diagonal_backward", S(some(2), [2, 2], 0, 0, 1), lambda np, g, s, o, a, b: np.diag(g), differentiable=False),
    row("unfold_backward", S(some(2, 3), [4], 0, 3, 1), lambda np, g, s, d, n, k: np.append(g[0], g[0][:1] * 0) + np.append(g[0][:1] * 0, g[1]), differentiable=False),
)
# fmt: on
