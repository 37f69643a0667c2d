"""Softmax, its logarithm, and their gradients."""

from __future__ import annotations

from typing import Any

from turnout_aten.kernels.rows import Row
from turnout_opencl.arrays import ClArray
from turnout_opencl.pointwise import dense
from turnout_opencl.reductions import lines

SOFTMAX, LOG_SOFTMAX, SOFTMAX_GRADIENT, LOG_SOFTMAX_GRADIENT = range(4)


def softmax(op: int) -> Any:
    def kernel(self: ClArray, dim: int, half_to_float: bool, out: ClArray) -> None:
        along(op, (out, dense(self, out.dtype)), dim)

    return kernel


def softmax_backward(op: int) -> Any:
    def kernel(grad_output: ClArray, output: ClArray, dim: int, input_dtype: Any, out: ClArray) -> None:
        along(op, (out, dense(grad_output, out.dtype), dense(output, out.dtype)), dim)

    return kernel


def along(op: int, arrays: tuple[ClArray, ...], dim: int) -> None:
    """Queue the softmax kernel; a 0-dim array is one of one element."""
    flat = [a if a.shape else a.view((1,), (1,), 0) for a in arrays]
    d = dim % len(flat[0].shape)
    if len(flat) == 2:
        flat.append(flat[1])
    lines(flat[0].place, "softmax", "softmax", op, tuple(flat), d)


# fmt: off
KERNELS = {
    "_softmax.out":                   Row(softmax(SOFTMAX)),
    "_log_softmax.out":               Row(softmax(LOG_SOFTMAX)),
    "_softmax_backward_data.out":     Row(softmax_backward(SOFTMAX_GRADIENT)),
    "_log_softmax_backward_data.out": Row(softmax_backward(LOG_SOFTMAX_GRADIENT)),
}
# fmt: on
