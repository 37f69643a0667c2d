"""Gradients of views."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from turnout.registry import find_operator
from turnout_aten import operators as aten
from turnout_aten.shapes.extents import dense_strides as preserved
from turnout_aten.shapes.extents import reach_of
from turnout_aten.tensor.levels import GRAD
from turnout_aten.tensor.tensor import Tensor, wrap
from turnout_autograd.formulas.broadcasting import count
from turnout_autograd.formulas.recorded_calls import is_plain, unrecorded_view

if TYPE_CHECKING:
    from turnout_autograd.formulas.broadcasting import Ints

_END = (1 << 63) - 1  # what a slice without an end has
_t = find_operator("aten::t")


def turned(grad: Tensor) -> Tensor:
    """`grad.t()`."""
    if is_plain(grad) and len(grad.array.shape) == 2:
        device = grad.device
        array = device.backend.transposed(grad.array)
        if array is not None:
            made = wrap(array, device)
            made.storage = grad.shared_storage()
            made.offset = grad.offset
            return made
    return grad.t() if GRAD.get()[0] else unrecorded_view(_t, grad)


def inverse(dims: Ints) -> Ints:
    """The permutation that undoes one."""
    found = [0] * len(dims)
    for i, d in enumerate(dims):
        found[d % len(dims)] = i
    return tuple(found)


def slice_grad(grad: Tensor, shape: Ints, dim: int, start: int | None, end: int | None, step: int) -> Tensor:
    """Zeros with the gradient in the slice."""
    return aten.slice_backward(grad, shape, dim, 0 if start is None else start, _END if end is None else end, step)


def as_strided_grad(grad: Tensor, geometry: tuple[Ints, Ints, int], size: Ints, stride: Ints, offset: int | None) -> Tensor:
    """Add the gradient up in memory, and read it as self lies there; shared evenly where elements of self share a place."""
    shape, strides, own_offset = geometry
    start = own_offset if offset is None else offset
    if not prod(size) or not prod(shape):
        return grad.new_zeros(shape)
    reach = max(start + reach_of(size, stride), own_offset + reach_of(shape, strides))
    places = aten.arange(reach, device=grad.device)
    memory = grad.new_zeros((reach,))
    memory = memory.index_add(0, places.as_strided(size, stride, start).reshape((-1,)), grad.reshape((-1,)))
    own = places.as_strided(shape, strides, own_offset).reshape((-1,))
    found = memory.index_select(0, own)
    if _may_overlap(shape, strides):
        times = grad.new_zeros((reach,)).index_add(0, own, grad.new_ones((count(shape),)))
        found = found / times.index_select(0, own)
    return found.reshape(shape)


def _may_overlap(shape: Ints, strides: Ints) -> bool:
    """Whether two indices may lead to one place."""
    reach = 0
    for stride, length in sorted((abs(s), n) for n, s in zip(shape, strides, strict=True) if n != 1):
        if stride <= reach:
            return True
        reach += stride * (length - 1)
    return False


def laid_out(grad: Tensor, geometry: tuple[Ints, Ints, int]) -> Tensor:
    """A gradient with the strides of a clone of self, which `as_strided_scatter` writes into."""
    shape, strides, _ = geometry
    made = grad.new_empty_strided(shape, preserved(shape, strides))
    return made.copy_(grad)
