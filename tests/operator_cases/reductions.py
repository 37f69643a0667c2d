"""Reductions and cumulative operators."""

from __future__ import annotations

from operator_cases.model import NUMBERS, M, OperatorCase, S, T, one, values

# ruff: noqa: E501 - rows of a table
# fmt: off
CASES: tuple[OperatorCase, ...] = (
    OperatorCase("sum", one(), lambda np, x: np.sum(x), NUMBERS),
    OperatorCase("sum.dim_IntList", (S(M, [0]), S(M, [-1], True), S(M, None), S(T(values(2, 3, 2)), [0, 2])), lambda np, x, d, k=False: np.sum(x, axis=None if d is None else tuple(d), keepdims=k), NUMBERS),
    OperatorCase("mean", (S(M),), lambda np, x: np.mean(x)),
    OperatorCase("mean.dim", (S(M, [0]), S(M, [-1], True)), lambda np, x, d, k=False: np.mean(x, axis=tuple(d), keepdims=k)),
    OperatorCase("prod", (S(M), S(T([2.0, 0.0, 3.0])), S(T([]))), lambda np, x: np.prod(x), NUMBERS),
    OperatorCase("prod.dim_int", (S(M, 0), S(M, -1, True)), lambda np, x, d, k=False: np.prod(x, axis=d, keepdims=k), NUMBERS),
    OperatorCase("amax", (S(M), S(M, [1]), S(M, [0], True)), lambda np, x, d=(), k=False: np.max(x, axis=tuple(d) or None, keepdims=k), NUMBERS),
    OperatorCase("amin", (S(M), S(M, [1]), S(M, [0], True)), lambda np, x, d=(), k=False: np.min(x, axis=tuple(d) or None, keepdims=k), NUMBERS),
    OperatorCase("max", (S(M),), lambda np, x: np.max(x), NUMBERS),
    OperatorCase("min", (S(M),), lambda np, x: np.min(x), NUMBERS),
    OperatorCase("max.dim", (S(M, 1), S(M, 0, True)), lambda np, x, d, k=False: (np.max(x, axis=d, keepdims=k), np.argmax(x, axis=d, keepdims=k))),
    OperatorCase("min.dim", (S(M, 1), S(M, 0, True)), lambda np, x, d, k=False: (np.min(x, axis=d, keepdims=k), np.argmin(x, axis=d, keepdims=k))),
    OperatorCase("argmax", (S(M), S(M, 1), S(M, 0, True)), lambda np, x, d=None, k=False: np.argmax(x, axis=d, keepdims=k), differentiable=False),
    OperatorCase("argmin", (S(M), S(M, 1), S(M, 0, True)), lambda np, x, d=None, k=False: np.argmin(x, axis=d, keepdims=k), differentiable=False),
    OperatorCase("any", (S(T([0, 1, 0])), S(T([]))), lambda np, x: np.any(x), NUMBERS, differentiable=False),
    OperatorCase("all", (S(T([0, 1, 0])), S(T([]))), lambda np, x: np.all(x), NUMBERS, differentiable=False),
    OperatorCase("any.dim", (S(T([[0, 1], [0, 0]]), 1), S(T([[0, 1], [0, 0]]), 0, True)), lambda np, x, d, k=False: np.any(x, axis=d, keepdims=k), NUMBERS, differentiable=False),
    OperatorCase("all.dim", (S(T([[0, 1], [1, 1]]), 1), S(T([[0, 1], [1, 1]]), 0, True)), lambda np, x, d, k=False: np.all(x, axis=d, keepdims=k), NUMBERS, differentiable=False),
    OperatorCase("any.dims", (S(T([[0, 1], [0, 0]]), [0, 1]), S(T([[0, 1], [0, 0]]), None)), lambda np, x, d=None, k=False: np.any(x, axis=d if d is None else tuple(d), keepdims=k), NUMBERS, differentiable=False),
    OperatorCase("all.dims", (S(T([[0, 1], [1, 1]]), [0]), S(T([[0, 1], [1, 1]]), None)), lambda np, x, d=None, k=False: np.all(x, axis=d if d is None else tuple(d), keepdims=k), NUMBERS, differentiable=False),
    OperatorCase("var", (S(M), S(M, False)), lambda np, x, u=True: np.var(x, ddof=int(u))),
    OperatorCase("var.dim", (S(M, [1]), S(M, [0], False, True)), lambda np, x, d, u=True, k=False: np.var(x, axis=tuple(d), ddof=int(u), keepdims=k)),
    OperatorCase("var.correction", (S(M, [1], correction=0), S(M)), lambda np, x, d=None, correction=None, keepdim=False: np.var(x, axis=None if d is None else tuple(d), ddof=1 if correction is None else correction, keepdims=keepdim)),
    OperatorCase("std", (S(M),), lambda np, x, u=True: np.std(x, ddof=int(u))),
    OperatorCase("std.dim", (S(M, [1]),), lambda np, x, d, u=True, k=False: np.std(x, axis=tuple(d), ddof=int(u), keepdims=k)),
    OperatorCase("std.correction", (S(M, [1], correction=0), S(M)), lambda np, x, d=None, correction=None, keepdim=False: np.std(x, axis=None if d is None else tuple(d), ddof=1 if correction is None else correction, keepdims=keepdim)),
    OperatorCase("logsumexp", (S(M, [1]), S(M, [0], True)), lambda np, x, d, k=False: np.log(np.sum(np.exp(x), axis=tuple(d), keepdims=k))),
    OperatorCase("cumsum", (S(M, 0), S(M, -1)), lambda np, x, d: np.cumsum(x, axis=d), NUMBERS),
)
# fmt: on
