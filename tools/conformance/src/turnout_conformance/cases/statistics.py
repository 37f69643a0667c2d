"""Cumulative operators, quantiles, differences and integrals, covariances, histograms."""

from __future__ import annotations

from typing import Any

from turnout_aten.composites.quantiles import INTERPOLATIONS
from turnout_conformance.cases.model import NUMBERS, M, OperatorCase, S, T, row, some


def _cum(np: Any, x: Any, dim: int, ufunc: Any) -> Any:
    found = ufunc.accumulate(x, dim)
    shape = [1] * x.ndim
    shape[dim] = -1
    place = np.arange(x.shape[dim]).reshape(shape)
    return found, np.maximum.accumulate(np.where(x == found, place, 0), dim)


def _median(np: Any, x: Any, dim: int, keepdim: bool = False) -> Any:
    """The lower of two, and where it is; nan comes last."""
    count = np.sum(~np.isnan(x), axis=dim, keepdims=True) if x.dtype.kind == "f" else np.int64(x.shape[dim])
    order = np.argsort(x, axis=dim)
    at = np.take_along_axis(
        order, np.broadcast_to((count - 1) // 2, [1 if i == dim % x.ndim else n for i, n in enumerate(x.shape)]), dim
    )
    made = np.take_along_axis(x, at, dim), at
    return made if keepdim else tuple(np.squeeze(m, dim) for m in made)


def _middle(np: Any, x: Any) -> Any:
    return _median(np, x.reshape(-1), 0)[0]


def _mode(np: Any, x: Any, dim: int = -1, keepdim: bool = False) -> Any:
    def of(row: Any) -> Any:
        found, counts = np.unique(row, return_counts=True)
        value = found[np.argmax(counts)]
        return [value, np.nonzero(row == value)[0][-1]]

    made = np.apply_along_axis(of, dim, x.astype(float))
    made = [np.take(made, [i], dim) for i in range(2)]
    return [m if keepdim else np.squeeze(m, dim) for m in made]


def _quantile(
    np: Any, x: Any, q: Any, dim: Any = None, keepdim: bool = False, interpolation: str = "linear", *, ignore: bool = False
) -> Any:
    find = np.nanquantile if ignore else np.quantile
    return find(x, q, axis=dim, keepdims=keepdim, method=interpolation)


def _trapezoid(np: Any, y: Any, x: Any = None, dx: Any = 1.0, dim: int = -1, cumulative: bool = False) -> Any:
    parts = [np.take(y, range(a, y.shape[dim] - 1 + a), dim) for a in (0, 1)]
    steps = dx
    if x is not None:
        shape = [1] * y.ndim
        shape[dim] = -1
        steps = np.diff(x).reshape(shape) if x.ndim == 1 else np.diff(x, axis=dim)
    areas = (parts[0] + parts[1]) * steps / 2
    return np.cumsum(areas, dim) if cumulative else np.sum(areas, dim)


def _gradient(np: Any, x: Any, *spacing: Any, dim: Any = None, edge_order: int = 1) -> Any:
    axes = tuple(range(x.ndim)) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    return [np.gradient(x, s, axis=a, edge_order=edge_order) for s, a in zip(spacing, axes, strict=True)]


def _each(np: Any, x: Any, spacing: Any = None, dim: Any = None, edge_order: int = 1) -> Any:
    count = x.ndim if dim is None else 1 if isinstance(dim, int) else len(dim)
    each = spacing if isinstance(spacing, list) else [1 if spacing is None else spacing] * count
    return _gradient(np, x, *each, dim=dim, edge_order=edge_order)


def _histc(np: Any, x: Any, bins: int = 100, low: float = 0, high: float = 0) -> Any:
    return np.histogram(x, bins, (low, high) if low != high else None)[0]


def _histogram(np: Any, x: Any, bins: Any, range: Any = None, weight: Any = None, density: bool = False) -> Any:
    found, edges = np.histogram(x, bins, range, weights=weight, density=density)
    return found, edges


def _histogramdd(np: Any, x: Any, bins: Any, range: Any = None, weight: Any = None, density: bool = False) -> Any:
    pairs = None if range is None else [range[i : i + 2] for i in (0, 2)]
    found, edges = np.histogramdd(x, bins, pairs, weights=weight, density=density)
    return found, list(edges)


GAPS = T([[1.0, float("nan"), 3.0, 7.0], [4.0, 5.0, float("nan"), float("nan")]])
TALL = some(4, 3)
POINTS = some(6, 2)
EDGES = [T([-2.0, 0.0, 1.0, 2.5]), T([-2.5, 0.5, 2.5])]
X = T([0.0, 1.0, 3.0, 3.5])
Q = T([0.1, 0.3, 0.9])

# ruff: noqa: E501 - rows of a table
# fmt: off
CASES: tuple[OperatorCase, ...] = (
    row("cumsum", (S(M, 0), S(M, -1)), lambda np, x, d: np.cumsum(x, axis=d), NUMBERS),
    row("cumprod", (S(M, 0), S(T([2.0, 0.0, 3.0, 0.0, 4.0]), -1), S(T([[1.0, 2.0], [0.0, 3.0]]), 0)), lambda np, x, d: np.cumprod(x, axis=d), NUMBERS),
    row("logcumsumexp", (S(M, 0), S(M, -1), S(some(), 0)), lambda np, x, d: np.log(np.cumsum(np.exp(x), axis=d)) if x.ndim else x),
    row("cummax", (S(M, 0), S(M, -1)), lambda np, x, d: _cum(np, x, d, np.maximum)),
    row("cummin", (S(M, 0), S(M, -1)), lambda np, x, d: _cum(np, x, d, np.minimum)),
    row("median", (S(M), S(TALL)), _middle),
    row("nanmedian", (S(M), S(GAPS)), _middle),
    row("median.dim", (S(M, 1), S(TALL, 0, True)), _median),
    row("nanmedian.dim", (S(GAPS, 1), S(TALL, 0, True)), _median),
    row("mode", (S(T([[1, 2, 2, 1], [3, 0, 3, 3]])), S(T([[1, 2], [1, 2]]), 0, True)), _mode, NUMBERS, differentiable=False),
    row("quantile", (S(M, Q), S(M, Q, 1, True), S(M, T(0.4), 0), S(TALL, T(0.4), 0, interpolation="nearest")), _quantile),
    row("quantile.scalar", (S(M, 0.3), S(M, 0.3, 1, True), *[S(M, 0.3, 1, interpolation=word) for word in INTERPOLATIONS]), _quantile),
    row("nanquantile", S(GAPS, Q, 1), lambda np, *a: _quantile(np, *a, ignore=True)),
    row("nanquantile.scalar", (S(GAPS, 0.4), S(GAPS, 0.4, 1, interpolation="lower")), lambda np, *a, **k: _quantile(np, *a, **k, ignore=True)),
    row("diff", (S(M), S(TALL, 2, 0), S(M, 1, -1, some(2, 1), some(2, 2))), lambda np, x, n=1, d=-1, a=None, b=None: np.diff(np.concatenate([p for p in (a, x, b) if p is not None], d), n, d), NUMBERS),
    row("trapezoid.x", (S(some(2, 4), X), S(TALL, some(4, 3, seed=3), dim=0)), lambda np, y, x, dim=-1: _trapezoid(np, y, x, dim=dim)),
    row("trapezoid.dx", (S(M), S(M, dx=2, dim=0)), _trapezoid),
    row("trapz.x", S(some(2, 4), X), _trapezoid),
    row("trapz.dx", S(M, dx=0.5), _trapezoid),
    row("cumulative_trapezoid.x", S(some(2, 4), X), lambda np, y, x: _trapezoid(np, y, x, cumulative=True)),
    row("cumulative_trapezoid.dx", (S(M), S(M, dx=2, dim=0)), lambda np, y, **k: _trapezoid(np, y, **k, cumulative=True)),
    row("gradient.scalarint", (S(M), S(TALL, spacing=0.5, dim=0, edge_order=2)), _each),
    row("gradient.scalararray", S(M, spacing=2.0, dim=[0, 1]), _each),
    row("gradient.array", S(M, dim=[1]), _each),
    row("gradient.scalarrayint", S(M, spacing=[2.0, 0.5]), _each),
    row("gradient.scalarrayarray", S(M, spacing=[2.0, 0.5], dim=[1, 0]), _each),
    row("gradient.tensorarrayint", (S(some(4, 2), spacing=[X], dim=0), S(some(4, 2), spacing=[X], dim=0, edge_order=2)), _each),
    row("gradient.tensorarray", S(some(2, 4), spacing=[T([0.0, 2.0]), X], dim=[0, 1]), _each),
    row("cov", (S(M), S(some(3)), S(TALL, correction=0)), lambda np, x, correction=1: np.cov(x, ddof=correction)),
    row("corrcoef", S(some(2, 4)), "corrcoef"),
    row("histc", (S(M, 4, -1, 1), S(M, 3)), _histc, differentiable=False),
    row("histogram.bin_ct", (S(M, 4), S(M, 3, range=[-1.0, 1.5], density=True), S(M, 2, weight=some(2, 3, seed=3))), _histogram, differentiable=False),
    row("histogram.bins_tensor", S(M, EDGES[0]), _histogram, differentiable=False),
    row("histogramdd", (S(POINTS, [2, 3]), S(POINTS, [2, 2], [-1.0, 1.0, -2.0, 2.0], density=True)), _histogramdd, differentiable=False),
    row("histogramdd.int_bins", S(POINTS, 2), _histogramdd, differentiable=False),
    row("histogramdd.TensorList_bins", (S(POINTS, EDGES), S(POINTS, EDGES, None, some(6))), _histogramdd, differentiable=False),
    row("_histogramdd_bin_edges", S(POINTS, [2, 3]), lambda np, x, b: list(np.histogramdd(x, b)[1]), differentiable=False),
    row("_histogramdd_from_bin_cts", S(POINTS, [2, 3]), lambda np, x, b: np.histogramdd(x, b)[0], differentiable=False),
    row("_histogramdd_from_bin_tensors", S(POINTS, EDGES), lambda np, x, b: np.histogramdd(x, b)[0], differentiable=False),
    row("bincount", (S(T([1, 3, 1], "int64")), S(T([1, 3, 1], "int64"), T([1.0, 2.0, 0.5]), 6)), lambda np, x, w=None, n=0: np.bincount(x, w, n)),
)
# fmt: on
