"""Padding, and interpolation along one dim after the other: the taps and weights are those of `turnout_arrays.images`."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from turnout.dtypes import FLOAT, float32, float64, int64
from turnout_arrays.images import MODES, is_aligned, taps
from turnout_aten.kernels.rows import Row
from turnout_opencl.arrays import ClArray, new_array
from turnout_opencl.backend import copy, fill, row_major_of
from turnout_opencl.grids import raw
from turnout_opencl.pointwise import run_map

Taps = tuple[Any, Any]


def constant_pad(self: ClArray, pad: Any, value: Any, out: ClArray) -> None:
    """The array between elements of one value; negative padding takes elements away."""
    inside, source = out, self
    for i in range(len(pad) // 2):
        before, after, dim = pad[2 * i], pad[2 * i + 1], len(self.shape) - 1 - i
        inside = _part(inside, dim, max(before, 0), inside.shape[dim] - max(after, 0))
        source = _part(source, dim, max(-before, 0), source.shape[dim] - max(-after, 0))
    fill(out, value)
    if inside.size:
        copy(inside, source)


def _part(array: ClArray, dim: int, start: int, end: int) -> ClArray:
    shape = (*array.shape[:dim], max(end - start, 0), *array.shape[dim + 1 :])
    return array.view(shape, array.strides, start * array.strides[dim])


# ---- interpolation


def weigh(array: ClArray, dim: int, found: Taps) -> ClArray:
    """The weighted sums of a row-major array along one dim."""
    indices, weights = found
    place, (count, width) = array.place, indices.shape
    made = new_array(place, (*array.shape[:dim], count, *array.shape[dim + 1 :]), array.dtype)
    if not made.size:
        return made
    at, by = new_array(place, indices.shape, int64), new_array(place, indices.shape, array.dtype)
    place.copy_in(at.buffer, np.ascontiguousarray(indices, np.int64))
    place.copy_in(by.buffer, np.ascontiguousarray(weights, array.dtype.name))
    sizes = (prod(array.shape[:dim]), count, prod(array.shape[dim + 1 :]))
    call = raw(0, made.size, sizes, (), (0, array.offset), extra=(array.shape[dim], width))
    place.start("weigh", array.dtype, "weigh", call, (made.buffer, array.buffer, at.buffer, by.buffer), made.size)
    return made


def turned(found: Taps, length: int) -> Taps:
    """The transposed weights: for each element, the results that it is part of, -1 where there are fewer."""
    indices, weights = found
    rows: list[list[tuple[int, float]]] = [[] for _ in range(length)]
    for result, (places, factors) in enumerate(zip(indices.tolist(), weights.tolist(), strict=True)):
        for place, factor in zip(places, factors, strict=True):
            rows[place].append((result, factor))
    width = max(1, *map(len, rows))
    made = np.full((length, width), -1, np.int64), np.zeros((length, width), weights.dtype)
    for place, row in enumerate(rows):
        for i, (result, factor) in enumerate(row):
            made[0][place, i], made[1][place, i] = result, factor
    return made


def along_dims(
    mode: str, ndim: int, given: ClArray, lengths: Any, counts: Any, options: Any, out: ClArray, *, back: bool
) -> None:
    """Interpolate from `lengths` to `counts`, or give gradients `back`, the last dim first."""
    dtype = float64 if out.dtype is float64 else float32
    align = is_aligned(mode, options)
    value = row_major_of(given, dtype)
    for dim in range(ndim - 1, -1, -1):
        indices, weights = taps(np, mode, np.dtype(dtype.name).type, lengths[dim], counts[dim], align, options[dim - ndim])
        found = indices, np.ones(indices.shape, dtype.name) if weights is None else weights
        value = weigh(value, dim + 2, turned(found, lengths[dim]) if back else found)
    if out.dtype.category < FLOAT:
        value = run_map("floor", new_array(value.place, value.shape, dtype), run_map("plus", value, value, 0.5))
        value = run_map("clamp", value, value, 0, 255)
    copy(out, value)


def upsample(mode: str, ndim: int) -> Any:
    """The kernel for a mode and a number of dims."""

    def kernel(self: ClArray, output_size: Any, *rest: Any) -> None:
        *options, out = rest
        along_dims(mode, ndim, self, self.shape[2:], out.shape[2:], options, out, back=False)

    return kernel


def upsample_backward(mode: str, ndim: int) -> Any:
    """The kernel for a mode and a number of dims."""

    def kernel(grad_output: ClArray, output_size: Any, input_size: Any, *rest: Any) -> None:
        *options, out = rest
        along_dims(mode, ndim, grad_output, out.shape[2:], grad_output.shape[2:], options, out, back=True)

    return kernel


# fmt: off
KERNELS = {
    "constant_pad_nd.out": Row(constant_pad),
    **{f"{name}.out": Row(upsample(*mode)) for name, mode in MODES.items()},
    **{f"{name}_backward.grad_input": Row(upsample_backward(*mode)) for name, mode in MODES.items()},
}
# fmt: on
