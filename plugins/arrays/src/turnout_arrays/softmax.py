"""Softmax, its logarithm, and their backward passes. The maximum is subtracted first, so that nothing overflows."""

from __future__ import annotations

from typing import Any

from turnout_arrays import reductions
from turnout_arrays.numbers import store, widen
from turnout_aten.kernels.rows import SAME, Accepts, Row, Steps

Table = dict[str, Any]
# Up to this many elements, what counts is the number of calls, and a sum needs no care.
_FEW = 64


def kernels(xp: Any) -> Table:
    """The rows of this module for an array module."""
    natives = {name: xp.dtype(name) for name in ("float32", "float64")}

    def shifted(self: Any, dim: int, out: Any) -> Any:
        """The input minus its maxima, computed in `out` if that has the same dtype."""
        x = widen(xp, self)
        if not -max(x.ndim, 1) <= dim < max(x.ndim, 1):
            raise IndexError("no such dim")
        if not x.shape or not x.size:
            return x - x
        largest = xp.maximum.reduce(x, dim, keepdims=True)
        return xp.subtract(x, largest, out if out is not None and out.dtype == x.dtype else None)

    def total(x: Any, dim: int) -> Any:
        return reductions.total(xp, x, dim, True) if x.shape else x

    def small(self: Any, dim: int, out: Any) -> tuple[Any, Any]:
        """`shifted` and its exponentials, for few row-major floats: without the calls that decide how."""
        x = xp.subtract(self, xp.maximum.reduce(self, dim, None, None, True), out)
        return x, xp.exp(x)

    def is_small(self: Any, out: Any) -> bool:
        plain = self.dtype.char in "fd" and 0 < self.size <= _FEW and self.flags.c_contiguous and self.ndim > 0
        return plain and (out is None or out.dtype == self.dtype)

    def softmax(self: Any, dim: int, half_to_float: bool, out: Any = None) -> Any:
        if not half_to_float and is_small(self, out):
            x, powers = small(self, dim, out)
            return xp.true_divide(powers, xp.add.reduce(powers, dim, None, None, True), x)
        x = shifted(self, dim, out)
        powers = xp.exp(x, x if x.shape else None)
        value = xp.true_divide(powers, total(powers, dim), powers if x.shape else None)
        return finished(value, half_to_float, self, out)

    def log_softmax(self: Any, dim: int, half_to_float: bool, out: Any = None) -> Any:
        if not half_to_float and is_small(self, out):
            x, powers = small(self, dim, out)
            return xp.subtract(x, xp.log(xp.add.reduce(powers, dim, None, None, True)), x)
        x = shifted(self, dim, out)
        value = xp.subtract(x, xp.log(total(xp.exp(x), dim)), x if x.shape else None)
        return finished(value, half_to_float, self, out)

    def finished(value: Any, half_to_float: bool, self: Any, out: Any) -> Any:
        """The result, row-major whatever the input's strides are."""
        if half_to_float and self.dtype.itemsize != 2:
            raise TypeError("only numbers of two bytes are computed in float32")
        if value is out:
            return out
        value = value if out is not None or value.flags.c_contiguous else xp.ascontiguousarray(value)
        return store(xp, out, value, None if half_to_float else self.dtype)

    def softmax_backward(grad_output: Any, output: Any, dim: int, input_dtype: Any, out: Any = None) -> Any:
        check_dtype(grad_output, input_dtype, out)
        grad, y = widen(xp, grad_output), widen(xp, output)
        scaled = grad * y
        return store(xp, out, scaled - y * total(scaled, dim), grad_output.dtype)

    def log_softmax_backward(grad_output: Any, output: Any, dim: int, input_dtype: Any, out: Any = None) -> Any:
        check_dtype(grad_output, input_dtype, out)
        grad, y = widen(xp, grad_output), widen(xp, output)
        product = xp.exp(y)
        product = xp.multiply(product, total(grad, dim), product if y.shape else None)
        return store(xp, out, xp.subtract(grad, product, product if y.shape else None), grad_output.dtype)

    def check_dtype(grad: Any, input_dtype: Any, out: Any) -> None:
        """Without `out`, the result has the gradient's dtype; widened half precision takes the general path."""
        if out is None and natives.get(input_dtype.name) != grad.dtype:
            raise NotImplementedError("another dtype than the gradient's needs an output")

    powers = ((xp.maximum, "self"), (xp.subtract, "self", 0), (xp.exp, 1), (xp.add, 2))
    quotient = (*powers, (xp.true_divide, 2, 3))
    difference = (*powers, (xp.log, 3), (xp.subtract, 1, 4))
    # fmt: off
    return {
        "_softmax.out":                   Row(softmax, SAME, accepts=Accepts("c"), program=Steps(quotient, _FEW)),
        "_log_softmax.out":               Row(log_softmax, SAME, accepts=Accepts("c"), program=Steps(difference, _FEW)),
        "_softmax_backward_data.out":     Row(softmax_backward, SAME),
        "_log_softmax_backward_data.out": Row(log_softmax_backward, SAME),
    }
    # fmt: on
