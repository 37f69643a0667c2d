"""Two-byte floats by integer arithmetic, which NumPy does in vectors; its own conversions go element by element.

A float16 has its last digit at 2^(e - 10) for the exponent e of the number, and at 2^-24 where e is below -14. Adding 2^(e + 13)
to a float32 rounds it to that digit, half to even: the digits of the sum are then those of the result. A bfloat16 is the upper
half of a float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np

# Elements at a time: with fewer, the calls cost more than a nearer cache saves (4.7 ms for 4 million; 6.5 with a quarter of it).
BLOCK = 1 << 17
# Up to this many bfloat16, the calls would cost more than they save.
SMALL = 1 << 15
_WORD = np.uint32
# The bits of the least number that rounds to infinity, 65520; those of nan are above them, too.
_INFINITE = 0x477FF000
# To an exponent, to get the power that is added. Its last digits take the exponents away again of what is added later; they are
# as stored, so 127 - 14 + 13.
_ADDED = _WORD((13 << 23) + (-((113 + 13) << 10) & 0xFFFF))
# The exponent of 2^-14, the least one of a normal float16, as an array: the maximum with a number is not vectorised.
_LEAST = np.full(BLOCK, 113 << 23, _WORD)


def to_float16(target: Any, source: Any) -> None:
    """Write float32 numbers into an array of float16; both are flat and contiguous."""
    room = np.empty((2, min(BLOCK, source.size)), _WORD)
    for start in range(0, source.size, BLOCK):
        part = slice(start, start + BLOCK)
        _converted(target[part], source[part], room)


def _converted(target: Any, source: Any, room: Any) -> None:
    bits, (made, exponent) = source.view(_WORD), room[:, : source.size]
    np.bitwise_and(bits, _WORD(0x7FFFFFFF), made)
    if int(np.maximum.reduce(made)) >= _INFINITE:
        np.copyto(target, source, casting="unsafe")
        return
    np.bitwise_and(made, _WORD(0x7F800000), exponent)
    np.maximum(exponent, _LEAST[: source.size], out=exponent)
    np.add(exponent, _ADDED, exponent)
    number = made.view(source.dtype)
    np.add(number, exponent.view(source.dtype), number)
    # From here on the lower 16 bits count.
    np.right_shift(exponent, _WORD(13), exponent)
    np.add(made, exponent, made)
    sign = exponent
    np.right_shift(bits, _WORD(16), sign)
    np.bitwise_and(sign, _WORD(0x8000), sign)
    np.add(made, sign, made)
    np.copyto(target.view(np.uint16), made, casting="unsafe")


def apply(ufunc: Any, self: Any, other: Any, out: Any) -> Any:
    """A ufunc of two arrays of bfloat16, in float32 and rounded once, into `out` or a new array. None where this is not served:
    where the arrays are not row-major and of one shape, or so few that NumPy is as fast."""
    if self.size <= SMALL or other.__class__ is not np.ndarray or other.dtype is not self.dtype or other.shape != self.shape:
        return None
    made = np.empty(self.shape, self.dtype) if out is None else out
    if made.dtype is not self.dtype or made.shape != self.shape:
        return None
    if not (self.flags.c_contiguous and other.flags.c_contiguous and made.flags.c_contiguous):
        return None
    left, right, target = (a.reshape(-1).view(np.uint16) for a in (self, other, made))
    room = np.empty((2, min(BLOCK, left.size)), _WORD)
    for start in range(0, left.size, BLOCK):
        part = slice(start, start + BLOCK)
        words, more = room[:, : left[part].size]
        _widened(words, left[part])
        _widened(more, right[part])
        ufunc(words.view(np.float32), more.view(np.float32), words.view(np.float32))
        _narrowed(target[part], words, more)
    return made


def _widened(words: Any, halves: Any) -> None:
    np.copyto(words, halves)
    np.left_shift(words, _WORD(16), words)


def _narrowed(halves: Any, words: Any, room: Any) -> None:
    """Round to nearest, half to even. The lower half of a nan that comes from bfloat16 is 0, so it does not become infinite."""
    np.right_shift(words, _WORD(16), room)
    np.bitwise_and(room, _WORD(1), room)
    np.add(room, _WORD(0x7FFF), room)
    np.add(words, room, words)
    np.right_shift(words, _WORD(16), words)
    np.copyto(halves, words, casting="unsafe")
