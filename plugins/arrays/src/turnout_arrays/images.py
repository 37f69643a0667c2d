"""Padding and interpolation of images.

Interpolation is separable: along each dim, every result is a weighted sum of a few elements, the *taps*. Their indices and
weights depend only on the position. Coordinates are computed in the same dtype as in torch, so that rounding agrees.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import copysign, prod
from typing import Any

from turnout_arrays.numbers import PREPARED, number_as, sign_of_zero, store, widen
from turnout_aten.kernels.rows import Row

Table = dict[str, Any]

NEAREST, EXACT, LINEAR, CUBIC = "nearest", "nearest-exact", "linear", "cubic"
# Filters for shrinking: name -> (half of the width, the function of the distance).
SMOOTH_LINEAR, SMOOTH_CUBIC, SMOOTH_LANCZOS = "smooth linear", "smooth cubic", "smooth lanczos"

# Operator -> its mode and number of dims.
# fmt: off
MODES = {
    "upsample_nearest1d":        (NEAREST, 1),
    "upsample_nearest2d":        (NEAREST, 2),
    "upsample_nearest3d":        (NEAREST, 3),
    "_upsample_nearest_exact1d": (EXACT, 1),
    "_upsample_nearest_exact2d": (EXACT, 2),
    "_upsample_nearest_exact3d": (EXACT, 3),
    "upsample_linear1d":         (LINEAR, 1),
    "upsample_bilinear2d":       (LINEAR, 2),
    "upsample_trilinear3d":      (LINEAR, 3),
    "upsample_bicubic2d":        (CUBIC, 2),
    "_upsample_bilinear2d_aa":   (SMOOTH_LINEAR, 2),
    "_upsample_bicubic2d_aa":    (SMOOTH_CUBIC, 2),
    "_upsample_lanczos2d_aa":    (SMOOTH_LANCZOS, 2),
}
# fmt: on


def is_aligned(mode: str, rest: Sequence[Any]) -> bool:
    """Whether the corners are aligned in a call with `rest` behind the sizes: operators that copy elements are not asked."""
    return mode not in (NEAREST, EXACT) and bool(rest[0])


def kernels(xp: Any) -> Table:
    """The rows of this module for an array module."""
    table = {"constant_pad_nd.out": Row(constant_pad(xp), prepares=prepared_pad(xp))}
    for name, (mode, ndim) in MODES.items():
        table[f"{name}.out"] = Row(upsample(xp, mode, ndim))
        table[f"{name}_backward.grad_input"] = Row(upsample_backward(xp, mode, ndim))
    return table


def constant_pad(xp: Any) -> Any:
    """The kernel for an array module."""

    def kernel(self: Any, pad: Any, value: Any, out: Any) -> Any:
        source, target = _parts(self.shape, pad, out.shape)
        out[...] = number_as(xp, value, out.dtype)
        inner = out[target]
        if inner.size:
            inner[...] = self[source]
        return out

    return kernel


def _parts(shape: Any, pad: Any, made: Any) -> tuple[Any, Any]:
    """The index of what is kept of an array, and that of its place in the padded one."""
    source, target = [slice(None)] * len(shape), [slice(None)] * len(shape)
    for i in range(len(pad) // 2):
        before, after, dim = pad[2 * i], pad[2 * i + 1], len(shape) - 1 - i
        source[dim] = slice(max(-before, 0), shape[dim] - max(-after, 0))
        target[dim] = slice(max(before, 0), made[dim] - max(after, 0))
    return tuple(source), tuple(target)


def prepared_pad(xp: Any) -> Any:
    """What prepares plans of `constant_pad_nd`: the parts and the number are always the same."""

    general = constant_pad(xp)

    def prepares(outs: Any, self: Any, pad: Any, value: Any) -> Any:
        made = outs[0].shape
        if outs[0].dtype.name != self.dtype.name or not 0 < max(self.size, prod(made)) <= PREPARED:
            return None
        source, target = _parts(self.shape, pad, made)
        number, sign = number_as(xp, value, self.dtype), sign_of_zero(value)
        if not xp.empty(made, bool)[target].size:
            return None

        def padded(self: Any, pad: Any, value: Any, out: Any) -> Any:
            if sign is not None and copysign(1.0, value) != sign:
                return general(self, pad, value, out)
            out[...] = number
            out[target] = self[source]
            return out

        return padded

    return prepares


# ---- taps


def step_of(dtype: Any, length: int, count: int, align_corners: bool, scale: Any) -> Any:
    """The distance between the sources of two neighbours."""
    if align_corners:
        return dtype(length - 1) / dtype(count - 1) if count > 1 else dtype(0)
    return dtype(1.0 / scale) if scale is not None and scale > 0 else dtype(length) / dtype(count)


def _cubic(x: Any, a: float) -> Any:
    """Keys (1981): the convolution kernel of width 4, by distance."""
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return near * (x <= 1) + far * ((x > 1) & (x < 2))


def taps(xp: Any, mode: str, dtype: Any, length: int, count: int, align_corners: bool, scale: Any) -> tuple[Any, Any]:
    """(indices, weights) [count, taps] of each result along one dim; the weights are None for a copy."""
    at = xp.arange(count, dtype=dtype)
    step = step_of(dtype, length, count, align_corners, scale)
    if mode in (NEAREST, EXACT):
        found = xp.floor((at + dtype(0.5)) * step if mode == EXACT else at * step)
        return xp.minimum(found.astype(xp.int64), length - 1).reshape(-1, 1), None
    if mode not in (LINEAR, CUBIC):
        return _smooth_taps(xp, mode, dtype, length, at, step)
    source = at * step if align_corners else (at + dtype(0.5)) * step - dtype(0.5)
    if mode == LINEAR:
        source = xp.maximum(source, dtype(0))
        first = xp.minimum(source.astype(xp.int64), length - 1)
        part = xp.clip(source - first.astype(dtype), 0, 1)
        second = xp.minimum(first + 1, length - 1)
        return xp.stack([first, second], 1), xp.stack([1 - part, part], 1)
    first = xp.floor(source)
    part = xp.clip(source - first, 0, 1)
    near = xp.arange(-1, 3)
    weights = _cubic(abs(part[:, None] - near.astype(dtype)), -0.75)
    return xp.clip(first.astype(xp.int64)[:, None] + near, 0, length - 1), weights.astype(dtype)


def _smooth_taps(xp: Any, mode: str, dtype: Any, length: int, at: Any, step: Any) -> tuple[Any, Any]:
    """Filters as wide as the step, so that all elements contribute when an image shrinks. The weights add up to 1."""
    half = {SMOOTH_LINEAR: 1.0, SMOOTH_CUBIC: 2.0, SMOOTH_LANCZOS: 3.0}[mode]
    stretch = step if step >= 1 else dtype(1)
    support = dtype(half) * stretch
    centre = (at + dtype(0.5)) * step
    first = xp.maximum((centre - support + dtype(0.5)).astype(xp.int64), 0)
    last = xp.minimum((centre + support + dtype(0.5)).astype(xp.int64), length)
    near = xp.arange(max(int((last - first).max()), 1))
    places = first[:, None] + near
    distance = abs((places.astype(dtype) - centre[:, None] + dtype(0.5)) / stretch)
    if mode == SMOOTH_LINEAR:
        weights = xp.maximum(1 - distance, 0)
    elif mode == SMOOTH_CUBIC:
        weights = _cubic(distance, -0.5)
    else:
        weights = xp.sinc(distance) * xp.sinc(distance / 3) * (distance < 3)
    weights = weights * (places < last[:, None])
    weights = weights / weights.sum(1, keepdims=True)
    return xp.minimum(places, xp.maximum(last - 1, 0)[:, None]), weights.astype(dtype)


def _plans(xp: Any, mode: str, ndim: int, dtype: Any, lengths: Any, counts: Any, rest: Any) -> Any:
    """(dim, indices, weights) for each dim, the last first."""
    align = is_aligned(mode, rest)
    scales = rest[-ndim:]
    for dim in range(ndim - 1, -1, -1):
        found = taps(xp, mode, dtype.type, lengths[dim], counts[dim], align, scales[dim])
        yield (dim - ndim, *found)


def upsample(xp: Any, mode: str, ndim: int) -> Any:
    """The kernel for an array module, a mode and a number of dims."""

    def kernel(self: Any, output_size: Any, *rest: Any) -> Any:
        *options, out = rest
        x = widen(xp, self)
        value = x if x.dtype.kind == "f" else x.astype(xp.float32)
        for dim, indices, weights in _plans(xp, mode, ndim, value.dtype, self.shape[2:], out.shape[2:], options):
            shape = (-1,) + (1,) * (-dim - 1)
            if weights is None:
                value = xp.take(value, indices[:, 0], dim)
                continue
            total: Any = 0
            for tap in range(indices.shape[1]):
                total = total + xp.take(value, indices[:, tap], dim) * weights[:, tap].reshape(shape)
            value = total
        if out.dtype.kind == "u":
            value = xp.clip(xp.floor(value + 0.5), 0, 255)
        return store(xp, out, value)

    return kernel


def upsample_backward(xp: Any, mode: str, ndim: int) -> Any:
    """The kernel for an array module, a mode and a number of dims: the transposed matrix of the weights along each dim."""

    def kernel(grad_output: Any, output_size: Any, input_size: Any, *rest: Any) -> Any:
        *options, out = rest
        value = widen(xp, grad_output)
        lengths, counts = out.shape[2:], grad_output.shape[2:]
        for dim, indices, weights in _plans(xp, mode, ndim, value.dtype, lengths, counts, options):
            matrix = xp.zeros((counts[dim], lengths[dim]), value.dtype)
            rows = xp.arange(counts[dim])
            for tap in range(indices.shape[1]):
                matrix[rows, indices[:, tap]] += 1 if weights is None else weights[:, tap]
            value = xp.moveaxis(xp.matmul(xp.moveaxis(value, dim, -1), matrix), -1, dim)
        return store(xp, out, value)

    return kernel
