"""Rows of operators of images: depthwise convolution, pooling, interpolation. They serve contiguous float32 and float64."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from turnout_arrays.images import LINEAR, NEAREST, taps
from turnout_kernels.native import buffer, code, parts_of, plain, run

Ints = Sequence[int]


def _pair(values: Ints) -> tuple[int, int]:
    return (values[0], values[-1])


def _depthwise(input: Any, weight: Any, transposed: bool, groups: int) -> bool:
    """Whether each channel has a kernel of its own."""
    return bool(
        not transposed and input.ndim == 4 and input.size and weight.size and groups > 1
        and groups == input.shape[1] == weight.shape[0] and weight.shape[1] == 1
    )  # fmt: skip


def _facts(input: Any, weight: Any, area: Ints, stride: Ints, padding: Ints, dilation: Ints) -> tuple[int, ...]:
    pairs = (*_pair(stride), *_pair(padding), *_pair(dilation))
    return (code(input), *input.shape[1:], *area, *weight.shape[2:], *pairs)


def convolution(
    input: Any, weight: Any, bias: Any, stride: Ints, padding: Ints, dilation: Ints, transposed: bool, output_padding: Ints,
    groups: int, out: Any,
) -> Any:  # fmt: skip
    if not _depthwise(input, weight, transposed, groups) or not out.size:
        return NotImplemented
    weight = np.ascontiguousarray(weight)
    if not plain(input, weight, out) or (bias is not None and not plain(bias, input)):
        return NotImplemented
    facts = _facts(input, weight, out.shape[2:], stride, padding, dilation)
    size = out.size * prod(weight.shape[2:]) // 4
    run("depthwise", (out,), (input, weight, weight if bias is None else bias), (*facts, int(bias is not None)), size=size)
    return out


def convolution_backward(
    grad_output: Any, input: Any, weight: Any, bias_sizes: Any, stride: Ints, padding: Ints, dilation: Ints, transposed: bool,
    output_padding: Ints, groups: int, output_mask: Sequence[bool],
) -> Any:  # fmt: skip
    if not _depthwise(input, weight, transposed, groups) or not grad_output.size or grad_output.ndim != 4:
        return NotImplemented
    if grad_output.shape[:2] != input.shape[:2] or not plain(input, weight, grad_output):
        return NotImplemented
    of_input = np.empty(input.shape if output_mask[0] else (1,), input.dtype)
    of_weight = np.empty(weight.shape if output_mask[1] else (1,), input.dtype)
    wants = (int(bool(output_mask[0])), int(bool(output_mask[1])))
    if any(wants):
        facts = _facts(input, weight, grad_output.shape[2:], stride, padding, dilation)
        parts = min(parts_of(grad_output.size), input.shape[1])
        run("depthwise_backward", (of_input, of_weight), (grad_output, input, weight), (*facts, *wants), parts=parts)
    of_bias = grad_output.sum((0, 2, 3)) if output_mask[2] else None
    return of_input if wants[0] else None, of_weight if wants[1] else None, of_bias


def max_pool2d_with_indices_backward(
    grad_output: Any, self: Any, kernel_size: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool, indices: Any
) -> Any:
    fits = self.ndim == 4 and self.size and grad_output.size and grad_output.shape == indices.shape
    if not fits or grad_output.shape[:2] != self.shape[:2] or not plain(self, grad_output):
        return NotImplemented
    if indices.dtype != np.int64 or not indices.flags.c_contiguous:
        return NotImplemented
    made, parts = np.empty(self.shape, self.dtype), parts_of(self.size)
    wrong = np.zeros(parts, np.uint8)
    ints = (code(self), prod(self.shape[2:]), prod(grad_output.shape[2:]))
    run("pool_backward", (made, wrong), (grad_output, indices), ints, parts=parts)
    return NotImplemented if wrong.any() else made


# ---- interpolation


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
    if self.ndim != 4 or not out.size or self.dtype is not out.dtype or self.itemsize not in (1, 2, 4, 8):
        return NotImplemented
    if not self.flags.c_contiguous or not out.flags.c_contiguous:
        return NotImplemented
    plans = []
    for length, count, scale in zip(self.shape[2:], out.shape[2:], (scales_h, scales_w), strict=True):
        dtype = np.float64 if self.dtype.char == "d" else np.float32
        indices, _ = taps(np, NEAREST, dtype, length, count, False, scale)
        plans.append(np.ascontiguousarray(indices[:, 0].astype(np.int64)))
    ints = (self.itemsize, *self.shape[2:], *out.shape[2:])
    run("nearest", (buffer(out),), (buffer(self), *plans), ints, size=out.size)
    return out


# fmt: off
KERNELS_BY_OPERATOR: dict[str, Any] = {
    "convolution.out":        convolution,
    "convolution_backward":   convolution_backward,
    "max_pool2d_with_indices_backward": max_pool2d_with_indices_backward,
    "upsample_bilinear2d.out": upsample_bilinear2d,
    "upsample_nearest2d.out":  upsample_nearest2d,
}
# fmt: on
