"""Random bits as a pure function of a seed and a counter: word i is a hash of (seed, offset + i).

The hash is SplitMix64's finaliser, applied twice with the seed in between: Steele, Lea, Flood, "Fast Splittable
Pseudorandom Number Generators" (2014). Only uint64 array arithmetic is used, so every array module gives the same
words.
"""

from __future__ import annotations

from typing import Any

_WORD = (1 << 64) - 1
_GAMMA = 0x9E3779B97F4A7C15
_FIRST, _SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def random_bits(xp: Any, shape: tuple[int, ...], seed: int, offset: int) -> Any:
    """A uint64 array of `shape`; element i in row-major order depends on `seed` and `offset + i` only."""
    count = 1
    for length in shape:
        count *= length
    key = mix_number((seed + _GAMMA) & _WORD)
    words = xp.arange(count, dtype=xp.uint64)
    words *= xp.uint64(_GAMMA)
    words += xp.uint64((key + (offset + 1) * _GAMMA) & _WORD)
    _mix(xp, words)
    words ^= xp.uint64(key)
    _mix(xp, words)
    return words.reshape(shape)


def _mix(xp: Any, words: Any) -> None:
    """The finaliser, in place."""
    words ^= words >> xp.uint64(30)
    words *= xp.uint64(_FIRST)
    words ^= words >> xp.uint64(27)
    words *= xp.uint64(_SECOND)
    words ^= words >> xp.uint64(31)


def mix_number(word: int) -> int:
    """The finaliser of one word."""
    word = ((word ^ word >> 30) * _FIRST) & _WORD
    word = ((word ^ word >> 27) * _SECOND) & _WORD
    return word ^ word >> 31
