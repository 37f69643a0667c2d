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
        x = dense(self, out.dtype)
        lines(out.place, "softmax", "softmax", op, (out, x, x), dim)

    return kernel


def softmax_backward(op: int) -> Any:
    def kernel(grad_output: ClArray, output: ClArray, dim: int, input_dtype: Any, out: ClArray) -> None:
        lines(out.place, "softmax", "softmax", op, (out, dense(grad_output, out.dtype), dense(output, out.dtype)), dim)

    return kernel


# fmt: off
KERNELS = {
    "_softmax.out":                   Row(softmax(SOFTMAX)),
    "_log_softmax.out":               Row(softmax(LOG_SOFTMAX)),
    "_softmax_backward_data.out":     Row(softmax_backward(SOFTMAX_GRADIENT)),
    "_log_softmax_backward_data.out": Row(softmax_backward(LOG_SOFTMAX_GRADIENT)),
}
# fmt: on
