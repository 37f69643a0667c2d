"""Elementary functions: trigonometric, exponential, the parts of floating point and complex numbers, greatest common divisors."""

from __future__ import annotations

import math
import sys
from typing import Any

from turnout.dtypes import bfloat16
from turnout_arrays.numbers import binary, number_as, store, widen
from turnout_arrays.pointwise import Table, row
from turnout_aten.dtypes import LARGEST
from turnout_aten.kernels.rows import BOOL, SAME, Row


def kernels(xp: Any) -> Table:
    """The rows of this module for an array module."""
    return functions(xp) | float_parts(xp) | complex_parts(xp) | pairs(xp) | integers(xp) | products(xp)


def functions(xp: Any) -> Table:
    """Functions of one argument. The array module's function is used if it exists."""

    def scaled(factor: float) -> Any:
        def kernel(self: Any, out: Any = None) -> Any:
            return store(xp, out, widen(xp, self) * factor, self.dtype)

        return kernel

    def sinc(self: Any, out: Any = None) -> Any:
        angle = widen(xp, self) * math.pi
        zero = angle == 0
        return store(xp, out, xp.where(zero, 1, xp.sin(angle) / xp.where(zero, 1, angle)), self.dtype)

    def logit(self: Any, eps: float | None, out: Any) -> Any:
        # As in PyTorch, two-byte floats are rounded after every step, so the logarithm is taken of the rounded odds.
        one = xp.ones((), self.dtype)
        x = self
        if eps is not None:
            x = xp.minimum(xp.maximum(x, number_as(xp, eps, x.dtype)), number_as(xp, 1 - eps, x.dtype))
        return store(xp, out, xp.log(x / (one - x)))

    def entropy(self: Any, out: Any) -> Any:
        x = widen(xp, self)
        value = -x * xp.log(xp.where(x > 0, x, 1))
        return store(xp, out, xp.where(x < 0, -math.inf, xp.where(xp.isnan(x), x, value)))

    # fmt: off
    return {
        "acos.out":         row(xp.arccos, SAME, refuses="biu"),
        "acosh.out":        row(xp.arccosh, SAME, refuses="biu"),
        "asin.out":         row(xp.arcsin, SAME, refuses="biu"),
        "asinh.out":        row(xp.arcsinh, SAME, refuses="biu"),
        "atan.out":         row(xp.arctan, SAME, refuses="biu"),
        "atanh.out":        row(xp.arctanh, SAME, refuses="biu"),
        "cosh.out":         row(xp.cosh, SAME, refuses="biu"),
        "sinh.out":         row(xp.sinh, SAME, refuses="biu"),
        "tan.out":          row(xp.tan, SAME, refuses="biu"),
        "exp2.out":         row(xp.exp2, SAME, refuses="biu"),
        "log2.out":         row(xp.log2, SAME, refuses="biu"),
        "log10.out":        row(xp.log10, SAME, refuses="biu"),
        "deg2rad.out":      row(scaled(math.pi / 180), SAME, refuses="biuc"),
        "rad2deg.out":      row(scaled(180 / math.pi), SAME, refuses="biuc"),
        "sinc.out":         row(sinc, SAME, refuses="biu"),
        "logit.out":        row(logit),
        "special_entr.out": row(entropy),
    }
    # fmt: on


def float_parts(xp: Any) -> Table:
    """The parts of a floating-point number, and tests for special values."""

    def frac(self: Any, out: Any = None) -> Any:
        x = widen(xp, self)
        return store(xp, out, x - xp.trunc(x), self.dtype)

    def round_decimals(self: Any, decimals: int, out: Any) -> Any:
        x = widen(xp, self)
        scale = 10.0 ** abs(decimals) if abs(decimals) <= sys.float_info.max_10_exp else math.inf
        return store(xp, out, xp.rint(x * scale) / scale if decimals >= 0 else xp.rint(x / scale) * scale)

    def infinite(limit: float) -> Any:
        def kernel(self: Any, out: Any) -> Any:
            return store(xp, out, self == limit if self.dtype.kind in "fV" else xp.zeros(self.shape, bool))

        return kernel

    def largest(dtype: Any) -> float:
        # array modules' finfo does not know bfloat16
        return LARGEST[bfloat16] if dtype.kind == "V" else float(xp.finfo(dtype).max)

    def replaced(x: Any, nan: float | None, posinf: float | None, neginf: float | None, limit: float) -> Any:
        value = xp.where(xp.isnan(x), 0.0 if nan is None else nan, x)
        value = xp.where(value == math.inf, limit if posinf is None else posinf, value)
        return xp.where(value == -math.inf, -limit if neginf is None else neginf, value)

    def nan_to_num(self: Any, nan: float | None, posinf: float | None, neginf: float | None, out: Any) -> Any:
        if self.dtype.kind in "biu":
            return store(xp, out, self)
        limit = largest(self.dtype)
        if self.dtype.kind != "c":
            return store(xp, out, replaced(widen(xp, self), nan, posinf, neginf, limit).astype(out.dtype))
        made = xp.empty(self.shape, self.dtype)
        made.real = replaced(self.real, nan, posinf, neginf, limit)
        made.imag = replaced(self.imag, nan, posinf, neginf, limit)
        return store(xp, out, made)

    def frexp(self: Any, mantissa: Any, exponent: Any) -> None:
        fraction, power = xp.frexp(widen(xp, self))
        store(xp, mantissa, fraction)
        store(xp, exponent, power)

    # fmt: off
    return {
        "frac.out":           row(frac, SAME, refuses="biu"),
        "round.decimals_out": row(round_decimals),
        "signbit.out":        row(xp.signbit, BOOL),
        "isinf.out":          row(xp.isinf, BOOL),
        "isposinf.out":       row(infinite(math.inf)),
        "isneginf.out":       row(infinite(-math.inf)),
        "nan_to_num.out":     row(nan_to_num),
        "frexp.Tensor_out":   row(frexp),
    }
    # fmt: on


def complex_parts(xp: Any) -> Table:
    """Complex numbers from real ones and back. A real number counts as complex with imaginary part 0."""

    def angle(self: Any, out: Any) -> Any:
        if self.dtype.kind == "c":
            return store(xp, out, xp.arctan2(self.imag, self.real))
        x = widen(xp, self)
        return store(xp, out, xp.where(xp.isnan(x), x, xp.where(x < 0, math.pi, 0.0)))

    def sgn(self: Any, out: Any) -> Any:
        if self.dtype.kind == "b":
            return store(xp, out, self)
        if self.dtype.kind != "c":
            return store(xp, out, xp.greater(self, 0).astype(out.dtype) - xp.less(self, 0).astype(out.dtype))
        size = xp.abs(self)
        zero = size == 0
        return store(xp, out, xp.where(zero, 0, self / xp.where(zero, 1, size)))

    def conj_physical(self: Any, out: Any) -> Any:
        return store(xp, out, xp.conjugate(self) if self.dtype.kind == "c" else self)

    def joined(real: Any, imag: Any, out: Any) -> Any:
        made = xp.empty(out.shape, out.dtype)
        made.real, made.imag = real, imag
        return store(xp, out, made)

    def polar(abs: Any, angle: Any, out: Any) -> Any:
        return joined(abs * xp.cos(angle), abs * xp.sin(angle), out)

    def as_real(self: Any, out: Any) -> Any:
        return store(xp, out, xp.stack((self.real, self.imag), -1))

    def as_complex(self: Any, out: Any) -> Any:
        return joined(self[..., 0], self[..., 1], out)

    # fmt: off
    return {
        "view_as_real_copy.out": Row(as_real),
        "view_as_complex_copy.out": Row(as_complex),
        "angle.out":         row(angle),
        "sgn.out":           row(sgn),
        "conj_physical.out": row(conj_physical),
        "complex.out":       row(joined),
        "polar.out":         row(polar),
    }
    # fmt: on


def pairs(xp: Any) -> Table:
    """Two floating point arguments."""

    def logaddexp(self: Any, other: Any) -> Any:
        if self.dtype.kind != "c":
            return xp.logaddexp(self, other)
        first = self.real >= other.real
        larger, smaller = xp.where(first, self, other), xp.where(first, other, self)
        # Two equal infinities have no difference; the result is that infinity.
        gap = xp.where(larger == smaller, 0, smaller - larger)
        return larger + xp.log(1 + xp.exp(gap))

    def logaddexp_to(self: Any, other: Any, out: Any) -> Any:
        return store(xp, out, logaddexp(self, other))

    def heaviside(self: Any, values: Any, out: Any) -> Any:
        return store(xp, out, xp.where(self == 0, values, (self > 0).astype(values.dtype)))

    # fmt: off
    return {
        "atan2.out":      row(xp.arctan2, SAME, refuses="biu"),
        "copysign.out":   binary(xp, xp.copysign, refuses="biu"),
        "fmax.out":       row(xp.fmax, SAME, refuses="c"),
        "fmin.out":       row(xp.fmin, SAME, refuses="c"),
        "hypot.out":      row(xp.hypot, SAME),
        "nextafter.out":  row(xp.nextafter, SAME),
        "logaddexp.out":  row(logaddexp_to),
        "logaddexp2.out": row(xp.logaddexp2, SAME),
        "heaviside.out":  row(heaviside),
    }
    # fmt: on


def integers(xp: Any) -> Table:
    """Divisors and shifts. A shift by a negative number, or by at least the number of bits, leaves only the sign."""

    def bits(dtype: Any) -> int:
        return int(8 * dtype.itemsize)

    def shifted(ufunc: Any, rest: Any) -> Any:
        def kernel(self: Any, other: Any, out: Any) -> Any:
            dtype = out.dtype
            x, by = number_as(xp, self, dtype), number_as(xp, other, dtype)
            beyond = (by < 0) | (by >= bits(dtype))
            return store(xp, out, xp.where(beyond, rest(x), ufunc(x, xp.where(beyond, 0, by).astype(dtype))))

        return kernel

    def lcm(self: Any, other: Any, out: Any) -> Any:
        made = xp.lcm(number_as(xp, self, out.dtype), number_as(xp, other, out.dtype))
        # One that is too large: PyTorch multiplies small integers as int32, and takes the absolute value before it cuts that off.
        return store(xp, out, xp.absolute(made) if made.dtype.itemsize > 2 else made)

    def only_sign(x: Any) -> Any:
        if x.dtype.kind == "u":
            return xp.zeros_like(x)
        return xp.right_shift(x, xp.asarray(bits(x.dtype) - 1).astype(x.dtype))

    # fmt: off
    return {
        "gcd.out":                        row(xp.gcd, SAME),
        "lcm.out":                        row(lcm),
        "bitwise_left_shift.Tensor_out":  row(shifted(xp.left_shift, xp.zeros_like)),
        "bitwise_right_shift.Tensor_out": row(shifted(xp.right_shift, only_sign)),
    }
    # fmt: on


def products(xp: Any) -> Table:
    """x log(y), and 0 where x is 0, unless y is NaN.

    # differs from torch: `xlogy` and `xlog1py` of two-byte floats are rounded once; PyTorch rounds the logarithm first.
    """

    def product(log: Any) -> Any:
        def kernel(self: Any, other: Any, out: Any) -> Any:
            dtype = out.dtype
            x, y = widen(xp, number_as(xp, self, dtype)), widen(xp, number_as(xp, other, dtype))
            return store(xp, out, xp.where(xp.isnan(y), y, xp.where(x == 0, 0, x * log(y))))

        return kernel

    return {"xlogy.OutTensor": row(product(xp.log)), "special_xlog1py.out": row(product(xp.log1p))}
