"""Which dtypes go together: the lattice that promotes them, and what may be cast to what.

Promotion is by category (bool, integer, float, complex), and within a category by the rules below. Source of the rules:
PyTorch's documented type promotion, checked pair by pair against `torch.promote_types`.
"""

from __future__ import annotations

from turnout.dtypes import (
    FLOAT,
    INT,
    DType,
    complex64,
    complex128,
    float32,
    float64,
    int8,
    int16,
    uint8,
    uint16,
    uint32,
    uint64,
)
from turnout.errors import DTypeError

_WIDE_UNSIGNED = (uint16, uint32, uint64)


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
    low, high = (a, b) if a.category <= b.category else (b, a)
    if low in _WIDE_UNSIGNED or high in _WIDE_UNSIGNED:
        if high.category == FLOAT:
            return high
        raise DTypeError(
            f"{a.name} and {b.name} have no common dtype: unsigned integers wider than 8 bits mix with floats only"
        )
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


def can_cast(source: DType, target: DType) -> bool:
    """Whether a result of dtype `source` may be written into `target`: never to a lower category.

    Categories are ordered bool, integer, floating point, complex; an unsigned target takes no signed source unless
    both are integers (PyTorch's `can_cast`).
    """
    return source.category <= target.category
