"""Softmax, losses and the operators that layers are made of."""

from __future__ import annotations

from typing import Any

from operator_cases.model import POSITIVE, M, OperatorCase, S, T, values


def _softmax(np: Any, x: Any, dim: int) -> Any:
    e = np.exp(x - np.max(x, axis=dim, keepdims=True)) if x.size else x
    return e / np.sum(e, axis=dim, keepdims=True)


def _nll(np: Any, x: Any, target: Any, weight: Any, reduction: int, ignore: int) -> Any:
    rows = np.atleast_2d(x)
    wanted = np.atleast_1d(target)
    kept = wanted != ignore
    safe = np.where(kept, wanted, 0)
    w = (np.ones(rows.shape[1], x.dtype) if weight is None else weight)[safe] * kept
    losses = -rows[np.arange(len(rows)), safe] * w
    if reduction == 0:
        return losses.reshape(target.shape), np.zeros((), x.dtype)
    return (losses.sum() / w.sum() if reduction == 1 else losses.sum()), w.sum()


def _layer_norm(np: Any, x: Any, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    axes = tuple(range(-len(shape), 0))
    made = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)
    made = made if weight is None else made * weight
    return made if bias is None else made + bias


def _cross_entropy(np: Any, x: Any, target: Any, weight: Any = None, reduction: int = 1, ignore: int = -100) -> Any:
    logs = np.log(_softmax(np, x, 1))
    if target.dtype.kind == "f":
        return -(logs * target).sum() / len(x)
    return _nll(np, logs, target, weight, reduction, ignore)[0]


# ruff: noqa: E501 - rows of a table
# fmt: off
CASES: tuple[OperatorCase, ...] = (
    # ---- softmax and losses
    OperatorCase("_softmax", (S(M, 1, False), S(M, 0, False)), lambda np, x, d, h: _softmax(np, x, d)),
    OperatorCase("_log_softmax", (S(M, 1, False), S(M, 0, False)), lambda np, x, d, h: np.log(_softmax(np, x, d))),
    OperatorCase("softmax.int", (S(M, 1), S(M, -2)), _softmax),
    OperatorCase("special_softmax", (S(M, -1),), _softmax),
    OperatorCase("special_log_softmax", (S(M, 0),), lambda np, x, d: np.log(_softmax(np, x, d))),
    OperatorCase("_safe_softmax", (S(M, -1),), _softmax),
    OperatorCase("log_softmax.int", (S(M, 1), S(M, -2)), lambda np, x, d: np.log(_softmax(np, x, d))),
    OperatorCase("nll_loss_forward", tuple(S(T(values(3, 4)), T([1, 0, 3], "int64"), weight, reduction, ignore) for weight in (None, T(values(4, **POSITIVE))) for reduction in (0, 1, 2) for ignore in (-100, 0)), _nll),
    OperatorCase("nll_loss", (S(T(values(3, 4)), T([1, 0, 3], "int64")), S(T(values(4)), T(2, "int64"))), lambda np, x, t: _nll(np, x, t, None, 1, -100)[0]),
    OperatorCase("cross_entropy_loss", (S(T(values(3, 4)), T([1, 0, 3], "int64")), S(T(values(3, 4)), T([1, 0, 3], "int64"), T(values(4, **POSITIVE)), 2), S(T(values(3, 4)), T(values(3, 4, seed=5, low=0.1, high=1.0)))), _cross_entropy),
    OperatorCase("mse_loss", (S(M, T(values(2, 3, seed=3))), S(M, T(values(2, 3, seed=3)), 0), S(M, T(values(2, 3, seed=3)), 2)), lambda np, x, y, r=1: (lambda d: d if r == 0 else d.mean() if r == 1 else d.sum())((x - y) ** 2)),
    # ---- layers
    OperatorCase("linear", (S(M, T(values(4, 3, seed=3)), T(values(4, seed=5))), S(T(values(2, 2, 3)), T(values(4, 3, seed=3)))), lambda np, x, w, b=0: x @ w.T + b),
    OperatorCase("layer_norm", (S(M, [3]), S(M, [3], T(values(3, seed=3)), T(values(3, seed=5)))), _layer_norm, tolerance=1e-7),
    OperatorCase("embedding", (S(T(values(4, 2)), T([[1, 0], [3, 1]], "int64")),), lambda np, w, i: w[i]),
    OperatorCase("dropout", (S(M, 0.5, False), S(M, 0.0, True)), lambda np, x, p, train: x),
)
# fmt: on
