"""Sorting and searching."""

from __future__ import annotations

from typing import Any

from turnout_conformance.cases.model import NUMBERS, M, OperatorCase, S, T, row, some


def _unique(np: Any, x: Any, sorted: bool = True, inverse: bool = False, counts: bool = False, *, axis: Any = None) -> Any:
    found, where, how_often = np.unique(x, return_inverse=True, return_counts=True, axis=axis)
    none = np.zeros(0, int)
    inverse, counts = inverse or axis is not None, counts or axis is not None
    return found, where.reshape(x.shape if axis is None else -1) if inverse else none, how_often if counts else none


def _runs(np: Any, x: Any, inverse: bool = False, counts: bool = False, dim: Any = None) -> Any:
    rows = x.reshape(-1, 1) if dim is None else np.moveaxis(x, dim, 0).reshape(x.shape[dim], -1)
    new = np.concatenate([[True], (rows[1:] != rows[:-1]).any(1)])
    found = x.reshape(-1)[new] if dim is None else np.compress(new, x, dim)
    where = (np.cumsum(new) - 1).reshape(x.shape if dim is None else -1)
    none = np.zeros(0, int)
    return found, where if inverse else none, np.diff(np.append(np.nonzero(new)[0], len(new))) if counts else none


def _search(np: Any, a: Any, v: Any, out_int32: bool = False, right: bool = False, side: Any = None, sorter: Any = None) -> Any:
    a = a if sorter is None else np.take_along_axis(a, sorter, -1)
    how = "right" if right or side == "right" else "left"
    if a.ndim == 1:
        return np.searchsorted(a, v, how)
    return np.stack([np.searchsorted(row, value, how) for row, value in zip(a, v, strict=True)])


def _first(np: Any, x: Any, size: int, fill_value: int = -1) -> Any:
    found = np.argwhere(x)[:size]
    return np.concatenate([found, np.full((size - len(found), x.ndim), fill_value)])


def _kth(np: Any, x: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    at = np.take(np.argsort(x, axis=dim), [k - 1], axis=dim)
    made = np.take_along_axis(x, at, dim), at
    return made if keepdim else tuple(np.squeeze(m, dim) for m in made)


REPEATED = T([[3, 1, 1], [3, 2, 1]])
ROWS = T([[1, 2], [0, 5], [1, 2], [1, 1]])
EDGES = T([1.0, 3.0, 5.0])

# ruff: noqa: E501 - rows of a table
# fmt: off
CASES: tuple[OperatorCase, ...] = (
    row("nonzero", (S(T([[0, 1], [2, 0]])), S(T([]))), "argwhere", NUMBERS, differentiable=False),
    row("topk", (S(M, 2), S(M, 1, 0, False)), lambda np, x, k, d=-1, largest=True: (lambda i: (np.take_along_axis(x, i, d), i))(np.argsort(-x if largest else x, axis=d).take(range(k), axis=d))),
    row("sort", (S(M), S(M, 0, True)), lambda np, x, d=-1, down=False: (lambda i: (np.take_along_axis(x, i, d), i))(np.argsort(-x if down else x, axis=d))),
    row("sort.stable", (S(T([2.0, 1.0, 2.0, 1.0]), stable=True), S(T([2.0, 1.0, 2.0, 1.0]), stable=True, descending=True)), lambda np, x, stable, descending=False: (lambda i: (x[i], i))(np.argsort(-x if descending else x, kind="stable"))),
    row("argsort", (S(M), S(M, 0, True)), lambda np, x, d=-1, down=False: np.argsort(-x if down else x, axis=d), differentiable=False),
    row("msort", S(M), lambda np, x: np.sort(x, axis=0), NUMBERS),
    row("kthvalue", (S(M, 2), S(M, 1, 0, True), S(some(), 1)), lambda np, x, k, d=-1, keep=False: _kth(np, x.reshape(1), k) if not x.ndim else _kth(np, x, k, d, keep)),
    row("argwhere", S(T([[0, 1], [2, 0]])), "argwhere", NUMBERS, differentiable=False),
    row("nonzero_numpy", S(T([[0, 1], [2, 0]])), lambda np, x: list(np.nonzero(x)), NUMBERS, differentiable=False),
    row("nonzero_static", (S(T([[0, 1], [2, 0]]), size=3), S(T([[0, 1], [2, 0]]), size=1, fill_value=7)), _first, NUMBERS, differentiable=False),
    row("searchsorted.Tensor", (S(EDGES, T([[0.0, 3.0], [4.0, 9.0]])), S(T([[1.0, 3.0], [2.0, 2.0]]), T([[3.0], [2.0]]), right=True), S(T([5.0, 1.0, 3.0]), T([4.0]), sorter=T([1, 2, 0], "int64"), out_int32=True)), _search, NUMBERS, differentiable=False),
    row("searchsorted.Scalar", (S(EDGES, 3), S(EDGES, 3, side="right")), _search, NUMBERS, differentiable=False),
    row("bucketize.Tensor", (S(T([[0.0, 3.0], [4.0, 9.0]]), EDGES), S(T([3.0]), EDGES, right=True)), lambda np, v, a, right=False: _search(np, a, v, right=right), NUMBERS, differentiable=False),
    row("bucketize.Scalar", S(3, EDGES), lambda np, v, a: _search(np, a, v), NUMBERS, differentiable=False),
    row("isin.Tensor_Tensor", (S(REPEATED, T([1, 7])), S(REPEATED, T([[3], [2]]), invert=True), S(REPEATED, T([]))), lambda np, x, y, invert=False: np.isin(x, y, invert=invert), NUMBERS, differentiable=False),
    row("isin.Tensor_Scalar", (S(REPEATED, 1), S(REPEATED, 1, invert=True)), lambda np, x, y, invert=False: np.isin(x, y, invert=invert), NUMBERS, differentiable=False),
    row("isin.Scalar_Tensor", (S(1, REPEATED), S(1, REPEATED, invert=True)), lambda np, x, y, invert=False: np.isin(x, y, invert=invert), NUMBERS, differentiable=False),
    row("_unique2", (S(REPEATED), S(REPEATED, True, True, True), S(T([]))), _unique, NUMBERS, differentiable=False),
    row("unique_dim", (S(ROWS, 0, True, True, True), S(REPEATED, 1)), lambda np, x, d, *a: _unique(np, x, *a, axis=d), NUMBERS, differentiable=False),
    row("unique_consecutive", (S(REPEATED), S(REPEATED, True, True), S(T([[1, 2], [1, 2], [0, 5]]), True, True, 0)), _runs, NUMBERS, differentiable=False),
)
# fmt: on
