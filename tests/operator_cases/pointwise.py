"""Pointwise operators of one, two and three arguments."""

from __future__ import annotations

from operator_cases.model import BITS, NUMBERS, POSITIVE, M, OperatorCase, S, T, one, two, values
from operator_cases.references import erf

# ruff: noqa: E501 - rows of a table
# fmt: off
CASES: tuple[OperatorCase, ...] = (
    # ---- pointwise, one argument
    OperatorCase("abs", one(), lambda np, x: np.abs(x), NUMBERS),
    OperatorCase("neg", one(), lambda np, x: -x, NUMBERS),
    OperatorCase("exp", one(), lambda np, x: np.exp(x)),
    OperatorCase("expm1", one(), lambda np, x: np.expm1(x)),
    OperatorCase("log", one(**POSITIVE), lambda np, x: np.log(x)),
    OperatorCase("log1p", one(-0.9, 3.0), lambda np, x: np.log1p(x)),
    OperatorCase("sqrt", one(**POSITIVE), lambda np, x: np.sqrt(x)),
    OperatorCase("rsqrt", one(**POSITIVE), lambda np, x: 1 / np.sqrt(x)),
    OperatorCase("sin", one(), lambda np, x: np.sin(x)),
    OperatorCase("cos", one(), lambda np, x: np.cos(x)),
    OperatorCase("tanh", one(), lambda np, x: np.tanh(x)),
    OperatorCase("sigmoid", one(), lambda np, x: 1 / (1 + np.exp(-x))),
    OperatorCase("reciprocal", one(), lambda np, x: 1 / x),
    OperatorCase("floor", one(), lambda np, x: np.floor(x)),
    OperatorCase("ceil", one(), lambda np, x: np.ceil(x)),
    OperatorCase("round", one(), lambda np, x: np.round(x)),
    OperatorCase("trunc", one(), lambda np, x: np.trunc(x)),
    OperatorCase("sign", one(), lambda np, x: np.sign(x)),
    OperatorCase("relu", one(), lambda np, x: np.maximum(x, 0), NUMBERS),
    OperatorCase("erf", one(), erf, tolerance=1e-7),
    OperatorCase("gelu", one(), lambda np, x: x * (1 + erf(np, x / 2 ** 0.5)) / 2, tolerance=1e-7),
    OperatorCase("isnan", (S(T([1.0, float("nan")])), S(T([]))), lambda np, x: np.isnan(x), differentiable=False),
    OperatorCase("logical_not", (S(T([0, 1, 2])),), lambda np, x: np.logical_not(x), NUMBERS, differentiable=False),
    OperatorCase("bitwise_not", (S(T([0, 1, 1])),), lambda np, x: np.invert(x), BITS, differentiable=False),
    # ---- pointwise, two arguments
    OperatorCase("add.Tensor", (*two(), *two(-2.0, 2.0, alpha=2)), lambda np, x, y, alpha=1: x + alpha * y, NUMBERS),
    OperatorCase("add.Scalar", (S(M, 2), S(M, 2, 3)), lambda np, x, y, alpha=1: x + alpha * y, NUMBERS),
    OperatorCase("sub.Tensor", (*two(), *two(-2.0, 2.0, alpha=2)), lambda np, x, y, alpha=1: x - alpha * y, NUMBERS),
    OperatorCase("sub.Scalar", (S(M, 2),), lambda np, x, y, alpha=1: x - alpha * y, NUMBERS),
    OperatorCase("rsub.Tensor", two(), lambda np, x, y, alpha=1: y - alpha * x, NUMBERS),
    OperatorCase("rsub.Scalar", (S(M, 2),), lambda np, x, y, alpha=1: y - alpha * x, NUMBERS),
    OperatorCase("mul.Tensor", two(), lambda np, x, y: x * y, NUMBERS),
    OperatorCase("mul.Scalar", (S(M, 3),), lambda np, x, y: x * y, NUMBERS),
    OperatorCase("div.Tensor", two(), lambda np, x, y: x / y),
    OperatorCase("div.Scalar", (S(M, 4),), lambda np, x, y: x / y),
    OperatorCase("div.Tensor_mode", (*two(rounding_mode="floor"), *two(rounding_mode=None)),
                 lambda np, x, y, rounding_mode: np.floor(x / y) if rounding_mode else x / y),
    OperatorCase("div.Scalar_mode", (S(M, 0.7, rounding_mode="trunc"),), lambda np, x, y, rounding_mode: np.trunc(x / y)),
    OperatorCase("floor_divide", two(), lambda np, x, y: np.floor_divide(x, y), differentiable=False),
    OperatorCase("floor_divide.Scalar", (S(M, 0.7),), lambda np, x, y: np.floor_divide(x, y), differentiable=False),
    OperatorCase("remainder.Tensor", two(), lambda np, x, y: np.remainder(x, y), tolerance=1e-8),
    OperatorCase("remainder.Scalar", (S(M, 0.7),), lambda np, x, y: np.remainder(x, y), tolerance=1e-8),
    OperatorCase("remainder.Scalar_Tensor", (S(2.3, M),), lambda np, x, y: np.remainder(x, y), tolerance=1e-8),
    OperatorCase("pow.Tensor_Tensor", two(**POSITIVE), lambda np, x, y: x ** y),
    OperatorCase("pow.Tensor_Scalar", (S(M, 2), S(M, 3)), lambda np, x, y: x ** y, NUMBERS),
    OperatorCase("pow.Scalar", (S(2.5, M),), lambda np, x, y: x ** y),
    OperatorCase("maximum", two(), lambda np, x, y: np.maximum(x, y), NUMBERS),
    OperatorCase("minimum", two(), lambda np, x, y: np.minimum(x, y), NUMBERS),
    OperatorCase("max.other", two(), lambda np, x, y: np.maximum(x, y)),
    OperatorCase("min.other", two(), lambda np, x, y: np.minimum(x, y)),
    OperatorCase("atan2", two(), lambda np, x, y: np.arctan2(x, y)),
    *[
        OperatorCase(f"{name}.{overload}", samples, reference, NUMBERS, differentiable=False)
        for name, reference in (
            ("eq", lambda np, x, y: x == y), ("ne", lambda np, x, y: x != y), ("lt", lambda np, x, y: x < y),
            ("le", lambda np, x, y: x <= y), ("gt", lambda np, x, y: x > y), ("ge", lambda np, x, y: x >= y),
        )
        for overload, samples in (("Tensor", (*two(), S(T([1, 2]), T([2, 2])))), ("Scalar", (S(T([1, 2, 3]), 2),)))
    ],
    *[
        OperatorCase(name, (S(T([0, 1, 0, 2]), T([0, 0, 3, 1])),), reference, NUMBERS, differentiable=False)
        for name, reference in (
            ("logical_and", lambda np, x, y: np.logical_and(x, y)), ("logical_or", lambda np, x, y: np.logical_or(x, y)),
            ("logical_xor", lambda np, x, y: np.logical_xor(x, y)),
        )
    ],
    *[
        OperatorCase(f"{name}.{overload}", samples, reference, BITS, differentiable=False)
        for name, reference in (
            ("bitwise_and", lambda np, x, y: x & y), ("bitwise_or", lambda np, x, y: x | y),
            ("bitwise_xor", lambda np, x, y: x ^ y),
        )
        for overload, samples in (
            ("Tensor", (S(T([0, 1, 1]), T([1, 1, 0])),)), ("Scalar", (S(T([0, 1, 1]), True),)),
            ("Scalar_Tensor", (S(True, T([0, 1, 1])),)),
        )
    ],
    # ---- pointwise, three arguments
    OperatorCase("where.self", (S(T([[True], [False]], "bool"), M, T(values(3, seed=3))),), lambda np, c, x, y: np.where(c, x, y), NUMBERS),
    OperatorCase("where.ScalarSelf", (S(T([[True], [False]], "bool"), 2, M),), lambda np, c, x, y: np.where(c, y.dtype.type(x), y), NUMBERS),
    OperatorCase("where.ScalarOther", (S(T([[True], [False]], "bool"), M, 2),), lambda np, c, x, y: np.where(c, x, x.dtype.type(y)), NUMBERS),
    OperatorCase("where.Scalar", (S(T([True, False], "bool"), 2.5, 3),), lambda np, c, x, y: np.where(c, np.float32(x), np.float32(y)), ("float32",), differentiable=False),
    OperatorCase("clamp", (S(M, -1, 1), S(M, None, 1), S(M, -1)), lambda np, x, a=None, b=None: np.clip(x, a, b), NUMBERS),
    OperatorCase("clamp.Tensor", (S(M, T(values(3, low=-1.0, high=-0.5)), T(values(2, 1, low=0.5, high=1.0))),), lambda np, x, a, b: np.clip(x, a, b)),
    OperatorCase("lerp.Scalar", (S(M, T(values(3, seed=3)), 0.3), S(M, T(values(3, seed=3)), 0.8)), lambda np, x, y, w: x + w * (y - x)),
    OperatorCase("addcmul", (S(M, T(values(3, seed=3)), T(values(2, 1, seed=5)), value=2),), lambda np, x, a, b, value=1: x + value * a * b, NUMBERS),
)
# fmt: on
