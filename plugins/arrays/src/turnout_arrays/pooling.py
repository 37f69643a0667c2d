"""Pooling: the largest element or the mean of each window.

There is one step per kernel element, for all windows at once: it combines a strided slice of the padded image with the result.
Indices count in the flattened spatial dims of the unpadded image. NaN counts as the largest value.
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

from turnout_arrays.convolutions import padded, places, spread
from turnout_arrays.numbers import POSTPONING, store, widen
from turnout_aten.kernels.rows import Row
from turnout_aten.tensor.checks import are_postponed

Table = dict[str, Any]
Ints = tuple[int, ...]


def kernels(xp: Any) -> Table:
    """The rows of this module for an array module."""
    # fmt: off
    return {
        "max_pool2d_with_indices.out":       Row(max_pool(xp, 2)),
        "max_pool3d_with_indices.out":       Row(max_pool(xp, 3)),
        "avg_pool2d.out":                    Row(avg_pool(xp, 2)),
        "avg_pool3d.out":                    Row(avg_pool(xp, 3)),
        "avg_pool2d_backward.grad_input":    Row(avg_pool_backward(xp, 2)),
        "avg_pool3d_backward.grad_input":    Row(avg_pool_backward(xp, 3)),
        "_adaptive_avg_pool2d.out":          Row(adaptive_avg_pool(xp, 2)),
        "_adaptive_avg_pool3d.out":          Row(adaptive_avg_pool(xp, 3)),
        "_adaptive_avg_pool2d_backward.out": Row(adaptive_avg_pool_backward(xp, 2)),
        "_adaptive_avg_pool3d_backward.out": Row(adaptive_avg_pool_backward(xp, 3)),
        "adaptive_max_pool2d.out":           Row(adaptive_max_pool(xp, 2)),
        "adaptive_max_pool3d.out":           Row(adaptive_max_pool(xp, 3)),
        "fractional_max_pool2d.output":      Row(fractional_max_pool(xp, 2)),
        "fractional_max_pool3d.output":      Row(fractional_max_pool(xp, 3)),
    }
    # fmt: on


class _Windows:
    """The windows of a call: their size, the steps between them, the padding, and the gaps between elements, for each dim.

    lengths  of the image
    counts   of the windows
    behind   the distances by which the last windows reach past the end of the image
    offsets  of the elements of a window
    places   for each of these, the index of the elements of a padded image that lie under it
    """

    def __init__(self, lengths: Ints, counts: Ints, kernel_size: Any, stride: Any, padding: Any, dilation: Any = (1,)) -> None:
        ndim = len(lengths)
        self.lengths, self.counts, self.size = lengths, counts, spread(kernel_size, ndim)
        self.steps = spread(stride, ndim) if stride else self.size
        self.pads, self.gaps = spread(padding, ndim), spread(dilation, ndim)
        each = zip(counts, self.steps, self.gaps, self.size, self.pads, lengths, strict=True)
        self.behind = tuple([max((m - 1) * s + d * (k - 1) + 1 - p - n, 0) for m, s, d, k, p, n in each])
        self.offsets = list(product(*map(range, self.size)))
        self.places = [places(offset, counts, self.steps, self.gaps) for offset in self.offsets]


def _flat_index(xp: Any, coordinates: list[Any], lengths: Ints) -> Any:
    """One number per position from a coordinate per dim, each along its own dim."""
    ndim, found = len(lengths), 0
    for i, (at, length) in enumerate(zip(coordinates, lengths, strict=True)):
        found = found * length + at.reshape((1,) * i + (-1,) + (1,) * (ndim - i - 1))
    return found


def max_pool(xp: Any, ndim: int) -> Any:
    """The kernel for an array module and a number of dims."""

    def largest(x: Any, windows: _Windows, best: Any, which: Any) -> None:
        """The largest element of each window, and the number of the first offset at which it is.

        Numbers of one byte are quick to select: the largest of (length - number) where the element is the largest one.
        """
        parts = [x[place] for place in windows.places]
        best[...] = parts[0]
        # differs from torch: where a window of `max_pool2d` and its relatives holds both 0.0 and -0.0, either may be the value.
        # The index is that of the first one.
        for part in parts[1:]:
            xp.maximum(best, part, out=best)
        which.fill(0)
        for number, part in enumerate(parts):
            same = xp.equal(part, best).view(xp.uint8)
            same *= len(parts) - number
            xp.maximum(which, same, out=which)
        xp.subtract(len(parts), which, which)

    def kernel(
        self: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, out: Any, indices: Any
    ) -> None:
        x = widen(xp, self)
        windows = _Windows(x.shape[-ndim:], out.shape[-ndim:], kernel_size, stride, padding, dilation)
        lengths, gaps = windows.lengths, windows.gaps
        floating = x.dtype.kind == "f"
        lowest = -xp.inf if floating else xp.iinfo(x.dtype).min
        x = padded(xp, x, windows.pads, windows.behind, lowest)
        starts = [xp.arange(n) * s - p for n, s, p in zip(windows.counts, windows.steps, windows.pads, strict=True)]
        if out.size and len(windows.offsets) < 255 and not (xp.__class__ in POSTPONING and are_postponed()):
            best = xp.empty(out.shape, x.dtype)
            which = xp.empty(out.shape, xp.uint8)
            for image in range(out.shape[0]):
                largest(x[image], windows, best[image], which[image])
            if bool(xp.all(best > lowest)):
                store(xp, out, best)
                corners = _flat_index(xp, starts, lengths)
                within = _flat_index(xp, [xp.arange(k) * d for k, d in zip(windows.size, gaps, strict=True)], lengths)
                store(xp, indices, xp.take(within.reshape(-1), which) + corners)
                return
        # If no element exceeds the lowest value, the first index inside the image is the result.
        first = [s + d * ((-s + d - 1) // d * (s < 0)) for s, d in zip(starts, gaps, strict=True)]
        best = xp.empty(out.shape, x.dtype)
        best.fill(lowest)
        at = xp.broadcast_to(_flat_index(xp, first, lengths), out.shape).copy()
        for offset, place in zip(windows.offsets, windows.places, strict=True):
            value = x[place]
            larger = value > best
            if floating:
                larger |= value != value
            where = [s + o * d for s, o, d in zip(starts, offset, gaps, strict=True)]
            xp.copyto(best, value, where=larger)
            xp.copyto(at, _flat_index(xp, where, lengths), where=larger)
        store(xp, out, best)
        store(xp, indices, at)

    return kernel


def _divisors(xp: Any, windows: _Windows, count_include_pad: bool, override: Any) -> Any:
    """The divisor of each window's sum: a number, or an array over the positions."""
    if override is not None:
        return override
    found: Any = 1
    each = zip(windows.lengths, windows.size, windows.counts, windows.steps, windows.pads, strict=True)
    for i, (n, k, m, s, p) in enumerate(each):
        start = xp.arange(m) * s - p
        end = xp.minimum(start + k, n + p)
        if not count_include_pad:
            start, end = xp.maximum(start, 0), xp.minimum(end, n)
        found = found * (end - start).reshape((1,) * i + (-1,) + (1,) * (len(windows.lengths) - i - 1))
    return found


def avg_pool(xp: Any, ndim: int) -> Any:
    """The kernel for an array module and a number of dims."""

    def kernel(
        self: Any, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool, count_include_pad: bool, divisor: Any,
        out: Any,
    ) -> Any:  # fmt: skip
        x = widen(xp, self)
        windows = _Windows(x.shape[-ndim:], out.shape[-ndim:], kernel_size, stride, padding)
        x = padded(xp, x, windows.pads, windows.behind)
        total = xp.zeros(out.shape, x.dtype)
        for place in windows.places:
            total += x[place]
        by = _divisors(xp, windows, count_include_pad, divisor)
        if x.dtype.kind in "iu":  # towards zero
            by = xp.asarray(by, x.dtype)
            return store(xp, out, xp.sign(total) * xp.sign(by) * (xp.absolute(total) // xp.absolute(by)))
        return store(xp, out, total / xp.asarray(by, x.dtype))

    return kernel


def avg_pool_backward(xp: Any, ndim: int) -> Any:
    """The kernel for an array module and a number of dims."""

    def kernel(
        grad_output: Any, self: Any, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool, count_include_pad: bool,
        divisor: Any, out: Any,
    ) -> Any:  # fmt: skip
        grad = widen(xp, grad_output)
        windows = _Windows(self.shape[-ndim:], grad.shape[-ndim:], kernel_size, stride, padding)
        share = grad / xp.asarray(_divisors(xp, windows, count_include_pad, divisor), grad.dtype)
        lengths, pads = windows.lengths, windows.pads
        room = [n + p + b for n, p, b in zip(lengths, pads, windows.behind, strict=True)]
        canvas = xp.zeros((*self.shape[:-ndim], *room), grad.dtype)
        for place in windows.places:
            canvas[place] += share
        return store(xp, out, canvas[(..., *[slice(p, p + n) for p, n in zip(pads, lengths, strict=True)])])

    return kernel


# ---- windows that cover the image evenly


def _spans(length: int, count: int) -> list[slice]:
    """The windows along one dim, which may overlap."""
    return [slice(i * length // count, -(-(i + 1) * length // count)) for i in range(count)]


def adaptive_avg_pool(xp: Any, ndim: int) -> Any:
    """The kernel for an array module and a number of dims: the mean along one dim after the other."""

    def kernel(self: Any, output_size: Any, out: Any) -> Any:
        value = widen(xp, self)
        for dim in range(-1, -ndim - 1, -1):
            spans = _spans(value.shape[dim], out.shape[dim])
            line = xp.moveaxis(value, dim, -1)
            made = xp.empty((*line.shape[:-1], len(spans)), value.dtype)
            for i, span in enumerate(spans):
                part = line[..., span]
                made[..., i] = xp.add.reduce(part, -1) / part.shape[-1]
            value = xp.moveaxis(made, -1, dim)
        return store(xp, out, value)

    return kernel


def adaptive_avg_pool_backward(xp: Any, ndim: int) -> Any:
    """The kernel for an array module and a number of dims: distributes each mean, one dim after the other."""

    def kernel(grad_output: Any, self: Any, out: Any) -> Any:
        value = widen(xp, grad_output)
        for dim in range(-1, -ndim - 1, -1):
            line = xp.moveaxis(value, dim, -1)
            made = xp.zeros((*line.shape[:-1], self.shape[dim]), value.dtype)
            for i, span in enumerate(_spans(self.shape[dim], line.shape[-1])):
                made[..., span] += line[..., i : i + 1] / (span.stop - span.start)
            value = xp.moveaxis(made, -1, dim)
        return store(xp, out, value)

    return kernel


def adaptive_max_pool(xp: Any, ndim: int) -> Any:
    """The kernel for an array module and a number of dims: one step per output position."""

    def kernel(self: Any, output_size: Any, out: Any, indices: Any) -> None:
        x = widen(xp, self)
        lengths, counts = x.shape[-ndim:], out.shape[-ndim:]
        rows = xp.arange(prod(lengths)).reshape(lengths)
        best, at = xp.empty(out.shape, x.dtype), xp.empty(out.shape, xp.int64)
        spans = [_spans(n, m) for n, m in zip(lengths, counts, strict=True)]
        for position in product(*map(range, counts)):
            window = tuple(span[i] for span, i in zip(spans, position, strict=True))
            part = x[(..., *window)]
            part = part.reshape(*part.shape[:-ndim], prod(part.shape[-ndim:]))
            chosen = xp.argmax(part, -1)
            best[(..., *position)] = xp.take_along_axis(part, chosen[..., None], -1)[..., 0]
            at[(..., *position)] = rows[window].reshape(-1)[chosen]
        store(xp, out, best)
        store(xp, indices, at)

    return kernel


def fractional_max_pool(xp: Any, ndim: int) -> Any:
    """The kernel for an array module and a number of dims.

    After Graham (2014), "Fractional Max-Pooling": windows start at steps of (length - kernel) / (count - 1), shifted by a random
    sample and rounded down; the last one ends with the image.
    """

    def starts(sample: Any, length: int, count: int, kernel: int) -> Any:
        """[planes, count]"""
        last = length - kernel
        if count == 1:
            return xp.full((sample.shape[0], 1), last)
        alpha = sample.dtype.type(last) / sample.dtype.type(count - 1)
        sample = sample.reshape(-1, 1)
        found = ((xp.arange(count) + sample) * alpha).astype(sample.dtype).astype(xp.int64)
        found -= (sample * alpha).astype(xp.int64)
        found[:, -1] = last
        return found

    def kernel(self: Any, kernel_size: Any, output_size: Any, random_samples: Any, out: Any, indices: Any) -> None:
        size = spread(kernel_size, ndim)
        x, samples = widen(xp, self), widen(xp, random_samples)
        lengths, counts = x.shape[-ndim:], out.shape[-ndim:]
        planes = x.reshape(prod(x.shape[:-ndim]), prod(lengths))
        batch = x.shape[0] if x.ndim == ndim + 2 else 1
        samples = samples[:batch].reshape(-1, ndim)
        # The samples of two dims are (width, height), those of three (depth, height, width).
        order = (1, 0) if ndim == 2 else (0, 1, 2)
        first = [starts(samples[:, o], n, m, k) for o, n, m, k in zip(order, lengths, counts, size, strict=True)]
        best = xp.full((planes.shape[0], *counts), -xp.inf, x.dtype)
        at = xp.zeros(best.shape, xp.int64)
        for offset in product(*map(range, size)):
            where: Any = 0
            for i, (start, o, n) in enumerate(zip(first, offset, lengths, strict=True)):
                shape = (start.shape[0], *(1,) * i, start.shape[1], *(1,) * (ndim - i - 1))
                where = where * n + (start + o).reshape(shape)
            flat = where.reshape(planes.shape[0], prod(counts))
            value = xp.take_along_axis(planes, flat, 1).reshape(best.shape)
            larger = (value > best) | (value != value)
            if not any(offset):
                larger |= True
            xp.copyto(best, value, where=larger)
            xp.copyto(at, where, where=larger)
        store(xp, out, best.reshape(out.shape))
        store(xp, indices, at.reshape(out.shape))

    return kernel
