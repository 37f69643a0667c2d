"""Losses of values against values and of sequences, by their formulas."""

from __future__ import annotations

from itertools import product
from math import exp, log, pi
from typing import Any

from turnout_aten.shapes.losses import MEAN, NONE
from turnout_conformance.cases.model import POSITIVE, M, OperatorCase, S, T, row, some


def _reduced(losses: Any, reduction: int) -> Any:
    return losses if reduction == NONE else losses.mean() if reduction == MEAN else losses.sum()


def _each(loss: Any) -> Any:
    """A reference of (x, y, reduction) from the loss of each element."""

    def reference(np: Any, x: Any, y: Any, reduction: int = 1, *rest: Any, **named: Any) -> Any:
        return _reduced(loss(np, x, y, *rest, **named), reduction)

    return reference


def _smooth(np: Any, x: Any, y: Any, beta: float = 1.0) -> Any:
    d = abs(x - y)
    return np.where(d < beta, 0.5 * d * d / beta, d - 0.5 * beta) if beta else d


def _huber(np: Any, x: Any, y: Any, delta: float = 1.0) -> Any:
    d = abs(x - y)
    return np.where(d <= delta, 0.5 * d * d, delta * (d - 0.5 * delta))


def _entropy(np: Any, x: Any, y: Any, weight: Any = None, reduction: int = 1) -> Any:
    losses = -(y * np.log(x) + (1 - y) * np.log(1 - x))
    return _reduced(losses if weight is None else losses * weight, reduction)


def _logits(np: Any, x: Any, y: Any, weight: Any = None, positive: Any = None, reduction: int = 1) -> Any:
    s = 1 / (1 + np.exp(-x))
    return _reduced(-((1 if positive is None else positive) * y * np.log(s) + (1 - y) * np.log(1 - s)), reduction)


def _poisson(np: Any, x: Any, y: Any, logs: bool, full: bool, eps: float, reduction: int) -> Any:
    losses = np.exp(x) - y * x if logs else x - y * np.log(x + eps)
    stirling = np.where(y > 1, y * np.log(np.where(y > 1, y, 1)) - y + 0.5 * np.log(2 * pi * np.where(y > 1, y, 1)), 0)
    return _reduced(losses + stirling if full else losses, reduction)


def _cosine(np: Any, a: Any, b: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    norms = [np.sqrt((x * x).sum(dim)) for x in (a, b)]
    return (a * b).sum(dim) / (np.maximum(norms[0], eps) * np.maximum(norms[1], eps))


def _cosine_embedding(np: Any, a: Any, b: Any, y: Any, margin: float = 0.0, reduction: int = 1) -> Any:
    c = _cosine(np, a, b, a.ndim - 1)
    return _reduced(np.where(y == 1, 1 - c, np.maximum(c - margin, 0)), reduction)


def _distance(np: Any, a: Any, b: Any, p: float, eps: float = 1e-6) -> Any:
    return (abs(a - b + eps) ** p).sum(-1) ** (1 / p)


def _triplet(
    np: Any,
    a: Any,
    p: Any,
    n: Any,
    margin: float = 1.0,
    norm: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: int = 1,
) -> Any:
    far = _distance(np, a, n, norm, eps)
    far = np.minimum(far, _distance(np, p, n, norm, eps)) if swap else far
    return _reduced(np.maximum(margin + _distance(np, a, p, norm, eps) - far, 0), reduction)


def _multi_margin(np: Any, x: Any, y: Any, p: int = 1, margin: float = 1, weight: Any = None, reduction: int = 1) -> Any:
    rows, found = np.atleast_2d(x), []
    for line, t in zip(rows, np.atleast_1d(y), strict=True):
        lost = [max(0, margin - line[t] + v) ** p for i, v in enumerate(line) if i != t]
        found.append(sum(lost) / len(line) * (1 if weight is None else weight[t]))
    return _reduced(np.array(found, x.dtype), reduction)


def _multilabel(np: Any, x: Any, y: Any, reduction: int = 1) -> Any:
    found = []
    for line, labels in zip(x, y, strict=True):
        kept = list(labels[: list(labels).index(-1)] if -1 in labels else labels)
        found.append(sum(max(0, 1 - line[t] + v) for t in kept for i, v in enumerate(line) if i not in kept) / len(line))
    return _reduced(np.array(found, x.dtype), reduction)


def _nd(np: Any, x: Any, y: Any, weight: Any = None, reduction: int = 1, ignore: int = -100) -> Any:
    picked = -np.take_along_axis(x, np.where(y == ignore, 0, y)[:, None], 1)[:, 0]
    w = np.where(y == ignore, 0, (np.ones(x.shape[1], x.dtype) if weight is None else weight)[y]).astype(x.dtype)
    return picked * w if reduction == NONE else (picked * w).sum() / (w.sum() if reduction == MEAN else 1)


def _ctc(
    np: Any, logs: Any, targets: Any, steps: Any, lengths: Any, blank: int = 0, reduction: int = 1, zero: bool = False
) -> Any:
    """By the probabilities of all paths."""
    found = []
    for n, (t, s) in enumerate(zip(steps, lengths, strict=True)):
        wanted, total = list(targets[n][:s]), 0.0
        for path in product(range(logs.shape[2]), repeat=t):
            kept = [c for i, c in enumerate(path) if c != blank and (not i or path[i - 1] != c)]
            if kept == wanted:
                total += exp(sum(logs[i, n, c] for i, c in enumerate(path)))
        found.append(-log(total) if total else 0.0 if zero else np.inf)
    losses = np.array(found, logs.dtype)
    return (losses / np.maximum(lengths, 1)).mean() if reduction == MEAN else _reduced(losses, reduction)


N, P = some(2, 3, seed=3), some(2, 3, low=0.1, high=0.9, seed=3)
SIGNS = T([[1.0, -1.0, 1.0], [-1.0, -1.0, 1.0]])
LOGS = some(4, 2, 3, low=-2.0, high=-0.2)

# ruff: noqa: E501 - rows of a table
# fmt: off
CASES: tuple[OperatorCase, ...] = (
    row("l1_loss", (S(M, N), S(M, N, 0)), _each(lambda np, x, y: abs(x - y))),
    row("smooth_l1_loss", (S(M, N, 2, 0.7), S(M, N, 1, 0.0)), _each(_smooth)),
    row("huber_loss", S(M, N, 1, 0.7), _each(_huber)),
    row("binary_cross_entropy", (S(some(2, 3, low=0.1, high=0.9), P), S(some(2, 3, low=0.1, high=0.9), P, some(3, **POSITIVE), 0)), _entropy, tolerance=1e-8),
    row("binary_cross_entropy_with_logits", (S(M, P), S(M, P, None, some(3, **POSITIVE), 2)), _logits, tolerance=1e-8),
    row("kl_div", (S(M, P, 2), S(M, N, 1, log_target=True)), lambda np, x, y, r=1, log_target=False: _reduced(np.exp(y) * (y - x) if log_target else y * (np.log(y) - x), r)),
    row("poisson_nll_loss", (S(M, some(2, 3, **POSITIVE), True, True, 1e-8, 1), S(P, some(2, 3, **POSITIVE), False, False, 1e-8, 0)), _poisson, tolerance=1e-8),
    row("soft_margin_loss", S(M, SIGNS), _each(lambda np, x, y: np.log1p(np.exp(-y * x)))),
    row("hinge_embedding_loss", S(M, T([[1, -1, 1], [-1, 1, -1]], "int64"), 0.5), lambda np, x, y, m=1.0, r=1: _reduced(np.where(y == 1, x, np.maximum(m - x, 0)), r)),
    row("margin_ranking_loss", S(M, N, SIGNS, 0.3, 2), lambda np, a, b, y, m=0.0, r=1: _reduced(np.maximum(-y * (a - b) + m, 0), r)),
    row("cosine_embedding_loss", S(M, N, T([1, -1], "int64"), -0.9), _cosine_embedding, tolerance=1e-8),
    row("triplet_margin_loss", (S(M, N, some(2, 3, seed=5), 2.0, 2, 1e-6, True), S(M, N, some(2, 3, seed=5), 1.5, 3, 1e-6, False, 0)), _triplet, tolerance=1e-7),
    row("multi_margin_loss", (S(M, T([2, 0], "int64")), S(M, T([2, 0], "int64"), 2, 0.7, some(3, **POSITIVE), 0)), _multi_margin, tolerance=1e-8),
    row("multilabel_margin_loss", S(M, T([[1, -1, 0], [2, 0, -1]], "int64"), 0), _multilabel, tolerance=1e-8),
    row("nll_loss_nd", S(some(2, 3, 2), T([[0, 2], [1, 1]], "int64"), None, 1, 2), _nd),
    row("nll_loss2d", S(some(1, 3, 2, 2), T([[[0, 2], [1, 1]]], "int64"), None, 0), _nd),
    row("ctc_loss.IntList", (S(LOGS, T([[1, 2], [2, 2]], "int64"), [4, 3], [2, 2]), S(LOGS, T([[1, 2], [2, 2]], "int64"), [3, 2], [1, 2], 0, 2, True)), _ctc, tolerance=1e-7),
    row("cosine_similarity", (S(M, N), S(some(2, 1, 3), N, -1)), _cosine, tolerance=1e-8),
)
# fmt: on
