"""Softmax, its logarithm, and their gradients: one pass for maximum and sum, one for the result.

Few long columns are cut into parts: one launch for the maxima and sums of these, and one for the result.
"""

from __future__ import annotations

from math import prod
from typing import Any

from turnout_cuda.floats import Arrays, computed, kind
from turnout_cuda.programs import Programs, name_of
from turnout_cuda.reductions import COLUMN_BLOCK, parts_of

Table = dict[str, Any]
_SHORT, _SHORT_BLOCK = 32, (256, 1)  # columns of fewer elements have a thread each


def kernels(xp: Any, programs: Programs) -> Table:
    """The rows of this module."""
    arrays = Arrays(xp)

    def along(name: str, made: Any, inputs: tuple[Any, ...], dim: int, logarithm: bool) -> None:
        """Start the kernel for rows or for columns; all arrays have one shape."""
        shape, dtype = made.shape, name_of(inputs[0])
        dim %= max(len(shape), 1)
        length = shape[dim] if shape else 1
        inner = prod(shape[dim + 1 :])
        given = (*[arrays.packed(array) for array in inputs], made)
        if inner == 1:
            rows = made.size // length
            programs.over_rows(f"softmax_rows{name}", dtype, rows, length, (*given, rows, length, int(logarithm)))
            return
        columns = made.size // length
        args = (columns, length, inner, int(logarithm))
        if name:
            programs.over_elements(f"softmax_columns{name}", dtype, columns, (*given, *args))
            return
        width, threads = COLUMN_BLOCK if length >= _SHORT else _SHORT_BLOCK
        count, wide = parts_of(columns // inner, length, inner), computed(dtype)
        grid = (-(-columns // width), count)
        parts = made if count == 1 and dtype == wide else xp.empty((columns, count, 2), wide)
        if count > 1:
            programs.start("softmax_parts_of_columns", dtype, grid, COLUMN_BLOCK, (given[0], parts, *args[:3]))
        programs.start("softmax_columns", dtype, grid, (width, threads), (*given, parts, count, *args))

    def forward(logarithm: bool) -> Any:
        def kernel(self: Any, dim: int, half_to_float: bool, out: Any = None) -> Any:
            # With half_to_float, the input comes in float32.
            if kind(self) is None or (half_to_float and out is None) or not -max(self.ndim, 1) <= dim < max(self.ndim, 1):
                return NotImplemented
            return arrays.filled(out, self.shape, self.dtype, lambda made: along("", made, (self,), dim, logarithm))

        return kernel

    def backward(logarithm: bool) -> Any:
        def kernel(grad_output: Any, output: Any, dim: int, input_dtype: Any, out: Any = None) -> Any:
            if kind(grad_output, output) is None or (out is None and input_dtype.name != name_of(output)):
                return NotImplemented
            if grad_output.shape != output.shape or not -max(output.ndim, 1) <= dim < max(output.ndim, 1):
                return NotImplemented
            given = (grad_output, output)
            return arrays.filled(out, output.shape, output.dtype, lambda made: along("_backward", made, given, dim, logarithm))

        return kernel

    return {
        "_softmax.out": forward(logarithm=False),
        "_log_softmax.out": forward(logarithm=True),
        "_softmax_backward_data.out": backward(logarithm=False),
        "_log_softmax_backward_data.out": backward(logarithm=True),
    }
