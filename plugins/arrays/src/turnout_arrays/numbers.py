"""Python numbers and two-byte floats: the two cases in which array modules differ from Turnout's rules.

A Python number takes the dtype of the other operand; shape functions have made integers fit, and have rounded to two-byte floats
what PyTorch rounds. Two-byte floats (float16 and bfloat16) are computed in float32 and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import copysign
from typing import Any

from turnout.dtypes import DType, dtype_named
from turnout_aten.dtypes import holds
from turnout_aten.kernels.rows import SAME, Accepts, Row, Sizes

Call = Callable[..., Any]

# The characters of float16 and of bfloat16 of ml_dtypes. No function asks: its frame would be there in each call.
TWO_BYTES = "eE"

# Elements up to which a plan is prepared: of more of them, computing takes most of the time.
PREPARED = 1 << 10

# Why a kernel leaves a call to others, or refuses it.
NO_ORDER = "complex numbers have no order"
NO_OUTPUT = "a conversion needs an output"

# Classes of array modules whose arrays may have no numbers yet. While `checks.are_postponed`, kernels note the `value()` of a
# bool of such a module where they would look at it. `drafts` adds its own: a program that needs no drafts does not load them.
POSTPONING: set[Any] = set()


def computed_dtype(xp: Any, dtype: Any) -> Any:
    """The dtype that steps have which are rounded to `dtype` once: float32 for a two-byte float, else the same."""
    return xp.dtype(xp.float32) if dtype.char in TWO_BYTES else dtype


def widen(xp: Any, array: Any) -> Any:
    """The array, converted to float32 if its elements are two-byte floats."""
    return array.astype(xp.float32) if array.dtype.char in TWO_BYTES else array


def real_for(dtype: Any, array: Any) -> Any:
    """The array, or the real part of complex numbers for a dtype that is neither complex nor bool."""
    return array.real if array.dtype.kind == "c" and dtype.kind not in "cb" else array


def store(xp: Any, out: Any, value: Any, dtype: Any = None) -> Any:
    """A kernel's last step: `value` written into `out` with any conversion.

    Without `out`, returns `value`, rounded to `dtype` if that is a two-byte float that was widened.
    """
    if out is not None:
        own, kind = out.dtype, getattr(value, "dtype", None)
        if kind is own or kind == own or (kind is not None and kind.kind == own.kind and own.kind in "fc"):
            out[...] = value  # 450 ns less than copyto
        else:
            xp.copyto(out, value, casting="unsafe")
        return out
    return value.astype(dtype) if dtype is not None and dtype.char in TWO_BYTES else value


def store_single(xp: Any, self: Any, values: Any, indices: Any) -> None:
    """What an operator of one dim that gives elements and their places writes for an array without dims, or without elements."""
    store(xp, values, self)
    store(xp, indices, xp.zeros(self.shape, indices.dtype))


def store_by(xp: Any, out: Any, ufunc: Call, values: tuple[Any, ...], dtype: Any = None) -> Any:
    """`store` of `ufunc(*values)`, of arrays and numbers, without an array in between where all have the dtype of `out`."""
    if out is not None and all([getattr(value, "dtype", out.dtype) == out.dtype for value in values]):  # noqa: C419
        return ufunc(*values, out=out)
    return store(xp, out, ufunc(*values), dtype)


@cache  # NumPy takes 5 us for a name
def _dtype(native: Any) -> DType:
    return dtype_named(native.name)


def number_as(xp: Any, value: Any, dtype: Any) -> Any:
    """A Python number as a 0-dim array of a dtype; a negative int wraps around in an unsigned one. Arrays stay as they are.

    Raises OverflowError for an int beyond the dtype, after which the shape function raises the operator's own error.
    """
    if hasattr(value, "dtype"):
        return value
    if dtype.kind in "iu" and value.__class__ is int and not 0 <= value < 128 and not holds(_dtype(dtype), value):
        raise OverflowError(f"{value} does not fit in {dtype}")
    if value.__class__ is float and dtype.kind == "f":
        return xp.asarray(value, dtype)
    return xp.asarray(value).astype(dtype)


def sign_of_zero(value: Any) -> float | None:
    """The sign of a float that is zero, 1.0 or -1.0; None for any other number. Zeros of both signs are equal, and one key."""
    return copysign(1.0, value) if value.__class__ is float and not value else None


def binary(xp: Any, ufunc: Call, allocates: str = SAME, refuses: str = "") -> Row:
    """A two-argument ufunc as a row. It also accepts Python numbers that do not fit in the array's dtype.

    Without `out` such a number raises; the caller's general path then calls again with `out`.
    """

    def kernel(self: Any, other: Any, out: Any = None) -> Any:
        if not is_half_beside_number(self, other, out):
            try:
                return ufunc(self, other, out)
            except (OverflowError, TypeError):
                if out is None:
                    raise
        return with_numbers(xp, ufunc, self, other, out)

    return Row(kernel, allocates, pointwise=True, accepts=Accepts(refuses), sizes=Sizes(simple=ufunc))


def is_bool(value: Any) -> bool:
    """Whether an array holds bools, or a number is one."""
    return bool(value.dtype.kind == "b") if hasattr(value, "dtype") else value.__class__ is bool


def is_half_beside_number(self: Any, other: Any, out: Any) -> bool:
    """Whether two-byte floats are computed from an array and a Python number, which array modules would round."""
    return out is not None and out.dtype.char in TWO_BYTES and not (hasattr(self, "dtype") and hasattr(other, "dtype"))


def with_numbers(xp: Any, ufunc: Call, self: Any, other: Any, out: Any) -> Any:
    """`ufunc` of arrays and Python numbers, all converted to the dtype of `out` first, or to float32 for two-byte floats."""
    dtype = xp.dtype("float32") if is_half_beside_number(self, other, out) else out.dtype
    return store(xp, out, ufunc(*[xp.asarray(value).astype(dtype, copy=False) for value in (self, other)]))
