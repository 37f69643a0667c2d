"""Rows of random operators. Integers, uniform numbers and what is dropped are those of turnout-cpu; normal numbers agree to a few
ulp."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from turnout.dtypes import float32, get_default_dtype, int64
from turnout_arrays.random import FACTORS, key_of, normal_of, signed
from turnout_aten.kernels.rows import Row
from turnout_aten.tensor.random import SPAN, default_generator
from turnout_kernels import _native
from turnout_kernels.few import compiled
from turnout_kernels.native import F32, GRAIN, NUMBER_OF, parts_of, plain, run

# Fewer normal numbers are made by turnout-cpu, so that small tensors are the same on every device to the last bit.
_FEW = 1 << 14
# And of them, so few are made from uniform numbers at once.
_SOME = 1 << 11
_FACTORS = tuple(np.asarray(factor, np.float32) for factor in FACTORS)
_FROM_0_TO_1 = 1.0, 0.0


def _source(generator: Any, device: Any, counts: int, draws: int = 1) -> tuple[int, ...]:
    """(key, offset of each draw), reserved from the generator."""
    source = default_generator(device) if generator is None else generator
    seed, offset = source.reserve(counts)
    if draws == 1:
        return _key(seed), signed(offset) if offset >> 63 else offset
    offsets = [signed(offset)]
    for _ in range(draws - 1):
        seed, offset = source.reserve(counts)
        offsets.append(signed(offset))
    return (_key(seed), *offsets)


@lru_cache(16)
def _key(seed: int) -> int:
    """What the kernels take as the seed."""
    return signed(key_of(seed))


def drawn(name: str, draws: int, *, with_generator: bool, few: int = 0) -> Row:
    """rand or randn. Of normal numbers, up to `few` are made by the steps of turnout-cpu."""

    own, uniform = NUMBER_OF[name], NUMBER_OF["uniform"]

    def kernel(size: Sequence[int], generator: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Any:
        count = 1
        for length in size:
            count *= length if length > 0 else 0
        if pin_memory or (dtype or get_default_dtype()) is not float32 or not count:
            return NotImplemented
        if count > few:
            out = np.empty(tuple(size), np.float32)
            if count <= GRAIN and draws == 1:  # without two frames
                _native.run(own, (out,), (), (F32, *_source(generator, device or "cpu", count)), _FROM_0_TO_1, 1, 1)
            else:
                source = _source(generator, device or "cpu", count, draws)
                run(name, (out,), (), (F32, *source), _FROM_0_TO_1, parts=parts_of(count))
            return out
        if count > _SOME:
            return NotImplemented
        both = np.empty((2, *size), np.float32)
        _native.run(uniform, (both,), (), (F32, *_source(generator, device or "cpu", 2 * count)), _FROM_0_TO_1, 1, 1)
        return normal_of(np, both, _FACTORS)

    if with_generator:
        return Row(kernel, quiet=True)
    return Row(lambda size, *options: kernel(size, None, *options), quiet=True, program=compiled(name))


def integers(*, with_low: bool, with_generator: bool) -> Row:
    """randint of int64, of so many integers that turnout-cpu takes the remainder of 63 bits, too."""

    def kernel(*args: Any) -> Any:
        low, args = (args[0], args[1:]) if with_low else (0, args)
        high, size, args = args[0], args[1], args[2:]
        generator, args = (args[0], args[1:]) if with_generator else (None, args)
        dtype, _, device, pin_memory = args
        count = prod(size) if all(n > 0 for n in size) else 0
        fits = low < high <= low + SPAN and low >= -(1 << 63) and high <= 1 << 63
        if not count or not fits or pin_memory or (dtype is not None and dtype is not int64):
            return NotImplemented
        out = np.empty(tuple(size), np.int64)
        source = _source(generator, device or "cpu", count, 1)
        run("integers", (out,), (), (F32, *source, high - low, low), parts=parts_of(count))
        return out

    return Row(kernel)


def native_dropout(input: Any, p: float, train: Any) -> Any:
    if train is False or not 0 <= p < 1 or not input.size or input.dtype.char != "f" or not plain(input):
        return NotImplemented
    made, kept = np.empty(input.shape, input.dtype), np.empty(input.shape, np.bool_)
    ints = (F32, *_source(None, "cpu", input.size, 1))
    run("dropout", (made, kept), (input,), ints, (1 - p, 1 / (1 - p)))
    return made, kept


# fmt: off
KERNELS: dict[str, Any] = {
    "rand":            drawn("uniform", 1, with_generator=False),
    "rand.generator":  drawn("uniform", 1, with_generator=True),
    "randn":           drawn("normal", 2, with_generator=False, few=_FEW),
    "randn.generator": drawn("normal", 2, with_generator=True, few=_FEW),
    "randint":               integers(with_low=False, with_generator=False),
    "randint.generator":     integers(with_low=False, with_generator=True),
    "randint.low":           integers(with_low=True, with_generator=False),
    "randint.low_generator": integers(with_low=True, with_generator=True),
    "native_dropout":  Row(native_dropout),
}
# fmt: on
