"""Convolutions of images of one to three dims: directly, or as products with windows in columns. All are of three dims inside."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from turnout_aten.kernels.wrapping import Row
from turnout_opencl.arrays import ClArray, new_array
from turnout_opencl.backend import copy, row_major_of
from turnout_opencl.grids import raw
from turnout_opencl.matrices import PANEL_ROWS, Panels, multiply, new_panels, pack, panel_columns, product
from turnout_opencl.pointwise import dense

Ints = tuple[int, ...]

_FEW = 16  # elements of a window, or channels of results per group times four, below which columns do not pay
_SHARED, _ACROSS = 16, 16  # channels, and results in a line, of a work-item, as in the template
_ROOM = 1 << 21  # elements of the columns of the images that are multiplied at once


def three(value: Sequence[int], ndim: int, fill: int) -> Ints:
    """A parameter for each of three dims; leading dims that are not there get `fill`."""
    given = tuple(value) * (ndim if len(value) == 1 else 1)
    return (*(fill,) * (3 - ndim), *given)


def image(array: ClArray, ndim: int) -> ClArray:
    """An array (a, b, *dims) with three spatial dims."""
    missing = 3 - ndim
    shape = (*array.shape[:2], *(1,) * missing, *array.shape[2:])
    return array.view(shape, (*array.strides[:2], *(0,) * missing, *array.strides[2:]), 0)


class Windows:
    """Kernel, stride, padding and dilation along three dims."""

    def __init__(self, kernel: Sequence[int], stride: Any, padding: Any, dilation: Any, ndim: int) -> None:
        self.kernel = three(kernel, ndim, 1)
        self.steps = (three(stride, ndim, 1), three(padding, ndim, 0), three(dilation, ndim, 1))

    def columns(self, x: ClArray, counts: Ints) -> ClArray:
        """(images, channels * kernel, positions): what stands under each window of x, 0 outside of it."""
        made = new_array(x.place, (x.shape[0], x.shape[1] * prod(self.kernel), prod(counts)), x.dtype)
        call = raw(
            0, made.size, (x.shape[0], *counts), ((), x.strides), (0, x.offset),
            inner_sizes=(x.shape[1], *self.kernel, *x.shape[2:], 1), inner_steps=self.steps,
        )  # fmt: skip
        x.place.start("convolve", x.dtype, "columns", call, (made.buffer, x.buffer), made.size)
        return made

    def panels(self, x: ClArray, counts: Ints) -> Panels:
        """What stands under each window of x in panels of positions, as `multiply` takes columns."""
        made = new_panels(x, x.shape[0], prod(counts), x.shape[1] * prod(self.kernel), panel_columns(x))
        call = raw(
            0, x.shape[0], (x.shape[0], *counts), ((), x.strides), (0, x.offset),
            inner_sizes=(x.shape[1], *self.kernel, *x.shape[2:], 1), inner_steps=self.steps,
        )  # fmt: skip
        grid = (made.array.shape[1], -(-x.shape[1] // _SHARED), x.shape[0])
        x.place.start_grid("convolve", x.dtype, "panels", call, (made.array.buffer, x.buffer), grid, (1, 1, 1))
        return made

    def fold(self, columns: ClArray, counts: Ints, out: ClArray, bias: ClArray | None) -> None:
        """The adjoint of `columns`, into `out`, plus the bias of each channel."""
        call = raw(
            0, out.size, out.shape, (out.strides, columns.strides, (), () if bias is None else bias.strides),
            (out.offset, columns.offset, 0, 0 if bias is None else bias.offset),
            inner_sizes=(out.shape[1], *self.kernel, *counts, 1), inner_steps=self.steps,
        )  # fmt: skip
        buffers = (out.buffer, columns.buffer, None if bias is None else bias.buffer)
        out.place.start("convolve", out.dtype, "fold", call, buffers, out.size)


def convolution(
    input: ClArray, weight: ClArray, bias: ClArray | None, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: int, out: ClArray,
) -> None:  # fmt: skip
    """The convolution of (images, channels, *dims), or its transpose."""
    if not out.size:
        return
    ndim = len(input.shape) - 2
    windows = Windows(weight.shape[2:], stride, padding, dilation, ndim)
    x, w = image(input, ndim), image(dense(weight, input.dtype), ndim)
    b = None if bias is None else dense(bias, input.dtype)
    made = out if out.is_contiguous and out.dtype is input.dtype else new_array(out.place, out.shape, input.dtype)
    target = image(made, ndim)
    per_group = x.shape[1] // groups, target.shape[1] // groups
    depth = per_group[0] * (1 if transposed else prod(windows.kernel))
    if depth >= _FEW and per_group[1] * 4 >= _FEW and x.size:
        run = _transposed_product if transposed else _product
        run(windows, x, row_major_of(w), b, target, groups)
    else:
        _direct(windows, x, w, b, target, per_group, transposed)
    if made is not out:
        copy(out, made)


def _direct(
    windows: Windows, x: ClArray, w: ClArray, bias: ClArray | None, out: ClArray, per_group: Ints, transposed: bool
) -> None:
    length = out.shape[-1]
    in_lines = length * 2 >= _ACROSS and not (transposed and windows.steps[0][2] != 1)
    items = out.size // length * -(-length // _ACROSS) if in_lines else out.size
    call = raw(
        int(transposed), items, out.shape, (out.strides, x.strides, w.strides, () if bias is None else bias.strides),
        (out.offset, x.offset, w.offset, 0 if bias is None else bias.offset),
        inner_sizes=(per_group[0], *windows.kernel, *x.shape[2:], per_group[1]), inner_steps=windows.steps,
    )  # fmt: skip
    buffers = (out.buffer, x.buffer, w.buffer, None if bias is None else bias.buffer)
    out.place.start("convolve", out.dtype, "lines" if in_lines else "convolve", call, buffers, items)


def channels(array: ClArray, group: int, count: int) -> ClArray:
    """The channels of one group, `count` each."""
    shape = (array.shape[0], count, *array.shape[2:])
    return array.view(shape, array.strides, group * count * array.strides[1])


def some(array: ClArray, first: int, count: int) -> ClArray:
    """Some of the images."""
    return array.view((min(count, array.shape[0] - first), *array.shape[1:]), array.strides, first * array.strides[0])


def _product(windows: Windows, x: ClArray, w: ClArray, bias: ClArray | None, out: ClArray, groups: int) -> None:
    """weight (channels of results, window) @ columns (window, positions), for each group and some images at once."""
    inner, outer = x.shape[1] // groups, out.shape[1] // groups
    depth, area = inner * prod(windows.kernel), prod(out.shape[2:])
    step = max(1, _ROOM // max(depth * area, 1))
    rows = [pack(w.view((1, outer, depth), (0, depth, 1), g * outer * depth), PANEL_ROWS) for g in range(groups)]
    for first in range(0, x.shape[0], step):
        images, results = some(x, first, step), some(out, first, step)
        for group in range(groups):
            columns = windows.panels(channels(images, group, inner), out.shape[2:])
            target = results.view((images.shape[0], outer, area), (out.strides[0], area, 1), group * outer * area)
            added = None if bias is None else bias.view((1, outer, 1), (0, bias.strides[0], 0), group * outer * bias.strides[0])
            multiply(rows[group], columns, target, added)


def _transposed_product(windows: Windows, x: ClArray, w: ClArray, bias: ClArray | None, out: ClArray, groups: int) -> None:
    """columns = weight (channels of results and window, channels) @ x (channels, positions), folded into images."""
    inner, outer = x.shape[1] // groups, out.shape[1] // groups
    depth, area = outer * prod(windows.kernel), prod(x.shape[2:])
    x = row_major_of(x)
    step = max(1, _ROOM // max(depth * area, 1))
    for first in range(0, x.shape[0], step):
        images, results = some(x, first, step), some(out, first, step)
        count = images.shape[0]
        for group in range(groups):
            rows = w.view((count, depth, inner), (0, 1, depth), group * inner * depth)
            given = images.view((count, inner, area), (x.strides[0], area, 1), group * inner * area)
            columns = new_array(x.place, (count, depth, area), x.dtype)
            product(rows, given, columns)
            part = None if bias is None else bias.view((outer,), bias.strides, group * outer * bias.strides[0])
            windows.fold(columns, x.shape[2:], channels(results, group, outer), part)


# ---- windows as columns, for images (N, C, H, W) or (C, H, W)


def _batched(array: ClArray, ndim: int) -> ClArray:
    return array if len(array.shape) == ndim else array.view((1, *array.shape), (0, *array.strides), 0)


def im2col(self: ClArray, kernel_size: Any, dilation: Any, padding: Any, stride: Any, out: ClArray) -> None:
    """The windows of images, as columns."""
    if not out.size:
        return
    windows = Windows(kernel_size, stride, padding, dilation, 2)
    x = image(_batched(self, 4), 2)
    copy(out, windows.columns(x, _counts(windows, x.shape[2:])).view(out.shape, _last_strides(out.shape), 0))


def col2im(self: ClArray, output_size: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any, out: ClArray) -> None:
    """The sums of the columns of windows that hold each element of an image."""
    windows = Windows(kernel_size, stride, padding, dilation, 2)
    target = image(_batched(out, 4), 2)
    windows.fold(_batched(self, 3), _counts(windows, target.shape[2:]), target, None)


def _counts(windows: Windows, lengths: Ints) -> Ints:
    stride, padding, dilation = windows.steps
    return tuple(
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(lengths, windows.kernel, stride, padding, dilation, strict=True)
    )


def _last_strides(shape: Ints) -> Ints:
    """Of row-major columns, with or without a batch dim."""
    return (shape[-2] * shape[-1], shape[-1], 1)[-len(shape) :]


# fmt: off
KERNELS = {
    "convolution.out": Row(convolution),
    "im2col.out":      Row(im2col),
    "col2im.out":      Row(col2im),
}
# fmt: on
