"""Rows of operators of images: depthwise convolution, pooling, interpolation. They serve contiguous float32 and float64."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from turnout.config.tuples import NamedTuple
from turnout_arrays.images import LINEAR, NEAREST, taps
from turnout_aten.kernels.rows import Row
from turnout_aten.shapes.convolutions import check_gradient
from turnout_kernels import _native
from turnout_kernels.convolutions import convolve, convolve_backward, convolve_transposed, is_few, pair
from turnout_kernels.layouts import MOVED_SIZES, any_floats, laid_out_as, packed
from turnout_kernels.native import FEW, FLOATS, GRAIN, NUMBER_OF, buffer, code, parts_of, plain, run, whole
from turnout_kernels.pointwise import halves

Ints = Sequence[int]


def _depthwise(input: Any, weight: Any, transposed: bool, groups: int) -> bool:
    """Whether each channel has a kernel of its own."""
    return bool(
        not transposed and input.ndim == 4 and input.size and weight.size and groups > 1
        and groups == input.shape[1] == weight.shape[0] and weight.shape[1] == 1
    )  # fmt: skip


def _facts(input: Any, weight: Any, area: Ints, stride: Ints, padding: Ints, dilation: Ints) -> tuple[int, ...]:
    pairs = (*pair(stride), *pair(padding), *pair(dilation))
    return (code(input), *input.shape[1:], *area, *weight.shape[2:], *pairs)


_convolve, _convolve_transposed = any_floats(convolve), any_floats(convolve_transposed)


def convolution(
    input: Any, weight: Any, bias: Any, stride: Ints, padding: Ints, dilation: Ints, transposed: bool, output_padding: Ints,
    groups: int, out: Any,
) -> Any:  # fmt: skip
    if not _depthwise(input, weight, transposed, groups) or not out.size:
        many = halves(input) and out.size > FEW  # converted once, and not window by window
        if transposed:
            kernel = _convolve_transposed if many else convolve_transposed
            return kernel(input, weight, bias, stride, padding, dilation, output_padding, groups, out)
        return (_convolve if many else convolve)(input, weight, bias, stride, padding, dilation, groups, out)
    weight = np.require(weight, None, ("C", "A"))
    if not plain(input, weight, out) or (bias is not None and not plain(bias, input)):
        return NotImplemented
    facts = _facts(input, weight, out.shape[2:], stride, padding, dilation)
    size = out.size * prod(weight.shape[2:]) // 4
    run("depthwise", (out,), (input, weight, weight if bias is None else bias), (*facts, int(bias is not None)), size=size)
    return out


def _left_convolution(outs: Any, input: Any, weight: Any, *args: Any) -> Any:
    """No plan is prepared here; the row below may, for what it gets."""
    *_, transposed, _, groups = args
    few = not transposed and is_few(weight, outs[0].shape) and not _depthwise(input, weight, transposed, groups)
    return NotImplemented if few else None


def convolution_backward(
    grad_output: Any, input: Any, weight: Any, bias_sizes: Any, stride: Ints, padding: Ints, dilation: Ints, transposed: bool,
    output_padding: Ints, groups: int, output_mask: Sequence[bool],
) -> Any:  # fmt: skip
    check_gradient(grad_output.shape, input.shape, weight.shape, stride, padding, dilation, transposed, output_padding, groups)
    if not _depthwise(input, weight, transposed, groups) or not grad_output.size:
        if transposed or input.ndim != 4:
            return NotImplemented
        made = convolve_backward(grad_output, input, weight, stride, padding, dilation, groups, output_mask)
        return made if made is NotImplemented else (*made, grad_output.sum((0, 2, 3)) if output_mask[2] else None)
    if not plain(input, weight, grad_output):
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


# ---- normalisation of batches


class _Channels(NamedTuple):
    """What the kernels of batch normalisation read: contiguous floats of one dtype."""

    input: Any
    scale: Any
    shift: Any

    @property
    def ints(self) -> tuple[int, ...]:
        return (code(self.input), self.input.shape[1], prod(self.input.shape[2:]))

    @property
    def parts(self) -> int:
        """Each does some of the channels."""
        return min(parts_of(self.input.size), int(self.input.shape[1]))


def _channels(input: Any, weight: Any, bias: Any, *statistics: Any) -> _Channels | None:
    """An input [N, C, ...] and its parameters [C], which may be None. None if the kernels do not serve them."""
    given = [p for p in (weight, bias, *statistics) if p is not None]
    if input.ndim < 2 or not input.size or input.dtype.char not in FLOATS:
        return None
    char, channels, count = "d" if input.dtype.char == "d" else "f", input.shape[1:2], input.shape[1]
    for each in given:  # no generator: its frames would take longer than the kernel of a few numbers
        if each.shape != channels or each.dtype.char not in FLOATS or (char == "f" and each.dtype.char == "d"):
            return None
    scale = np.ones(count, char) if weight is None else packed(weight, char)
    shift = np.zeros(count, char) if bias is None else packed(bias, char)
    return _Channels(packed(input, char), scale, shift)


_ones, _zeros = lru_cache(32)(np.ones), lru_cache(32)(np.zeros)  # of few channels; nobody writes into them


def _normalised(work: _Channels, eps: float, mean: Any = None, variance: Any = None) -> tuple[Any, Any, Any]:
    """The normalised input, with the statistics that were used: those given, or those of the input."""
    given = mean is not None
    dtype, count = work.input.dtype, work.input.shape[1]
    if not given:
        mean, variance = np.empty(count, dtype), np.empty(count, dtype)
    made = np.empty(work.input.shape, dtype)
    run("batch_norm", (made, mean, variance), work, (*work.ints, int(given)), (float(eps),), parts=work.parts)
    return made, mean, variance


def batch_norm_no_stats(input: Any, weight: Any, bias: Any, training: bool, momentum: float, eps: float) -> Any:
    work = _channels(input, weight, bias) if training else None
    return NotImplemented if work is None else _of_batch(input, weight, work, eps)[0]


def batch_norm_functional(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, momentum: float, eps: float
) -> Any:
    work = _channels(input, weight, bias, running_mean, running_var) if training else None
    if work is None:
        return NotImplemented
    made, mean, variance = _of_batch(input, weight, work, eps)
    count = input.size // input.shape[1]
    unbiased = variance * count / (count - 1) if count > 1 else np.full_like(variance, np.nan)
    moved = [
        old * old.dtype.type(1 - momentum) + new.astype(old.dtype) * old.dtype.type(momentum)
        for old, new in ((running_mean, mean), (running_var, unbiased))
    ]
    return *made, *moved


def _of_batch(input: Any, weight: Any, work: _Channels, eps: float) -> tuple[tuple[Any, Any, Any], Any, Any]:
    """The results in training, with the mean and the variance of each channel."""
    values, mean, variance = _normalised(work, eps)
    kept = input.dtype if weight is None else weight.dtype
    factor = _reciprocal_deviation(variance, eps)
    return (laid_out_as(values, input), mean.astype(kept, copy=False), factor.astype(kept, copy=False)), mean, variance


def _reciprocal_deviation(variance: Any, eps: float) -> Any:
    return (1 / np.sqrt(variance.astype(np.float64) + eps)).astype(variance.dtype)


def batch_norm_no_training(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, momentum: float, eps: float
) -> Any:
    given = [p for p in (weight, bias, running_mean, running_var) if p is not None]
    if 0 < input.size <= GRAIN and input.ndim > 1 and plain(input, *given):  # few floats as they are: without ten frames
        count, char = input.shape[1], input.dtype.char
        for each in given:
            if each.shape != (count,):
                return NotImplemented
        values = np.empty(input.shape, input.dtype)
        scale, shift = _ones(count, char) if weight is None else weight, _zeros(count, char) if bias is None else bias
        ints = (code(input), count, prod(input.shape[2:]), 1)
        inputs, outputs = (input, scale, shift), (values, running_mean, running_var)
        _native.run(NUMBER_OF["batch_norm"], outputs, inputs, ints, (float(eps),), 1, 1)
        return values, np.empty(0, input.dtype), np.empty(0, input.dtype)
    work = _channels(input, weight, bias, running_mean, running_var)
    if work is None:
        return NotImplemented
    char = work.input.dtype.char
    values = _normalised(work, eps, packed(running_mean, char), packed(running_var, char))[0]
    return laid_out_as(values, input), np.empty(0, input.dtype), np.empty(0, input.dtype)


def native_batch_norm_backward(
    grad_out: Any, input: Any, weight: Any, running_mean: Any, running_var: Any, save_mean: Any, save_invstd: Any, train: bool,
    eps: float, output_mask: Sequence[bool],
) -> Any:  # fmt: skip
    mean = save_mean if train else running_mean
    spread = save_invstd if train else running_var
    if mean is None or spread is None or grad_out.shape != input.shape or grad_out.dtype is not input.dtype:
        return NotImplemented
    work = _channels(input, weight, None, mean, spread)
    if work is None:
        return NotImplemented
    char, count, wanted = work.input.dtype.char, input.shape[1], bool(output_mask[0])
    mean, spread = packed(mean, char), packed(spread, char)
    factor = spread if train else _reciprocal_deviation(spread, eps)
    made = np.empty(input.shape if wanted else (1,), char)
    of_scale, of_shift = np.empty(count, char), np.empty(count, char)
    arrays = (packed(grad_out, char), work.input, mean, factor, work.scale)
    run("batch_norm_backward", (made, of_scale, of_shift), arrays, (*work.ints, int(wanted), int(bool(train))), parts=work.parts)
    kept = input.dtype if weight is None else weight.dtype
    found = [g.astype(kept, copy=False) if w else None for g, w in zip((of_scale, of_shift), output_mask[1:], strict=True)]
    return laid_out_as(made, input) if wanted else None, *found


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
    "convolution.out":        Row(convolution, prepares=_left_convolution),
    "convolution_backward":   convolution_backward,
    "_native_batch_norm_legit.no_stats":    batch_norm_no_stats,
    "_native_batch_norm_legit_functional":  batch_norm_functional,
    "_native_batch_norm_legit_no_training": batch_norm_no_training,
    "native_batch_norm_backward":           native_batch_norm_backward,
    "max_pool2d_with_indices.out": Row(any_floats(max_pool2d_with_indices, outputs=2), prepares=_prepared_pooling),
    "avg_pool2d.out":          any_floats(avg_pool2d),
    "_adaptive_avg_pool2d.out": any_floats(adaptive_avg_pool2d),
    "upsample_bilinear2d.out": any_floats(upsample_bilinear2d),
    "upsample_linear1d.out":   any_floats(upsample_linear1d),
    "upsample_nearest2d.out":  upsample_nearest2d,
    "upsample_nearest1d.out":  upsample_nearest1d,
}
# fmt: on
