"""Joining, splitting, repeating, turning: what puts elements in other places."""

from __future__ import annotations

import itertools
from typing import Any

from turnout_conformance.cases.model import NUMBERS, M, OperatorCase, S, T, row, some

V3, V2, W = some(3), some(2, seed=3), some(2, 3, seed=3)
CUBE = some(2, 3, 2)


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
    row("split.sizes", S(some(5), [2, 0, 3]), lambda np, x, n, d=0: np.split(x, np.cumsum(n)[:-1], axis=d)),
    row("tensor_split.sections", (S(some(5), 3), S(M, 2, 1)), lambda np, x, n, d=0: np.array_split(x, n, axis=d)),
    row("tensor_split.indices", (S(some(5), [1, 3]), S(M, [-1], 1)), lambda np, x, i, d=0: np.array_split(x, i, axis=d)),
    row("tensor_split.tensor_indices_or_sections", (S(some(5), T([1, 3], "int64")), S(M, T(2, "int64"), 1)), lambda np, x, i, d=0: np.array_split(x, i if i.ndim else int(i), axis=d)),
    row("hsplit.int", (S(some(2, 4), 2), S(some(4), 2)), "hsplit"),
    row("hsplit.array", S(M, [1]), "hsplit"),
    row("vsplit.int", S(M, 2), "vsplit"),
    row("vsplit.array", S(M, [1]), "vsplit"),
    row("dsplit.int", S(CUBE, 2), "dsplit"),
    row("dsplit.array", S(CUBE, [1]), "dsplit"),
    # ---- joining
    row("atleast_1d", (S(T(1.0)), S(M)), "atleast_1d"),
    row("atleast_1d.Sequence", S([T(1.0), M]), lambda np, t: [np.atleast_1d(x) for x in t]),
    row("atleast_2d", (S(T(1.0)), S(V3), S(M)), "atleast_2d"),
    row("atleast_2d.Sequence", S([V3, M]), lambda np, t: [np.atleast_2d(x) for x in t]),
    row("atleast_3d", (S(T(1.0)), S(V3), S(M)), "atleast_3d"),
    row("atleast_3d.Sequence", S([V3, M]), lambda np, t: [np.atleast_3d(x) for x in t]),
    row("broadcast_tensors", S([M, V3, some(2, 1)]), lambda np, t: list(np.broadcast_arrays(*t))),
    row("concat", S([M, W], 1), lambda np, t, d=0: np.concatenate(t, axis=d)),
    row("concatenate", S([M, W]), lambda np, t, d=0: np.concatenate(t, axis=d)),
    row("_stack", S([M, W], 1), lambda np, t, d=0: np.stack(t, axis=d)),
    row("hstack", (S([M, W]), S([V3, V2])), "hstack", NUMBERS),
    row("vstack", S([M, V3]), "vstack"),
    row("row_stack", S([V3, M]), "vstack"),
    row("dstack", (S([M, W]), S([V3, V3])), "dstack"),
    row("column_stack", S([V2, M, V2]), "column_stack"),
    row("_chunk_cat", S([M, some(3, 2)], 0, 2), _chunk_cat),
    row("block_diag", S([M, V2, T(1.0)]), _block_diag, NUMBERS),
    # ---- grids and diagonals
    row("meshgrid", (S([V3, V2]), S([V3, T(1.0)])), lambda np, t: np.meshgrid(*t, indexing="ij")),
    row("meshgrid.indexing", (S([V3, V2], indexing="xy"), S([V3], indexing="ij")), lambda np, t, indexing: np.meshgrid(*t, indexing=indexing)),
    row("cartesian_prod", (S([V3, V2]), S([V3])), _product),
    row("combinations", (S(V3), S(V3, 2, True), S(V2, 3)), _combinations),
    row("diag", (S(V3, 1), S(M), S(M, -1)), lambda np, x, k=0: np.diag(x, k), NUMBERS),
    row("diag_embed", (S(M), S(M, -1), S(M, 1, 0, 1)), _diag_embed, NUMBERS),
    row("diagflat", (S(M), S(V2, 1)), lambda np, x, k=0: np.diagflat(x, k)),
    # ---- repeating and turning
    row("tile", (S(M, [2]), S(V2, [2, 3])), "tile"),
    row("roll", (S(M, [1]), S(M, [1, -2], [0, 1])), lambda np, x, s, d=None: np.roll(x, s, d) if d else np.roll(x, s[0])),
    row("rot90", (S(M), S(M, 2), S(CUBE, -1, [0, 2]), S(M, 4)), lambda np, x, k=1, d=(0, 1): np.rot90(x, k, d)),
    row("fliplr", S(M), "fliplr"),
    row("flipud", S(M), "flipud"),
    row("repeat_interleave.Tensor", (S(T([1, 0, 2], "int64")), S(T([0, 2, 0], "int64"), output_size=2)), lambda np, r, output_size=None: np.repeat(np.arange(len(r)), r), ("int64",), differentiable=False),
    row("repeat_interleave.self_Tensor", (S(M, T([1, 2], "int64"), 0, output_size=3), S(M, T(2, "int64"), output_size=12)), lambda np, x, r, d=None, output_size=None: np.repeat(x, r, axis=d)),
    row("repeat_interleave.self_int", (S(M, 2), S(M, 2, 1), S(T(1.0), 3)), lambda np, x, r, d=None: np.repeat(x, r, axis=d)),
    row("sum_to_size", (S(M, [1, 3]), S(some(2, 2, 3), [3]), S(M, [2, 3])), lambda np, x, s: (lambda y: y.sum(axis=tuple(d for d, n in enumerate(s) if n == 1 and y.shape[d] != 1), keepdims=True))(x.sum(axis=tuple(range(x.ndim - len(s)))))),
)
# fmt: on
