"""Convolutions with many channels, in one or two dims, and depthwise ones, with their gradients: float32 and float64.

Not served, because products of matrices are as fast: kernels of one element, few channels, and images so small that most of a
line of the padded image would lie between rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from turnout.config.tuples import NamedTuple
from turnout_aten.kernels.rows import Row
from turnout_aten.shapes.convolutions import check_gradient
from turnout_kernels.layouts import any_floats
from turnout_kernels.native import FEW, MOST_PARTS, code, parts_of, plain, run, whole
from turnout_kernels.pointwise import halves

Ints = Sequence[int]

# As in native/convolutions.h.
_BLOCK = 8
_MOST_TAPS = 128
# Products of two numbers from which on a call is worth its preparation.
_FEW = 1 << 21
# Bytes of the padded rows that a part keeps, in the second-level cache, and parts from which on threads have enough to share.
_KEPT = 384 << 10
_PARTS = 8
# Parts of the gradient of the weights, each of which has sums of its own.
_PARTS_OF_WEIGHTS = 16
# Elements of a line of which the columns between rows, and the end of the last tile, are a small part.
_LINE = 192
_DEPTH = 1 << 13


class Plan(NamedTuple):
    """What the kernels are told of a convolution, and how many parts it has."""

    ints: tuple[int, ...]
    parts: int
    depth: int


def _plan(
    input: Any, weight: Any, stride: Ints, padding: Ints, dilation: Ints, groups: int, shape: tuple[int, ...]
) -> Plan | None:  # fmt: skip
    """The plan of a convolution of images with a result of that shape; None if it is not served."""
    if input.ndim != 4 or not input.size or not weight.size or not prod(shape):
        return None
    inputs, kernel_height, kernel_width = weight.shape[1:]
    outputs, taps = weight.shape[0] // groups, kernel_height * kernel_width
    depth = inputs * taps
    if taps == 1 or taps > _MOST_TAPS or outputs < _BLOCK - 2 or depth > _DEPTH or prod(shape) * depth < _FEW:
        return None
    (sh, sw), (ph, pw), (dh, dw) = (pair(v) for v in (stride, padding, dilation))
    images, (height, width) = shape[0] * groups, shape[2:]
    between = (kernel_width - 1) * dw // sw
    if width < 3 * between or height * width < _LINE:
        return None
    row = inputs * (width + between) * min(sh * sw, taps) * input.itemsize
    rows = max(_KEPT // row - (kernel_height - 1) * dh // sh, -(-_LINE // width), 1)
    if images * -(-height // rows) < _PARTS:
        rows = max(height * images // _PARTS, -(-_LINE // width))
    rows = -(-height // max(1, height // rows))
    sizes = (groups, inputs, outputs, *input.shape[2:], height, width, kernel_height, kernel_width)
    ints = (code(input), *sizes, sh, sw, ph, pw, dh, dw, rows)
    return Plan(ints, images * -(-height // rows), depth)


def _is_few(weight: Any, shape: tuple[int, ...]) -> bool:
    """Whether a convolution with a result of that shape is left to products of matrices because of its size."""
    return bool(weight.size and prod(shape) * (weight.size // weight.shape[0]) < _FEW)


def convolve(input: Any, weight: Any, bias: Any, stride: Ints, padding: Ints, dilation: Ints, groups: int, out: Any) -> Any:
    """Write a convolution into `out`."""
    if input.ndim == 3 and out.ndim == weight.ndim == 3:
        two = ((1, *stride), (0, *padding), (1, *dilation))
        made = convolve(input[:, :, None], weight[:, :, None], bias, *two, groups, out[:, :, None])
        return NotImplemented if made is NotImplemented else out
    plan = _plan(input, weight, stride, padding, dilation, groups, out.shape)
    input = input if plan is None else _in_order(input)
    if plan is None or not plain(input, out) or weight.dtype is not input.dtype or (bias is not None and not plain(bias, input)):
        return NotImplemented
    parts = min(plan.parts, MOST_PARTS)
    failed = np.zeros(parts, np.uint8)
    blocks = _blocks(weight, groups)
    run(
        "convolve",
        (out, failed),
        (input, blocks, blocks if bias is None else bias),
        (*plan.ints, int(bias is not None)),
        parts=parts,
    )
    return NotImplemented if failed.any() else out


def convolve_transposed(
    input: Any, weight: Any, bias: Any, stride: Ints, padding: Ints, dilation: Ints, output_padding: Ints, groups: int, out: Any
) -> Any:  # fmt: skip
    """Write a transposed convolution of stride 1: a convolution with the kernel turned around."""
    kernel = weight.shape[2:]
    before = [d * (k - 1) - p for d, k, p in zip(dilation, kernel, padding, strict=False)]
    if any(s != 1 for s in stride) or any(output_padding) or min(before, default=-1) < 0 or len(before) != len(kernel):
        return NotImplemented
    turned = weight[(..., *(slice(None, None, -1),) * len(kernel))]
    turned = turned.reshape(groups, weight.shape[0] // groups, -1, *kernel).swapaxes(1, 2)
    turned = turned.reshape(-1, weight.shape[0] // groups, *kernel)
    return convolve(input, turned, bias, stride, before, dilation, groups, out)


def convolve_backward(
    grad_output: Any, input: Any, weight: Any, stride: Ints, padding: Ints, dilation: Ints, groups: int, mask: Sequence[bool]
) -> Any:  # fmt: skip
    """The gradients of a convolution's input and weights; None in place of one that is not wanted."""
    plan = _plan(input, weight, stride, padding, dilation, groups, grad_output.shape)
    if plan is None or not mask[1] or weight.dtype is not input.dtype:
        return NotImplemented
    input, grad_output = _in_order(input), _in_order(grad_output)
    if not plain(input, grad_output):
        return NotImplemented
    of_input = None
    if mask[0]:
        of_input = np.empty(input.shape, input.dtype)
        made = convolve_transposed(grad_output, weight, None, stride, padding, dilation, (0, 0), groups, of_input)
        if made is NotImplemented:
            return NotImplemented
    parts = min(plan.parts, _PARTS_OF_WEIGHTS)
    failed = np.zeros(parts, np.uint8)
    outputs = weight.shape[0] // groups
    sums = np.empty((parts, groups, -(-outputs // _BLOCK) * _BLOCK, plan.depth), input.dtype)
    run("convolve_weights", (sums, failed), (grad_output, input), plan.ints, parts=parts)
    if failed.any():
        return NotImplemented
    of_weight = sums.sum(0)[:, :outputs].reshape(weight.shape)
    # Between two rows the kernel multiplies with 0: an infinite element, or nan, would get into sums that it is not part of.
    return (of_input, of_weight) if np.isfinite(of_weight).all() else NotImplemented


def _in_order(array: Any) -> Any:
    """The array, or a whole copy: it takes a part of what many channels take."""
    return array if whole(array) else np.require(array, None, ("C", "A"))


def pair(values: Ints) -> tuple[int, int]:
    return (values[0], values[-1])


def _blocks(weight: Any, groups: int) -> Any:
    """The weights as [groups, blocks, depth, _BLOCK]: what is multiplied with one element lies side by side."""
    rows = weight.reshape(groups, weight.shape[0] // groups, -1)
    blocks = -(-rows.shape[1] // _BLOCK)
    made = np.zeros((groups, blocks, rows.shape[2], _BLOCK), weight.dtype)
    for at in range(blocks):
        block = rows[:, at * _BLOCK : (at + 1) * _BLOCK]
        made[:, at, :, : block.shape[1]] = block.transpose(0, 2, 1)
    return made


# ---- rows


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
    few = not transposed and _is_few(weight, outs[0].shape) and not _depthwise(input, weight, transposed, groups)
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


# fmt: off
KERNELS: dict[str, Any] = {
    "convolution.out":      Row(convolution, prepares=_left_convolution),
    "convolution_backward": convolution_backward,
}
# fmt: on
