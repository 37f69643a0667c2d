"""Two-byte floats by integer arithmetic, which NumPy does in vectors; its own conversions go element by element.

A float16 has its last digit at 2^(e - 10) for the exponent e of the number, and at 2^-24 where e is below -14. Adding 2^(e + 13)
to a float32 rounds it to that digit, half to even. The digits of the sum are then those of the result, and its exponent is that
of the number and 13 more: one product of integers moves both to where they belong in the upper half of a word. A bfloat16 is the
upper half of a float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np

# Elements at a time: with fewer, the calls cost more than a nearer cache saves.
BLOCK = 1 << 19
# Bytes of a line of the cache. Vectors that lie across two of them take a tenth more time in all.
LINE = 64
# Up to this many bfloat16, the calls would cost more than they save.
SMALL = 1 << 15
_WORD = np.uint32
# Arrays without dims: numbers would be converted in each call.
_EXPONENT, _SIGN, _HALF = (np.array(n, _WORD) for n in (0x7F800000, 0x80000000, 16))
# The bits of the least number that rounds to infinity, 65520; those of nan are above them, too.
_INFINITE = 0x477FF000
# The exponents of 2^-14, the least one of a normal float16, and of infinity. `clip` with numbers is vectorised, `maximum` is not.
_LEAST, _MOST = _WORD(113 << 23), _WORD(0x7F800000)
# To an exponent, to get the power that is added. For an exponent stored as n, that of the sum is stored as n + 13; with the last
# digits of this number, times 2^16, it becomes n - 113: what a float16 stores, less 1 for the first digit of the sum.
_ADDED = np.array((13 << 23) + (2 << 10), _WORD)
# Times 2^16 for the digits, times 2^3 for the exponent.
_PLACED = np.array((1 << 16) + (1 << 3), _WORD)


def _rows_of_words(count: int) -> Any:
    """Two rows of at least that many words, each of which begins a line of the cache."""
    size = -(-count * 4 // LINE) * LINE
    memory = np.empty(2 * size + LINE, np.uint8)
    first = -memory.__array_interface__["data"][0] % LINE
    return memory[first : first + 2 * size].view(_WORD).reshape(2, -1)


def to_float16(target: Any, source: Any) -> None:
    """Write float32 numbers into an array of float16; both are flat and contiguous."""
    room = _rows_of_words(min(BLOCK, source.size))
    for start in range(0, source.size, BLOCK):
        part = slice(start, start + BLOCK)
        _converted(target[part], source[part], room)


def _converted(target: Any, source: Any, room: Any) -> None:
    made, other = room[:, : source.size]
    number, power = made.view(source.dtype), other.view(source.dtype)
    np.absolute(source, number)
    if int(np.maximum.reduce(made)) >= _INFINITE:
        np.copyto(target, source, casting="unsafe")
        return
    np.clip(made, _LEAST, _MOST, other)
    np.bitwise_and(other, _EXPONENT, other)
    np.add(other, _ADDED, other)
    np.add(number, power, number)
    np.multiply(made, _PLACED, made)
    np.bitwise_and(source.view(_WORD), _SIGN, other)
    np.bitwise_or(made, other, made)
    np.right_shift(made, _HALF, made)
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
    room = _rows_of_words(min(BLOCK, left.size))
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
