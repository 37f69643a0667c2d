"""Rows of operators of images: normalisation of batches, interpolation. They serve contiguous float32 and float64."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from turnout.config.tuples import NamedTuple
from turnout_arrays.images import LINEAR, NEAREST, taps
from turnout_kernels import _native
from turnout_kernels.layouts import MOVED_SIZES, any_floats, laid_out_as, packed
from turnout_kernels.native import FLOATS, GRAIN, NUMBER_OF, buffer, code, parts_of, plain, run, whole

Ints = Sequence[int]


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
    "_native_batch_norm_legit.no_stats":    batch_norm_no_stats,
    "_native_batch_norm_legit_functional":  batch_norm_functional,
    "_native_batch_norm_legit_no_training": batch_norm_no_training,
    "native_batch_norm_backward":           native_batch_norm_backward,
    "upsample_bilinear2d.out": any_floats(upsample_bilinear2d),
    "upsample_linear1d.out":   any_floats(upsample_linear1d),
    "upsample_nearest2d.out":  upsample_nearest2d,
    "upsample_nearest1d.out":  upsample_nearest1d,
}
# fmt: on
