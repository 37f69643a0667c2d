"""Views and what reshapes."""

from __future__ import annotations

from typing import Any

import turnout
from turnout_conformance.cases.model import NUMBERS, M, OperatorCase, S, T, values


def _windows(np: Any, x: Any, dim: int, size: int, step: int) -> Any:
    count = (x.shape[dim] - size) // step + 1
    parts = [np.moveaxis(np.take(x, range(i * step, i * step + size), axis=dim), dim, -1) for i in range(count)]
    return np.stack(parts, axis=dim)


# ruff: noqa: E501 - rows of a table
# fmt: off
CASES: tuple[OperatorCase, ...] = (
    OperatorCase("view", (S(M, [3, 2]), S(M, [-1]), S(T(1.0), [1, 1])), lambda np, x, s: x.reshape(s)),
    OperatorCase("reshape", (S(M, [3, 2]), S(M, [-1, 2])), lambda np, x, s: x.reshape(s)),
    OperatorCase("transpose.int", (S(M, 0, 1), S(M, -1, -1)), lambda np, x, a, b: np.swapaxes(x, a, b)),
    OperatorCase("t", (S(M), S(T(values(3)))), lambda np, x: x.T),
    OperatorCase("permute", (S(T(values(2, 3, 2)), [2, 0, 1]),), lambda np, x, d: np.transpose(x, d)),
    OperatorCase("expand", (S(T(values(2, 1)), [3, 2, 4]), S(T(values(2, 1)), [-1, 3])), lambda np, x, s: np.broadcast_to(x, [x.shape[i - len(s)] if n == -1 else n for i, n in enumerate(s)])),
    OperatorCase("squeeze", (S(T(values(2, 1, 3, 1))),), lambda np, x: np.squeeze(x)),
    OperatorCase("squeeze.dim", (S(T(values(2, 1, 3)), 1), S(T(values(2, 1, 3)), 0)), lambda np, x, d: np.squeeze(x, d) if x.shape[d] == 1 else x),
    OperatorCase("squeeze.dims", (S(T(values(1, 2, 1)), [0, 2]),), lambda np, x, d: np.squeeze(x, tuple(d))),
    OperatorCase("unsqueeze", (S(M, 0), S(M, -1)), lambda np, x, d: np.expand_dims(x, d)),
    OperatorCase("select.int", (S(M, 0, 1), S(M, -1, -3)), lambda np, x, d, i: np.take(x, i, axis=d)),
    OperatorCase("slice.Tensor", (S(M, 1, 1, 3, 1), S(M, 1, -3, None, 2), S(M, 0, 2, 1)), lambda np, x, d=0, a=None, b=None, s=1: x[a:b:s] if d == 0 else x[:, a:b:s]),
    OperatorCase("narrow", (S(M, 1, 1, 2),), lambda np, x, d, a, n: x[:, a:a + n]),
    OperatorCase("diagonal", (S(M), S(M, 1), S(T(values(2, 3, 2)), -1, 1, 2)), lambda np, x, o=0, a=0, b=1: np.diagonal(x, o, a, b)),
    OperatorCase("unfold", (S(T(values(5)), 0, 3, 1), S(M, 1, 2, 1)), _windows),
    OperatorCase("as_strided", (S(M, [2, 2], [1, 2], 1),), lambda np, x, s, t, o: np.lib.stride_tricks.as_strided(x.reshape(-1)[o:], s, [n * x.itemsize for n in t])),
    OperatorCase("alias", (S(M),), lambda np, x: x),
    OperatorCase("detach", (S(M),), lambda np, x: x, NUMBERS, differentiable=False),
    OperatorCase("flatten.using_ints", (S(T(values(2, 3, 2)), 1), S(T(1.0))), lambda np, x, a=0: x.reshape(*x.shape[:a], -1)),
    OperatorCase("movedim.int", (S(T(values(2, 3, 2)), 0, -1),), lambda np, x, a, b: np.moveaxis(x, a, b)),
    OperatorCase("movedim.intlist", (S(T(values(2, 3, 4)), [0, 1], [1, 2]),), lambda np, x, a, b: np.moveaxis(x, a, b)),
    OperatorCase("view_as", (S(M, T(values(3, 2))),), lambda np, x, y: x.reshape(y.shape)),
    OperatorCase("expand_as", (S(T(values(3)), M),), lambda np, x, y: np.broadcast_to(x, y.shape)),
    OperatorCase("unbind.int", (S(M), S(M, 1)), lambda np, x, d=0: [np.take(x, i, axis=d) for i in range(x.shape[d])]),
    OperatorCase("split.Tensor", (S(T(values(5)), 2), S(M, 2, 1)), lambda np, x, n, d=0: np.split(x, range(n, x.shape[d], n), axis=d)),
    OperatorCase("split_with_sizes", (S(T(values(5)), [2, 0, 3]),), lambda np, x, n, d=0: np.split(x, np.cumsum(n)[:-1], axis=d)),
    OperatorCase("chunk", (S(T(values(5)), 2), S(M, 2, 1)), lambda np, x, n, d=0: np.split(x, range(-(-x.shape[d] // n), x.shape[d], -(-x.shape[d] // n)), axis=d)),
    OperatorCase("repeat", (S(M, [2, 1]), S(M, [2, 1, 2])), lambda np, x, r: np.tile(x, r)),
    OperatorCase("view.dtype", (S(M, turnout.int32), S(M, turnout.uint8)), lambda np, x, d: np.ascontiguousarray(x).view(d.name), ("float32", "int32"), differentiable=False),
    OperatorCase("broadcast_to", (S(T(values(2, 1)), [3, 2, 4]),), lambda np, x, s: np.broadcast_to(x, s)),
    OperatorCase("unflatten.int", (S(T(values(2, 6)), 1, [2, -1]), S(T(values(4)), -1, [2, 2])), lambda np, x, d, s: x.reshape(*x.shape[: d % x.ndim], *s)),
    OperatorCase("ravel", (S(M), S(T(1.0))), lambda np, x: np.ravel(x)),
    OperatorCase("adjoint", (S(T(values(2, 2, 3))),), lambda np, x: np.swapaxes(x, -1, -2)),
    OperatorCase("swapaxes", (S(M, 0, 1),), lambda np, x, a, b: np.swapaxes(x, a, b)),
    OperatorCase("swapdims", (S(M, -1, 0),), lambda np, x, a, b: np.swapaxes(x, a, b)),
    OperatorCase("moveaxis.int", (S(T(values(2, 3, 2)), 0, -1),), lambda np, x, a, b: np.moveaxis(x, a, b)),
    OperatorCase("moveaxis.intlist", (S(T(values(2, 3, 4)), [0, 1], [1, 2]),), lambda np, x, a, b: np.moveaxis(x, a, b)),
    OperatorCase("reshape_as", (S(M, T(values(3, 2))),), lambda np, x, y: x.reshape(y.shape)),
    OperatorCase("_reshape_alias", (S(M, [3, 2], [2, 1]),), lambda np, x, s, t: x.reshape(s)),
    OperatorCase("narrow.Tensor", (S(M, 1, T(1, "int64"), 2),), lambda np, x, d, a, n: x[:, int(a):int(a) + n]),
    OperatorCase("linalg_diagonal", (S(T(values(2, 3, 3))), S(M, offset=1)), lambda np, x, offset=0: np.diagonal(x, offset, -2, -1)),
)
# fmt: on
