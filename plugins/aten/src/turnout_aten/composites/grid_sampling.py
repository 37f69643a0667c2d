"""Sampling of images at any coordinates, grids of affine maps, and rearrangements between channels and pixels.

A grid holds coordinates in [-1, 1], x first. Each dim is treated separately. Coordinates become indices; indices outside the
image are moved inside (border, reflection) or read as zero. A result is a weighted sum of elements gathered from the flattened
image.
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import TYPE_CHECKING

from turnout.dtypes import FLOAT, int64
from turnout.errors import ArgumentError, DTypeError, ShapeError
from turnout_aten import operators as aten
from turnout_aten.composites.layouts import lying
from turnout_aten.errors import arguments as texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnout_aten.tensor.tensor import Tensor

LINEAR, NEAREST, CUBIC = 0, 1, 2
ZEROS, BORDER, REFLECTION = 0, 1, 2


def grid_sampler(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Tensor:
    """grid_sampler_2d or grid_sampler_3d."""
    if input.ndim == 4:
        return aten.grid_sampler_2d(input, grid, interpolation_mode, padding_mode, align_corners)
    if input.ndim == 5:
        return aten.grid_sampler_3d(input, grid, interpolation_mode, padding_mode, align_corners)
    raise ShapeError(f"grid_sampler: 'input' must have 4 or 5 dimensions, got shape {list(input.shape)}")


def grid_sampler_2d(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Tensor:
    """[N, C, H, W] sampled at [N, *out, 2]. interpolation: 0 bilinear, 1 nearest, 2 bicubic; padding: 0 zeros, 1 border,
    2 reflection."""
    return _sampled("grid_sampler_2d", 2, input, grid, interpolation_mode, padding_mode, align_corners)


def grid_sampler_3d(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Tensor:
    """[N, C, D, H, W] sampled at [N, *out, 3]. Bicubic is not available."""
    return _sampled("grid_sampler_3d", 3, input, grid, interpolation_mode, padding_mode, align_corners)


def _check(name: str, ndim: int, input: Tensor, grid: Tensor, mode: int, padding: int) -> None:
    a, b = input.shape, grid.shape
    if len(a) != ndim + 2 or len(b) != ndim + 2 or a[0] != b[0] or b[-1] != ndim or 0 in a[1:]:
        raise ShapeError(
            f"{name}: 'input' [N, C, ...] and 'grid' [N, ..., {ndim}] do not fit, got shapes {list(a)} and {list(b)}"
        )
    if input.dtype is not grid.dtype:
        raise DTypeError(f"{name}: 'input' and 'grid' must have one dtype, got {input.dtype.name} and {grid.dtype.name}")
    if input.dtype.category != FLOAT:
        raise DTypeError(texts.undefined_for(name, input.dtype))
    if mode not in ((0, 1, 2) if ndim == 2 else (0, 1)) or padding not in (0, 1, 2):
        raise ArgumentError(f"{name}: interpolation mode {mode} with padding mode {padding} is not available")


def _sampled(name: str, ndim: int, input: Tensor, grid: Tensor, mode: int, padding: int, align_corners: bool) -> Tensor:
    _check(name, ndim, input, grid, mode, padding)
    lengths = input.shape[2:]
    # x, the last dim of the image, comes first in the grid.
    coordinates = [_unnormalised(aten.select__int(grid, -1, ndim - 1 - i), n, align_corners) for i, n in enumerate(lengths)]
    if mode != CUBIC:
        coordinates = [_inside(c, n, padding, align_corners) for c, n in zip(coordinates, lengths, strict=True)]
    choices = [_choices(c, n, mode, padding, align_corners) for c, n in zip(coordinates, lengths, strict=True)]
    flat = aten.reshape(input, (*input.shape[:2], prod(lengths)))
    total: Tensor | None = None
    for corner in product(*choices):
        part = _read(flat, lengths, corner, padding if mode != CUBIC else ZEROS, grid.shape[1:-1])
        total = part if total is None else aten.add__Tensor(total, part)
    assert total is not None
    return lying(total)


def _unnormalised(x: Tensor, length: int, align_corners: bool) -> Tensor:
    """Convert [-1, 1] to indices. 1 is the centre of the last element, or its outer edge."""
    if align_corners:
        return aten.mul__Scalar(aten.add__Scalar(x, 1), (length - 1) / 2)
    return aten.div__Scalar(aten.sub__Scalar(aten.mul__Scalar(aten.add__Scalar(x, 1), length), 1), 2)


def _inside(x: Tensor, length: int, padding: int, align_corners: bool) -> Tensor:
    """Move coordinates into the image, by clipping or by reflection at its edges."""
    if padding == ZEROS:
        return x
    if padding == REFLECTION:
        low, high = (0.0, length - 1.0) if align_corners else (-0.5, length - 0.5)
        span = high - low
        if not span:
            return aten.mul__Scalar(x, 0)
        distance = aten.abs(aten.sub__Scalar(x, low))
        flips = aten.detach(aten.floor(aten.div__Scalar(distance, span)))
        extra = aten.sub__Tensor(distance, aten.mul__Scalar(flips, span))
        odd = aten.ne__Scalar(aten.remainder__Scalar(flips, 2), 0)
        x = aten.add__Scalar(aten.where__self(odd, aten.rsub__Scalar(extra, span), extra), low)
    return aten.clamp(x, 0, length - 1)


def _choices(x: Tensor, length: int, mode: int, padding: int, align_corners: bool) -> list[tuple[Tensor, Tensor | None]]:
    """The elements that a coordinate reads along one dim, as (index as a float, weight). A weight of None means 1."""
    if mode == NEAREST:
        return [(aten.detach(aten.round(x)), None)]
    first = aten.detach(aten.floor(x))
    part = aten.sub__Tensor(x, first)
    if mode == LINEAR:
        return [(first, aten.rsub__Scalar(part, 1)), (aten.add__Scalar(first, 1), part)]
    found: list[tuple[Tensor, Tensor | None]] = []
    for offset, weight in zip(range(-1, 3), _cubic_weights(part), strict=True):
        index = aten.add__Scalar(first, offset)
        inside = _inside(index, length, padding, align_corners)
        if padding == ZEROS:
            weight = aten.mul__Tensor(weight, aten.to__dtype(_is_inside(index, length), weight.dtype))
            inside = aten.clamp(index, 0, length - 1)
        found.append((inside, weight))
    return found


def _cubic_weights(t: Tensor) -> list[Tensor]:
    """Cubic weights of Keys (1981) with a = -0.75, at distances t + 1, t, 1 - t and 2 - t."""
    a = -0.75

    def polynomial(x: Tensor, *coefficients: float) -> Tensor:
        made = aten.mul__Scalar(x, coefficients[0])
        for c in coefficients[1:-1]:
            made = aten.mul__Tensor(aten.add__Scalar(made, c), x)
        return aten.add__Scalar(made, coefficients[-1])

    def near(x: Tensor) -> Tensor:
        return polynomial(x, a + 2, -(a + 3), 0.0, 1.0)

    def far(x: Tensor) -> Tensor:
        return polynomial(x, a, -5 * a, 8 * a, -4 * a)

    s = aten.rsub__Scalar(t, 1)
    return [far(aten.add__Scalar(t, 1)), near(t), near(s), far(aten.add__Scalar(s, 1))]


def _is_inside(index: Tensor, length: int) -> Tensor:
    return aten.logical_and(aten.ge__Scalar(index, 0), aten.le__Scalar(index, length - 1))


def _read(
    flat: Tensor, lengths: Sequence[int], corner: Sequence[tuple[Tensor, Tensor | None]], padding: int, out: Sequence[int]
) -> Tensor:
    """The elements of [N, C, L] at one index per dim, times the weights; zero if an index is outside."""
    place: Tensor | None = None
    weight: Tensor | None = None
    inside: Tensor | None = None
    for (index, factor), length in zip(corner, lengths, strict=True):
        here = _is_inside(index, length)
        inside = here if inside is None else aten.logical_and(inside, here)
        whole = aten.to__dtype(aten.clamp(index, 0, length - 1), int64)
        place = whole if place is None else aten.add__Tensor(aten.mul__Scalar(place, length), whole)
        if factor is not None:
            weight = factor if weight is None else aten.mul__Tensor(weight, factor)
    assert place is not None
    assert inside is not None
    n, c = flat.shape[:2]
    rows = aten.expand(aten.reshape(place, (n, 1, -1) if n else (0, 1, prod(out))), (n, c, prod(out)))
    value: Tensor = aten.reshape(aten.gather(flat, 2, rows), (n, c, *out))
    value = aten.masked_fill__Scalar(value, aten.logical_not(aten.unsqueeze(inside, 1)), 0)
    return value if weight is None else aten.mul__Tensor(value, aten.unsqueeze(weight, 1))


def affine_grid_generator(theta: Tensor, size: Sequence[int], align_corners: bool) -> Tensor:
    """The grid [N, *out, dims] of the points that theta [N, dims, dims + 1] maps each output position to."""
    ndim = len(size) - 2
    if ndim not in (2, 3) or theta.shape != (size[0], ndim, ndim + 1):
        raise ShapeError(
            f"affine_grid_generator: 'theta' must be [N, 2, 3] for a size [N, C, H, W], or [N, 3, 4] for [N, C, D, H, W]; got "
            f"shape {list(theta.shape)} and size {list(size)}"
        )
    lengths = tuple(size[2:])
    columns = []
    for i in reversed(range(ndim)):
        n = lengths[i]
        at = aten.arange(n, dtype=theta.dtype, device=theta.device)
        if align_corners:
            at = aten.sub__Scalar(aten.mul__Scalar(at, 2 / (n - 1)), 1) if n > 1 else aten.mul__Scalar(at, 0)
        else:
            at = aten.sub__Scalar(aten.div__Scalar(aten.add__Scalar(aten.mul__Scalar(at, 2), 1), n), 1)
        shape = [1] * ndim
        shape[i] = n
        columns.append(aten.expand(aten.reshape(at, shape), lengths))
    columns.append(aten.ones_like(columns[0]))
    base = aten.reshape(aten.stack(columns, -1), (1, prod(lengths), ndim + 1))
    made = aten.bmm(aten.expand(base, (size[0], prod(lengths), ndim + 1)), aten.transpose__int(theta, 1, 2))
    return aten.reshape(made, (size[0], *lengths, ndim))


# ---- channels and pixels


def _factored(name: str, self: Tensor, factor: int) -> None:
    if self.ndim < 3:
        raise ShapeError(texts.few_dims(name, "self", 3, self.shape))
    if factor < 1:
        raise ShapeError(f"{name}: the factor must be positive, got {factor}")


def pixel_shuffle(self: Tensor, upscale_factor: int) -> Tensor:
    """[*, C r^2, H, W] -> [*, C, H r, W r]"""
    r = upscale_factor
    _factored("pixel_shuffle", self, r)
    *lead, c, h, w = self.shape
    if c % (r * r):
        raise ShapeError(f"pixel_shuffle: the number of channels, {c}, must be a multiple of {r * r}, the square of the factor")
    n = len(lead)
    split = aten.reshape(self, (*lead, c // (r * r), r, r, h, w))
    made = aten.permute(split, (*range(n), n, n + 3, n + 1, n + 4, n + 2))
    return _copied(self, made, (*lead, c // (r * r), h * r, w * r))


def pixel_unshuffle(self: Tensor, downscale_factor: int) -> Tensor:
    """[*, C, H r, W r] -> [*, C r^2, H, W]"""
    r = downscale_factor
    _factored("pixel_unshuffle", self, r)
    *lead, c, h, w = self.shape
    if h % r or w % r:
        raise ShapeError(f"pixel_unshuffle: height {h} and width {w} must be multiples of the factor, {r}")
    n = len(lead)
    split = aten.reshape(self, (*lead, c, h // r, r, w // r, r))
    made = aten.permute(split, (*range(n), n, n + 2, n + 4, n + 1, n + 3))
    return _copied(self, made, (*lead, c * r * r, h // r, w // r))


def channel_shuffle(self: Tensor, groups: int) -> Tensor:
    """The channels (dim 1) reordered: one from each group in turn."""
    if self.ndim < 3:
        raise ShapeError(texts.few_dims("channel_shuffle", "self", 3, self.shape))
    n, c, *rest = self.shape
    if groups < 1:
        raise ShapeError(texts.not_positive("channel_shuffle", "groups", groups))
    if c % groups:
        raise ShapeError(texts.ungrouped("channel_shuffle", c, groups))
    split = aten.reshape(self, (n, groups, c // groups, *rest))
    return _copied(self, aten.transpose__int(split, 1, 2), self.shape)


def _copied(self: Tensor, made: Tensor, shape: Sequence[int]) -> Tensor:
    """A reshaped copy."""
    return aten.reshape(aten.clone(made, memory_format="contiguous_format"), tuple(shape))
