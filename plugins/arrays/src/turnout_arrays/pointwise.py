"""Elementwise kernels. If a ufunc has the meaning of the operator, it is the row; the others are functions.

Every kernel takes an optional `out` last and returns the result. Rows that opt in with ALWAYS or SAME may be called without
`out`. Two-byte floats are widened only if an operator takes several steps; a single ufunc already rounds once.
"""

from __future__ import annotations

from math import copysign
from typing import Any

from turnout_arrays.numbers import (
    NO_ORDER,
    POSTPONING,
    PREPARED,
    TWO_BYTES,
    binary,
    is_bool,
    number_as,
    sign_of_zero,
    store,
    store_by,
    widen,
    with_numbers,
)
from turnout_aten.errors.arguments import NO_QUOTIENT
from turnout_aten.kernels.rows import ALWAYS, BOOL, SAME, Accepts, Row, Sizes, Steps
from turnout_aten.tensor.checks import are_postponed, note

Table = dict[str, Any]


def row(
    fn: Any, allocates: str = "", refuses: str = "", *, quiet: bool = False, steps: tuple[Any, ...] = (),
    prepares: Any = None,
) -> Row:  # fmt: skip
    """The row of a kernel whose output may be the same array as an input."""
    program = Steps(steps) if steps else None
    return Row(fn, allocates, pointwise=True, quiet=quiet, accepts=Accepts(refuses), program=program, prepares=prepares)


def _both(ufunc: Any) -> tuple[Any, ...]:
    """The steps of a kernel that is one function of its two arguments."""
    return ((ufunc, "self", "other"),)


def kernels(xp: Any) -> Table:
    """The rows of this module for an array module."""
    return unary(xp) | arithmetic(xp) | division(xp) | powers(xp) | comparisons(xp) | selection(xp)


def ordered(ufunc: Any) -> Any:
    """A comparison ufunc that refuses complex numbers, which array modules would order."""

    def kernel(self: Any, other: Any, out: Any = None) -> Any:
        if self.dtype.kind == "c" or other.__class__ is complex:
            raise TypeError(NO_ORDER)
        return compared(self, other, out)

    compared = comparison(ufunc)
    return kernel


def comparison(ufunc: Any) -> Any:
    """A comparison with a number. The general path converts the number to the array's dtype first."""

    def kernel(self: Any, other: Any, out: Any = None) -> Any:
        if out is None and other.__class__ is int and not 0 <= other <= 127:
            dtype = self.dtype
            beyond = dtype.kind == "i" and other >> 8 * dtype.itemsize - 1 not in (0, -1)
            if beyond or dtype.kind == "u" or dtype.itemsize < 4:
                raise OverflowError("the number may not fit in the dtype")
        if other.__class__ is float and out is None and self.dtype.kind == "V":
            raise NotImplementedError("the array module compares bfloat16 and a number in float32")
        return ufunc(self, other, out=out)

    return kernel


def unary(xp: Any) -> Table:
    """Functions of one argument."""

    def real(self: Any) -> None:
        if self.dtype.kind == "c":
            raise TypeError("complex numbers are not rounded and have no sign")

    def rsqrt(self: Any, out: Any = None) -> Any:
        root = xp.sqrt(self, out)
        return xp.reciprocal(root, out)

    def reciprocal(self: Any, out: Any = None) -> Any:
        return xp.true_divide(1, self, out)

    def round_to_integer(self: Any, out: Any = None) -> Any:
        real(self)
        return store(xp, out, self) if out is not None and self.dtype.kind in "biu" else xp.rint(self, out)

    def sign(self: Any, out: Any = None) -> Any:
        # Not the array module's sign, which gives NaN for NaN and means something else for complex numbers.
        real(self)
        if self.dtype.kind == "b":
            return store(xp, out, xp.greater(self, 0))
        dtype = self.dtype
        return store(xp, out, xp.greater(self, 0).astype(dtype) - xp.less(self, 0).astype(dtype))

    def unchanged_integers(ufunc: Any) -> Any:
        def kernel(self: Any, out: Any = None) -> Any:
            return store(xp, out, self) if out is not None and self.dtype.kind in "biu" else ufunc(self, out)

        return kernel

    def log1p(self: Any, out: Any = None) -> Any:
        if self.dtype.kind != "c":
            return xp.log1p(self, out)
        x, y = self.real, self.imag
        made = xp.asarray(xp.log1p(self))
        # Array modules take log |1 + z|, in which a small z is lost.
        near = xp.abs(self) < 0.5
        made.real = xp.where(near, 0.5 * xp.log1p(xp.where(near, x * (2 + x) + y * y, 0)), made.real)
        return made if out is None else store(xp, out, made)

    # fmt: off
    return {
        "abs.out":            row(xp.absolute, SAME, refuses="b"),
        "neg.out":            row(xp.negative, SAME),
        "exp.out":            row(xp.exp, SAME, refuses="biu"),
        "expm1.out":          row(xp.expm1, SAME, refuses="biu"),
        "log.out":            row(xp.log, SAME, refuses="biu"),
        "log1p.out":          row(log1p, SAME, refuses="biu"),
        "sqrt.out":           row(xp.sqrt, SAME, refuses="biu"),
        "rsqrt.out":          row(rsqrt, SAME, refuses="biu"),
        "sin.out":            row(xp.sin, SAME, refuses="biu"),
        "cos.out":            row(xp.cos, SAME, refuses="biu"),
        "tanh.out":           row(xp.tanh, SAME, refuses="biu"),
        "reciprocal.out":     row(reciprocal, SAME, refuses="biu"),
        "floor.out":          row(unchanged_integers(xp.floor), SAME, refuses="b", steps=((xp.floor, "self"),)),
        "ceil.out":           row(unchanged_integers(xp.ceil), SAME, refuses="b", steps=((xp.ceil, "self"),)),
        "trunc.out":          row(unchanged_integers(xp.trunc), SAME, refuses="b", steps=((xp.trunc, "self"),)),
        "round.out":          row(round_to_integer, SAME),
        "sign.out":           row(sign, SAME),
        "isnan.out":          row(xp.isnan, BOOL),
        "logical_not.out":    row(xp.logical_not, ALWAYS),
        "bitwise_not.out":    row(xp.invert, SAME),
    }
    # fmt: on


def arithmetic(xp: Any) -> Table:
    """Sums and products. `alpha` scales `other` before the sum."""
    plus, minus, times = xp.add, xp.subtract, xp.multiply

    def scaled(value: Any, alpha: Any) -> Any:
        if not hasattr(value, "dtype"):
            return value * alpha
        kind = value.dtype.kind
        if kind in "biu" and not isinstance(alpha, int):
            raise TypeError("alpha of integer tensors must be an integer")
        return times(value, alpha if kind == "f" and alpha.__class__ is float else number_as(xp, alpha, value.dtype))

    def sum_of(ufunc: Any) -> Any:
        def kernel(self: Any, other: Any, alpha: Any = 1, out: Any = None) -> Any:
            if alpha != 1 or alpha is True:
                if alpha.__class__ is bool and not (is_bool(self) and is_bool(other)):
                    raise TypeError("a bool alpha is for sums of bools")
                if any([hasattr(value, "dtype") and value.dtype.char in TWO_BYTES for value in (self, other)]):  # noqa: C419
                    if out is None:
                        raise NotImplementedError("the product is rounded with the sum, and alpha by the shape function")
                    self, other = [widen(xp, value) if hasattr(value, "dtype") else value for value in (self, other)]
                other = scaled(other, alpha)
            try:
                return ufunc(self, other, out)
            except (OverflowError, TypeError):
                if out is None:
                    raise
            return with_numbers(xp, ufunc, self, other, out)

        return kernel

    difference = sum_of(minus)

    def rsub(self: Any, other: Any, alpha: Any = 1, out: Any = None) -> Any:
        return difference(other, self, alpha, out)

    def lerp(self: Any, end: Any, weight: Any, out: Any = None) -> Any:
        # Two forms, so that weight 0 gives `self` and weight 1 gives `end` exactly.
        near = abs(weight) < 0.5
        if out is not None and self.dtype is end.dtype is out.dtype and out.dtype.char in "fd" and weight.__class__ is float:
            span = end - self
            span *= weight if near else 1 - weight
            return xp.add(self, span, out=out) if near else xp.subtract(end, span, out=out)
        start, stop = widen(xp, self), widen(xp, end)
        span = stop - start
        ufunc, parts = (xp.add, (start, weight * span)) if near else (xp.subtract, (stop, span * (1 - weight)))
        return store_by(xp, out, ufunc, parts, self.dtype)

    def prepared_lerp(outs: Any, self: Any, end: Any, weight: Any) -> Any:
        dtype = self.dtype
        few = 0 < max(self.size, end.size) <= PREPARED and outs[0].shape
        if not few or dtype.char not in "fd" or end.dtype is not dtype or weight.__class__ is not float or not weight:
            return None
        near = abs(weight) < 0.5
        factor = xp.asarray(weight if near else 1 - weight, dtype)  # an array module takes twice as long for a Python number

        def between(self: Any, end: Any, weight: Any, out: Any) -> Any:
            span = end - self
            span *= factor
            return plus(self, span, out) if near else minus(end, span, out)

        return between

    def lerp_tensor(self: Any, end: Any, weight: Any, out: Any) -> Any:
        start, stop, part = widen(xp, self), widen(xp, end), widen(xp, weight)
        span = stop - start
        return store(xp, out, xp.where(xp.abs(part) < 0.5, start + part * span, stop - span * (1 - part)))

    def addcdiv(self: Any, tensor1: Any, tensor2: Any, value: Any, out: Any) -> Any:
        top = widen(xp, tensor1)
        if value != 1:
            top = top * number_as(xp, value, top.dtype)
        return store(xp, out, widen(xp, self) + top / widen(xp, tensor2))

    def addcmul(self: Any, tensor1: Any, tensor2: Any, value: Any = 1, out: Any = None) -> Any:
        product = widen(xp, tensor1) * widen(xp, tensor2)
        if value != 1:
            product = product * number_as(xp, value, product.dtype)
        return store_by(xp, out, xp.add, (widen(xp, self), product), self.dtype)

    # fmt: off
    return {
        "add.out":         Row(sum_of(plus), ALWAYS, pointwise=True, sizes=Sizes(simple=plus)),
        "sub.out":         Row(difference, ALWAYS, pointwise=True, sizes=Sizes(simple=minus), accepts=Accepts(bools=False)),
        "rsub.Tensor_out": Row(rsub, SAME, pointwise=True, accepts=Accepts(bools=False)),
        "mul.out":         binary(xp, times, ALWAYS),
        "maximum.out":     row(ordered(xp.maximum), ALWAYS, steps=_both(xp.maximum)),
        "minimum.out":     row(ordered(xp.minimum), ALWAYS, steps=_both(xp.minimum)),
        "lerp.Scalar_out": row(lerp, quiet=True, prepares=prepared_lerp),
        "lerp.Tensor_out": row(lerp_tensor, quiet=True),
        "addcmul.out":     row(addcmul, quiet=True),
        "addcdiv.out":     row(addcdiv, quiet=True),
    }
    # fmt: on


def division(xp: Any) -> Table:
    """Quotients and remainders. An integer division by zero raises because no integer can represent the result; of no integers
    there is none."""

    def check_divisor(self: Any, other: Any) -> None:
        if isinstance(self, float) or isinstance(other, float):
            return
        kinds = [value.dtype.kind for value in (self, other) if hasattr(value, "dtype")]
        if not all(kind in "biu" for kind in kinds) or not getattr(self, "size", 1):
            return
        if xp.__class__ in POSTPONING and are_postponed() and hasattr(other, "dtype"):
            note(xp.any(other == 0).value())
        elif not (bool(xp.all(other != 0)) if hasattr(other, "dtype") else other):
            raise ZeroDivisionError(NO_QUOTIENT)

    def divided(ufunc: Any) -> Any:
        def kernel(self: Any, other: Any, out: Any = None) -> Any:
            check_divisor(self, other)
            return ufunc(self, other) if out is None else with_numbers(xp, ufunc, self, other, out)

        return kernel

    def truncated(self: Any, other: Any) -> Any:
        if self.dtype.kind not in "biu":
            return xp.trunc(self / other)
        quotient = xp.floor_divide(self, other)
        exact = quotient * other == self
        return quotient + (~exact & (quotient < 0)).astype(quotient.dtype)

    def div_mode(self: Any, other: Any, rounding_mode: str | None, out: Any) -> Any:
        if rounding_mode is None:
            return with_numbers(xp, xp.true_divide, self, other, out)
        check_divisor(self, other)
        rounded = truncated if rounding_mode == "trunc" else xp.floor_divide
        return with_numbers(xp, rounded, self, other, out)

    # fmt: off
    return {
        "div.out":              binary(xp, xp.true_divide, refuses="biu"),
        "div.out_mode":         row(div_mode),
        "floor_divide.out":     row(divided(xp.floor_divide), SAME),
        "remainder.Tensor_out": row(divided(xp.remainder), SAME),
        "fmod.Tensor_out":      row(divided(xp.fmod), SAME),
    }
    # fmt: on


def powers(xp: Any) -> Table:
    """`pow` in its three spellings."""

    def power(self: Any, exponent: Any, out: Any = None) -> Any:
        if out is None:
            return xp.power(self, exponent)
        return with_numbers(xp, integer_power if _integers(self, exponent) else xp.power, self, exponent, out)

    def integer_power(self: Any, exponent: Any) -> Any:
        # A negative exponent gives the reciprocal rounded to zero: 0, except for bases 1 and -1.
        negative = exponent < 0
        value = xp.power(self, xp.where(negative, 0, exponent).astype(self.dtype))
        odd = xp.bitwise_and(exponent, 1) == 1
        units = xp.where(self == 1, 1, xp.where(self == -1, xp.where(odd, -1, 1), 0))
        return xp.where(negative, units, value)

    def power_number(self: Any, exponent: Any, out: Any = None) -> Any:
        if exponent == 2 and (exponent.__class__ is int or self.dtype.kind in "fc"):  # 2.0 makes integers floats
            return xp.square(self, out)
        if isinstance(exponent, bool) and self.dtype.kind == "b":
            return store(xp, out, self if exponent else xp.ones_like(self))
        if exponent in (-2, -1, 3) and self.shape and self.dtype.kind in "fc" and self.dtype.itemsize > 2:
            # As in PyTorch; a power of array modules calls the C library for each element.
            value = xp.multiply(self, self) if exponent != -1 else self
            return xp.multiply(value, self, out) if exponent == 3 else xp.true_divide(1, value, out)
        if out is None and exponent.__class__ is int and exponent < 0 and self.dtype.kind in "iu":
            raise NotImplementedError  # the shape function refuses it, of no elements too
        return power(self, exponent, out)

    def float_power(self: Any, exponent: Any, out: Any) -> Any:
        return with_numbers(xp, xp.power, self, exponent, out)

    # fmt: off
    return {
        "pow.Tensor_Tensor_out":         row(power, SAME),
        "pow.Tensor_Scalar_out":         row(power_number, SAME),
        "square.out":                    row(xp.square, SAME),
        "float_power.Tensor_Tensor_out": row(float_power),
    }
    # fmt: on


def _integers(*values: Any) -> bool:
    return all(value.dtype.kind in "iu" if hasattr(value, "dtype") else isinstance(value, int) for value in values)


def comparisons(xp: Any) -> Table:
    """Comparisons and logic: bool out. Bitwise ones keep the dtype."""
    compare = {
        "eq": xp.equal, "ne": xp.not_equal, "lt": xp.less, "le": xp.less_equal,
        "gt": xp.greater, "ge": xp.greater_equal,
    }  # fmt: skip
    logic = {"and": xp.logical_and, "or": xp.logical_or, "xor": xp.logical_xor}
    bits = {"and": xp.bitwise_and, "or": xp.bitwise_or, "xor": xp.bitwise_xor}
    table: Table = {}
    for name, ufunc in compare.items():
        table[f"{name}.Tensor_out"] = row((comparison if name in ("eq", "ne") else ordered)(ufunc), BOOL, steps=_both(ufunc))
    for name, ufunc in logic.items():
        table[f"logical_{name}.out"] = row(ufunc, ALWAYS)
    for name, ufunc in bits.items():
        table[f"bitwise_{name}.Tensor_out"] = binary(xp, ufunc)
    return table


def selection(xp: Any) -> Table:
    """Kernels that choose between values."""

    def where(condition: Any, self: Any, other: Any, out: Any) -> Any:
        dtype = out.dtype
        if self.__class__ is not xp.ndarray:
            self = number_as(xp, self, dtype)
        if other.__class__ is not xp.ndarray:
            other = number_as(xp, other, dtype)
        return store(xp, out, xp.where(condition if condition.dtype.kind == "b" else condition != 0, self, other))

    choose = getattr(xp.where, "__wrapped__", xp.where)  # without the search for classes that override it

    def prepared_where(outs: Any, condition: Any, self: Any, other: Any) -> Any:
        """With the numbers as arrays. At least one is an array of the dtype of the result."""
        arrays = [value for value in (self, other) if value.__class__ is xp.ndarray]
        few = all([value.size <= PREPARED for value in (condition, *arrays)])  # noqa: C419
        if condition.dtype.kind != "b" or not few or any(a.dtype.name != outs[0].dtype.name for a in arrays) or not arrays:
            return None
        first = self if self.__class__ is xp.ndarray else number_as(xp, self, arrays[0].dtype)
        second = other if other.__class__ is xp.ndarray else number_as(xp, other, arrays[0].dtype)
        sign = sign_of_zero(self if first is not self else other)

        def chosen(condition: Any, self: Any, other: Any, out: Any) -> Any:
            out[...] = choose(condition, self, other)
            return out

        def with_first(condition: Any, self: Any, other: Any, out: Any) -> Any:
            if sign is not None and copysign(1.0, self) != sign:
                return where(condition, self, other, out)
            out[...] = choose(condition, first, other)
            return out

        def with_second(condition: Any, self: Any, other: Any, out: Any) -> Any:
            if sign is not None and copysign(1.0, other) != sign:
                return where(condition, self, other, out)
            out[...] = choose(condition, self, second)
            return out

        return with_first if first is not self else with_second if second is not other else chosen

    def clamp(self: Any, min: Any = None, max: Any = None, out: Any = None) -> Any:
        if min is None and max is None:
            raise ValueError("no bound")  # the shape function says it as an error of the operator
        floating = self.dtype.kind == "f" and out is not None and out.dtype == self.dtype
        if floating and min is not None and max is not None and not hasattr(min, "dtype") and not hasattr(max, "dtype"):
            return xp.clip(self, min, max, out)  # a third of the time of two ufuncs
        value = self
        if min is not None:
            value = xp.maximum(value, min)
        if max is not None:
            value = xp.minimum(value, max)
        return store(xp, out, value)

    def limited(ufunc: Any) -> Any:
        def kernel(self: Any, limit: Any, out: Any) -> Any:
            return store(xp, out, ufunc(self, limit))

        return kernel

    # fmt: off
    return {
        "where.self_out":         row(where, quiet=True, prepares=prepared_where),
        "clamp_min.Tensor_out":   row(limited(xp.maximum)),
        "clamp_max.Tensor_out":   row(limited(xp.minimum)),
        "clamp.out":              row(clamp, SAME, refuses="c", steps=((xp.maximum, "self", "min"), (xp.minimum, 0, "max"))),
        "clamp.Tensor_out":       row(clamp),
    }
    # fmt: on
