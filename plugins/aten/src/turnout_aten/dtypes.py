"""Which dtypes go together: the lattice that promotes them, what may be cast to what, and which numbers a dtype holds.

Promotion is by category (bool, integer, float, complex), and within a category by the rules below. Source of the rules:
PyTorch's documented type promotion, checked pair by pair against `torch.promote_types`.
"""

from __future__ import annotations

from turnout.dtypes import (
    BOOL,
    COMPLEX,
    DTYPES,
    FLOAT,
    INT,
    DType,
    bfloat16,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    uint8,
    uint16,
    uint32,
    uint64,
)
from turnout.errors import DTypeError, RangeError
from turnout.errors import calls as texts
from turnout.operators.values import is_symbol
from turnout_aten.errors.tensors import does_not_fit

# No dtype can hold the values of one of these and of another integer dtype.
WIDE_UNSIGNED = (uint16, uint32, uint64)


def promote_types(a: DType, b: DType) -> DType:
    """The smallest dtype that both convert to without changing category downwards.

    Raises DTypeError for uint16, uint32 and uint64 with another integer, bool or complex dtype, which PyTorch leaves
    undefined as well.

    Arguments:
        a: the first dtype
        b: the second dtype

    Example:
        >>> turnout.promote_types(turnout.int32, turnout.float32)
        turnout.float32
    """
    if a is b:
        return a
    try:
        low, high = (a, b) if a.category <= b.category else (b, a)
    except AttributeError:
        raise DTypeError(f"promote_types: expected two dtypes, got {a!r} and {b!r}") from None
    if low in WIDE_UNSIGNED or high in WIDE_UNSIGNED:
        if high.category == FLOAT:
            return high
        raise DTypeError(f"{a.name} and {b.name} have no common dtype: unsigned integers wider than 8 bits mix with floats only")
    if low.category != high.category:
        if high is complex64 and low is float64:
            return complex128
        return high
    if low.category == INT:
        if low is uint8 or high is uint8:
            signed = high if low is uint8 else low
            return int16 if signed is int8 else signed
        return low if low.itemsize > high.itemsize else high
    if low.category == FLOAT and low.itemsize == high.itemsize:
        return float32  # float16 with bfloat16: neither holds the other
    return low if low.itemsize > high.itemsize else high


def can_cast(from_: DType, to: DType) -> bool:
    """Whether a result of one dtype may be written into another: never into one of a lower category.

    Categories are ordered bool, integer, floating point, complex.

    Arguments:
        from_: the dtype of the result
        to: the dtype that it is written into

    Example:
        >>> turnout.can_cast(turnout.float64, turnout.int64), turnout.can_cast(turnout.int64, turnout.int8)
        (False, True)
    """
    try:
        return from_.category <= to.category
    except AttributeError:
        name, wrong = ("to", to) if isinstance(from_, DType) else ("from_", from_)
        raise DTypeError(texts.wrong_type("can_cast", name, texts.A_DTYPE, wrong)) from None


# Bits of the fraction and of the exponent of the floating-point dtypes (IEEE 754), and what follows from them: the distance from
# 1 to the next number, the largest number, the bits of the largest range of integers that are all held.
FORMATS = {float16: (10, 5), bfloat16: (7, 8), float32: (23, 8), float64: (52, 11)}
EPSILON = {dtype: 2.0**-fraction for dtype, (fraction, _) in FORMATS.items()}
EPSILON |= {dtype: EPSILON[dtype.to_real()] for dtype in (complex64, complex128)}  # of the parts
LARGEST = {dtype: (2.0 - EPSILON[dtype]) * 2.0 ** (2 ** (exponent - 1) - 1) for dtype, (_, exponent) in FORMATS.items()}
PRECISION = {dtype: fraction + 1 for dtype, (fraction, _) in FORMATS.items()}
# What several steps are computed in, to be rounded once: at least float32 for floats, float64 for bools and integers.
WIDE = {each: float64 if each.category < FLOAT else float32 if each.itemsize == 2 else each for each in DTYPES.values()}
_LEAST = min(LARGEST.values())
# Between the negative of this and it, a number is one of every float dtype of four bytes or more.
BOUND = 1e38


def int_range(dtype: DType) -> tuple[int, int]:
    """The smallest and largest number of an integer dtype."""
    bits = 8 * dtype.itemsize - dtype.is_signed
    return (-(1 << bits) if dtype.is_signed else 0), (1 << bits) - 1


def value_range(dtype: DType) -> tuple[float, float]:
    """The lowest and the highest value of a dtype, with which a search for extremes begins. Those of floats are infinite."""
    if dtype.category >= FLOAT:
        return float("-inf"), float("inf")
    return (False, True) if dtype.category == BOOL else int_range(dtype)


def holds(dtype: DType, value: bool | int | float | complex) -> bool:
    """Whether a number converts to a dtype, with PyTorch's rule.

    bool takes every number. An integer dtype takes numbers in its range, fractions cut off; an unsigned one also the negative
    of each of its ints, modulo 2 ** bits. A floating-point dtype takes its range, infinities and NaN, a complex one such parts.
    """
    if isinstance(value, complex):
        if dtype.category != COMPLEX:
            return not value.imag and holds(dtype, value.real)
        return holds(dtype, value.real) and holds(dtype, value.imag)
    if dtype.category == INT:
        low, high = int_range(dtype)
        if low == 0 and isinstance(value, int):
            low = -high
        return low <= value <= high  # not for NaN
    limit = LARGEST.get(dtype.to_real())
    if limit is None or (isinstance(value, float) and value - value != 0):
        return True
    return -limit <= value <= limit


def check_held(dtype: DType, value: bool | int | float | complex, name: str, argument: str) -> None:
    """Raise RangeError, which names the operator and the argument, unless the dtype holds the number."""
    if value.__class__ is int and 0 <= value < 128:  # the usual ones, in every dtype
        return
    if value.__class__ is float and dtype.category == FLOAT and -_LEAST <= value <= _LEAST:
        return
    if not is_symbol(value) and not holds(dtype, value):
        real = dtype.to_real()
        low, high = int_range(dtype) if dtype.category == INT else (-LARGEST[real], LARGEST[real])
        raise RangeError(does_not_fit(name, argument, value, dtype.name, low, high))
