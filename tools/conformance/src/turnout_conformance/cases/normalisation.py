"""Normalisations, by their formulas."""

from __future__ import annotations

from typing import Any

from turnout_conformance.cases.model import POSITIVE, M, OperatorCase, S, T, row, some


def _rows(np: Any, x: Any, axes: Any, eps: float) -> Any:
    """(normalised, mean, reciprocal deviation)"""
    mean = x.mean(axes, keepdims=True)
    rstd = 1 / np.sqrt(x.var(axes, keepdims=True) + eps)
    return (x - mean) * rstd, mean, rstd


def _scaled(x: Any, weight: Any, bias: Any) -> Any:
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


def _layer_norm(np: Any, x: Any, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    made, mean, rstd = _rows(np, x, tuple(range(-len(shape), 0)), eps)
    return _scaled(made, weight, bias), mean, rstd


def _group_norm(np: Any, x: Any, groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    n = x.shape[0]
    made, mean, rstd = _rows(np, x.reshape(n, groups, -1), -1, eps)
    per = (-1, *(1,) * (x.ndim - 2))
    weight, bias = (None if p is None else p.reshape(per) for p in (weight, bias))
    return _scaled(made.reshape(x.shape), weight, bias), mean.reshape(n, groups), rstd.reshape(n, groups)


def _batch_norm(
    np: Any, x: Any, weight: Any, bias: Any, mean: Any = None, var: Any = None, training: bool = True, momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:  # fmt: skip
    """With the running statistics that it leaves, where there are any."""
    axes = (0, *range(2, x.ndim))
    per = (-1, *(1,) * (x.ndim - 2))
    old = None if mean is None else (mean, var)
    if training:
        mean, var = x.mean(axes), x.var(axes)
        count = x.size / x.shape[1]
        moved = None if old is None else (
            old[0] * (1 - momentum) + mean * momentum, old[1] * (1 - momentum) + var * (count / (count - 1)) * momentum
        )  # fmt: skip
    else:
        moved = old
    rstd = 1 / np.sqrt(var + eps)
    weight, bias = (None if p is None else p.reshape(per) for p in (weight, bias))
    made = _scaled((x - mean.reshape(per)) * rstd.reshape(per), weight, bias)
    empty = np.zeros((0,), x.dtype)
    return (made, mean, rstd, moved) if training else (made, empty, empty, moved)


def _instance_norm(
    np: Any, x: Any, weight: Any, bias: Any, mean: Any, var: Any, own: bool, momentum: float, eps: float, _: Any
) -> Any:
    made = [_batch_norm(np, image[None], weight, bias, mean, var, own, momentum, eps)[0] for image in x]
    return np.concatenate(made)


def _row_grads(np: Any, g: Any, x: Any, mean: Any, rstd: Any, weight: Any, axes: Any) -> Any:
    """(of x, the terms of the weight's) for x normalised over `axes` with given statistics."""
    normal = (x - mean) * rstd
    each = g if weight is None else g * weight
    inner = each - each.mean(axes, keepdims=True) - normal * (each * normal).mean(axes, keepdims=True)
    return inner * rstd, g * normal


def _layer_backward(np: Any, g: Any, x: Any, shape: Any, mean: Any, rstd: Any, weight: Any, bias: Any, mask: Any) -> Any:
    dx, terms = _row_grads(np, g, x, mean, rstd, weight, tuple(range(-len(shape), 0)))
    lead = tuple(range(x.ndim - len(shape)))
    return dx, terms.sum(lead), g.sum(lead)


def _group_backward(
    np: Any, g: Any, x: Any, mean: Any, rstd: Any, weight: Any, n: int, c: int, area: int, group: int, mask: Any
) -> Any:
    shape = (n, group, c // group, area)
    per = (n, group, 1, 1)
    scale = weight.reshape(1, group, c // group, 1)
    dx, terms = _row_grads(np, g.reshape(shape), x.reshape(shape), mean.reshape(per), rstd.reshape(per), scale, (2, 3))
    return dx.reshape(x.shape), terms.sum((0, 3)).reshape(c), g.reshape(shape).sum((0, 3)).reshape(c)


def _batch_backward(
    np: Any, g: Any, x: Any, weight: Any, rm: Any, rv: Any, mean: Any, rstd: Any, train: bool, eps: float, mask: Any
) -> Any:
    axes, per = (0, *range(2, x.ndim)), (-1, *(1,) * (x.ndim - 2))
    if not train:
        mean, rstd = rm, 1 / np.sqrt(rv + eps)
    dx, terms = _row_grads(np, g, x, mean.reshape(per), rstd.reshape(per), weight.reshape(per), axes)
    dx = dx if train else g * weight.reshape(per) * rstd.reshape(per)
    return dx, terms.sum(axes), g.sum(axes)


V, W = some(3, seed=3), some(3, seed=5)
X = some(2, 3, 2)
C = some(3, seed=7, **POSITIVE)
ROWS = some(2, 1, seed=9, **POSITIVE)
ALL = [True, True, True]

# ruff: noqa: E501 - rows of a table
# fmt: off
CASES: tuple[OperatorCase, ...] = (
    row("layer_norm", (S(M, [3]), S(M, [3], V, W)), lambda np, *a: _layer_norm(np, *a)[0], tolerance=1e-7),
    row("native_layer_norm", (S(M, [3], V, W, 1e-5), S(X, [3, 2], None, None, 0.1)), _layer_norm, tolerance=1e-7),
    row("native_layer_norm_backward", S(some(2, 3, seed=11), M, [3], ROWS, ROWS, V, W, ALL), _layer_backward, tolerance=1e-7),
    row("rms_norm", (S(M, [3], V, 1e-3), S(X, [3, 2])), lambda np, x, s, w=None, eps=None: (lambda e: x / np.sqrt((x * x).mean(tuple(range(-len(s), 0)), keepdims=True) + e) * (1 if w is None else w))(np.finfo(x.dtype).eps if eps is None else eps), tolerance=1e-7),
    row("group_norm", (S(some(2, 4, 2), 2, some(4, seed=3), some(4, seed=5)), S(X, 1)), lambda np, *a: _group_norm(np, *a)[0], tolerance=1e-7),
    row("native_group_norm", S(some(2, 4, 2), some(4, seed=3), None, 2, 4, 2, 2, 1e-5), lambda np, x, w, b, n, c, a, g, e: _group_norm(np, x, g, w, b, e), tolerance=1e-7),
    row("native_group_norm_backward", S(some(1, 4, 2, seed=11), some(1, 4, 2), some(1, 2, seed=9), some(1, 2, seed=9, **POSITIVE), some(4, seed=3), 1, 4, 2, 2, ALL), _group_backward, tolerance=1e-7),
    row("batch_norm", (S(X, V, W, None, None, True, 0.1, 1e-5, False), S(X, None, W, V, C, False, 0.1, 1e-5, False)), lambda np, x, w, b, m, v, t, mo, e, _: _batch_norm(np, x, w, b, m, v, t, mo, e)[0], tolerance=1e-7),
    row("native_batch_norm", (S(X, V, W, None, None, True, 0.1, 1e-5), S(M, None, None, V, C, False, 0.1, 1e-5)), lambda np, *a: _batch_norm(np, *a)[:3], tolerance=1e-7),
    row("_native_batch_norm_legit.no_stats", S(X, V, W, True, 0.1, 1e-5), lambda np, x, w, b, t, m, e: _batch_norm(np, x, w, b, None, None, t, m, e)[:3], tolerance=1e-7),
    row("_native_batch_norm_legit_no_training", S(X, V, W, V, C, 0.1, 1e-5), lambda np, x, w, b, rm, rv, m, e: _batch_norm(np, x, w, b, rm, rv, False, m, e)[:3], tolerance=1e-7),
    row("_native_batch_norm_legit_functional", (S(X, V, W, V, C, True, 0.1, 1e-5), S(X, V, W, V, C, False, 0.1, 1e-5)), lambda np, *a: (lambda r: (*r[:3], *r[3]))(_batch_norm(np, *a)), tolerance=1e-7),
    row("_batch_norm_with_update_functional", S(X, V, W, V, C, 0.1, 1e-5), lambda np, x, w, b, rm, rv, m, e: (lambda r: (*r[:3], np.zeros((0,), "uint8"), *r[3]))(_batch_norm(np, x, w, b, rm, rv, True, m, e)), tolerance=1e-7),
    row("_batch_norm_no_update", S(X, V, W, V, C, 0.1, 1e-5), lambda np, x, w, b, rm, rv, m, e: (*_batch_norm(np, x, w, b, rm, rv, False, m, e)[:3], np.zeros((0,), "uint8")), tolerance=1e-7),
    row("native_batch_norm_backward", (S(some(2, 3, 2, seed=11), X, V, None, None, V, C, True, 1e-5, ALL), S(some(2, 3, 2, seed=11), X, V, V, C, None, None, False, 1e-5, ALL)), _batch_backward, tolerance=1e-7),
    row("batch_norm_backward", S(some(2, 3, 2, seed=11), X, V, None, None, V, C, True, 1e-5, ALL, T([], "uint8")), lambda np, *a: _batch_backward(np, *a[:-1]), tolerance=1e-7),
    row("instance_norm", (S(some(2, 2, 3), some(2), None, None, None, True, 0.1, 1e-5, False), S(some(2, 2, 3), None, None, some(2), some(2, **POSITIVE), False, 0.1, 1e-5, False)), _instance_norm, tolerance=1e-7),
)
# fmt: on
