"""Shapes broadcast together: a gradient expanded to a shape, and summed over what was expanded."""

from __future__ import annotations

from math import prod

from turnout.registry import find_operator
from turnout_aten import operators as aten
from turnout_aten.tensor.levels import GRAD
from turnout_aten.tensor.tensor import Tensor, wrap
from turnout_autograd.formulas.recorded_calls import is_plain, unrecorded_view

Ints = tuple[int, ...]

_expand = find_operator("aten::expand")
_SMALL = 4096  # elements that are sooner written than viewed


def expand(grad: Tensor, shape: Ints) -> Tensor:
    """`grad.expand(shape)`, or the same values in memory of their own."""
    if GRAD.get()[0]:
        return grad.expand(shape)
    if prod(shape) <= _SMALL and is_plain(grad):  # 1.2 us instead of 2.3, and a leaf need not copy it
        array = grad.device.backend.spread(grad.array, shape)
        if array is not None:
            return wrap(array, grad.device)
    return unrecorded_view(_expand, grad, shape, False)


def blank(grad: Tensor, shape: Ints) -> Tensor:
    """Zeros for an operator that begins with a copy of them. Many are one element, expanded: nothing is written twice."""
    return grad.new_zeros(shape) if prod(shape) <= _SMALL else grad.new_zeros(()).expand(shape)


def count(*shapes: Ints) -> int:
    """The number of elements of shapes broadcast together."""
    if len(shapes) == 1:
        return prod(shapes[0])
    ndim = max(map(len, shapes))
    padded = [(1,) * (ndim - len(s)) + s for s in shapes]
    return prod(next((n for n in lengths if n != 1), 1) for lengths in zip(*padded, strict=True))


def sum_to(x: Tensor, shape: Ints) -> Tensor:
    """The sum over the dims along which `shape` was broadcast to x's."""
    have = x.shape
    if have == shape:
        return x
    leading = len(have) - len(shape)
    if leading:
        x = aten.sum__dim_IntList(x, tuple(range(leading)))
        if have[leading:] == shape:
            return x
    dims = tuple(d for d, n in enumerate(shape) if n == 1 and have[leading + d] != 1)
    return aten.sum__dim_IntList(x, dims, True) if dims else x
