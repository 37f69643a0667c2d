"""Reductions, norms and distances."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from turnout.dtypes import float64
from turnout_aten.composites.segment_reductions import NEUTRAL
from turnout_aten.functions.reductions import COMPUTE_MODES
from turnout_conformance.cases.model import NUMBERS, M, OperatorCase, S, T, one, row, some

GAPS = T([[1.0, float("nan"), 3.0], [4.0, 5.0, float("nan")]])


def _norm(np: Any, x: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False) -> Any:
    size = np.abs(x)
    axis = None if dim is None else tuple(dim)
    if ord == 0:
        return np.sum(size != 0, axis=axis, keepdims=keepdim).astype(x.dtype)
    if abs(ord) == float("inf"):
        return (np.max if ord > 0 else np.min)(size, axis=axis, keepdims=keepdim)
    return np.sum(size**ord, axis=axis, keepdims=keepdim) ** (1 / ord)


def _renorm(np: Any, x: Any, p: Any, dim: int, maxnorm: float) -> Any:
    norms = _norm(np, x, p, [1 - dim % 2], True)
    return x * np.where(norms > maxnorm, maxnorm / (norms + 1e-7), 1)


def _cdist(np: Any, x: Any, y: Any, p: float = 2.0, mode: Any = None) -> Any:
    return _norm(np, x[..., :, None, :] - y[..., None, :, :], p, [-1])


def _weight_norm(np: Any, v: Any, g: Any, dim: int = 0) -> Any:
    others = tuple(d for d in range(v.ndim) if d != dim)
    return v * (g / np.sqrt(np.sum(v * v, axis=others, keepdims=dim != -1)))


def _pdist(np: Any, x: Any, p: float = 2.0) -> Any:
    return _cdist(np, x, x, p)[np.triu_indices(len(x), 1)]


def _segments(np: Any, x: Any, reduce: str, lengths: Any = None, offsets: Any = None, axis: int = 0, initial: Any = None) -> Any:
    if axis:
        return np.stack([_segments(np, a, reduce, None, o) for a, o in zip(x, offsets, strict=True)])
    edges = offsets if lengths is None else np.concatenate([[0], np.cumsum(lengths)])
    start = [] if initial is None else [np.full_like(x[:1], initial)]
    parts = [np.concatenate([*start, x[a:b]]) for a, b in pairwise(edges)]
    if reduce == "mean":
        return np.stack([part.sum(0) / max(len(part) - 1, 1) for part in parts])
    return np.stack([getattr(np, reduce)(part, axis=0) for part in parts])


# ruff: noqa: E501 - rows of a table
# fmt: off
CASES: tuple[OperatorCase, ...] = (
    row("sum", one(), "sum", NUMBERS),
    row("sum.dim_IntList", (S(M, [0]), S(M, [-1], True), S(M, None), S(some(2, 3, 2), [0, 2])), lambda np, x, d, k=False: np.sum(x, axis=None if d is None else tuple(d), keepdims=k), NUMBERS),
    row("mean", S(M), "mean"),
    row("mean.dim", (S(M, [0]), S(M, [-1], True)), lambda np, x, d, k=False: np.mean(x, axis=tuple(d), keepdims=k)),
    row("prod", (S(M), S(T([2.0, 0.0, 3.0])), S(T([]))), "prod", NUMBERS),
    row("prod.dim_int", (S(M, 0), S(M, -1, True)), lambda np, x, d, k=False: np.prod(x, axis=d, keepdims=k), NUMBERS),
    row("amax", (S(M), S(M, [1]), S(M, [0], True)), lambda np, x, d=(), k=False: np.max(x, axis=tuple(d) or None, keepdims=k), NUMBERS),
    row("amin", (S(M), S(M, [1]), S(M, [0], True)), lambda np, x, d=(), k=False: np.min(x, axis=tuple(d) or None, keepdims=k), NUMBERS),
    row("max", S(M), "max", NUMBERS),
    row("min", S(M), "min", NUMBERS),
    row("max.dim", (S(M, 1), S(M, 0, True)), lambda np, x, d, k=False: (np.max(x, axis=d, keepdims=k), np.argmax(x, axis=d, keepdims=k))),
    row("min.dim", (S(M, 1), S(M, 0, True)), lambda np, x, d, k=False: (np.min(x, axis=d, keepdims=k), np.argmin(x, axis=d, keepdims=k))),
    row("argmax", (S(M), S(M, 1), S(M, 0, True)), lambda np, x, d=None, k=False: np.argmax(x, axis=d, keepdims=k), differentiable=False),
    row("argmin", (S(M), S(M, 1), S(M, 0, True)), lambda np, x, d=None, k=False: np.argmin(x, axis=d, keepdims=k), differentiable=False),
    row("any", (S(T([0, 1, 0])), S(T([]))), "any", NUMBERS, differentiable=False),
    row("all", (S(T([0, 1, 0])), S(T([]))), "all", NUMBERS, differentiable=False),
    row("any.dim", (S(T([[0, 1], [0, 0]]), 1), S(T([[0, 1], [0, 0]]), 0, True)), lambda np, x, d, k=False: np.any(x, axis=d, keepdims=k), NUMBERS, differentiable=False),
    row("all.dim", (S(T([[0, 1], [1, 1]]), 1), S(T([[0, 1], [1, 1]]), 0, True)), lambda np, x, d, k=False: np.all(x, axis=d, keepdims=k), NUMBERS, differentiable=False),
    row("any.dims", (S(T([[0, 1], [0, 0]]), [0, 1]), S(T([[0, 1], [0, 0]]), None)), lambda np, x, d=None, k=False: np.any(x, axis=d if d is None else tuple(d), keepdims=k), NUMBERS, differentiable=False),
    row("all.dims", (S(T([[0, 1], [1, 1]]), [0]), S(T([[0, 1], [1, 1]]), None)), lambda np, x, d=None, k=False: np.all(x, axis=d if d is None else tuple(d), keepdims=k), NUMBERS, differentiable=False),
    row("var", (S(M), S(M, False)), lambda np, x, u=True: np.var(x, ddof=int(u))),
    row("var.dim", (S(M, [1]), S(M, [0], False, True)), lambda np, x, d, u=True, k=False: np.var(x, axis=tuple(d), ddof=int(u), keepdims=k)),
    row("var.correction", (S(M, [1], correction=0), S(M)), lambda np, x, d=None, correction=None, keepdim=False: np.var(x, axis=None if d is None else tuple(d), ddof=1 if correction is None else correction, keepdims=keepdim)),
    row("std", S(M), lambda np, x, u=True: np.std(x, ddof=int(u))),
    row("std.dim", S(M, [1]), lambda np, x, d, u=True, k=False: np.std(x, axis=tuple(d), ddof=int(u), keepdims=k)),
    row("std.correction", (S(M, [1], correction=0), S(M)), lambda np, x, d=None, correction=None, keepdim=False: np.std(x, axis=None if d is None else tuple(d), ddof=1 if correction is None else correction, keepdims=keepdim)),
    row("logsumexp", (S(M, [1]), S(M, [0], True)), lambda np, x, d, k=False: np.log(np.sum(np.exp(x), axis=tuple(d), keepdims=k))),
    row("special_logsumexp", S(M, [1]), lambda np, x, d, k=False: np.log(np.sum(np.exp(x), axis=tuple(d), keepdims=k))),
    row("nansum", (S(M), S(GAPS, [1]), S(GAPS, [-1], True)), lambda np, x, d=None, k=False: np.nansum(x, axis=None if d is None else tuple(d), keepdims=k)),
    row("nanmean", (S(M), S(GAPS, [1]), S(GAPS, [0], True)), lambda np, x, d=None, k=False: np.nanmean(x, axis=None if d is None else tuple(d), keepdims=k)),
    row("aminmax", (S(M), S(M, dim=1, keepdim=True), S(M, keepdim=True), S(some())), lambda np, x, dim=None, keepdim=False: (np.min(x, axis=dim, keepdims=keepdim), np.max(x, axis=dim, keepdims=keepdim)), NUMBERS),
    row("count_nonzero", (S(T([[0, 2], [0, 0]])), S(T([[0, 2], [0, 0]]), 1)), lambda np, x, d=None: np.count_nonzero(x, axis=d), NUMBERS, differentiable=False),
    row("count_nonzero.dim_IntList", S(T([[0, 2], [0, 0]]), [0, 1]), lambda np, x, d: np.count_nonzero(x, axis=tuple(d)), NUMBERS, differentiable=False),
    row("var_mean", S(M), lambda np, x: (np.var(x, ddof=1), np.mean(x))),
    row("var_mean.dim", S(M, [0], False), lambda np, x, d, u: (np.var(x, axis=tuple(d), ddof=int(u)), np.mean(x, axis=tuple(d)))),
    row("var_mean.correction", S(M, [1], correction=0, keepdim=True), lambda np, x, d, correction, keepdim: (np.var(x, axis=tuple(d), ddof=correction, keepdims=keepdim), np.mean(x, axis=tuple(d), keepdims=keepdim))),
    row("std_mean", S(M), lambda np, x: (np.std(x, ddof=1), np.mean(x))),
    row("std_mean.dim", S(M, [0], False), lambda np, x, d, u: (np.std(x, axis=tuple(d), ddof=int(u)), np.mean(x, axis=tuple(d)))),
    row("std_mean.correction", S(M, [1], correction=0, keepdim=True), lambda np, x, d, correction, keepdim: (np.std(x, axis=tuple(d), ddof=correction, keepdims=keepdim), np.mean(x, axis=tuple(d), keepdims=keepdim))),
    row("linalg_vector_norm", (S(M), S(M, 3, [1]), S(M, 1.5, [0], True), S(M, 0), S(M, 1, [1]), S(M, float("inf"), [1]), S(M, float("-inf"), [0]), S(some())), _norm, tolerance=1e-7),
    row("norm.Scalar", (S(M), S(M, 3)), lambda np, x, p=2: _norm(np, x, p)),
    row("norm.ScalarOpt_dtype", S(M, None, dtype=float64), lambda np, x, p, dtype: _norm(np, x.astype(np.float64), 2), tolerance=2e-5),
    row("norm.ScalarOpt_dim", (S(M, 1, [1]), S(M, None, [0], True)), lambda np, x, p, d, k=False: _norm(np, x, p or 2, d, k)),
    row("norm.ScalarOpt_dim_dtype", S(M, 1, [1], False, dtype=float64), lambda np, x, p, d, k, dtype: _norm(np, x.astype(np.float64), p, d, k), tolerance=2e-5),
    row("frobenius_norm.dim", S(M, [0, 1], True), lambda np, x, d, k: _norm(np, x, 2, d, k)),
    row("dist", (S(M, some(2, 3, seed=3)), S(M, some(3, seed=3), 3)), lambda np, x, y, p=2: _norm(np, x - y, p)),
    row("renorm", (S(M, 2, 0, 1.5), S(M, 1, -1, 2.0)), _renorm),
    row("pairwise_distance", (S(M, some(2, 3, seed=3)), S(M, some(3, seed=3), 1.0, 1e-3, True)), lambda np, x, y, p=2.0, eps=1e-6, k=False: _norm(np, x - y + eps, p, [-1], k)),
    row("cdist", (*[S(M, some(4, 3, seed=3), 2.0, mode) for mode in COMPUTE_MODES.values()], S(some(2, 2, 3), some(1, 3, seed=5), 1.0)), _cdist),
    row("_cdist_forward", S(M, some(4, 3, seed=3), 2.0, None), _cdist),
    row("_weight_norm", (S(M, some(2, 1, seed=3)), S(M, some(1, 3, seed=3), 1), S(M, T(2.0), -1), S(some(3), some(3, seed=3))), _weight_norm),
    row("pdist", (S(some(4, 3)), S(some(1, 3))), _pdist),
    row("_pdist_forward", S(some(4, 3), 3.0), _pdist),
    row("segment_reduce", tuple(S(some(5, 2), reduce, lengths=T([2, 0, 3], "int64"), initial=1) for reduce in NEUTRAL) + (S(some(2, 3), "sum", offsets=T([[0, 1, 3], [0, 2, 3]], "int64"), axis=1),), _segments),
)
# fmt: on
