"""float32 to float16 by integer arithmetic, which NumPy does in vectors; its own conversion goes element by element.

A float16 has its last digit at 2^(e - 10) for the exponent e of the number, and at 2^-24 where e is below -14. Adding 2^(e + 13)
to a float32 rounds it to that digit, half to even: the digits of the sum are then those of the result.
"""

from __future__ import annotations

from typing import Any

import numpy as np

# Elements at a time: with fewer, the calls cost more than a nearer cache saves (6.2 ms for 4 million, not 7.1).
BLOCK = 1 << 17
_WORD = np.uint32
# The bits of the least number that rounds to infinity, 65520; those of nan are above them, too.
_INFINITE = 0x477FF000
# The exponent of 2^-14, the least one of a normal float16, as an array: the maximum with a number is not vectorised.
_LEAST = np.full(BLOCK, 113 << 23, _WORD)


def to_float16(target: Any, source: Any) -> None:
    """Write float32 numbers into an array of float16; both are flat and contiguous."""
    for start in range(0, source.size, BLOCK):
        part = slice(start, start + BLOCK)
        _converted(target[part], source[part])


def _converted(target: Any, source: Any) -> None:
    bits = source.view(_WORD)
    size = bits & _WORD(0x7FFFFFFF)
    if int(np.maximum.reduce(size)) >= _INFINITE:
        np.copyto(target, source, casting="unsafe")
        return
    exponent = size & _WORD(0x7F800000)
    np.maximum(exponent, _LEAST[: size.size], out=exponent)
    exponent += _WORD(13 << 23)
    rounded = size.view(source.dtype)
    rounded += exponent.view(source.dtype)
    size -= exponent
    exponent >>= _WORD(13)
    size += exponent
    size -= _WORD((113 + 13) << 10)  # both exponents are as stored: 127 - 14 + 13
    sign = bits >> _WORD(16)
    sign &= _WORD(0x8000)
    size |= sign
    np.copyto(target.view(np.uint16), size, casting="unsafe")
