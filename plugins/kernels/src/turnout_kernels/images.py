"""Rows of interpolation of images. They serve contiguous float32 and float64."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from turnout_arrays.images import LINEAR, NEAREST, taps
from turnout_kernels.layouts import MOVED_SIZES, any_floats
from turnout_kernels.native import buffer, code, parts_of, plain, run, whole

Ints = Sequence[int]


def upsample_bilinear2d(self: Any, output_size: Ints, align_corners: bool, scales_h: Any, scales_w: Any, out: Any) -> Any:
    if self.ndim != 4 or not out.size or not plain(self, out):
        return NotImplemented
    plans = []
    for length, count, scale in zip(self.shape[2:], out.shape[2:], (scales_h, scales_w), strict=True):
        indices, weights = taps(np, LINEAR, self.dtype.type, length, count, bool(align_corners), scale)
        plans += [np.ascontiguousarray(indices.T.astype(np.int64)), np.ascontiguousarray(weights.T.astype(self.dtype))]
    parts = parts_of(out.size)
    lines = np.empty((parts, self.shape[3]), self.dtype)
    run("bilinear", (out, lines), (self, *plans), (code(self), *self.shape[2:], *out.shape[2:]), parts=parts)
    return out


def upsample_nearest2d(self: Any, output_size: Ints, scales_h: Any, scales_w: Any, out: Any) -> Any:
    if self.ndim != 4 or not out.size or self.dtype is not out.dtype or self.itemsize not in MOVED_SIZES:
        return NotImplemented
    if not whole(out):
        return NotImplemented
    self = np.require(self, None, ("C", "A"))
    plans = []
    for length, count, scale in zip(self.shape[2:], out.shape[2:], (scales_h, scales_w), strict=True):
        dtype = np.float64 if self.dtype.char == "d" else np.float32
        indices, _ = taps(np, NEAREST, dtype, length, count, False, scale)
        plans.append(np.ascontiguousarray(indices[:, 0].astype(np.int64)))
    ints = (self.itemsize, *self.shape[2:], *out.shape[2:])
    run("nearest", (buffer(out),), (buffer(self), *plans), ints, size=out.size)
    return out


def upsample_linear1d(self: Any, output_size: Ints, align_corners: bool, scales: Any, out: Any) -> Any:
    if self.ndim != 3 or not out.size or not plain(self, out):
        return NotImplemented
    upsample_bilinear2d(self[:, :, None], (1, *output_size), align_corners, None, scales, out[:, :, None])
    return out


def upsample_nearest1d(self: Any, output_size: Ints, scales: Any, out: Any) -> Any:
    if self.ndim != 3:
        return NotImplemented
    made = upsample_nearest2d(self[:, :, None], (1, *output_size), None, scales, out[:, :, None])
    return NotImplemented if made is NotImplemented else out


# fmt: off
KERNELS: dict[str, Any] = {
    "upsample_bilinear2d.out": any_floats(upsample_bilinear2d),
    "upsample_linear1d.out":   any_floats(upsample_linear1d),
    "upsample_nearest2d.out":  upsample_nearest2d,
    "upsample_nearest1d.out":  upsample_nearest1d,
}
# fmt: on
