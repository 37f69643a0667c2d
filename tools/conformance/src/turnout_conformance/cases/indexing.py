"""Indexing, gathering, scattering and joining."""

from __future__ import annotations

from typing import Any

from turnout_conformance.cases.model import INDEX, NUMBERS, M, OperatorCase, S, T, row, some


def _scattered(np: Any, x: Any, dim: int, index: Any, source: Any, *, add: bool = False) -> Any:
    made = np.atleast_1d(x.copy())
    for place in np.ndindex(*index.shape):
        to = list(place)
        to[dim] = index[place]
        value = source[place] if hasattr(source, "shape") and source.shape else source
        made[tuple(to)] = made[tuple(to)] + value if add else value
    return made.reshape(x.shape)


def _index_add(np: Any, x: Any, dim: int, index: Any, source: Any, alpha: Any = 1) -> Any:
    made = np.moveaxis(x.copy(), dim, 0)
    for i, j in enumerate(index):
        made[j] = made[j] + alpha * np.moveaxis(source, dim, 0)[i]
    return np.moveaxis(made, 0, dim)


def _put(np: Any, x: Any, indices: Any, source: Any, accumulate: bool = False) -> Any:
    made = x.copy()
    at = tuple(slice(None) if i is None else i for i in indices)
    if accumulate:
        np.add.at(made, at, np.broadcast_to(source, made[at].shape))  # NumPy 2.4 reads beyond shorter values
    else:
        made[at] = source
    return made


# ruff: noqa: E501 - rows of a table
# fmt: off
CASES: tuple[OperatorCase, ...] = (
    row("index.Tensor", (S(some(3, 4), [INDEX]), S(some(3, 4), [None, INDEX]), S(some(3, 4), [INDEX, T([[0], [2]], "int64")]), S(some(2, 3, 2), [INDEX, None, T([0], "int64")]), S(some(3, 2), [T([True, False, True], "bool")])), lambda np, x, i: x[tuple(slice(None) if j is None else j for j in i)]),
    row("index_put", (S(some(3, 2), [T([2, 0], "int64")], some(2, 2, seed=3)), S(some(3, 2), [INDEX], some(2, seed=3), True), S(some(3), [T([[0, 1, 1], [1, 2, 1]], "int64")], some(3, seed=3), True)), _put),
    row("index_select", (S(M, 1, INDEX), S(M, 0, T([], "int64"))), lambda np, x, d, i: np.take(x, i.astype(int), axis=d)),
    row("gather", (S(M, 1, T([[0, 2], [1, 1]], "int64")), S(M, 0, T([[1, 0, 1]], "int64"))), lambda np, x, d, i: np.take_along_axis(x, i, d) if d else np.stack([x[i[0], np.arange(3)]])),
    row("take_along_dim", (S(M, T([[0, 2], [1, 1]], "int64"), 1), S(M, T([5, 0], "int64"))), lambda np, x, i, d=None: np.take_along_axis(x, i, d) if d is not None else x.reshape(-1)[i]),
    row("scatter.src", S(M, 1, T([[0, 2], [1, 0]], "int64"), some(2, 2, seed=3)), _scattered),
    row("scatter.value", S(M, 0, T([[1, 0, 1]], "int64"), 4), _scattered, NUMBERS),
    row("scatter_add", (S(M, 1, T([[0, 0], [1, 0]], "int64"), some(2, 2, seed=3)), S(some(), 0, T([0, 0], "int64"), some(2, seed=3))), lambda np, *a: _scattered(np, *a, add=True)),
    row("index_add", (S(M, 1, INDEX, some(2, 3, seed=3)), S(M, -1, INDEX, some(2, 3, seed=3), alpha=2)), _index_add),
    row("masked_select", S(M, T([True, False, True], "bool")), lambda np, x, m: x[np.broadcast_to(m, x.shape)]),
    row("cat", (S([M, some(1, 3, seed=3)]), S([M, some(2, 1, seed=3)], -1), S([T([]), some(2)]), S([T([]), M], 1)), lambda np, t, d=0: np.concatenate([x for x in t if x.shape != (0,)], axis=d), NUMBERS),
    row("stack", (S([M, some(2, 3, seed=3)]), S([M, some(2, 3, seed=3)], -1)), lambda np, t, d=0: np.stack(t, axis=d), NUMBERS),
    row("flip", (S(M, [0]), S(M, [0, -1])), lambda np, x, d: np.flip(x, tuple(d)), NUMBERS),
    row("tril", (S(M), S(some(2, 3, 3), 1)), lambda np, x, k=0: np.tril(x, k), NUMBERS),
    row("triu", (S(M), S(some(2, 3, 3), -1)), lambda np, x, k=0: np.triu(x, k), NUMBERS),
    row("one_hot", (S(T([0, 2, 1], "int64")), S(T([[0], [1]], "int64"), 3)), lambda np, x, n=-1: np.eye(n if n > 0 else x.max() + 1, dtype=np.int64)[x], ("int64",), differentiable=False),
)
# fmt: on
