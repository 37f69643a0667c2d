"""Rows of pooling. They serve contiguous float32 and float64."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from turnout_aten.kernels.rows import Row
from turnout_kernels import _native
from turnout_kernels.convolutions import pair
from turnout_kernels.layouts import any_floats
from turnout_kernels.native import GRAIN, NUMBER_OF, code, parts_of, plain, run, whole

Ints = Sequence[int]


def _window(kernel: Ints, stride: Ints, padding: Ints) -> tuple[int, ...]:
    return (*pair(kernel), *pair(stride if len(stride) else kernel), *pair(padding))


def max_pool2d_with_indices(
    self: Any, kernel_size: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool, out: Any, indices: Any
) -> Any:
    if not out.size or not plain(self, out) or prod(self.shape[-2:]) >= 1 << 31:
        return NotImplemented
    if indices.dtype != np.int64 or not whole(indices):
        return NotImplemented
    window = _window(kernel_size, stride, padding)
    ints = (code(self), *self.shape[-2:], *out.shape[-2:], *window, *pair(dilation))
    run("max_pool", (out, indices), (self,), ints, size=out.size * window[0] * window[1])
    return None


def _prepared_pooling(
    outs: Any, self: Any, kernel_size: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool
) -> Any:  # fmt: skip
    """For few floats the numbers that the C code is told are always the same."""
    (*_, height, width), size = outs[0].shape, prod(outs[0].shape)
    window = _window(kernel_size, stride, padding)
    few = 0 < max(self.size, size * window[0] * window[1]) <= GRAIN
    if not few or self.dtype.char not in "fd" or not self.flags.c_contiguous:
        return None
    ints, number = (code(self), *self.shape[-2:], height, width, *window, *pair(dilation)), NUMBER_OF["max_pool"]
    kernel = any_floats(max_pool2d_with_indices, outputs=2)

    def pooled(self: Any, a: Any, b: Any, c: Any, d: Any, e: Any, out: Any, indices: Any) -> None:
        if not self.flags.aligned:
            return kernel(self, a, b, c, d, e, out, indices)
        _native.run(number, (out, indices), (self,), ints, (), 1, 1)

    return pooled


def avg_pool2d(
    self: Any, kernel_size: Ints, stride: Ints, padding: Ints, ceil_mode: bool, count_include_pad: bool, divisor: Any, out: Any
) -> Any:
    if not out.size or not plain(self, out):
        return NotImplemented
    window = _window(kernel_size, stride, padding)
    ints = (code(self), *self.shape[-2:], *out.shape[-2:], *window, int(bool(count_include_pad)), int(divisor or 0))
    run("mean_pool", (out,), (self,), ints, size=out.size * window[0] * window[1])
    return out


def adaptive_avg_pool2d(self: Any, output_size: Ints, out: Any) -> Any:
    if not out.size or not plain(self, out):
        return NotImplemented
    parts = parts_of(self.size)
    sums = np.empty((parts, self.shape[-1]))
    run("mean_windows", (out, sums), (self,), (code(self), *self.shape[-2:], *out.shape[-2:]), parts=parts)
    return out


# fmt: off
KERNELS: dict[str, Any] = {
    "max_pool2d_with_indices.out": Row(any_floats(max_pool2d_with_indices, outputs=2), prepares=_prepared_pooling),
    "avg_pool2d.out":              any_floats(avg_pool2d),
    "_adaptive_avg_pool2d.out":    any_floats(adaptive_avg_pool2d),
}
# fmt: on
