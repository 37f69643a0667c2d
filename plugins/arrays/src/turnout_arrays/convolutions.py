"""Convolutions as matrix products, and conversions between images and columns of windows.

The windows of a padded image are a strided view [*K, *P] of it: kernel dims, then positions. A copied block of windows is a
matrix to multiply with the weights. Blocks are small, so that a block is still in the cache when it is multiplied.
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

from turnout_arrays.numbers import store, widen
from turnout_aten.kernels.rows import Row
from turnout_aten.shapes.convolutions import positions
from turnout_aten.shapes.extents import reach_of

Table = dict[str, Any]
Ints = tuple[int, ...]

# Elements of one block of columns: 1 MB of float32. Between 1 << 17 and 1 << 20 the time hardly changes.
BLOCK = 1 << 18
# Elements of the planes that are convolved one channel at a time: three such arrays fit in the second-level cache.
_PLANES = 1 << 16


def kernels(xp: Any) -> Table:
    """The rows of this module for an array module."""
    # fmt: off
    return {
        "convolution.out": Row(convolution(xp), prepares=prepared_convolution(xp)),
        "im2col.out":      Row(im2col(xp)),
        "col2im.out":      Row(col2im(xp)),
    }
    # fmt: on


def spread(value: Any, ndim: int) -> Ints:
    """One number per dim; a single number is used for all dims."""
    return tuple(value) if len(value) == ndim else tuple(value) * ndim


def padded(xp: Any, x: Any, before: Ints, after: Ints, fill: Any = 0) -> Any:
    """The array with its last dims padded; the array itself if nothing is added."""
    if not any(before) and not any(after):
        return x
    lead = x.ndim - len(before)
    lengths = [n + b + a for n, b, a in zip(x.shape[lead:], before, after, strict=True)]
    made = xp.empty((*x.shape[:lead], *lengths), x.dtype)
    made.fill(fill)
    inner = tuple(slice(b, b + n) for n, b in zip(x.shape[lead:], before, strict=True))
    made[(..., *inner)] = x
    return made


def windows(xp: Any, x: Any, kernel: Ints, counts: Ints, stride: Ints, dilation: Ints) -> Any:
    """A view [..., *kernel, *counts] of the windows over the last dims."""
    lead = x.ndim - len(kernel)
    steps = x.strides[lead:]
    strides = [s * d for s, d in zip(steps, dilation, strict=True)]
    strides += [s * t for s, t in zip(steps, stride, strict=True)]
    shape, strides = (*x.shape[:lead], *kernel, *counts), [*x.strides[:lead], *strides]
    # NumPy's own function takes ten times as long, but refuses strides of more than 64 bits in its words.
    if x.flags.c_contiguous and getattr(x, "device", "").__class__ is str and max(strides) < 1 << 62:
        return xp.ndarray(shape, x.dtype, x, 0, strides)
    return xp.lib.stride_tricks.as_strided(x, shape, strides)


def places(offset: Ints, counts: Ints, stride: Ints, dilation: Ints) -> tuple[Any, ...]:
    """The index of the elements under one kernel element, over all positions."""
    starts = [o * d for o, d in zip(offset, dilation, strict=True)]
    ends = [s + (n - 1) * t + 1 for s, n, t in zip(starts, counts, stride, strict=True)]
    return (..., *[slice(s, e, t) for s, e, t in zip(starts, ends, stride, strict=True)])


def convolution(xp: Any) -> Any:
    """The kernel for an array module."""

    def forward(x: Any, weight: Any, made: Any, stride: Ints, padding: Ints, dilation: Ints, groups: int) -> None:
        over(padded(xp, x, padding, padding), weight, made, stride, dilation, groups)

    def over(x: Any, weight: Any, made: Any, stride: Ints, dilation: Ints, groups: int) -> None:
        """The convolution of a padded image."""
        ndim = x.ndim - 2
        kernel, counts = weight.shape[2:], made.shape[2:]
        n, c = x.shape[:2]
        if c == groups and weight.shape[0] == groups:
            depthwise(x, weight, made, stride, dilation)
            return
        x = x.reshape(n, groups, c // groups, *x.shape[2:])
        rows = weight.reshape(groups, weight.shape[0] // groups, -1)
        target = made.reshape(n, groups, rows.shape[1], -1)
        depth, area = rows.shape[2], prod(counts)
        view = windows(xp, x, kernel, counts, stride, dilation)
        per_image = groups * depth * area
        if per_image <= BLOCK:
            step = max(1, BLOCK // max(per_image, 1))
            for first in range(0, n, step):
                block = view[first : first + step]
                columns = block.reshape(block.shape[0], groups, depth, area)
                xp.matmul(rows, columns, out=target[first : first + step])
            return
        line = area // counts[0]
        step = max(1, BLOCK // (groups * depth * line))
        for image in range(n):
            for first in range(0, counts[0], step):
                last = min(first + step, counts[0])
                block = view[image][(slice(None),) * (2 + ndim) + (slice(first, last),)]
                columns = block.reshape(groups, depth, (last - first) * line)
                xp.matmul(rows, columns, out=target[image, :, :, first * line : last * line])

    def depthwise(x: Any, weight: Any, made: Any, stride: Ints, dilation: Ints) -> None:
        """One channel per group: a product and a sum for each kernel element, for all positions of the padded image in a row.

        In flat memory the elements under one kernel element are those under the first one, shifted. The sums between two lines
        and those that a stride leaves out are computed, too, and not used.
        """
        lengths = x.shape[2:]
        steps = [prod(lengths[i + 1 :]) for i in range(len(lengths))]
        counts = [(n - 1) * s + 1 for n, s in zip(made.shape[2:], stride, strict=True)]
        extent = reach_of(counts, steps)
        scale = weight.reshape(weight.shape[0], -1)
        x = xp.ascontiguousarray(x).reshape(*x.shape[:2], -1)
        offsets = [
            sum(o * d * s for o, d, s in zip(offset, dilation, steps, strict=True))
            for offset in product(*map(range, weight.shape[2:]))
        ]
        used = (slice(None), *[slice(0, n, s) for n, s in zip(counts, stride, strict=True)])
        channels = max(1, _PLANES // extent)
        total = xp.zeros((min(channels, x.shape[1]), counts[0] * steps[0]), x.dtype)
        for image, first in product(range(x.shape[0]), range(0, x.shape[1], channels)):
            part = slice(first, first + channels)
            planes, factors = x[image, part], scale[part]
            sums = total[: planes.shape[0]]
            for at, offset in enumerate(offsets):
                shifted = planes[:, offset : offset + extent]
                if at:
                    sums[:, :extent] += shifted * factors[:, at : at + 1]
                else:
                    xp.multiply(shifted, factors[:, :1], sums[:, :extent])
            made[image, part] = sums.reshape(-1, counts[0], *lengths[1:])[used]

    def transposed(x: Any, weight: Any, made: Any, stride: Ints, padding: Ints, dilation: Ints, groups: int) -> None:
        """The adjoint: every input element adds its multiple of the kernel to the output."""
        n, c = x.shape[:2]
        kernel, counts = weight.shape[2:], x.shape[2:]
        before = [d * (k - 1) - p for d, k, p in zip(dilation, kernel, padding, strict=True)]
        after = [o + d * (k - 1) - m - b for o, d, k, m, b in zip(made.shape[2:], dilation, kernel, counts, before, strict=True)]
        if all(s == 1 for s in stride) and min(before) >= 0 and min(after) >= 0:
            # A convolution with the kernel turned around.
            turned = weight[(..., *(slice(None, None, -1),) * len(kernel))]
            turned = xp.swapaxes(turned.reshape(groups, c // groups, -1, *kernel), 1, 2)
            turned = turned.reshape(made.shape[1], c // groups, *kernel)
            over(padded(xp, x, tuple(before), tuple(after)), turned, made, stride, dilation, groups)
            return
        reach = [(m - 1) * s + d * (k - 1) + 1 for m, s, d, k in zip(counts, stride, dilation, kernel, strict=True)]
        room = [max(r, p + o) for r, p, o in zip(reach, padding, made.shape[2:], strict=True)]
        rows = xp.swapaxes(weight.reshape(groups, c // groups, -1), 1, 2)
        inner = (..., *[slice(p, p + o) for p, o in zip(padding, made.shape[2:], strict=True)])
        for image in range(n):
            columns = xp.matmul(rows, x[image].reshape(groups, c // groups, -1))
            columns = columns.reshape(made.shape[1], prod(kernel), *counts)
            canvas = xp.zeros((made.shape[1], *room), made.dtype)
            for at, offset in enumerate(product(*map(range, kernel))):
                canvas[places(offset, counts, stride, dilation)] += columns[:, at]
            made[image] = canvas[inner]

    def kernel(
        input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, is_transposed: bool,
        output_padding: Any, groups: int, out: Any,
    ) -> Any:  # fmt: skip
        ndim = input.ndim - 2
        x, w = widen(xp, input), widen(xp, weight)
        direct = x.dtype == out.dtype and out.flags.c_contiguous
        made = out if direct else xp.empty(out.shape, x.dtype)
        if made.size and input.size:
            run = transposed if is_transposed else forward
            run(x, w, made, spread(stride, ndim), spread(padding, ndim), spread(dilation, ndim), groups)
        else:
            made.fill(0)
        if bias is not None:
            made += widen(xp, bias).reshape(-1, *(1,) * ndim)
        return out if direct else store(xp, out, made)

    return kernel


# Elements of images, windows and results up to which a convolution is prepared: of more of them the product takes the time.
_FEW = 1 << 14


def prepared_convolution(xp: Any) -> Any:
    """What prepares plans of few floats: the view of the windows and the shapes of the product are always the same."""

    def prepares(
        outs: Any, input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, is_transposed: bool,
        output_padding: Any, groups: int,
    ) -> Any:  # fmt: skip
        made, ndim, given = outs[0].shape, input.ndim - 2, [input, weight, *([] if bias is None else [bias])]
        dtype, (images, channels, *lengths), kernel = input.dtype, input.shape, weight.shape[2:]
        if is_transposed or ndim < 1 or not input.size or not weight.size or 0 in made or dtype.char not in "fd":
            return None
        one_place = getattr(input, "device", "").__class__ is str  # arrays on one of several devices have other views
        if not one_place or any(a.dtype is not dtype or not a.flags.c_contiguous for a in given):
            return None
        stride, padding, dilation = (spread(v, ndim) for v in (stride, padding, dilation))
        channels, outputs, depth, area = channels // groups, weight.shape[0] // groups, weight[0].size, prod(made[2:])
        few = max(input.size, prod(made), images * groups * depth * area) <= _FEW
        if (channels == 1 and outputs == 1) or not few or outs[0].dtype.name != dtype.name:
            return None
        room = (images, groups * channels, *[n + 2 * p for n, p in zip(lengths, padding, strict=True)])
        inner = (..., *[slice(p, p + n) for n, p in zip(lengths, padding, strict=True)]) if any(padding) else None
        steps = [dtype.itemsize]
        for length in room[:0:-1]:
            steps.append(steps[-1] * length)
        image, channel, *places = steps[::-1]
        viewed = (images, groups, channels, *kernel, *made[2:])
        strides = (image, channel * channels, channel, *[s * d for s, d in zip(places, dilation, strict=True)])
        strides += tuple([s * t for s, t in zip(places, stride, strict=True)])
        columns, rows, target = (images, groups, depth, area), (groups, outputs, depth), (images, groups, outputs, area)
        shift = (groups * outputs, *(1,) * ndim)
        ndarray, zeros, matmul = xp.ndarray, xp.zeros, xp.matmul

        def convolved(input: Any, weight: Any, bias: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, out: Any) -> Any:
            if inner is not None:
                padded = zeros(room, dtype)
                padded[inner] = input
                input = padded
            windows = ndarray(viewed, dtype, input, 0, strides).reshape(columns)
            matmul(weight.reshape(rows), windows, out.reshape(target))
            if bias is not None:
                out += bias.reshape(shift)
            return out

        return convolved

    return prepares


def im2col(xp: Any) -> Any:
    """The kernel for an array module."""

    def kernel(self: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any, out: Any) -> Any:
        size, steps, gaps, pads = (spread(v, 2) for v in (kernel_size, stride, dilation, padding))
        x = padded(xp, self, pads, pads)
        counts = tuple([positions(n, k, s, 0, d) for n, k, s, d in zip(x.shape[-2:], size, steps, gaps, strict=True)])
        return store(xp, out, windows(xp, x, size, counts, steps, gaps).reshape(out.shape))

    return kernel


def col2im(xp: Any) -> Any:
    """The kernel for an array module."""

    def kernel(self: Any, output_size: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any, out: Any) -> Any:
        size, steps, gaps, pads = (spread(v, 2) for v in (kernel_size, stride, dilation, padding))
        room = tuple(n + 2 * p for n, p in zip(out.shape[-2:], pads, strict=True))
        counts = tuple([positions(n, k, s, 0, d) for n, k, s, d in zip(room, size, steps, gaps, strict=True)])
        columns = widen(xp, self).reshape(*out.shape[:-2], *size, *counts)
        canvas = xp.zeros((*out.shape[:-2], *room), columns.dtype)
        for i, j in product(range(size[0]), range(size[1])):
            canvas[places((i, j), counts, steps, gaps)] += columns[..., i, j, :, :]
        return store(xp, out, canvas[..., pads[0] : room[0] - pads[0], pads[1] : room[1] - pads[1]])

    return kernel
