"""Matrix products."""

from __future__ import annotations

from turnout_conformance.cases.model import NUMBERS, M, OperatorCase, S, T, row, some

BATCHES = (some(2, 2, 3), some(2, 3, 4, seed=3))
V2, V3 = some(2), some(3, seed=3)


def added(np, x, product, beta, alpha):
    """What addmm and its like give."""
    return (beta * x if beta else 0) + alpha * product


# ruff: noqa: E501 - rows of a table
# fmt: off
CASES: tuple[OperatorCase, ...] = (
    row("mm", S(M, some(3, 4, seed=3)), lambda np, x, y: x @ y, NUMBERS),
    row("bmm", S(some(2, 2, 3), some(2, 3, 4, seed=3)), lambda np, x, y: x @ y, NUMBERS),
    row("mv", S(M, some(3, seed=3)), lambda np, x, y: x @ y, NUMBERS),
    row("dot", S(some(3), some(3, seed=3)), lambda np, x, y: x @ y, NUMBERS),
    row("addmm", (S(some(4), M, some(3, 4, seed=3)), S(some(2, 4), M, some(3, 4, seed=3), beta=2, alpha=3)), lambda np, x, a, b, beta=1, alpha=1: beta * x + alpha * (a @ b), NUMBERS),
    row("matmul", tuple(S(some(*a), some(*b, seed=3)) for a, b in (((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((2, 2, 3), (3, 4)), ((2, 2, 3), (3,)), ((2, 1, 2, 3), (4, 3, 2)), ((3,), (2, 3, 2)))), lambda np, x, y: x @ y),
    row("outer", S(some(2), some(3, seed=3)), "outer", NUMBERS),
    row("vdot", S(some(3), V3), "vdot", ("float32", "float64", "int64", "complex128")),
    row("addmv", (S(V2, M, V3), S(T(1.5), M, V3, beta=2, alpha=3)), lambda np, x, a, v, beta=1, alpha=1: added(np, x, a @ v, beta, alpha), NUMBERS),
    row("baddbmm", (S(some(4), *BATCHES), S(some(2, 2, 4), *BATCHES, beta=0, alpha=3)), lambda np, x, a, b, beta=1, alpha=1: added(np, x, a @ b, beta, alpha), NUMBERS),
    row("addbmm", (S(some(2, 4), *BATCHES), S(some(4), *BATCHES, beta=2, alpha=3)), lambda np, x, a, b, beta=1, alpha=1: added(np, x, (a @ b).sum(0), beta, alpha), NUMBERS),
    row("addr", (S(M, V2, V3), S(some(3), V2, V3, beta=2, alpha=3)), lambda np, x, a, b, beta=1, alpha=1: added(np, x, np.outer(a, b), beta, alpha), NUMBERS),
    row("ger", S(V2, V3), "outer", NUMBERS),
    row("inner", (S(M, some(4, 3, seed=3)), S(M, T(2.0))), "inner", NUMBERS),
    row("chain_matmul", S([M, some(3, 4, seed=3), some(4, 2)]), "linalg.multi_dot"),
    row("linalg_multi_dot", (S([V2, M, some(3, 4, seed=3), some(4)]), S([M, some(3, 1, seed=3)])), "linalg.multi_dot", NUMBERS),
    row("linalg_matmul", S(M, V3), lambda np, x, y: x @ y),
    row("linalg_vecdot", (S(M, V3), S(M, some(2, 1), dim=0)), lambda np, x, y, dim=-1: np.sum(np.conj(x) * y, axis=dim), ("float32", "float64", "complex128")),
    row("tensordot", (S(some(2, 3, 4), some(4, 3, 2, seed=3), [1, 2], [1, 0]), S(M, M, [], []), S(M, some(1, 4), [1], [0])), lambda np, x, y, d, e: np.tensordot(x, np.repeat(y, 3, 0) if y.shape == (1, 4) else y, (tuple(d), tuple(e))), NUMBERS),
    row("kron", (S(M, some(2, 2, seed=3)), S(V2, some(2, 2, seed=3))), "kron", NUMBERS),
    row("einsum", tuple(S(equation, [some(*shape, seed=i + 1) for i, shape in enumerate(shapes)]) for equation, *shapes in (("ij,jk", (2, 3), (3, 4)), ("bij,bjk->bki", (2, 2, 3), (2, 3, 2)), ("ii->i", (3, 3)), ("i...,j...->...", (2, 3), (2, 3)), ("ij,jk,kl->li", (2, 3), (3, 2), (2, 2)), ("abc->b", (2, 2, 3)), (",i", (), (3,)))), lambda np, equation, xs: np.einsum(equation, *xs), NUMBERS),
    row("trace", S(M), "trace", NUMBERS),
    row("cross", (S(M, some(2, 3, seed=3)), S(some(3, 2), some(3, 2, seed=3))), lambda np, x, y: np.cross(x, y, axis=x.shape.index(3)), NUMBERS),
    row("linalg_cross", (S(M, some(1, 3, seed=3)), S(some(3, 2), some(3, 2, seed=3), dim=0)), lambda np, x, y, dim=-1: np.cross(x, y, axis=dim), (*NUMBERS, "complex128")),
    row("vander", (S(V3), S(V3, 2, True), S(V3, 0)), lambda np, x, n=None, increasing=False: np.vander(x, n, increasing), NUMBERS),
    row("linalg_vander", (S(M), S(M, N=2)), lambda np, x, N=None: x[..., None] ** np.arange(x.shape[-1] if N is None else N), NUMBERS),
)
# fmt: on
