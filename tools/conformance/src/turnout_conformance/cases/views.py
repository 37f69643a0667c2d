"""Views and what reshapes."""

from __future__ import annotations

from typing import Any

import turnout
from turnout_conformance.cases.model import NUMBERS, M, OperatorCase, S, T, row, some


def _windows(np: Any, x: Any, dim: int, size: int, step: int) -> Any:
    count = (x.shape[dim] - size) // step + 1
    parts = [np.moveaxis(np.take(x, range(i * step, i * step + size), axis=dim), dim, -1) for i in range(count)]
    return np.stack(parts, axis=dim)


# ruff: noqa: E501 - rows of a table
# fmt: off
CASES: tuple[OperatorCase, ...] = (
    row("view", (S(M, [3, 2]), S(M, [-1]), S(T(1.0), [1, 1])), lambda np, x, s: x.reshape(s)),
    row("reshape", (S(M, [3, 2]), S(M, [-1, 2])), lambda np, x, s: x.reshape(s)),
    row("transpose.int", (S(M, 0, 1), S(M, -1, -1)), "swapaxes"),
    row("t", (S(M), S(some(3))), lambda np, x: x.T),
    row("permute", S(some(2, 3, 2), [2, 0, 1]), "transpose"),
    row("expand", (S(some(2, 1), [3, 2, 4]), S(some(2, 1), [-1, 3])), lambda np, x, s: np.broadcast_to(x, [x.shape[i - len(s)] if n == -1 else n for i, n in enumerate(s)])),
    row("squeeze", S(some(2, 1, 3, 1)), "squeeze"),
    row("squeeze.dim", (S(some(2, 1, 3), 1), S(some(2, 1, 3), 0)), lambda np, x, d: np.squeeze(x, d) if x.shape[d] == 1 else x),
    row("squeeze.dims", S(some(1, 2, 1), [0, 2]), lambda np, x, d: np.squeeze(x, tuple(d))),
    row("unsqueeze", (S(M, 0), S(M, -1)), "expand_dims"),
    row("select.int", (S(M, 0, 1), S(M, -1, -3)), lambda np, x, d, i: np.take(x, i, axis=d)),
    row("slice.Tensor", (S(M, 1, 1, 3, 1), S(M, 1, -3, None, 2), S(M, 0, 2, 1)), lambda np, x, d=0, a=None, b=None, s=1: x[a:b:s] if d == 0 else x[:, a:b:s]),
    row("narrow", S(M, 1, 1, 2), lambda np, x, d, a, n: x[:, a:a + n]),
    row("diagonal", (S(M), S(M, 1), S(some(2, 3, 2), -1, 1, 2)), lambda np, x, o=0, a=0, b=1: np.diagonal(x, o, a, b)),
    row("unfold", (S(some(5), 0, 3, 1), S(M, 1, 2, 1)), _windows),
    row("as_strided", S(M, [2, 2], [1, 2], 1), lambda np, x, s, t, o: np.lib.stride_tricks.as_strided(x.reshape(-1)[o:], s, [n * x.itemsize for n in t])),
    row("alias", S(M), lambda np, x: x),
    row("detach", S(M), lambda np, x: x, NUMBERS, differentiable=False),
    row("flatten.using_ints", (S(some(2, 3, 2), 1), S(T(1.0))), lambda np, x, a=0: x.reshape(*x.shape[:a], -1)),
    row("movedim.int", S(some(2, 3, 2), 0, -1), "moveaxis"),
    row("movedim.intlist", S(some(2, 3, 4), [0, 1], [1, 2]), "moveaxis"),
    row("view_as", S(M, some(3, 2)), lambda np, x, y: x.reshape(y.shape)),
    row("expand_as", S(some(3), M), lambda np, x, y: np.broadcast_to(x, y.shape)),
    row("unbind.int", (S(M), S(M, 1)), lambda np, x, d=0: [np.take(x, i, axis=d) for i in range(x.shape[d])]),
    row("split.Tensor", (S(some(5), 2), S(M, 2, 1)), lambda np, x, n, d=0: np.split(x, range(n, x.shape[d], n), axis=d)),
    row("split_with_sizes", S(some(5), [2, 0, 3]), lambda np, x, n, d=0: np.split(x, np.cumsum(n)[:-1], axis=d)),
    row("chunk", (S(some(5), 2), S(M, 2, 1)), lambda np, x, n, d=0: np.split(x, range(-(-x.shape[d] // n), x.shape[d], -(-x.shape[d] // n)), axis=d)),
    row("repeat", (S(M, [2, 1]), S(M, [2, 1, 2])), "tile"),
    row("view.dtype", (S(M, turnout.int32), S(M, turnout.uint8)), lambda np, x, d: np.ascontiguousarray(x).view(d.name), ("float32", "int32"), differentiable=False),
    row("broadcast_to", S(some(2, 1), [3, 2, 4]), "broadcast_to"),
    row("unflatten.int", (S(some(2, 6), 1, [2, -1]), S(some(4), -1, [2, 2])), lambda np, x, d, s: x.reshape(*x.shape[: d % x.ndim], *s)),
    row("ravel", (S(M), S(T(1.0))), "ravel"),
    row("adjoint", S(some(2, 2, 3)), lambda np, x: np.swapaxes(x, -1, -2)),
    row("swapaxes", S(M, 0, 1), "swapaxes"),
    row("swapdims", S(M, -1, 0), "swapaxes"),
    row("moveaxis.int", S(some(2, 3, 2), 0, -1), "moveaxis"),
    row("moveaxis.intlist", S(some(2, 3, 4), [0, 1], [1, 2]), "moveaxis"),
    row("reshape_as", S(M, some(3, 2)), lambda np, x, y: x.reshape(y.shape)),
    row("_reshape_alias", S(M, [3, 2], [2, 1]), lambda np, x, s, t: x.reshape(s)),
    row("narrow.Tensor", S(M, 1, T(1, "int64"), 2), lambda np, x, d, a, n: x[:, int(a):int(a) + n]),
    row("linalg_diagonal", (S(some(2, 3, 3)), S(M, offset=1)), lambda np, x, offset=0: np.diagonal(x, offset, -2, -1)),
)
# fmt: on
