"""Convolutions of images of one to three dims, as windows that slide over planes. All are of three dims inside."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

from turnout.config.tuples import NamedTuple
from turnout.dtypes import DType, int64
from turnout_arrays.convolutions import spread
from turnout_aten.kernels.rows import Row
from turnout_aten.shapes.convolutions import check_gradient, positions
from turnout_opencl.arrays import ClArray, new_array
from turnout_opencl.backend import contiguous, copy, fill, row_major_of
from turnout_opencl.grids import raw
from turnout_opencl.matrix_products import PANEL_ROWS, computed_dtype, pack
from turnout_opencl.pointwise import dense
from turnout_opencl.programs import TYPES, correlate_program, lanes_of, slide_program
from turnout_opencl.reductions import TOTAL, reduce

Ints = tuple[int, ...]

_ROOM = 1 << 21  # elements of the planes of the images that are worked on at once
_CHANNELS = 4  # of results per group, from which a work-item has several
_MANY_CHANNELS, _MANY_POSITIONS = (PANEL_ROWS, 2), (1, 8)  # channels and vectors of positions of a work-item
_GROUPS = {_MANY_CHANNELS: (4, 1, 1), _MANY_POSITIONS: (1, 8, 1)}
_MANY_ROWS = (4, 3)  # channels of results and elements of windows of a work-item that makes gradients of weights
_TAPS = 12  # elements of windows of one that has a single channel
_ITEMS = 256  # work-items that keep a device busy
_ALIGNED = 16  # elements of what begins together with a plane


def three(value: Sequence[int], ndim: int, fill: int) -> Ints:
    """A parameter for each of three dims; leading dims that are not there get `fill`."""
    return (*(fill,) * (3 - ndim), *spread(value, ndim))


def image(array: ClArray, ndim: int) -> ClArray:
    """An array (a, b, *dims) with three spatial dims."""
    missing = 3 - ndim
    shape = (*array.shape[:2], *(1,) * missing, *array.shape[2:])
    return array.view(shape, (*array.strides[:2], *(0,) * missing, *array.strides[2:]), 0)


class Planes(NamedTuple):
    """Images with their padding, as the template `slide` reads them.

    array      its first two dims are images and channels
    lengths    of a plane, along each dim
    phases     along each dim
    size       elements of a plane
    positions  from the first to the last one of a window, with those between lines of results
    """

    array: ClArray
    lengths: Ints
    phases: Ints
    size: int
    positions: int


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

    def planes(self, x: ClArray, counts: Ints, block: int) -> Planes:
        """Images for `counts` windows, of which `block` positions are read at once; x itself where it is as it has to be."""
        reach = [d * (k - 1) for d, k in zip(self.steps[2], self.kernel, strict=True)]
        phases = tuple(min(s, r + 1) for s, r in zip(self.steps[0], reach, strict=True))
        lengths = tuple(n + r // s for n, r, s in zip(counts, reach, self.steps[0], strict=True))
        size, dtype = prod(lengths), computed_dtype(x)
        made = Planes(x, lengths, phases, size, (counts[0] - 1) * prod(lengths[1:]) + (counts[1] - 1) * lengths[2] + counts[2])
        lies = x.view(lengths, x.strides[2:], 0).is_contiguous and lengths == x.shape[2:] and dtype is x.dtype
        if lies and not any(self.steps[1]) and self.steps[0] == (1, 1, 1) and made.positions >= block:
            return made
        size = (-(-size // _ALIGNED) | 1) * _ALIGNED  # odd, so that planes of 4096 bytes do not share their places in a cache
        images, channels = x.shape[:2]
        steps = (channels * prod(phases) * size, prod(phases) * size)
        room = new_array(x.place, (images * steps[0] + block,), dtype)
        target = room.view((images, channels), steps, 0)
        count = images * channels * prod(phases) * lengths[0] * lengths[1]
        call = raw(
            0, count, (images, channels, *lengths), (steps, x.strides), (0, x.offset), extra=(size,),
            inner_sizes=(channels, *phases, *x.shape[2:], 1), inner_steps=self.steps,
        )  # fmt: skip
        x.place.start("convolve", x.dtype, "halo", call, (room.buffer, x.buffer), count)
        return made._replace(array=target, size=size)

    def places(self, planes: Planes, channels: int, dtype: DType) -> ClArray:
        """Where the elements of the windows of some channels stand in planes of images of a dtype."""
        made = new_array(planes.array.place, (channels * prod(self.kernel),), int64)
        sizes, steps = (*planes.lengths[1:], 0, *planes.phases[1:]), (planes.array.strides[1:2],)
        call = raw(
            0, made.size, sizes, steps, (), extra=(planes.size,), inner_sizes=(channels, *self.kernel), inner_steps=self.steps
        )
        made.place.start("convolve", dtype, "places", call, (made.buffer,), made.size)
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
    if not x.shape[1]:
        _only_bias(b, target)
    elif transposed:
        _transposed(windows, x, w, b, target, groups)
    else:
        _slide(windows, x, row_major_of(w), b, target, groups)
    copy(out, made)


def _only_bias(bias: ClArray | None, out: ClArray) -> None:
    """Without channels there is nothing to sum."""
    if bias is None:
        fill(out, 0)
    else:
        copy(out, bias.view(out.shape, (0, bias.strides[0], 0, 0, 0), 0))


def _transposed(windows: Windows, x: ClArray, w: ClArray, bias: ClArray | None, out: ClArray, groups: int) -> None:
    """The transposed convolution: for each phase of the stride a plain one, of the elements of the kernel that reach it."""
    inner, outer = w.shape[0] // groups, w.shape[1]
    for phase in product(*map(range, windows.steps[0])):
        taps = [_taps(r, k, *each) for r, k, *each in zip(phase, windows.kernel, *windows.steps, strict=True)]
        counts = tuple(-(-(n - r) // s) for n, r, s in zip(out.shape[2:], phase, windows.steps[0], strict=True))
        steps = tuple(step * s for step, s in zip(out.strides[2:], windows.steps[0], strict=True))
        first = sum(r * step for r, step in zip(phase, out.strides[2:], strict=True))
        target = out.view((*out.shape[:2], *counts), (*out.strides[:2], *steps), first)
        if not target.size:
            continue
        if not all(each.elements for each in taps):
            _only_bias(bias, target)
            continue
        kernel = tuple(each.elements for each in taps)
        turned = tuple(-each.step * step for each, step in zip(taps, w.strides[2:], strict=True))
        last = sum(each.last * step for each, step in zip(taps, w.strides[2:], strict=True))
        strides = (inner * w.strides[0], w.strides[1], w.strides[0], *turned)
        weights = contiguous(w.view((groups, outer, inner, *kernel), strides, last)).reshaped((groups * outer, inner, *kernel))
        plain = Windows(kernel, (1, 1, 1), [each.padding for each in taps], [each.dilation for each in taps], 3)
        _slide(plain, x, weights, bias, target, groups)


class Taps(NamedTuple):
    """The elements of a kernel along a dim that reach the results of a phase: how many, every which, the last one.

    padding, dilation  of the plain convolution, which has them in reverse order
    """

    elements: int
    step: int
    last: int
    padding: int
    dilation: int


def _taps(phase: int, kernel: int, stride: int, padding: int, dilation: int) -> Taps:
    """Element k adds x at (phase + padding - k * dilation) / stride to the first result, where that is an integer."""
    found = [k for k in range(kernel) if (phase + padding - k * dilation) % stride == 0]
    if not found:
        return Taps(0, 1, 0, 0, 1)
    step = found[1] - found[0] if len(found) > 1 else 1
    before = (found[-1] * dilation - phase - padding) // stride
    return Taps(len(found), step, found[-1], before, max(step * dilation // stride, 1))


def _slide(windows: Windows, x: ClArray, w: ClArray, bias: ClArray | None, out: ClArray, groups: int) -> None:
    """Windows slide over the planes of some images at once, for several channels of results or several vectors of positions."""
    inner, outer = x.shape[1] // groups, out.shape[1] // groups
    depth = inner * prod(windows.kernel)
    blocking = _MANY_CHANNELS if outer >= _CHANNELS else _MANY_POSITIONS
    group, block = _GROUPS[blocking], blocking[1] * lanes_of(out.dtype)
    weights = pack(w.view((groups, outer, depth), (outer * depth, depth, 1), 0), blocking[0]).array
    step = max(1, _ROOM // max(prod(x.shape[1:]), 1))
    places: ClArray | None = None
    for first in range(0, x.shape[0], step):
        results = some(out, first, step)
        planes = windows.planes(some(x, first, step), out.shape[2:], block)
        images = results.shape[0]
        call = raw(
            0, images, (images, outer, *out.shape[2:], inner, depth),
            (out.strides, planes.array.strides[:2], (), () if bias is None else bias.strides),
            (results.offset, planes.array.offset, 0, 0 if bias is None else bias.offset),
            extra=(groups, planes.positions, int(planes.positions >= block)), inner_sizes=planes.lengths,
        )  # fmt: skip
        work = (weights.shape[1], -(-planes.positions // block), images * groups)
        grid = tuple(-(-n // size) * size for n, size in zip(work, group, strict=True))
        places = places or windows.places(planes, inner, x.dtype)
        buffers = (out.buffer, planes.array.buffer, weights.buffer, None if bias is None else bias.buffer, places.buffer)
        out.place.start_grid(slide_program(*blocking), out.dtype, "slide", call, buffers, grid, group)


def some(array: ClArray, first: int, count: int) -> ClArray:
    """Some of the images."""
    return array.view((min(count, array.shape[0] - first), *array.shape[1:]), array.strides, first * array.strides[0])


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
    return tuple(map(positions, lengths, windows.kernel, stride, padding, dilation))


def _last_strides(shape: Ints) -> Ints:
    """Of row-major columns, with or without a batch dim."""
    return (shape[-2] * shape[-1], shape[-1], 1)[-len(shape) :]


# ---- gradients


def convolution_backward(
    grad_output: ClArray, input: ClArray, weight: ClArray, bias_sizes: Any, stride: Any, padding: Any, dilation: Any,
    transposed: bool, output_padding: Any, groups: int, output_mask: Sequence[bool],
) -> Any:  # fmt: skip
    """The gradients of (input, weight, bias), None where the mask is False. Those of small images stay products of matrices."""
    arrays = (grad_output, input, weight)
    check_gradient(grad_output.shape, input.shape, weight.shape, stride, padding, dilation, transposed, output_padding, groups)
    kind, ndim = TYPES[input.dtype].kind, len(input.shape) - 2
    if kind != "float" or any(a.dtype is not input.dtype or not a.size for a in arrays):
        return NotImplemented
    small, large = (input, grad_output) if transposed else (grad_output, input)
    if small.shape[-1] < lanes_of(small.dtype):  # lines of results are too short for vectors
        return NotImplemented
    windows = Windows(weight.shape[2:], stride, padding, dilation, ndim)
    shapes = (input.shape, weight.shape, grad_output.shape[1:2])
    made = [new_array(input.place, s, input.dtype) if wanted else None for s, wanted in zip(shapes, output_mask, strict=True)]
    if made[0] is not None:
        convolution(grad_output, weight, None, stride, padding, dilation, not transposed, (), groups, made[0])
    if made[1] is not None:
        _correlate(windows, image(large, ndim), image(small, ndim), made[1], groups)
    if made[2] is not None:
        reduce(TOTAL, grad_output, (0, *range(2, ndim + 2)), made[2])
    return tuple(made)


def _correlate(windows: Windows, x: ClArray, grad: ClArray, out: ClArray, groups: int) -> None:
    """Sums over images and positions of a gradient times the windows of x: partial ones of some images, which are added up."""
    dtype = computed_dtype(x)
    inner, outer = x.shape[1] // groups, grad.shape[1] // groups
    depth = inner * prod(windows.kernel)
    grad = grad if grad.is_contiguous and grad.dtype is dtype else contiguous(grad, dtype)
    rows, taps = _MANY_ROWS if outer >= _MANY_ROWS[0] else (1, -(-depth // -(-depth // _TAPS)))
    work = (-(-outer // rows) * -(-depth // taps), groups)
    step = max(1, min(_ROOM // prod(x.shape[1:]), x.shape[0]))
    chunk = -(-step // max(1, _ITEMS // prod(work)))
    starts = [(first, min(step, x.shape[0] - first)) for first in range(0, x.shape[0], step)]
    made = new_array(x.place, (sum(-(-count // chunk) for _, count in starts), groups * outer * depth), dtype)
    places: ClArray | None = None
    at = 0
    for first, count in starts:
        part, planes = some(grad, first, step), windows.planes(some(x, first, step), grad.shape[2:], 1)
        call = raw(
            0, count, (count, outer, *grad.shape[2:], inner, depth), (grad.strides[:2], planes.array.strides[:2]),
            (part.offset, planes.array.offset, at * made.shape[1]), extra=(chunk, -(-depth // taps)), inner_sizes=planes.lengths,
        )  # fmt: skip
        places = places or windows.places(planes, inner, x.dtype)
        buffers = (made.buffer, part.buffer, planes.array.buffer, places.buffer)
        chunks = -(-count // chunk)
        x.place.start_grid(correlate_program(rows, taps), dtype, "correlate", call, buffers, (*work, chunks), (1, 1, 1))
        at += chunks
    whole = out.reshaped(made.shape[1:])
    total = whole if out.dtype is dtype else new_array(x.place, made.shape[1:], dtype)
    reduce(TOTAL, made, (0,), total)
    if total is not whole:
        copy(whole, total)


# fmt: off
KERNELS = {
    "convolution.out": Row(convolution),
    "im2col.out":      Row(im2col),
    "col2im.out":      Row(col2im),
}
# Rows that leave some calls to the composite kernels.
OVER = {
    "convolution_backward": Row(convolution_backward),
}
# fmt: on
