"""Copies, fills and factories that take a tensor."""

from __future__ import annotations

from turnout_conformance.cases.model import NUMBERS, M, OperatorCase, S, T, row, some

# ruff: noqa: E501 - rows of a table
# fmt: off
CASES: tuple[OperatorCase, ...] = (
    # ---- copies and fills
    row("lift_fresh", S(M), lambda np, x: x, NUMBERS),
    row("lift_fresh_copy", S(M), lambda np, x: x.copy(), NUMBERS),
    row("_functional_assert_scalar", S(1, "zero", M), lambda np, x, text, token: token),
    row("clone", S(M), lambda np, x: x.copy(), NUMBERS),
    row("contiguous", S(M), lambda np, x: x, NUMBERS),
    row("fill.Scalar", S(M, 3), "full_like", NUMBERS),
    row("fill.Tensor", S(M, T(3.0)), "full_like", NUMBERS),
    row("masked_fill.Scalar", S(M, T([True, False, True], "bool"), 2), lambda np, x, m, v: np.where(m, x.dtype.type(v), x), NUMBERS),
    row("masked_fill.Tensor", S(M, T([[True], [False]], "bool"), T(2.0)), lambda np, x, m, v: np.where(m, v, x), NUMBERS),
    row("copy", (S(M, some(3, seed=3)), S(M, T([1, 2, 3], "int64"))), lambda np, x, y: np.broadcast_to(y, x.shape).astype(x.dtype)),
    row("type_as", (S(M, T([1], "int64")), S(M, M)), lambda np, x, y: x.astype(y.dtype), NUMBERS),
    # ---- factories that take a tensor
    row("zeros_like", S(M), "zeros_like", NUMBERS, differentiable=False),
    row("ones_like", S(M), "ones_like", NUMBERS, differentiable=False),
    row("full_like", S(M, 3), "full_like", NUMBERS, differentiable=False),
    row("new_zeros", S(M, [2]), lambda np, x, s: np.zeros(s, x.dtype), NUMBERS, differentiable=False),
    row("new_ones", S(M, [2]), lambda np, x, s: np.ones(s, x.dtype), NUMBERS, differentiable=False),
    row("new_full", S(M, [2], 3), lambda np, x, s, v: np.full(s, v, x.dtype), NUMBERS, differentiable=False),
    row("linspace.Tensor_Tensor", S(T(1.0), T(3.0), 5), lambda np, a, b, n: np.linspace(a, b, n, dtype="f4"), differentiable=False),
    row("linspace.Tensor_Scalar", S(T(1.0), 2, 4), lambda np, a, b, n: np.linspace(a, b, n, dtype="f4"), differentiable=False),
    row("linspace.Scalar_Tensor", S(0, T(3.0), 1), lambda np, a, b, n: np.linspace(a, b, n, dtype="f4"), differentiable=False),
    row("logspace.Tensor_Tensor", S(T(1.0), T(2.0), 3), lambda np, a, b, n: np.logspace(a, b, n, dtype="f4"), differentiable=False),
    row("logspace.Tensor_Scalar", S(T(1.0), 2, 3, 2.0), lambda np, a, b, n, base: np.logspace(a, b, n, base=base, dtype="f4"), differentiable=False),
    row("logspace.Scalar_Tensor", S(0, T(2.0), 2), lambda np, a, b, n: np.logspace(a, b, n, dtype="f4"), differentiable=False),
)
# fmt: on
