"""The table of kernels: operator -> function on arrays."""

import operator
from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any

from turnout_aten.plugin_api import Row

from turnout_torchlike.backend import Array, Ints


def stretched(operand: Array | float, shape: Ints) -> Iterable[Any]:
    """An operand's value for each element of the result: a number is repeated, an array broadcast."""
    if not isinstance(operand, Array):
        return repeat(operand)
    strides = [0 if length == 1 else stride for length, stride in zip(operand.shape, operand.strides)]
    strides = [0] * (len(shape) - len(strides)) + strides
    return Array(operand.handle, operand.dtype, shape, tuple(strides), operand.offset).read()


def pointwise(function: Callable[..., Any]) -> Row:
    """The row of an element-wise operator. `out` may be one of the operands, since those are read first."""

    def kernel(*arguments: Any) -> None:
        *operands, out = arguments
        out.write(map(function, *[stretched(operand, out.shape) for operand in operands]))

    return Row(kernel, pointwise=True)


def mm(self: Array, mat2: Array, out: Array) -> None:
    n, columns, a, b = self.shape[1], mat2.shape[1], self.read(), mat2.read()
    out.write(sum(a[i * n + k] * b[k * columns + j] for k in range(n)) for i in range(self.shape[0]) for j in range(columns))


KERNELS = {
    "add.out": pointwise(lambda self, other, alpha: self + alpha * other),
    "mul.out": pointwise(operator.mul),
    "neg.out": pointwise(operator.neg),
    "mm.out": mm,
}
