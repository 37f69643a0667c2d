"""Element-wise operators at infinities, nan, zeros of both signs, and numbers of all sizes."""

from __future__ import annotations

import math

from turnout_conformance.cases.model import S, Seen, T
from turnout_conformance.cases.sets.rows import HALVES, Row, row

VALUES = [-math.inf, -3e4, -60.0, -2.5, -1.0, -0.5, -1e-3, -0.0, 0.0, 1e-3, 0.5, 1.0, 2.5, 60.0, 3e4, math.inf, math.nan]
X = T(VALUES)
# Of large numbers, what is left of a period is what their spacing leaves.
NEAR = T([v for v in VALUES if not math.isfinite(v) or abs(v) < 10])
MODEST = T([v for v in VALUES if not abs(v) > 10])
EVERY = [*VALUES, *[-6 + i / 10 for i in range(181)], *[-1 + i / 100 for i in range(201)], 25.9, 39.9, 40.1, 200.0]
PRECISE = T([1e-30, 1 - 1e-7, 1e-7])
# Near a pole or a zero of these functions, the spacing of the argument decides.
APART = T([v for v in EVERY if not (-1e4 < v < 0 and v != round(v) and abs(v - round(v)) < 0.02)])
SECOND = T([list(VALUES) for _ in VALUES])
FIRST = Seen(SECOND, lambda x: x.t().contiguous())
WHOLE = T(list(range(-11, 12)))
UNSIGNED = T(list(range(30)))


def pairs(x: T) -> tuple[Seen, Seen]:
    """Every number with every other one."""
    count = len(x.data)
    return Seen(x, lambda v: v.reshape(count, 1).expand(count, count).contiguous()), Seen(
        x, lambda v: v.expand(count, count).contiguous()
    )


# ruff: noqa: E501 - rows of a table
# fmt: off
ROWS: list[Row] = [
    *row("abs neg exp expm1 log log1p sqrt rsqrt sin cos tanh erf sigmoid floor ceil trunc round sign relu reciprocal isnan isfinite logical_not gelu", S(X)),
    *row("acos acosh asin asinh atan atanh cosh sinh exp2 log2 log10 deg2rad rad2deg erfc silu mish hardsigmoid hardswish frac special_entr square sgn conj_physical isinf isposinf isneginf signbit elu leaky_relu hardtanh hardshrink softshrink softplus", S(X)),
    *row("nan_to_num", S(X), wide=False),
    *row("sinc tan", S(NEAR)),
    *row("argmax argmin", S(T([1.0, math.nan, 3.0, math.nan, math.inf])), S(T([[2.0, 1.0, 2.0, 1.0]]), 1)),  # the first of them
    *row("erfinv i0 special_i0e special_i1 special_i1e special_erfcx special_log_ndtr special_ndtri special_modified_bessel_i0 special_modified_bessel_i1", S(T(EVERY))),
    *row("logit", S(T(EVERY)), dtypes=("float32", "float64")),
    *row("logit", S(T(EVERY)), dtypes=HALVES, wide=False),  # rounded after each step
    *row("erfinv i0 special_i0e special_i1 special_i1e special_erfcx special_log_ndtr special_ndtri special_modified_bessel_i0 special_modified_bessel_i1 logit lgamma digamma", S(PRECISE), dtypes=("float32", "float64")),
    *row("lgamma digamma", S(APART)),
    # opencl's tanh of large float32 numbers is not 1: gelu and its gradient are wrong there.
    *row("gelu", S(MODEST, approximate="tanh")),
    *row("add.Tensor sub.Tensor mul.Tensor div.Tensor maximum minimum atan2 eq.Tensor ne.Tensor lt.Tensor le.Tensor gt.Tensor ge.Tensor copysign.Tensor hypot heaviside logaddexp logaddexp2 xlogy.Tensor special_xlog1py fmax fmin pow.Tensor_Tensor", S(FIRST, SECOND)),
    *row("gelu_backward", S(T([0.75] * len(VALUES)), X), S(T([0.75] * len(MODEST.data)), MODEST, approximate="tanh")),
    *row("silu_backward sigmoid_backward tanh_backward", S(T([0.75] * len(VALUES)), X)),
    *row("special_zeta", S(T([[s] * 11 for s in (1.0, 1.1, 2.0, 3.5, 8.0, 40.0, math.nan, 0.5)]), T([[-2.0, -1.5, 0.0, 1e-3, 0.5, 1.0, 4.25, 100.0, 1e6, math.inf, math.nan]] * 8)), dtypes=("float32", "float64")),
    *row("gcd lcm", S(*pairs(WHOLE)), dtypes=("int8", "int32", "int64")), *row("gcd lcm", S(*pairs(UNSIGNED)), dtypes="uint8"),
    *row("fmod.Tensor heaviside fmax fmin bitwise_left_shift.Tensor bitwise_right_shift.Tensor", S(T([-9, -8, 3, 7, 100]), T([2, 3, 1, 7, 8])), dtypes=("int8", "int32", "int64")),
    *row("fmod.Tensor heaviside fmax fmin bitwise_left_shift.Tensor bitwise_right_shift.Tensor", S(T([0, 1, 3, 7, 100]), T([2, 3, 1, 7, 8])), dtypes="uint8"),
    *row("square", S(T([-9, -8, 3, 7, 100])), dtypes=("int8", "int32", "int64")), *row("square", S(T([0, 1, 3, 7, 100])), dtypes="uint8"),
    *row("add.Scalar mul.Scalar", S(T([250, 7]), 10), dtypes="uint8"), *row("fill.Scalar", S(T([7, 9]), -1), dtypes="uint8"),  # they wrap around
    *row("polygamma", *[S(n, T([0.25, 0.5, 1.0, 3.0, 20.0, 400.0])) for n in (0, 1, 2, 3, 7)], dtypes=("float32", "float64")),
]
# fmt: on
