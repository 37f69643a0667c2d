"""Layer and group normalisation: rows to mean 0 and variance 1, then scale and shift by channel."""

from __future__ import annotations

from math import prod
from typing import Any

from turnout_aten.kernels.rows import Row
from turnout_opencl.arrays import ClArray, memory_of, new_array
from turnout_opencl.backend import copy, row_major_of
from turnout_opencl.grids import raw
from turnout_opencl.programs import TYPES


def rows(
    given: ClArray, weight: ClArray | None, bias: ClArray | None, eps: float, extra: tuple[int, ...], out: ClArray,
    mean: ClArray, rstd: ClArray,
) -> None:  # fmt: skip
    """Queue the kernel for all rows; `extra` is as the template says."""
    place, dtype = out.place, out.dtype
    source = row_major_of(given, dtype)
    scale, shift = (None if p is None else row_major_of(p, dtype) for p in (weight, bias))
    made = out if out.is_contiguous else new_array(place, out.shape, dtype)
    means, factors = new_array(place, mean.shape, dtype), new_array(place, mean.shape, dtype)
    bases, buffers = memory_of(made, source, scale, shift)
    call = raw(0, mean.size, (), (), bases, (TYPES[dtype].bits(eps, place.double),), extra)
    place.start("normalise", dtype, "normalise", call, (*buffers, means.buffer, factors.buffer), mean.size)
    copy(out, made)
    copy(mean, means)
    copy(rstd, factors)


def layer_norm(
    input: ClArray, normalized_shape: Any, weight: ClArray | None, bias: ClArray | None, eps: float, out: ClArray,
    mean: ClArray, rstd: ClArray,
) -> None:  # fmt: skip
    """Over the last dims; each element has a weight of its own."""
    length = prod(normalized_shape)
    rows(input, weight, bias, eps, (length, 1, length, 1), out, mean, rstd)


def group_norm(
    input: ClArray, weight: ClArray | None, bias: ClArray | None, n: int, c: int, area: int, group: int, eps: float, out: ClArray,
    mean: ClArray, rstd: ClArray,
) -> None:  # fmt: skip
    """Over the channels of each group; a channel has one weight."""
    channels = c // group
    rows(input, weight, bias, eps, (channels * area, max(area, 1), channels, group), out, mean, rstd)


# fmt: off
KERNELS = {
    "native_layer_norm.out": Row(layer_norm),
    "native_group_norm.out": Row(group_norm),
}
# fmt: on
