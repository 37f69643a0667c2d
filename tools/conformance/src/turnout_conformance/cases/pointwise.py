"""Pointwise operators of one, two and three arguments."""

from __future__ import annotations

from turnout_conformance.cases.model import BITS, NUMBERS, POSITIVE, M, OperatorCase, S, T, one, row, some, two
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
    row("abs", one(), "abs", NUMBERS),
    row("neg", one(), lambda np, x: -x, NUMBERS),
    row("exp", one(), "exp"),
    row("expm1", one(), "expm1"),
    row("log", one(**POSITIVE), "log"),
    row("log1p", one(-0.9, 3.0), "log1p"),
    row("sqrt", one(**POSITIVE), "sqrt"),
    row("rsqrt", one(**POSITIVE), lambda np, x: 1 / np.sqrt(x)),
    row("sin", one(), "sin"),
    row("cos", one(), "cos"),
    row("tanh", one(), "tanh"),
    row("sigmoid", one(), lambda np, x: 1 / (1 + np.exp(-x))),
    row("reciprocal", one(), lambda np, x: 1 / x),
    row("floor", one(), "floor"),
    row("ceil", one(), "ceil"),
    row("round", one(), "round"),
    row("trunc", one(), "trunc"),
    row("sign", one(), "sign"),
    row("relu", one(), lambda np, x: np.maximum(x, 0), NUMBERS),
    row("erf", one(), erf, tolerance=1e-7),
    row("gelu", one(), lambda np, x: x * (1 + erf(np, x / 2 ** 0.5)) / 2, tolerance=1e-7),
    row("isnan", (S(T([1.0, float("nan")])), S(T([]))), "isnan", differentiable=False),
    row("logical_not", S(T([0, 1, 2])), "logical_not", NUMBERS, differentiable=False),
    row("bitwise_not", S(T([0, 1, 1])), "invert", BITS, differentiable=False),
    *[
        row(name, (S(some(2, 3, low=low, high=high)), S(T([]))), reference)
        for name, low, high, reference in (
            ("acos", -0.9, 0.9, "arccos"), ("acosh", 1.1, 3.0, "arccosh"),
            ("asin", -0.9, 0.9, "arcsin"), ("asinh", -2.0, 2.0, "arcsinh"),
            ("atan", -2.0, 2.0, "arctan"), ("atanh", -0.9, 0.9, "arctanh"),
            ("cosh", -2.0, 2.0, "cosh"), ("sinh", -2.0, 2.0, "sinh"),
            ("tan", -1.4, 1.4, "tan"), ("exp2", -2.0, 2.0, "exp2"),
            ("log2", 0.1, 3.0, "log2"), ("log10", 0.1, 3.0, "log10"),
            ("frac", -2.0, 2.0, lambda np, x: x - np.trunc(x)), ("deg2rad", -2.0, 2.0, "deg2rad"),
            ("rad2deg", -2.0, 2.0, "rad2deg"), ("sinc", -2.0, 2.0, "sinc"),
        )
    ],
    row("square", one(), lambda np, x: x * x, NUMBERS),
    row("positive", S(M), lambda np, x: x, NUMBERS),
    row("round.decimals", (S(M, decimals=1), S(M, decimals=-1)), "round"),
    row("frexp.Tensor", (S(M), S(T([]))), "frexp"),
    row("nan_to_num", (S(T([1.5, NAN, INF, -INF])), S(T([1.5, NAN, INF, -INF]), 2.5, 3.5, -4.5)), lambda np, x, nan=0.0, posinf=None, neginf=None: np.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf), differentiable=False),
    *[
        row(name, (S(T([1.5, -0.5, NAN, INF, -INF])), S(T([]))), reference, differentiable=False)
        for name, reference in (
            ("isinf", "isinf"), ("isposinf", "isposinf"), ("isneginf", "isneginf"),
            ("isfinite", "isfinite"), ("isreal", "isreal"),
        )
    ],
    row("signbit", (S(T([1, -2, 0])), S(T([1.5, -0.0]))), "signbit", NUMBERS, differentiable=False),
    # ---- pointwise, two arguments
    row("add.Tensor", (*two(), *two(-2.0, 2.0, alpha=2)), lambda np, x, y, alpha=1: x + alpha * y, NUMBERS),
    row("add.Scalar", (S(M, 2), S(M, 2, 3)), lambda np, x, y, alpha=1: x + alpha * y, NUMBERS),
    row("sub.Tensor", (*two(), *two(-2.0, 2.0, alpha=2)), lambda np, x, y, alpha=1: x - alpha * y, NUMBERS),
    row("sub.Scalar", S(M, 2), lambda np, x, y, alpha=1: x - alpha * y, NUMBERS),
    row("rsub.Tensor", two(), lambda np, x, y, alpha=1: y - alpha * x, NUMBERS),
    row("rsub.Scalar", S(M, 2), lambda np, x, y, alpha=1: y - alpha * x, NUMBERS),
    row("mul.Tensor", two(), lambda np, x, y: x * y, NUMBERS),
    row("mul.Scalar", S(M, 3), lambda np, x, y: x * y, NUMBERS),
    row("div.Tensor", two(), lambda np, x, y: x / y),
    row("div.Scalar", S(M, 4), lambda np, x, y: x / y),
    row("div.Tensor_mode", (*two(rounding_mode="floor"), *two(rounding_mode=None)),
                 lambda np, x, y, rounding_mode: np.floor(x / y) if rounding_mode else x / y),
    row("div.Scalar_mode", S(M, 0.7, rounding_mode="trunc"), lambda np, x, y, rounding_mode: np.trunc(x / y)),
    row("floor_divide", two(), "floor_divide", differentiable=False),
    row("floor_divide.Scalar", S(M, 0.7), "floor_divide", differentiable=False),
    row("remainder.Tensor", two(), "remainder", tolerance=1e-8),
    row("remainder.Scalar", S(M, 0.7), "remainder", tolerance=1e-8),
    row("remainder.Scalar_Tensor", S(2.3, M), "remainder", tolerance=1e-8),
    row("pow.Tensor_Tensor", two(**POSITIVE), lambda np, x, y: x ** y),
    row("pow.Tensor_Scalar", (S(M, 2), S(M, 3)), lambda np, x, y: x ** y, NUMBERS),
    row("pow.Scalar", S(2.5, M), lambda np, x, y: x ** y),
    row("maximum", two(), "maximum", NUMBERS),
    row("minimum", two(), "minimum", NUMBERS),
    row("max.other", two(), "maximum"),
    row("min.other", two(), "minimum"),
    row("atan2", two(), "arctan2"),
    *[
        row(f"{name}.{overload}", samples, reference, NUMBERS, differentiable=False)
        for name, reference in (
            ("eq", lambda np, x, y: x == y), ("ne", lambda np, x, y: x != y), ("lt", lambda np, x, y: x < y),
            ("le", lambda np, x, y: x <= y), ("gt", lambda np, x, y: x > y), ("ge", lambda np, x, y: x >= y),
        )
        for overload, samples in (("Tensor", (*two(), S(T([1, 2]), T([2, 2])))), ("Scalar", (S(T([1, 2, 3]), 2),)))
    ],
    *[
        row(name, S(T([0, 1, 0, 2]), T([0, 0, 3, 1])), reference, NUMBERS, differentiable=False)
        for name, reference in (
            ("logical_and", "logical_and"), ("logical_or", "logical_or"),
            ("logical_xor", "logical_xor"),
        )
    ],
    *[
        row(f"{name}.{overload}", samples, reference, BITS, differentiable=False)
        for name, reference in (
            ("bitwise_and", lambda np, x, y: x & y), ("bitwise_or", lambda np, x, y: x | y),
            ("bitwise_xor", lambda np, x, y: x ^ y),
        )
        for overload, samples in (
            ("Tensor", (S(T([0, 1, 1]), T([1, 1, 0])),)), ("Scalar", (S(T([0, 1, 1]), True),)),
            ("Scalar_Tensor", (S(True, T([0, 1, 1])),)),
        )
    ],
    row("copysign.Tensor", two(), "copysign"),
    row("copysign.Scalar", S(M, -2), "copysign"),
    row("fmod.Tensor", two(), "fmod", tolerance=1e-8),
    row("fmod.Scalar", S(M, 0.7), "fmod", tolerance=1e-8),
    row("fmax", (*two(), S(T([NAN, 1.5]), T([0.5, NAN]))), "fmax"),
    row("fmin", (*two(), S(T([NAN, 1.5]), T([0.5, NAN]))), "fmin"),
    row("hypot", two(), "hypot"),
    row("nextafter", two(), "nextafter", differentiable=False),
    row("heaviside", S(T([-1.5, 0.0, 2.0]), T([0.5, 0.5, 0.5])), "heaviside", differentiable=False),
    row("logaddexp", two(), "logaddexp"),
    row("logaddexp2", two(), "logaddexp2"),
    row("xlogy.Tensor", two(**POSITIVE), lambda np, x, y: x * np.log(y)),
    row("xlogy.Scalar_Self", (S(2, some(3, **POSITIVE)), S(0, T([0.0, 2.0]))), lambda np, x, y: np.log(y) * x if x else y * 0, differentiable=False),
    row("xlogy.Scalar_Other", S(M, 2.5), lambda np, x, y: x * np.log(y)),
    row("float_power.Tensor_Tensor", two(**POSITIVE), "float_power", tolerance=1e-6),
    row("float_power.Tensor_Scalar", S(M, 2), "float_power", tolerance=1e-6),
    row("float_power.Scalar", S(2.5, M), "float_power", tolerance=1e-6),
    row("ldexp.Tensor", S(M, T([1, 2, 0], "int64")), lambda np, x, y: x * 2.0 ** y),
    row("clamp_min", S(M, -1), "maximum", NUMBERS),
    row("clamp_max", S(M, 1), "minimum", NUMBERS),
    row("clamp_min.Tensor", two(), "maximum"),
    row("clamp_max.Tensor", two(), "minimum"),
    row("isclose", (S(T([1.0, 2.0, NAN, INF]), T([1.0, 2.1, NAN, INF])), S(T([1.0, NAN]), T([1.05, NAN]), 0.1, 0.0, True)), lambda np, x, y, *rest: np.isclose(x, y, *rest), differentiable=False),
    *[
        row(name, S(T([[4, -6], [9, 0]]), T([6, 10])), reference, ("int64", "int32"), differentiable=False)
        for name, reference in (("gcd", "gcd"), ("lcm", "lcm"))
    ],
    *[
        row(f"{name}.{overload}", samples, reference, ("int64",), differentiable=False)
        for name, reference in (
            ("bitwise_left_shift", lambda np, x, y: shifted(np, x, y, left=True)),
            ("bitwise_right_shift", lambda np, x, y: shifted(np, x, y, left=False)),
        )
        for overload, samples in (
            ("Tensor", (S(T([5, -7, 3, -3, 2]), T([1, 2, 64, 70, -1])),)), ("Tensor_Scalar", (S(T([5, -7]), 2),)), ("Scalar_Tensor", (S(-5, T([1, 2])),)),
        )
    ],
    # ---- pointwise, three arguments
    row("where.self", S(T([[True], [False]], "bool"), M, some(3, seed=3)), "where", NUMBERS),
    row("where.ScalarSelf", S(T([[True], [False]], "bool"), 2, M), lambda np, c, x, y: np.where(c, y.dtype.type(x), y), NUMBERS),
    row("where.ScalarOther", S(T([[True], [False]], "bool"), M, 2), lambda np, c, x, y: np.where(c, x, x.dtype.type(y)), NUMBERS),
    row("where.Scalar", S(T([True, False], "bool"), 2.5, 3), lambda np, c, x, y: np.where(c, np.float32(x), np.float32(y)), ("float32",), differentiable=False),
    row("clamp", (S(M, -1, 1), S(M, None, 1), S(M, -1)), lambda np, x, a=None, b=None: np.clip(x, a, b), NUMBERS),
    row("clamp.Tensor", S(M, some(3, low=-1.0, high=-0.5), some(2, 1, low=0.5, high=1.0)), "clip"),
    row("lerp.Scalar", (S(M, some(3, seed=3), 0.3), S(M, some(3, seed=3), 0.8)), lambda np, x, y, w: x + w * (y - x)),
    row("lerp.Tensor", S(M, some(3, seed=3), some(2, 1, low=0.0, high=1.0)), lambda np, x, y, w: x + w * (y - x)),
    row("addcdiv", S(M, some(3, seed=3), some(2, 1, seed=5), value=2), lambda np, x, a, b, value=1: x + value * a / b),
    row("addcmul", S(M, some(3, seed=3), some(2, 1, seed=5), value=2), lambda np, x, a, b, value=1: x + value * a * b, NUMBERS),
)
# fmt: on
