"""`finfo` and `iinfo`: the limits of number types, computed from their bit layout (IEEE 754)."""

from __future__ import annotations

import math

from turnout.dtypes import INT, DType, get_default_dtype
from turnout.errors import DTypeError
from turnout_aten.dtypes import EPSILON, FORMATS, LARGEST


class finfo:
    """The limits of a floating-point dtype, or of the parts of a complex dtype. Without an argument: of the default dtype.

    bits             the number of bits
    eps              the distance from 1.0 to the next number
    max, min         the largest number and its negative
    smallest_normal  the smallest positive number with full precision; `tiny` is its older name
    resolution       10 ** -n, where n is how many decimal digits are kept
    dtype            the real dtype

    # differs from torch: `finfo(...).dtype` is a dtype, as in the array API standard; PyTorch has its name.

    Raises DTypeError for an integer dtype or bool.
    """

    __slots__ = ("bits", "dtype", "eps", "max", "min", "resolution", "smallest_normal")

    smallest_normal: float

    def __init__(self, dtype: DType | None = None) -> None:
        wanted = get_default_dtype() if dtype is None else dtype
        found = FORMATS.get(wanted.to_real()) if isinstance(wanted, DType) else None
        if found is None:
            raise DTypeError(f"finfo: needs a floating-point or complex dtype, got {wanted!r}; use iinfo for integers")
        fraction, exponent = found
        self.dtype = wanted.to_real()
        self.bits = 8 * self.dtype.itemsize
        self.eps = EPSILON[self.dtype]
        self.max = LARGEST[self.dtype]
        self.min = -self.max
        self.smallest_normal = 2.0 ** (2 - 2 ** (exponent - 1))
        self.resolution = float(f"1e-{math.floor(fraction * math.log10(2)):d}")

    @property
    def tiny(self) -> float:
        """The older name of `smallest_normal`."""
        return self.smallest_normal

    def __repr__(self) -> str:
        shown = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        return f"finfo({', '.join(f'{n}={getattr(self, n):g}' for n in shown)}, dtype={self.dtype.name})"


class iinfo:
    """The limits of an integer dtype: `bits`, `min`, `max` and the `dtype` itself. Raises DTypeError for any other."""

    __slots__ = ("bits", "dtype", "max", "min")

    def __init__(self, dtype: DType) -> None:
        if not isinstance(dtype, DType) or dtype.category != INT:
            raise DTypeError(f"iinfo: needs an integer dtype, got {dtype!r}; use finfo for floating-point dtypes")
        self.dtype = dtype
        self.bits = 8 * dtype.itemsize
        self.max = 2 ** (self.bits - dtype.is_signed) - 1
        self.min = -self.max - 1 if dtype.is_signed else 0

    def __repr__(self) -> str:
        # differs from torch: `iinfo` prints its limits in full; PyTorch rounds them to 6 digits.
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype.name})"
