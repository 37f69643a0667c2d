"""Joining, splitting, repeating, turning: what puts elements in other places."""

from __future__ import annotations

import itertools
from typing import Any

from turnout_conformance.cases.model import NUMBERS, M, OperatorCase, S, T, values

V3, V2, W = T(values(3)), T(values(2, seed=3)), T(values(2, 3, seed=3))
CUBE = T(values(2, 3, 2))


def _chunk_cat(np: Any, tensors: Any, dim: int, chunks: int) -> Any:
    parts = []
    for x in tensors:
        missing = -x.shape[dim] % chunks
        padded = np.concatenate([x, np.zeros((*x.shape[:dim], missing, *x.shape[dim + 1 :]), x.dtype)], dim)
        parts.append(padded.reshape(*x.shape[:dim], chunks, -1))
    return np.concatenate(parts, dim + 1)


def _block_diag(np: Any, tensors: Any) -> Any:
    blocks = [np.atleast_2d(t) for t in tensors]
    made = np.zeros((sum(b.shape[0] for b in blocks), sum(b.shape[1] for b in blocks)), blocks[0].dtype)
    i = j = 0
    for b in blocks:
        made[i : i + b.shape[0], j : j + b.shape[1]] = b
        i, j = i + b.shape[0], j + b.shape[1]
    return made


def _diag_embed(np: Any, x: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    n = x.shape[-1] + abs(offset)
    made = np.zeros((*x.shape[:-1], n, n), x.dtype)
    i = np.arange(x.shape[-1])
    made[..., i + max(-offset, 0), i + max(offset, 0)] = x
    return np.moveaxis(made, (-2, -1), (dim1, dim2))


def _combinations(np: Any, x: Any, r: int = 2, again: bool = False) -> Any:
    chosen = itertools.combinations_with_replacement if again else itertools.combinations
    return np.array(list(chosen(x, r)), x.dtype).reshape(-1, r)


def _product(np: Any, tensors: Any) -> Any:
    return tensors[0] if len(tensors) == 1 else np.array(list(itertools.product(*tensors)))


# ruff: noqa: E501 - rows of a table
# fmt: off
CASES: tuple[OperatorCase, ...] = (
    # ---- splitting
    OperatorCase("split.sizes", (S(T(values(5)), [2, 0, 3]),), lambda np, x, n, d=0: np.split(x, np.cumsum(n)[:-1], axis=d)),
    OperatorCase("tensor_split.sections", (S(T(values(5)), 3), S(M, 2, 1)), lambda np, x, n, d=0: np.array_split(x, n, axis=d)),
    OperatorCase("tensor_split.indices", (S(T(values(5)), [1, 3]), S(M, [-1], 1)), lambda np, x, i, d=0: np.array_split(x, i, axis=d)),
    OperatorCase("tensor_split.tensor_indices_or_sections", (S(T(values(5)), T([1, 3], "int64")), S(M, T(2, "int64"), 1)), lambda np, x, i, d=0: np.array_split(x, i if i.ndim else int(i), axis=d)),
    OperatorCase("hsplit.int", (S(T(values(2, 4)), 2), S(T(values(4)), 2)), lambda np, x, n: np.hsplit(x, n)),
    OperatorCase("hsplit.array", (S(M, [1]),), lambda np, x, i: np.hsplit(x, i)),
    OperatorCase("vsplit.int", (S(M, 2),), lambda np, x, n: np.vsplit(x, n)),
    OperatorCase("vsplit.array", (S(M, [1]),), lambda np, x, i: np.vsplit(x, i)),
    OperatorCase("dsplit.int", (S(CUBE, 2),), lambda np, x, n: np.dsplit(x, n)),
    OperatorCase("dsplit.array", (S(CUBE, [1]),), lambda np, x, i: np.dsplit(x, i)),
    # ---- joining
    OperatorCase("atleast_1d", (S(T(1.0)), S(M)), lambda np, x: np.atleast_1d(x)),
    OperatorCase("atleast_1d.Sequence", (S([T(1.0), M]),), lambda np, t: [np.atleast_1d(x) for x in t]),
    OperatorCase("atleast_2d", (S(T(1.0)), S(V3), S(M)), lambda np, x: np.atleast_2d(x)),
    OperatorCase("atleast_2d.Sequence", (S([V3, M]),), lambda np, t: [np.atleast_2d(x) for x in t]),
    OperatorCase("atleast_3d", (S(T(1.0)), S(V3), S(M)), lambda np, x: np.atleast_3d(x)),
    OperatorCase("atleast_3d.Sequence", (S([V3, M]),), lambda np, t: [np.atleast_3d(x) for x in t]),
    OperatorCase("broadcast_tensors", (S([M, V3, T(values(2, 1))]),), lambda np, t: list(np.broadcast_arrays(*t))),
    OperatorCase("concat", (S([M, W], 1),), lambda np, t, d=0: np.concatenate(t, axis=d)),
    OperatorCase("concatenate", (S([M, W]),), lambda np, t, d=0: np.concatenate(t, axis=d)),
    OperatorCase("_stack", (S([M, W], 1),), lambda np, t, d=0: np.stack(t, axis=d)),
    OperatorCase("hstack", (S([M, W]), S([V3, V2])), lambda np, t: np.hstack(t), NUMBERS),
    OperatorCase("vstack", (S([M, V3]),), lambda np, t: np.vstack(t)),
    OperatorCase("row_stack", (S([V3, M]),), lambda np, t: np.vstack(t)),
    OperatorCase("dstack", (S([M, W]), S([V3, V3])), lambda np, t: np.dstack(t)),
    OperatorCase("column_stack", (S([V2, M, V2]),), lambda np, t: np.column_stack(t)),
    OperatorCase("_chunk_cat", (S([M, T(values(3, 2))], 0, 2),), _chunk_cat),
    OperatorCase("block_diag", (S([M, V2, T(1.0)]),), _block_diag, NUMBERS),
    # ---- grids and diagonals
    OperatorCase("meshgrid", (S([V3, V2]), S([V3, T(1.0)])), lambda np, t: np.meshgrid(*t, indexing="ij")),
    OperatorCase("meshgrid.indexing", (S([V3, V2], indexing="xy"), S([V3], indexing="ij")), lambda np, t, indexing: np.meshgrid(*t, indexing=indexing)),
    OperatorCase("cartesian_prod", (S([V3, V2]), S([V3])), _product),
    OperatorCase("combinations", (S(V3), S(V3, 2, True), S(V2, 3)), _combinations),
    OperatorCase("diag", (S(V3, 1), S(M), S(M, -1)), lambda np, x, k=0: np.diag(x, k), NUMBERS),
    OperatorCase("diag_embed", (S(M), S(M, -1), S(M, 1, 0, 1)), _diag_embed, NUMBERS),
    OperatorCase("diagflat", (S(M), S(V2, 1)), lambda np, x, k=0: np.diagflat(x, k)),
    # ---- repeating and turning
    OperatorCase("tile", (S(M, [2]), S(V2, [2, 3])), lambda np, x, r: np.tile(x, r)),
    OperatorCase("roll", (S(M, [1]), S(M, [1, -2], [0, 1])), lambda np, x, s, d=None: np.roll(x, s, d) if d else np.roll(x, s[0])),
    OperatorCase("rot90", (S(M), S(M, 2), S(CUBE, -1, [0, 2]), S(M, 4)), lambda np, x, k=1, d=(0, 1): np.rot90(x, k, d)),
    OperatorCase("fliplr", (S(M),), lambda np, x: np.fliplr(x)),
    OperatorCase("flipud", (S(M),), lambda np, x: np.flipud(x)),
    OperatorCase("repeat_interleave.Tensor", (S(T([1, 0, 2], "int64")), S(T([0, 2, 0], "int64"), output_size=2)), lambda np, r, output_size=None: np.repeat(np.arange(len(r)), r), ("int64",), differentiable=False),
    OperatorCase("repeat_interleave.self_Tensor", (S(M, T([1, 2], "int64"), 0, output_size=3), S(M, T(2, "int64"), output_size=12)), lambda np, x, r, d=None, output_size=None: np.repeat(x, r, axis=d)),
    OperatorCase("repeat_interleave.self_int", (S(M, 2), S(M, 2, 1), S(T(1.0), 3)), lambda np, x, r, d=None: np.repeat(x, r, axis=d)),
    OperatorCase("sum_to_size", (S(M, [1, 3]), S(T(values(2, 2, 3)), [3]), S(M, [2, 3])), lambda np, x, s: (lambda y: y.sum(axis=tuple(d for d, n in enumerate(s) if n == 1 and y.shape[d] != 1), keepdims=True))(x.sum(axis=tuple(range(x.ndim - len(s)))))),
)
# fmt: on
