"""Pointwise operators of one, two and three arguments."""

from __future__ import annotations

from turnout_conformance.cases.model import BITS, NUMBERS, POSITIVE, M, OperatorCase, S, T, one, two, values
from turnout_conformance.cases.references import erf

NAN, INF = float("nan"), float("inf")


def shifted(np, x, y, left):
    """Shifts of int64 as numbers: what is shifted by all bits, or by a negative number, keeps its sign only."""
    x, y = np.broadcast_arrays(x, y)
    inside = (y >= 0) & (y < 64)
    places = np.where(inside, y, 63)
    return np.where(inside, np.left_shift(x, places), 0) if left else np.right_shift(x, places)


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
    *[
        OperatorCase(name, (S(T(values(2, 3, low=low, high=high))), S(T([]))), reference)
        for name, low, high, reference in (
            ("acos", -0.9, 0.9, lambda np, x: np.arccos(x)), ("acosh", 1.1, 3.0, lambda np, x: np.arccosh(x)),
            ("asin", -0.9, 0.9, lambda np, x: np.arcsin(x)), ("asinh", -2.0, 2.0, lambda np, x: np.arcsinh(x)),
            ("atan", -2.0, 2.0, lambda np, x: np.arctan(x)), ("atanh", -0.9, 0.9, lambda np, x: np.arctanh(x)),
            ("cosh", -2.0, 2.0, lambda np, x: np.cosh(x)), ("sinh", -2.0, 2.0, lambda np, x: np.sinh(x)),
            ("tan", -1.4, 1.4, lambda np, x: np.tan(x)), ("exp2", -2.0, 2.0, lambda np, x: np.exp2(x)),
            ("log2", 0.1, 3.0, lambda np, x: np.log2(x)), ("log10", 0.1, 3.0, lambda np, x: np.log10(x)),
            ("frac", -2.0, 2.0, lambda np, x: x - np.trunc(x)), ("deg2rad", -2.0, 2.0, lambda np, x: np.deg2rad(x)),
            ("rad2deg", -2.0, 2.0, lambda np, x: np.rad2deg(x)), ("sinc", -2.0, 2.0, lambda np, x: np.sinc(x)),
        )
    ],
    OperatorCase("square", one(), lambda np, x: x * x, NUMBERS),
    OperatorCase("positive", (S(M),), lambda np, x: x, NUMBERS),
    OperatorCase("round.decimals", (S(M, decimals=1), S(M, decimals=-1)), lambda np, x, decimals: np.round(x, decimals)),
    OperatorCase("frexp.Tensor", (S(M), S(T([]))), lambda np, x: np.frexp(x)),
    OperatorCase("nan_to_num", (S(T([1.5, NAN, INF, -INF])), S(T([1.5, NAN, INF, -INF]), 2.5, 3.5, -4.5)), lambda np, x, nan=0.0, posinf=None, neginf=None: np.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf), differentiable=False),
    *[
        OperatorCase(name, (S(T([1.5, -0.5, NAN, INF, -INF])), S(T([]))), reference, differentiable=False)
        for name, reference in (
            ("isinf", lambda np, x: np.isinf(x)), ("isposinf", lambda np, x: np.isposinf(x)), ("isneginf", lambda np, x: np.isneginf(x)),
            ("isfinite", lambda np, x: np.isfinite(x)), ("isreal", lambda np, x: np.isreal(x)),
        )
    ],
    OperatorCase("signbit", (S(T([1, -2, 0])), S(T([1.5, -0.0]))), lambda np, x: np.signbit(x), NUMBERS, differentiable=False),
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
    OperatorCase("copysign.Tensor", two(), lambda np, x, y: np.copysign(x, y)),
    OperatorCase("copysign.Scalar", (S(M, -2),), lambda np, x, y: np.copysign(x, y)),
    OperatorCase("fmod.Tensor", two(), lambda np, x, y: np.fmod(x, y), tolerance=1e-8),
    OperatorCase("fmod.Scalar", (S(M, 0.7),), lambda np, x, y: np.fmod(x, y), tolerance=1e-8),
    OperatorCase("fmax", (*two(), S(T([NAN, 1.5]), T([0.5, NAN]))), lambda np, x, y: np.fmax(x, y)),
    OperatorCase("fmin", (*two(), S(T([NAN, 1.5]), T([0.5, NAN]))), lambda np, x, y: np.fmin(x, y)),
    OperatorCase("hypot", two(), lambda np, x, y: np.hypot(x, y)),
    OperatorCase("nextafter", two(), lambda np, x, y: np.nextafter(x, y), differentiable=False),
    OperatorCase("heaviside", (S(T([-1.5, 0.0, 2.0]), T([0.5, 0.5, 0.5])),), lambda np, x, y: np.heaviside(x, y), differentiable=False),
    OperatorCase("logaddexp", two(), lambda np, x, y: np.logaddexp(x, y)),
    OperatorCase("logaddexp2", two(), lambda np, x, y: np.logaddexp2(x, y)),
    OperatorCase("xlogy.Tensor", two(**POSITIVE), lambda np, x, y: x * np.log(y)),
    OperatorCase("xlogy.Scalar_Self", (S(2, T(values(3, **POSITIVE))), S(0, T([0.0, 2.0]))), lambda np, x, y: np.log(y) * x if x else y * 0, differentiable=False),
    OperatorCase("xlogy.Scalar_Other", (S(M, 2.5),), lambda np, x, y: x * np.log(y)),
    OperatorCase("float_power.Tensor_Tensor", two(**POSITIVE), lambda np, x, y: np.float_power(x, y), tolerance=1e-6),
    OperatorCase("float_power.Tensor_Scalar", (S(M, 2),), lambda np, x, y: np.float_power(x, y), tolerance=1e-6),
    OperatorCase("float_power.Scalar", (S(2.5, M),), lambda np, x, y: np.float_power(x, y), tolerance=1e-6),
    OperatorCase("ldexp.Tensor", (S(M, T([1, 2, 0], "int64")),), lambda np, x, y: x * 2.0 ** y),
    OperatorCase("clamp_min", (S(M, -1),), lambda np, x, y: np.maximum(x, y), NUMBERS),
    OperatorCase("clamp_max", (S(M, 1),), lambda np, x, y: np.minimum(x, y), NUMBERS),
    OperatorCase("clamp_min.Tensor", two(), lambda np, x, y: np.maximum(x, y)),
    OperatorCase("clamp_max.Tensor", two(), lambda np, x, y: np.minimum(x, y)),
    OperatorCase("isclose", (S(T([1.0, 2.0, NAN, INF]), T([1.0, 2.1, NAN, INF])), S(T([1.0, NAN]), T([1.05, NAN]), 0.1, 0.0, True)), lambda np, x, y, *rest: np.isclose(x, y, *rest), differentiable=False),
    *[
        OperatorCase(name, (S(T([[4, -6], [9, 0]]), T([6, 10])),), reference, ("int64", "int32"), differentiable=False)
        for name, reference in (("gcd", lambda np, x, y: np.gcd(x, y)), ("lcm", lambda np, x, y: np.lcm(x, y)))
    ],
    *[
        OperatorCase(f"{name}.{overload}", samples, reference, ("int64",), differentiable=False)
        for name, reference in (
            ("bitwise_left_shift", lambda np, x, y: shifted(np, x, y, left=True)),
            ("bitwise_right_shift", lambda np, x, y: shifted(np, x, y, left=False)),
        )
        for overload, samples in (
            ("Tensor", (S(T([5, -7, 3, -3, 2]), T([1, 2, 64, 70, -1])),)), ("Tensor_Scalar", (S(T([5, -7]), 2),)), ("Scalar_Tensor", (S(-5, T([1, 2])),)),
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
    OperatorCase("lerp.Tensor", (S(M, T(values(3, seed=3)), T(values(2, 1, low=0.0, high=1.0))),), lambda np, x, y, w: x + w * (y - x)),
    OperatorCase("addcdiv", (S(M, T(values(3, seed=3)), T(values(2, 1, seed=5)), value=2),), lambda np, x, a, b, value=1: x + value * a / b),
    OperatorCase("addcmul", (S(M, T(values(3, seed=3)), T(values(2, 1, seed=5)), value=2),), lambda np, x, a, b, value=1: x + value * a * b, NUMBERS),
)
# fmt: on
