"""Random bits as a pure function of a seed and a counter: word i is a hash of (seed, offset + i).

The hash is SplitMix64's finaliser, applied twice with the seed in between: Steele, Lea, Flood, "Fast Splittable
Pseudorandom Number Generators" (2014). Only uint64 array arithmetic is used, so every array module gives the same
words. C, CUDA C and OpenCL C have them from one text, `words.h`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from math import pi
from typing import Any

from turnout_aten.tensor.random import WORD

_GAMMA = 0x9E3779B97F4A7C15
_FIRST, _SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def random_bits(xp: Any, shape: tuple[int, ...], seed: int, offset: int) -> Any:
    """A uint64 array of `shape`; element i in row-major order depends on `seed` and `offset + i` only."""
    count = 1
    for length in shape:
        count *= length
    start, key = seed.start_of(offset) if seed.__class__ is TracedSeed else start_of(seed, offset)
    words = xp.arange(count, dtype=xp.uint64)
    words *= xp.uint64(_GAMMA)
    words += xp.uint64(start)
    for between in (key, None):  # the finaliser twice, in place
        words ^= words >> xp.uint64(30)
        words *= xp.uint64(_FIRST)
        words ^= words >> xp.uint64(27)
        words *= xp.uint64(_SECOND)
        words ^= words >> xp.uint64(31)
        if between is not None:
            words ^= xp.uint64(between)
    return words.reshape(shape)


def start_of(seed: int, offset: int) -> tuple[int, int]:
    """What kernels of other languages need for `random_bits`: the word at an offset before it is hashed, whose neighbours are the
    golden ratio of 2**64 apart, and what the finaliser's two applications have between them."""
    key = key_of(seed)
    return (key + (offset + 1) * _GAMMA) & WORD, key


def signed(word: int) -> int:
    """The int64 with the bits of a word, as kernels take it."""
    return word - (1 << 64) if word >> 63 else word


class TracedSeed(int):
    """A seed that nobody knows yet, for a generator in a program that an array module traces: (0, offset) are words of it.

    start, key  what `start_of` gives for the seed and the place where the program begins to draw, as uint64 values of the module.
                The offset counts from that place
    """

    start: Any
    key: Any

    def start_of(self, offset: int) -> tuple[Any, Any]:
        """The same for the place behind so many words."""
        step = (offset * _GAMMA) & WORD
        return self.start + self.start.dtype.type(step), self.key


@lru_cache(64)
def key_of(seed: int) -> int:
    """A seed, hashed by the finaliser."""
    word = (seed + _GAMMA) & WORD
    word = ((word ^ word >> 30) * _FIRST) & WORD
    word = ((word ^ word >> 27) * _SECOND) & WORD
    return word ^ word >> 31


@cache
def words_source() -> str:
    """The same words in the manner of C, for programs of devices: see the head of `words.h`."""
    from importlib.resources import files  # a program that has no such device does without: it loads tempfile and more

    return files("turnout_arrays").joinpath("words.h").read_text(encoding="utf-8")


FACTORS = 1.0, -2.0, 2 * pi


def normal_of(xp: Any, both: Any, factors: Sequence[Any] = FACTORS) -> Any:
    """Standard normal numbers from two arrays of uniform ones in [0, 1), which are overwritten: sqrt(-2 ln(1 - u)) cos(2 pi v).

    `factors` are `FACTORS`, or arrays of these, which take an array module half as long.
    """
    one, minus_two, circle = factors
    made, turn = both if both.ndim > 1 else (both[0, ...], both[1, ...])
    xp.subtract(one, made, made)  # in (0, 1], where the logarithm is finite
    xp.log(made, made)
    xp.multiply(made, minus_two, made)
    xp.sqrt(made, made)
    xp.multiply(turn, circle, turn)
    xp.cos(turn, turn)
    return xp.multiply(made, turn) if made.shape else xp.multiply(made, turn, xp.empty((), made.dtype))
