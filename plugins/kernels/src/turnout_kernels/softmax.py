"""Rows of softmax and its gradient.

The kernels serve contiguous float32 and float64. Other layouts and two-byte floats come as contiguous copies.
"""

from __future__ import annotations

from functools import partial, wraps
from math import prod
from typing import Any

import numpy as np

from turnout_aten.kernels.rows import Row, Sizes
from turnout_kernels import _native
from turnout_kernels.layouts import any_floats
from turnout_kernels.native import GRAIN, code, plain, run, threads

# Columns from which on a dim that is not the last one is gone along as it lies.
_WIDE = 8


def softmax_of(*, logarithm: bool) -> Row:
    """softmax, or its logarithm."""

    def kernel(self: Any, dim: int, half_to_float: bool, out: Any = None) -> Any:
        if half_to_float or not self.size or not plain(self):
            return NotImplemented
        made = np.empty(self.shape, self.dtype) if out is None else out
        if not plain(self, made):
            return NotImplemented
        _along_columns((made,), (self,), dim, logarithm=logarithm)
        return made

    return Row(
        _along_dim(any_floats(kernel), arrays=1, dim=1),
        sizes=Sizes(over=partial(_native.row, "softmax", logarithm, GRAIN, 1, 0, False, np.empty_like, threads)),
    )


def softmax_backward_of(*, logarithm: bool) -> Row:
    """The gradient of softmax, or of its logarithm."""

    def kernel(grad_output: Any, output: Any, dim: int, input_dtype: Any, out: Any = None) -> Any:
        if not output.size or grad_output.shape != output.shape or (out is None and input_dtype.name != output.dtype.name):
            return NotImplemented
        if not plain(output, grad_output):
            return NotImplemented
        made = np.empty(output.shape, output.dtype) if out is None else out
        if not plain(output, made):
            return NotImplemented
        _along_columns((made,), (grad_output, output), dim, logarithm=logarithm, ending="_backward")
        return made

    return Row(_along_dim(any_floats(kernel), arrays=2, dim=2))


def _along_columns(outputs: Any, inputs: Any, dim: int, *, logarithm: bool, ending: str = "") -> None:
    """Call the kernel of softmax for the last dim, or that for another one."""
    shape = inputs[0].shape
    length, inner = shape[dim], prod(shape[dim % len(shape) + 1 :])
    if inner == 1:
        run(f"softmax{ending}", outputs, inputs, (code(inputs[0]), length, int(logarithm)))
    else:
        run(f"softmax_columns{ending}", outputs, inputs, (code(inputs[0]), length, inner, int(logarithm)))


def _along_dim(kernel: Any, *, arrays: int, dim: int) -> Any:
    """A kernel of contiguous arrays along a dim: `arrays` inputs, the output and a dim at a place among the arguments. It goes
    along the last dim instead where that is how the elements lie, or where there are few columns."""

    @wraps(kernel)
    def moved(*args: Any) -> Any:
        self, at = args[0], args[dim]
        ndim = self.ndim
        if not -ndim <= at < ndim:
            return NotImplemented
        at %= ndim
        in_a_row = self.strides[at] == self.itemsize
        if at == ndim - 1 or (not in_a_row and prod(self.shape[at + 1 :]) >= _WIDE):
            return kernel(*args)
        if args[-1].__class__ is not np.ndarray:
            raise NotImplementedError("a dim whose elements lie in a row needs an output")
        given = [a.swapaxes(at, -1) if i < arrays else a for i, a in enumerate(args)]
        given[dim], given[-1] = -1, args[-1].swapaxes(at, -1)
        return NotImplemented if kernel(*given) is NotImplemented else args[-1]

    return moved


# fmt: off
KERNELS: dict[str, Any] = {
    "_softmax.out":                   softmax_of(logarithm=False),
    "_log_softmax.out":               softmax_of(logarithm=True),
    "_softmax_backward_data.out":     softmax_backward_of(logarithm=False),
    "_log_softmax_backward_data.out": softmax_backward_of(logarithm=True),
}
# fmt: on
