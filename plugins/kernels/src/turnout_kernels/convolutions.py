"""Convolutions with many channels, in one or two dims: contiguous float32 and float64."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from turnout_kernels.native import code, plain, run

Ints = Sequence[int]

# As in native/convolutions.h.
_BLOCK = 8
_MOST_TAPS = 128
# Products of two numbers from which on a call is worth its preparation.
_FEW = 1 << 21
# Bytes of the padded rows that a part keeps, in the second-level cache, and parts from which on threads have enough to share.
_KEPT = 384 << 10
_PARTS = 8
# Elements of a line of which the columns between rows, and the end of the last tile, are a small part.
_LINE = 192
_DEPTH = 1 << 13


def convolve(
    input: Any, weight: Any, bias: Any, stride: Ints, padding: Ints, dilation: Ints, groups: int, out: Any
) -> Any:  # fmt: skip
    """Write the convolution into `out`. NotImplemented where a product of matrices is as fast: kernels of one element, few channels,
    and images so small that most of a line would lie between rows."""
    if input.ndim == 3:
        if out.ndim != 3 or weight.ndim != 3:
            return NotImplemented
        two = ((1, *stride), (0, *padding), (1, *dilation))
        made = convolve(input[:, :, None], weight[:, :, None], bias, *two, groups, out[:, :, None])
        return NotImplemented if made is NotImplemented else out
    if input.ndim != 4 or not out.size or not input.size or not weight.size:
        return NotImplemented
    outputs, inputs, *kernel = (weight.shape[0] // groups, *weight.shape[1:])
    taps, depth = prod(kernel), inputs * prod(kernel)
    if taps == 1 or taps > _MOST_TAPS or outputs < _BLOCK - 2 or depth > _DEPTH or out.size * depth < _FEW:
        return NotImplemented
    weight = np.require(weight, None, ("C", "A"))
    if not plain(input, weight, out) or (bias is not None and not plain(bias, input)):
        return NotImplemented
    (sh, sw), (ph, pw), (dh, dw) = (_pair(v) for v in (stride, padding, dilation))
    images, (height, width) = out.shape[0] * groups, out.shape[2:]
    between = (kernel[1] - 1) * dw // sw
    if width < 3 * between or height * width < _LINE:
        return NotImplemented
    row = inputs * (width + between) * min(sh * sw, taps) * input.itemsize
    rows = max(_KEPT // row - (kernel[0] - 1) * dh // sh, -(-_LINE // width), 1)
    if images * -(-height // rows) < _PARTS:
        rows = max(height * images // _PARTS, -(-_LINE // width))
    rows = -(-height // max(1, height // rows))
    parts = min(images * -(-height // rows), 256)
    failed = np.zeros(parts, np.uint8)
    ints = (
        code(input), groups, inputs, outputs, *input.shape[2:], height, width, *kernel, sh, sw, ph, pw, dh, dw, rows,
        int(bias is not None),
    )  # fmt: skip
    run("convolve", (out, failed), (input, _blocks(weight, groups), weight if bias is None else bias), ints, parts=parts)
    return NotImplemented if failed.any() else out


def _pair(values: Ints) -> tuple[int, int]:
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
