"""Matrix products and linear algebra."""

from __future__ import annotations

from operator_cases.model import NUMBERS, M, OperatorCase, S, T, values

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
)
# fmt: on
