"""Matrix products and linear algebra."""

from __future__ import annotations

from turnout_conformance.cases.model import NUMBERS, M, OperatorCase, S, T, values

BATCHES = (T(values(2, 2, 3)), T(values(2, 3, 4, seed=3)))
V2, V3 = T(values(2)), T(values(3, seed=3))


def added(np, x, product, beta, alpha):
    """What addmm and its like give."""
    return (beta * x if beta else 0) + alpha * product


# ruff: noqa: E501 - rows of a table
# fmt: off
CASES: tuple[OperatorCase, ...] = (
    OperatorCase("mm", (S(M, T(values(3, 4, seed=3))),), lambda np, x, y: x @ y, NUMBERS),
    OperatorCase("bmm", (S(T(values(2, 2, 3)), T(values(2, 3, 4, seed=3))),), lambda np, x, y: x @ y, NUMBERS),
    OperatorCase("mv", (S(M, T(values(3, seed=3))),), lambda np, x, y: x @ y, NUMBERS),
    OperatorCase("dot", (S(T(values(3)), T(values(3, seed=3))),), lambda np, x, y: x @ y, NUMBERS),
    OperatorCase("addmm", (S(T(values(4)), M, T(values(3, 4, seed=3))), S(T(values(2, 4)), M, T(values(3, 4, seed=3)), beta=2, alpha=3)), lambda np, x, a, b, beta=1, alpha=1: beta * x + alpha * (a @ b), NUMBERS),
    OperatorCase("matmul", tuple(S(T(values(*a)), T(values(*b, seed=3))) for a, b in (((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((2, 2, 3), (3, 4)), ((2, 2, 3), (3,)), ((2, 1, 2, 3), (4, 3, 2)), ((3,), (2, 3, 2)))), lambda np, x, y: x @ y),
    OperatorCase("outer", (S(T(values(2)), T(values(3, seed=3))),), lambda np, x, y: np.outer(x, y), NUMBERS),
    OperatorCase("vdot", (S(T(values(3)), V3),), lambda np, x, y: np.vdot(x, y), ("float32", "float64", "int64", "complex128")),
    OperatorCase("addmv", (S(V2, M, V3), S(T(1.5), M, V3, beta=2, alpha=3)), lambda np, x, a, v, beta=1, alpha=1: added(np, x, a @ v, beta, alpha), NUMBERS),
    OperatorCase("baddbmm", (S(T(values(4)), *BATCHES), S(T(values(2, 2, 4)), *BATCHES, beta=0, alpha=3)), lambda np, x, a, b, beta=1, alpha=1: added(np, x, a @ b, beta, alpha), NUMBERS),
    OperatorCase("addbmm", (S(T(values(2, 4)), *BATCHES), S(T(values(4)), *BATCHES, beta=2, alpha=3)), lambda np, x, a, b, beta=1, alpha=1: added(np, x, (a @ b).sum(0), beta, alpha), NUMBERS),
    OperatorCase("addr", (S(M, V2, V3), S(T(values(3)), V2, V3, beta=2, alpha=3)), lambda np, x, a, b, beta=1, alpha=1: added(np, x, np.outer(a, b), beta, alpha), NUMBERS),
    OperatorCase("ger", (S(V2, V3),), lambda np, x, y: np.outer(x, y), NUMBERS),
    OperatorCase("inner", (S(M, T(values(4, 3, seed=3))), S(M, T(2.0))), lambda np, x, y: np.inner(x, y), NUMBERS),
    OperatorCase("chain_matmul", (S([M, T(values(3, 4, seed=3)), T(values(4, 2))]),), lambda np, xs: np.linalg.multi_dot(xs)),
    OperatorCase("linalg_multi_dot", (S([V2, M, T(values(3, 4, seed=3)), T(values(4))]), S([M, T(values(3, 1, seed=3))])), lambda np, xs: np.linalg.multi_dot(xs), NUMBERS),
    OperatorCase("linalg_matmul", (S(M, V3),), lambda np, x, y: x @ y),
    OperatorCase("linalg_vecdot", (S(M, V3), S(M, T(values(2, 1)), dim=0)), lambda np, x, y, dim=-1: np.sum(np.conj(x) * y, axis=dim), ("float32", "float64", "complex128")),
    OperatorCase("tensordot", (S(T(values(2, 3, 4)), T(values(4, 3, 2, seed=3)), [1, 2], [1, 0]), S(M, M, [], []), S(M, T(values(1, 4)), [1], [0])), lambda np, x, y, d, e: np.tensordot(x, np.repeat(y, 3, 0) if y.shape == (1, 4) else y, (tuple(d), tuple(e))), NUMBERS),
    OperatorCase("kron", (S(M, T(values(2, 2, seed=3))), S(V2, T(values(2, 2, seed=3)))), lambda np, x, y: np.kron(x, y), NUMBERS),
    OperatorCase("einsum", tuple(S(equation, [T(values(*shape, seed=i + 1)) for i, shape in enumerate(shapes)]) for equation, *shapes in (("ij,jk", (2, 3), (3, 4)), ("bij,bjk->bki", (2, 2, 3), (2, 3, 2)), ("ii->i", (3, 3)), ("i...,j...->...", (2, 3), (2, 3)), ("ij,jk,kl->li", (2, 3), (3, 2), (2, 2)), ("abc->b", (2, 2, 3)), (",i", (), (3,)))), lambda np, equation, xs: np.einsum(equation, *xs), NUMBERS),
    OperatorCase("trace", (S(M),), lambda np, x: np.trace(x), NUMBERS),
    OperatorCase("cross", (S(M, T(values(2, 3, seed=3))), S(T(values(3, 2)), T(values(3, 2, seed=3)))), lambda np, x, y: np.cross(x, y, axis=x.shape.index(3)), NUMBERS),
    OperatorCase("linalg_cross", (S(M, T(values(1, 3, seed=3))), S(T(values(3, 2)), T(values(3, 2, seed=3)), dim=0)), lambda np, x, y, dim=-1: np.cross(x, y, axis=dim), (*NUMBERS, "complex128")),
    OperatorCase("vander", (S(V3), S(V3, 2, True), S(V3, 0)), lambda np, x, n=None, increasing=False: np.vander(x, n, increasing), NUMBERS),
    OperatorCase("linalg_vander", (S(M), S(M, N=2)), lambda np, x, N=None: x[..., None] ** np.arange(x.shape[-1] if N is None else N), NUMBERS),
)
# fmt: on
