"""Rows of normalisation: of rows, of groups of channels and of batches.

The kernels serve contiguous float32 and float64. Other layouts and two-byte floats come as contiguous copies.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from math import prod
from typing import Any

import numpy as np

from turnout.config.tuples import NamedTuple
from turnout.dtypes import float32, float64
from turnout_aten.kernels.rows import Row, Sizes
from turnout_aten.shapes.normalisation import RMS_EPS, check_rows, fits_groups
from turnout_kernels import _native
from turnout_kernels.layouts import any_floats, laid_out_as, packed
from turnout_kernels.native import FLOATS, GRAIN, NUMBER_OF, code, parts_of, plain, run, threads


def _parameters(*arrays: Any) -> list[Any]:
    return [a for a in arrays if a is not None]


def native_layer_norm(
    input: Any, normalized_shape: Sequence[int], weight: Any, bias: Any, eps: float, out: Any, mean: Any, rstd: Any
) -> Any:
    given = _parameters(weight, bias)
    if not out.size or not plain(input, *given, out, mean, rstd) or (weight is None and bias is not None):
        return NotImplemented
    length = prod(normalized_shape)
    scale, shift = (input if p is None else p for p in (weight, bias))
    ints = (code(out), length, int(weight is not None), int(bias is not None), 0)
    run("layer_norm", (out, mean, rstd), (input, scale, shift), ints, (float(eps),))
    return None


_layer_norm = partial(_native.row, "layer_norm", False, GRAIN, 3, 0, False, np.empty_like, threads)


def native_layer_norm_backward(
    grad_out: Any, input: Any, normalized_shape: Sequence[int], mean: Any, rstd: Any, weight: Any, bias: Any,
    output_mask: Sequence[bool],
) -> Any:  # fmt: skip
    length = prod(normalized_shape)
    if not input.size or grad_out.shape != input.shape or not mean.size * length == rstd.size * length == input.size:
        return NotImplemented
    if weight is not None and weight.size != length:
        return NotImplemented
    if not plain(input, grad_out, mean, rstd, *_parameters(weight, bias)):
        return NotImplemented
    parts = max(1, min(-(-input.size // GRAIN), 16))
    wants = [bool(output_mask[0]), bool(output_mask[1]) and weight is not None, bool(output_mask[2]) and bias is not None]
    made = np.empty(input.shape if wants[0] else (1,), input.dtype)
    sums = np.empty((parts, 2, length) if wants[1] or wants[2] else (1,), input.dtype)
    ints = (code(input), length, int(weight is not None), int(wants[0]), int(wants[1] or wants[2]))
    run(
        "layer_norm_backward", (made, sums), (grad_out, input, mean, rstd, input if weight is None else weight), ints, parts=parts
    )
    totals = sums.sum(0)
    found = [made if wants[0] else None, None, None]
    for at, parameter in ((1, weight), (2, bias)):
        if wants[at]:
            found[at] = totals[at - 1].reshape(parameter.shape).copy()
    return tuple(found)


_RMS_EPS = {np.dtype(each.name).char: RMS_EPS[each] for each in (float32, float64)}


def rms_norm(input: Any, normalized_shape: Sequence[int], weight: Any, eps: Any) -> Any:
    check_rows("rms_norm", input, normalized_shape, weight)
    if not input.size or not plain(input, *_parameters(weight)):
        return NotImplemented
    length = prod(normalized_shape)
    made = np.empty(input.shape, input.dtype)
    statistics = np.empty((2, input.size // length), input.dtype)
    ints = (code(input), length, int(weight is not None), 0, 1)
    least = _RMS_EPS[input.dtype.char] if eps is None else float(eps)
    run("layer_norm", (made, statistics[0], statistics[1]), (input, input if weight is None else weight, input), ints, (least,))
    return made


def native_group_norm(
    input: Any, weight: Any, bias: Any, N: int, C: int, HxW: int, group: int, eps: float, out0: Any, out1: Any, out2: Any
) -> Any:
    if not out0.size or not plain(input, *_parameters(weight, bias), out0, out1, out2):
        return NotImplemented
    scale, shift = (input if p is None else p for p in (weight, bias))
    ints = (code(out0), C // group, HxW, group, int(weight is not None), int(bias is not None))
    run("group_norm", (out0, out1, out2), (input, scale, shift), ints, (float(eps),))
    return None


def _prepared_groups(outs: Any, input: Any, weight: Any, bias: Any, N: int, C: int, HxW: int, group: int, eps: float) -> Any:
    """For few floats of one dtype, what the C code is told is always the same."""
    given = [input, *_parameters(weight, bias)]
    if input.dtype.char not in "fd" or not 0 < input.size <= GRAIN or any(out.dtype.name != input.dtype.name for out in outs):
        return None
    if any(a.dtype is not input.dtype or not a.flags.c_contiguous for a in given):
        return None
    ints = (code(input), C // group, HxW, group, int(weight is not None), int(bias is not None))
    floats, number, kernel = (float(eps),), NUMBER_OF["group_norm"], any_floats(native_group_norm, outputs=3)

    def normalised(input: Any, weight: Any, bias: Any, a: Any, b: Any, c: Any, d: Any, e: Any, o: Any, p: Any, q: Any) -> Any:
        scale, shift = input if weight is None else weight, input if bias is None else bias
        if not (input.flags.aligned and scale.flags.aligned and shift.flags.aligned):
            return kernel(input, weight, bias, a, b, c, d, e, o, p, q)
        return _native.run(number, (o, p, q), (input, scale, shift), ints, floats, 1, 1)

    return normalised


def native_group_norm_backward(
    grad_out: Any,
    input: Any,
    mean: Any,
    rstd: Any,
    weight: Any,
    N: int,
    C: int,
    HxW: int,
    group: int,
    output_mask: Sequence[bool],
) -> Any:
    if not fits_groups(input, grad_out, mean, rstd, N, C, HxW, group):
        return NotImplemented
    if not plain(input, grad_out, mean, rstd, *_parameters(weight)) or (weight is not None and weight.size != C):
        return NotImplemented
    made = np.empty(input.shape if output_mask[0] else (1,), input.dtype)
    along, sums = np.empty((N, C), input.dtype), np.empty((N, C), input.dtype)
    ints = (code(input), C // group, HxW, group, int(weight is not None), int(bool(output_mask[0])))
    run("group_norm_backward", (made, along, sums), (grad_out, input, mean, rstd, input if weight is None else weight), ints)
    totals = [t.sum(0) if wanted else None for t, wanted in zip((along, sums), output_mask[1:], strict=True)]
    return made if output_mask[0] else None, *totals


# ---- batches


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


# fmt: off
KERNELS: dict[str, Any] = {
    "native_layer_norm.out":      Row(any_floats(native_layer_norm, outputs=3), quiet=True, sizes=Sizes(over=_layer_norm)),
    "native_layer_norm_backward": any_floats(native_layer_norm_backward, outputs=0),
    "native_group_norm.out":      Row(any_floats(native_group_norm, outputs=3), quiet=True, prepares=_prepared_groups),
    "native_group_norm_backward": any_floats(native_group_norm_backward, outputs=0),
    "rms_norm":                   any_floats(rms_norm, outputs=0),
    "_native_batch_norm_legit.no_stats":    batch_norm_no_stats,
    "_native_batch_norm_legit_functional":  batch_norm_functional,
    "_native_batch_norm_legit_no_training": batch_norm_no_training,
    "native_batch_norm_backward":           native_batch_norm_backward,
}
# fmt: on
